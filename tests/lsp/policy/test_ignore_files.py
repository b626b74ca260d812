"""Ignore files are heeded as git heeds them; what cannot be heeded excludes its folder."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from redraft.lsp.context.listing import find_files
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.policy.exclusions import Exclusions
from redraft.lsp.policy.ignore_files import IgnoreRules, as_bytes, parse_ignore_file

CODE = "def f():\n    return 1\n"


def why(folder: Path, name: str) -> str:
    """Return why a document is excluded in a workspace."""
    exclusions = Exclusions(LspSettings, lambda: [f"file://{folder}"])
    uri = f"file://{folder}/{name}"
    exclusions.on_open(uri)
    return exclusions.why(name, uri)


def is_ignored(data: bytes, path: str) -> bool:
    """Return whether an ignore file excludes a path, with all folders above looked at first."""
    patterns, parts = parse_ignore_file(data).patterns, path.split("/")
    for depth in range(1, len(parts) + 1):
        below = as_bytes("/".join(parts[:depth]))
        found = patterns.last(below, is_folder=depth < len(parts))
        if found is not None and found.excludes:
            return True
    return False


HEEDED = {
    "byte order mark": (b"\xef\xbb\xbfprivate/\nx/\n", "private/a.py"),
    "UTF-16": ("private/\n".encode("utf-16"), "private/a.py"),
    "UTF-16 of big ends": (b"\xfe\xff" + "private/\n".encode("utf-16-be"), "private/a.py"),
    "UTF-32": ("private/\n".encode("utf-32"), "private/a.py"),
    "Windows line ends": (b"x/\r\nprivate/\r\n", "private/a.py"),
    "a last line without an end": (b"private/\r", "private/a.py"),
    "form feed": (b"gen\x0cerated/\n", "gen\x0cerated/a.py"),
    "vertical tab": (b"gen\x0berated/\n", "gen\x0berated/a.py"),
    "next line": ("gen\x85erated/\n".encode(), "gen\x85erated/a.py"),
    "line separator": ("gen\u2028erated/\n".encode(), "gen\u2028erated/a.py"),
    "paragraph separator": ("gen\u2029erated/\n".encode(), "gen\u2029erated/a.py"),
    **{f"0x{c:x}": (b"a%cb/\n" % c, f"a{chr(c)}b/p.py") for c in (0x1C, 0x1D, 0x1E, 0x1F)},
    "many stars": (b"**/*secret*/**\n", "a/my-secrets/b.py"),
    "more stars": (b"*a*b*c*d*e*f*\n", "xaxbxcxdxexfx.py"),
    "many patterns": (
        b"".join(b"d%d/\n" % n for n in range(3_001)) + b"private/\n",
        "private/a.py",
    ),
    "a long file": (b"private/\n" + b"# x\n" * 200_000, "private/a.py"),
    "a bare exclamation mark": (b"private/\n!\n", "private/a.py"),
    "a bare backslash": (b"private/\n\\\n", "private/a.py"),
    "a backslash at the end": (b"build\\\nprivate/\n", "private/a.py"),
    "two slashes": (b"//\nprivate/\n", "private/a.py"),
    "a class that re refuses": (b"[b-a]\n[]\n[\nprivate/\n", "private/a.py"),
    "a range backwards": (b"[z-a].py\n", "z.py"),
    "a class by name": (b"[[:alpha:]].py\n", "a.py"),
    "operators of sets": (b"[a--b].py\n[[c].py\n[x&&y].py\n", "&.py"),
    "an escaped space": (b"a\\ \n", "a /b.py"),
    "other scripts": ("geheim/\nprivé/\n".encode(), "privé/a.py"),
}


@pytest.mark.parametrize("case", HEEDED)
def test_ignore_file_is_heeded(case: str, tmp_path: Path) -> None:
    data, name = HEEDED[case]
    (tmp_path / ".redraftignore").write_bytes(data)
    assert "redraftignore" in why(tmp_path, name.replace("%", "%25"))
    assert not why(tmp_path, "other/two.py")


@pytest.mark.parametrize("case", HEEDED)
def test_gitignore_is_heeded_without_git(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, name = HEEDED[case]
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    for file in (tmp_path / name, tmp_path / "other" / "two.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CODE)
    (tmp_path / ".gitignore").write_bytes(data)
    assert [each.path for each in find_files(tmp_path, lambda _: "")] == ["other/two.py"]


TABLE = [
    *(data for data, _ in HEEDED.values() if data[:2] not in (b"\xff\xfe", b"\xfe\xff")),
    *(b"x\r\r\ny", b"x \r\n", b"x\t\n", b"x \t \n", b"x\\  \n", b"x\x0c\n", b"\\#b\n\\!c\n"),
    *(b" #a\n", b"**\n", b"**/\n", b"*/\n", b"a/**\n", b"a/**/b\n", b"foo**/bar\n", b"a**b\n"),
    *(b"private/\n!private/a\n", b"private/*\n!private/a\n", b"*\n!*/\n!*.py\n", b"a\n!a/b\n"),
    *(b"caf?\n", b"caf??\n", b"./a\n", b"//a\n", b"a//b\n", b"/a\n", b"[!/]x\n", b"a[/]b\n"),
]
NAMES = [
    *("a", "b", "x", "y", "x\r", "x ", "x\t", "x \t", "x\x0c", "#b", "!c", " #a", "a/b", "a/x/b"),
    *("foox/bar", "foobar", "foo/a/bar", "axxb", "ax/xb", "private/a", "private/b", "a.py"),
    *("a.c", "a/b.py", "café", "b/a", "ax", "/x"[1:], "a b", "build", "build\\", "z.py", "&.py"),
]
PIECES = [
    *("a", "b", "*", "**", "?", "/", "[", "]", "!", "^", "-", "\\", "[a-b]", "[!a]", "[[:alpha:]]"),
    *("[b-a]", "x", " ", ".", "**/", "/**", "\\/", "[^", "[:", "a]", "\r", "\t"),
]
SHORT = [
    *("a", "b", "ab", "ba", "a/b", "b/a", "x", "ax", "xa", "a/b/x", "x/a", "x/x", "-", "]", "\\"),
    *("!", "!a", "a-b", "[a", "a]", "^", "aab", "b/ab", "..a", ".a", "a.b", " a", "a ", "a\r"),
    *("a/b/a/b", "a/a/a/b", "x/a/b/x/a", "abab/b", "ab/ab/ba", "a\t"),
]


def by_git(folder: Path, files: list[bytes], names: list[str]) -> set[tuple[int, str]]:
    """Return which names git ignores by which of some ``.gitignore`` files."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    asked = []
    for number, data in enumerate(files):
        (folder / str(number)).mkdir()
        (folder / str(number) / ".gitignore").write_bytes(data)
        asked += [f"{number}/{name}" for name in names]
    found = subprocess.run(
        ["git", "check-ignore", "-z", "--no-index", "--stdin"],
        cwd=folder,
        input=b"\0".join(map(os.fsencode, asked)) + b"\0",
        capture_output=True,
    ).stdout
    split = (os.fsdecode(each).partition("/") for each in found.split(b"\0")[:-1])
    return {(int(number), name) for number, _, name in split}


@pytest.mark.usefixtures("spawn")  # git
def test_files_mean_what_git_says(tmp_path: Path) -> None:
    ignored = by_git(tmp_path, TABLE, NAMES)
    wrong = [
        (data[:40], name)
        for number, data in enumerate(TABLE)
        for name in NAMES
        if is_ignored(data, name) != ((number, name) in ignored)
    ]
    assert not wrong and len(ignored) > 50


@pytest.mark.usefixtures("spawn")  # git
def test_random_patterns_mean_what_git_says(tmp_path: Path) -> None:
    draw = random.Random(4)
    lines = ["".join(draw.choices(PIECES, k=draw.randint(1, 6))) for _ in range(400)]
    files = [f"{line}\n".encode() for line in lines]
    ignored = by_git(tmp_path, files, SHORT)
    wrong = [
        (line, name)
        for number, line in enumerate(lines)
        for name in SHORT
        if is_ignored(files[number], name) != ((number, name) in ignored)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "pattern", [b"*a" * 60 + b"b", b"**/a/" * 60 + b"b", b"*?" * 90, b"**/*a*/" * 30 + b"*b*c"]
)
def test_no_pattern_takes_long(pattern: bytes) -> None:
    patterns = parse_ignore_file(pattern + b"\n").patterns
    began = time.monotonic()
    for path in (b"a" * 250, b"a/" * 120 + b"a", b"aaa/" * 200 + b"x"):
        patterns.last(path, is_folder=False)
    assert time.monotonic() - began < 1.0


# --- what cannot be heeded --------------------------------------------------------------------

UNHEEDED = {
    "Latin-1": ("privé/\n".encode("latin-1"), "line 1 that is not UTF-8"),
    "half a character of UTF-16": (b"\xff\xfep\0r\0i", "not valid UTF-16"),
    "UTF-16 without its mark": ("private/\n".encode("utf-16-le"), "NUL"),
    "too large": (b"private/\n" + b"#" * (5 << 20), "too large"),
    "too many patterns": (b"".join(b"%d\n" % n for n in range(60_000)), "too many patterns"),
    "too many wildcards": (b"".join(b"%d*x\n" % n for n in range(6_000)), "too many patterns"),
}


@pytest.mark.parametrize("case", UNHEEDED)
def test_unheeded_ignore_line_excludes_folder(case: str, tmp_path: Path) -> None:
    data, problem = UNHEEDED[case]
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / ".redraftignore").write_bytes(data)
    for name in ("inner/a.py", "inner/deep/er/b.py"):
        reason = why(tmp_path, name)
        assert "inner/.redraftignore" in reason and problem in reason
    assert not why(tmp_path, "a.py")


def test_remark_in_another_encoding_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_bytes("# privé\nprivate/\n".encode("latin-1"))
    assert not why(tmp_path, "a.py") and why(tmp_path, "private/a.py")


@pytest.mark.skipif(os.name != "posix", reason="such files are made on POSIX alone")
@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling", "device", "loop"])
def test_ignore_file_that_is_none_excludes_folder(kind: str, tmp_path: Path) -> None:
    file = tmp_path / ".redraftignore"
    {
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "dangling": lambda: file.symlink_to("nowhere"),
        "device": lambda: file.symlink_to("/dev/zero"),
        "loop": lambda: file.symlink_to(file),
    }[kind]()
    assert ".redraftignore" in why(tmp_path, "a.py")


def test_unreadable_ignore_file_excludes_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".redraftignore").write_text("private/\n")
    real = os.open

    def refuse(path: str, *rest: int, **more: int) -> int:
        if str(path).endswith(".redraftignore"):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert "Permission denied" in why(tmp_path, "a.py")


def test_a_folder_that_may_not_be_read_is_excluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.lstat

    def refuse(path: str, **more: int) -> os.stat_result:
        if str(path) == f"{tmp_path}/inner/.redraftignore":
            raise PermissionError(13, "Permission denied")
        return real(path, **more)

    monkeypatch.setattr(os, "lstat", refuse)
    assert "Permission denied" in why(tmp_path, "inner/a.py")


def test_unheeded_file_is_heeded_once_it_is_mended(tmp_path: Path) -> None:
    exclusions = Exclusions(LspSettings, lambda: [tmp_path.as_uri()])
    uri, file = f"file://{tmp_path}/a.py", tmp_path / ".redraftignore"
    file.write_bytes(b"\xffx\n")
    exclusions.on_open(uri)
    assert exclusions.why("a.py", uri)
    (name, problem) = next(iter(exclusions.unheeded.items()))
    assert name == str(file) and "not UTF-8" in problem
    file.write_bytes(b"x\n")
    rules = IgnoreRules()
    exclusions.read_opened(rules)
    assert exclusions.renew(rules)
    assert not exclusions.why("a.py", uri) and not exclusions.unheeded


@pytest.mark.usefixtures("spawn")  # git
def test_the_index_leaves_out_an_unheeded_files_folder(tmp_path: Path) -> None:
    for name in ("a.py", "inner/b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CODE)
    (tmp_path / "inner" / ".redraftignore").write_bytes(b"\xff\xfex")
    assert [each.path for each in find_files(tmp_path, lambda _: "")] == ["a.py"]


# --- where ignore files are looked for ---------------------------------------------------------


def test_link_to_another_ignore_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("private/\n")
    (tmp_path / ".redraftignore").symlink_to(".gitignore")
    assert "line 1 of .redraftignore: private/" in why(tmp_path, "private/a.py")


def test_nothing_in_an_excluded_folder_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_text("private/\n")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / ".redraftignore").write_text("!*\n!a.py\n")
    assert "line 1 of .redraftignore" in why(tmp_path, "private/a.py")


def test_ignore_file_above_the_workspace_counts(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_text("inner/private/\n")
    assert why(tmp_path / "inner", "private/a.py")
    assert not why(tmp_path / "inner", "b.py")


def test_a_document_outside_obeys_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".redraftignore").write_text("private/\n")
    uri = f"file://{tmp_path}/private/a.py"
    for folders in ([], [f"file://{tmp_path}/elsewhere"]):
        exclusions = Exclusions(LspSettings, lambda folders=folders: folders)
        exclusions.on_open(uri)
        assert exclusions.why("a.py", uri)


def test_folder_without_code_is_heeded(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / ".redraftignore").write_text("*.md\n")
    assert why(tmp_path, "docs/plan.md")


def test_closed_document_obeys_what_is_written_later(tmp_path: Path) -> None:
    """Its edits are still in prompts."""
    exclusions = Exclusions(LspSettings, lambda: [tmp_path.as_uri()])
    uri = f"file://{tmp_path}/docs/plan.md"
    exclusions.on_open(uri)
    assert not exclusions.why("docs/plan.md", uri)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / ".redraftignore").write_text("*.md\n")
    rules = IgnoreRules()
    exclusions.read_opened(rules)
    assert exclusions.renew(rules) and exclusions.why("docs/plan.md", uri)


def test_a_document_opened_during_a_look_obeys(tmp_path: Path) -> None:
    exclusions, rules = Exclusions(LspSettings, lambda: [tmp_path.as_uri()]), IgnoreRules()
    exclusions.read_opened(rules)
    (tmp_path / ".redraftignore").write_text("private/\n")
    uri = f"file://{tmp_path}/private/a.py"
    exclusions.on_open(uri)
    exclusions.renew(rules)
    assert exclusions.why("private/a.py", uri)


def test_a_file_that_was_read_later_counts(tmp_path: Path) -> None:
    file, scanned, opened = f"{tmp_path}/a.py", IgnoreRules(), IgnoreRules()
    scanned.read_above(file)  # before the file is written
    (tmp_path / ".redraftignore").write_text("a.py\n")
    opened.read_above(file)
    scanned.add_missing(opened)
    assert scanned.why(tmp_path, "a.py")


def test_lines_that_end_with_cr_alone_are_a_problem() -> None:
    assert "CR alone" in parse_ignore_file(b"private/\rbuild/\r").problem
    assert parse_ignore_file(b"private/\r\nbuild/\r\n").problem == ""
