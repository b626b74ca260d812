"""A folder with links, pipes, devices and endless files in it: each is skipped, none is waited for.

And folders that are none: the others are indexed all the same.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path
from struct import pack

import pytest
from redraft.lsp.context import listing as workspace
from redraft.lsp.context import safe_reading
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import Indexer, fill
from redraft.lsp.context.listing import MOST_BYTES, find_files, read_code
from redraft.lsp.context.safe_reading import UnreadableFile, read_file
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.recording.change_sources import has_moved
from redraft.lsp.workspace import Workspace

pytestmark = pytest.mark.skipif(os.name != "posix", reason="such files are made on POSIX alone")

SECRET = "def outside():\n    return 4711\n"


def link(path: Path) -> None:
    target = path.parents[1] / "outside.py"
    target.write_text(SECRET)
    path.symlink_to(target)


def folder_link(path: Path) -> None:
    outside = path.parents[1] / "outside"
    outside.mkdir()
    (outside / "b.py").write_text(SECRET)
    path.symlink_to(outside)


def endless_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def device_link(path: Path) -> None:
    path.symlink_to("/dev/tty")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def folder(path: Path) -> None:
    path.mkdir()


def oversize(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk; it would in memory


HOSTILE: dict[Callable[[Path], None], str] = {
    link: "is a link",
    folder_link: "is a link",
    endless_link: "is a link",
    dangling_link: "is a link",
    device_link: "is a link",
    pipe: "is a pipe",
    listener: "is a socket",
    folder: "is a folder",
    oversize: "is too large",
}
hostile = pytest.mark.parametrize("make", HOSTILE, ids=lambda each: each.__name__)


@pytest.fixture(params=["stepwise", "by path"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of opening a file: here, and where folders cannot be held open."""
    monkeypatch.setattr(safe_reading, "_STEPWISE", request.param == "stepwise")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("def inside():\n    return 1\n")
    return project


@pytest.fixture(params=["with git", "without git"])
def listing(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without git":
        monkeypatch.setenv("PATH", str(project / "nowhere"))
    else:
        monkeypatch.setattr(workspace, "_GIT_TIMEOUT_S", 1.0)  # for git to wait for a pipe
        git(project, "init", "-q")
    return str(request.param)


def git(folder: Path, *arguments: str) -> None:
    try:
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")


def indexed(folder: Path) -> list[str]:
    index = Index()
    fill(index, [folder], lambda path: "", lambda done, total: None)
    assert not index.generation.places("outside", "python")
    return sorted(entry.path for entry in index.generation.entries)


@hostile
def test_it_is_refused_with_its_reason(make: Callable[[Path], None], project: Path) -> None:
    make(project / "b.py")
    with pytest.raises(UnreadableFile, match=HOSTILE[make]):
        read_file(project, "b.py", MOST_BYTES)
    assert read_code(project, "b.py") is None


@hostile
@pytest.mark.parametrize("name", ["b.py", ".gitignore"])
@pytest.mark.usefixtures("spawn")
def test_as_source_or_gitignore_it_is_not_heeded(
    make: Callable[[Path], None], name: str, project: Path, listing: str
) -> None:
    make(project / name)
    assert indexed(project) == ["a.py"]


@hostile
@pytest.mark.parametrize("name", [".git", ".git/HEAD", ".git/logs/HEAD"])
def test_as_a_git_file_it_is_left(make: Callable[[Path], None], name: str, project: Path) -> None:
    file = project / name
    if name != ".git":
        (project / ".git" / "logs").mkdir(parents=True)
    make(file)
    moved_s = os.lstat(file).st_mtime
    # The end of a log is read, and that alone; only the time of HEAD is.
    is_log = make is oversize and name != ".git"
    assert has_moved(project / "a.py", moved_s) == is_log


@pytest.mark.parametrize("share", ["//host/share", r"\\host\share"])
def test_no_pointer_is_followed(share: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").write_text(f"gitdir: {share}\n")
    asked: list[str] = []
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: (asked.append(str(path)), real(path))[1])
    assert not has_moved(project / "a.py", 0.0)
    assert asked
    assert not any("share" in path for path in asked)


@pytest.mark.usefixtures("spawn")
def test_nothing_is_read_behind_a_folder_become_a_link(project: Path) -> None:
    git(project, "init", "-q")
    (project / "inner").mkdir()
    (project / "inner" / "b.py").write_text("x = 1\n")
    git(project, "add", ".")
    (project / "inner").rename(project / "other")
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "b.py").write_text(SECRET)
    (project / "inner").symlink_to(outside)
    assert "inner/b.py" in {found.path for found in find_files(project, lambda path: "")}
    assert indexed(project) == ["a.py", "other/b.py"]


@pytest.mark.parametrize("name", ["../outside.py", "/etc/hosts.py", "inner/../../outside.py"])
@pytest.mark.usefixtures("spawn")
def test_an_index_of_files_elsewhere_is_not_believed(name: str, project: Path) -> None:
    git(project, "init", "-q")
    (project.parent / "outside.py").write_text(SECRET)
    path = name.encode()
    entry = bytes(24) + pack(">I", 0o100644) + bytes(12) + bytes(20) + pack(">H", len(path)) + path
    index = b"DIRC" + pack(">II", 2, 1) + entry + bytes(8 - len(entry) % 8)
    (project / ".git" / "index").write_bytes(index + sha1(index).digest())
    listed = subprocess.run(["git", "ls-files", "-c"], cwd=project, capture_output=True).stdout
    assert b".py" in listed, "git does not believe it either"
    assert [found.path for found in find_files(project, lambda path: "")] == ["a.py"]
    with pytest.raises(UnreadableFile, match="does not lie in the folder"):
        read_file(project, name, MOST_BYTES)


def test_a_file_that_lies_of_its_size_is_read_in_part() -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("there is no /proc")
    with pytest.raises(UnreadableFile, match="more than 100 bytes"):
        read_file("/proc/self", "maps", 100)


@pytest.mark.usefixtures("spawn")
def test_the_folder_itself_may_be_a_link(project: Path) -> None:
    """Open a document by that name."""
    (project.parent / "by-link").symlink_to(project)
    assert indexed(project.parent / "by-link") == ["a.py"]


def test_patterns_that_take_hours_are_left(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project / "nowhere"))
    (project / "b.py").write_text("x = 1\n")
    (project / ("a" * 200 + ".py")).write_text("x = 1\n")
    (project / ".gitignore").write_text("*a" * 60 + "b\nb.py\n")
    assert indexed(project) == ["a.py", "a" * 200 + ".py"]


def test_long_ignore_files_are_heeded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project / "nowhere"))
    (project / ".gitignore").write_text("x\n" * 1_500 + "a.py\n")
    assert indexed(project) == []


#: Modules that look at the disk because a folder was opened, and how they may.
READERS = (
    *("context/listing.py", "context/indexer.py", "context/index.py", "context/gatherer.py"),
    *("context/git.py", "policy/secret_files.py", "recording/change_sources.py"),
    *("context/scored_excerpts.py", "context/trees.py", "context/region.py", "snapshot.py"),
    *("policy/ignore_files.py", "policy/exclusions.py", "context/pinned.py", "documents/uris.py"),
)


@pytest.mark.parametrize("name", READERS)
def test_files_of_a_folder_are_opened_by_one_function(name: str) -> None:
    source = (Path(safe_reading.__file__).parents[1] / name).read_text(encoding="utf-8")
    assert not re.findall(r"\bopen\(|\.read_text\(|\.read_bytes\(|os\.open\b", source)


class Desk:
    def __init__(self, *uris: str) -> None:
        workspace = Workspace(LspSettings(), lambda: 1_000.0, reads=False)
        workspace.folders = [*uris]
        self.context = workspace.context
        self.context.start()
        self.context.catch_up()

    @property
    def knows(self) -> bool:
        return bool(self.context.indexer.index.generation.definers("inside", "python"))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("file:///tmp/a%00b", "no folder on this machine"),
        ("file://%00/x", "(no folder on this machine|does not exist|cannot be read)"),
        ("vscode-remote://ssh/x", "no folder on this machine"),
        ("file://[", "no folder on this machine"),
        ("", "no folder on this machine"),
        ("file:///", "whole disk"),
        ("file:///nowhere/at/all", "does not exist"),
        ("file:///dev/null", "no folder"),
        ("file:///" + "x" * 5_000, "cannot be read"),
        ("file:///dev/null/x", "no folder"),
        ("file:///%ED%A0%80", "(does not exist|cannot be read)"),
    ],
)
@pytest.mark.usefixtures("spawn")
def test_a_folder_that_is_none_stops_no_other(
    bad: str, why: str, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for uris in ((bad, project.as_uri()), (project.as_uri(), bad)):
            desk = Desk(*uris)
            assert desk.knows
            (told,) = desk.context.unread.values()
            assert re.search(why, told)
    assert re.search(why, caplog.text)


@pytest.mark.usefixtures("spawn")
def test_a_folder_without_access_is_passed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = project.parent / "locked"
    locked.mkdir()
    real = os.scandir

    def scandir(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path) == locked:  # root may read everything
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    desk = Desk(locked.as_uri(), project.as_uri())
    assert desk.knows
    assert desk.context.unread == {str(locked): "it cannot be read: Permission denied"}


@pytest.mark.usefixtures("spawn")
def test_an_unreadable_file_stops_no_other(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "0.py").write_text("x = 1\n")
    real = read_code

    def failing(folder: str, path: str) -> str | None:
        if path == "0.py":
            raise RuntimeError("on purpose")
        return real(folder, path)

    monkeypatch.setattr("redraft.lsp.context.indexer.read_code", failing)
    indexer = Indexer(lambda path: "", lambda: 1_000.0, background=False)
    indexer.watch([project])
    indexer.catch_up()
    assert [entry.path for entry in indexer.index.generation.entries] == ["a.py"]


def test_a_documents_name_that_is_none_disturbs_none() -> None:
    assert not has_moved(Path("/x\0y/a.py"), 0.0)
