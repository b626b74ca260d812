"""A repository whose configuration names programs: none of them runs because its folder is opened.

Each trap is sprung once by git as people call it, so that one that no longer works is noticed.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from redraft.lsp.context import git
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import fill
from redraft.lsp.recording.change_sources import has_moved
from redraft.model.errors import InstallError
from support.tree import PACKAGES, ROOT, modules

pty = pytest.importorskip("pty", reason="there are no terminals of this kind here")
pytestmark = [
    pytest.mark.usefixtures("spawn"),
    pytest.mark.skipif(os.name != "posix", reason="the lures are shell scripts"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

CODE = "".join(f"def function_{number}():\n    return {number}\n\n\n" for number in range(12))


class Trap:
    """A repository of two commits, and a program that leaves a mark where it runs."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "project"
        self.mark = place / "the-lure-ran"
        self.lure = place / "lure"
        self.lure.write_text(f"#!/bin/sh\ntouch '{self.mark}'\nexit 1\n")
        self.lure.chmod(0o755)
        self.folder.mkdir()
        self.git("init", "-q")
        for name in ("seen/a.py", "hidden/b.py"):
            (self.folder / name).parent.mkdir()
            (self.folder / name).write_text(CODE)
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        edited = CODE.replace("return 1\n", "return 100\n").replace("return 5\n", "return 500\n")
        for name in ("seen/a.py", "hidden/b.py"):
            (self.folder / name).write_text(edited.replace("return 9\n", "return 900\n"))
        self.git("commit", "-qam", "two")

    def git(self, *arguments: str, may_fail: bool = False, **keywords: object) -> str:
        """As a person calls it."""
        named = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER")
                 for what in ("NAME", "EMAIL")}  # fmt: skip
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **named, "GIT_CONFIG_GLOBAL": os.devnull},
            check=not may_fail,
            timeout=60,
            **{"capture_output": True, "text": True, **keywords},  # type: ignore[call-overload]
        )
        return str(done.stdout).strip()

    def set(self, **settings: str) -> None:
        """``a__b`` is ``a.b``."""
        for name, value in settings.items():
            self.git("config", name.replace("__", "."), value)

    def lose(self, *objects: str) -> None:
        """As in a partial clone: what these are in HEAD is not here."""
        for named in objects:
            found = self.git("rev-parse", named)
            (self.folder / ".git" / "objects" / found[:2] / found[2:]).unlink()
        self.set(
            core__repositoryformatversion="1",
            extensions__partialClone="origin",
            remote__origin__promisor="true",
            remote__origin__partialclonefilter="tree:0",
        )

    def hide(self) -> None:
        """Fold a folder into one entry of the index."""
        self.git("sparse-checkout", "init", "--cone", "--sparse-index")
        self.git("sparse-checkout", "set", "seen")

    def touch(self) -> None:
        """Git must look into the file to know whether it has changed."""
        file = self.folder / "seen" / "a.py"
        text = file.read_text()
        file.write_text(text.replace("return 900", "return 901"))
        os.utime(file, (1, 1))


def monitor(trap: Trap) -> None:
    trap.set(core__fsmonitor=str(trap.lure))


def hook(trap: Trap) -> None:
    hooks = trap.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        shutil.copy(trap.lure, hooks / name)
    os.utime(trap.folder / "seen" / "a.py", (1, 1))


def connection(trap: Trap) -> None:
    trap.hide()
    trap.lose("HEAD:hidden")
    trap.set(remote__origin__url="ssh://git@127.0.0.1/x", core__sshCommand=str(trap.lure))


def connection_allowed(trap: Trap) -> None:
    connection(trap)
    trap.set(protocol__allow="always", protocol__ssh__allow="always")


def helper(trap: Trap) -> None:
    trap.hide()
    trap.lose("HEAD:hidden")
    trap.set(remote__origin__url=f"ext::{trap.lure} %S", protocol__ext__allow="always")


def upload_pack(trap: Trap) -> None:
    trap.hide()
    trap.lose("HEAD:hidden")
    trap.set(
        remote__origin__url=str(trap.folder),
        remote__origin__uploadpack=str(trap.lure),
        protocol__file__allow="always",
    )


def lost_text(trap: Trap) -> None:
    trap.lose("HEAD:seen/a.py")
    trap.set(remote__origin__url="ssh://git@127.0.0.1/x", core__sshCommand=str(trap.lure))


def content_filter(trap: Trap) -> None:
    (trap.folder / ".gitattributes").write_text("*.py filter=lure\n")
    trap.set(filter__lure__clean=str(trap.lure), filter__lure__smudge=str(trap.lure))
    trap.touch()


def converter(trap: Trap) -> None:
    (trap.folder / ".gitattributes").write_text("*.py diff=lure\n")
    trap.set(diff__lure__textconv=str(trap.lure))


def differ(trap: Trap) -> None:
    trap.set(diff__external=str(trap.lure))
    trap.touch()


def included(trap: Trap) -> None:
    more = trap.folder / "more.config"
    more.write_text(f"[core]\n\tfsmonitor = {trap.lure}\n")
    trap.set(include__path="../more.config")


def signed(trap: Trap) -> None:
    trap.set(gpg__program=str(trap.lure), log__showSignature="true")
    told = trap.git("cat-file", "commit", "HEAD").split("\n\n", 1)
    key = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    commit = f"{told[0]}\n{key}\n\n{told[1]}\n"
    made = trap.git("hash-object", "-t", "commit", "-w", "--stdin", input=commit)
    trap.git("update-ref", "HEAD", made)


def pager(trap: Trap) -> None:
    trap.set(core__pager=str(trap.lure), pager__log="true", **{"pager__ls-files": "true"})


#: How each trap is made, and a command that springs it.
TRAPS: dict[Callable[[Trap], None], tuple[str, ...]] = {
    monitor: ("status",),
    included: ("status",),
    hook: ("status",),
    connection: ("ls-files",),
    connection_allowed: ("-c", "protocol.allow=never", "ls-files"),
    helper: ("ls-files",),
    upload_pack: ("ls-files",),
    lost_text: ("cat-file", "-p", "HEAD:seen/a.py"),
    content_filter: ("status",),
    converter: ("log", "-p"),
    differ: ("diff",),
    signed: ("log",),
    pager: ("log",),
}


@pytest.mark.parametrize("set_up", TRAPS, ids=lambda each: each.__name__)
def test_nothing_that_a_repository_names_is_run(
    set_up: Callable[[Trap], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trap = Trap(tmp_path)
    set_up(trap)
    _on_a_terminal(trap, TRAPS[set_up])
    assert trap.mark.exists(), "the trap does not work, so that this test would prove nothing"
    trap.mark.unlink()

    if set_up in (content_filter, differ):
        trap.touch()  # the same program may have changed the index
    index = Index()
    fill(index, [trap.folder], lambda path: "", lambda done, total: None)
    assert not trap.mark.exists()
    assert "seen/a.py" in {entry.path for entry in index.generation.entries}

    has_moved(trap.folder / "seen" / "a.py", 0.0)
    assert not trap.mark.exists()


def _on_a_terminal(trap: Trap, command: tuple[str, ...]) -> None:
    """Connect git to a terminal, where it would page its output."""
    ours, theirs = pty.openpty()
    try:
        trap.git(*command, may_fail=True, capture_output=False, stdout=theirs, stderr=theirs)
    finally:
        os.close(theirs)
        os.close(ours)


def test_git_comes_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = Trap(tmp_path)
    shutil.copy(trap.lure, trap.folder / "git")
    monkeypatch.chdir(trap.folder)
    for first in (".", "", str(trap.folder)):
        monkeypatch.setenv("PATH", os.pathsep.join((first, os.environ["PATH"])))
    subprocess.run(["git", "--version"], check=False, cwd=trap.folder)
    assert trap.mark.exists()
    trap.mark.unlink()
    said = git.ask(trap.folder, "ls-files", within_s=30, most_bytes=1 << 16)
    assert b"seen/a.py" in said.output
    assert not trap.mark.exists()


def test_the_environment_reaches_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = Trap(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_TRACE", str(trap.mark))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='{trap.lure}'")
    said = git.ask(trap.folder, "ls-files", within_s=30, most_bytes=1 << 16)
    assert (said.code, b"seen/a.py" in said.output) == (0, True)
    assert not trap.mark.exists()


def test_missing_git_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="install it"):
        git.ask(tmp_path, "ls-files", within_s=30, most_bytes=1)


def test_a_git_that_waits_is_ended(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    os.mkfifo(trap.folder / "seen" / ".gitignore")
    said = git.ask(
        trap.folder,
        *("ls-files", "--others", "--exclude-standard"),
        within_s=1.0,
        most_bytes=1 << 16,
    )
    assert said.code < 0


def test_no_more_is_taken_from_git_than_was_asked_for(tmp_path: Path) -> None:
    said = git.ask(Trap(tmp_path).folder, "ls-files", within_s=30, most_bytes=3)
    assert len(said.output) == 3


def other_doors(source: str) -> list[str]:
    """Texts that name git as a program, in a module that starts programs."""
    tree = ast.parse(source)
    imports = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    starting = {"system", "popen", "create_subprocess_exec", "create_subprocess_shell"}
    if "subprocess" not in imports and not names & starting:
        return []
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [
        text
        for text in texts
        if isinstance(text, str) and text.split(" ")[0].rpartition("/")[2] in ("git", "git.exe")
    ]


def test_all_of_git_goes_through_one_door() -> None:
    found = {
        str(path.relative_to(ROOT)): texts
        for package in PACKAGES
        for path in modules(package)
        if (texts := other_doors(path.read_text(encoding="utf-8")))
    }
    assert list(found) == ["lsp/context/git.py"]


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess\nsubprocess.run(['git', 'status'])",
        "from subprocess import run\nrun('git status', shell=True)",
        "import os\nos.system('/usr/bin/git status')",
        "import asyncio\nasyncio.create_subprocess_exec('git', 'status')",
    ],
)
def test_another_door_would_be_noticed(source: str) -> None:
    assert other_doors(source)
