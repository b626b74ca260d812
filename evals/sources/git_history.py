"""Commits of a git repository, or of a file of commits as training has them.

Reads with the ``git`` command line: names of the changed files from one ``git log``, their texts
from one ``git cat-file``. Nothing of the repository is run or changed, nothing is fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard
from redraft.lsp.context import git
from redraft.lsp.context.workspace import MOST_BYTES, is_generated
from redraft.lsp.refusals import refuse_file
from redraft.lsp.secret_files import secret_in
from redraft.lsp.settings import LspSettings
from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

MOST_FILES = 20  # of a commit; more are a rename, a licence or a formatter's
_CHUNK = 1 << 16

Record = dict[str, Any]  # {repo, commit, time, files: [{path, language, before, after}]}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Choice of commits."""

    since: str = ""  # as git understands it: "2024-01-01", "6 months ago"
    most: int | None = None  # commits to use; None: all there are
    language: str = ""  # of the files, as LSP names it; "": any that is code
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Touched:
    """A commit, and the files it changed: path, blob before, blob after."""

    commit: str
    time_s: int
    files: tuple[tuple[str, str, str], ...]


def commits(source: Path, wanted: Wanted) -> tuple[int | None, Iterator[Record | None]]:
    """Return the number of commits, if known, and the commits; None for one without code.

    Raises:
        InstallError: git is not installed.
        SettingsError: it is neither a repository nor a file of commits.
    """
    if source.is_file():
        return None, _packed(source, wanted)
    return _count(source, wanted), _records(source, wanted)


def _packed(source: Path, wanted: Wanted) -> Iterator[Record | None]:
    """Yield the commits of a file ``*-commits.jsonl.zst``."""
    if wanted.since:
        raise SettingsError("--since needs a repository; a file of commits is read as it is")
    try:
        for record in read_records(source):
            files = [f for f in record["files"] if wanted.language in ("", f["language"])]
            yield {**record, "files": files} if 0 < len(files) <= MOST_FILES else None
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{source} is neither the folder of a repository nor a file of commits "
            f"({type(error).__name__}: {error})"
        ) from error


def _count(repo: Path, wanted: Wanted) -> int:
    """Return the number of commits to look at; refuse what is no repository."""
    arguments = ("rev-list", "--count", "--no-merges", *_since(wanted), "HEAD")
    try:
        answer = git.ask(repo, *arguments, within_s=None, most_bytes=_CHUNK)
    except OSError as error:
        raise _unreadable(repo, error.strerror or str(error)) from None
    if answer.code:
        raise _unreadable(repo, answer.why or "no reason given")
    return int(answer.output)


def _unreadable(repo: Path, why: str) -> SettingsError:
    return SettingsError(
        f"git cannot read the history of {repo}: {why}. Name the folder of a repository that has "
        "commits."
    )


def _since(wanted: Wanted) -> list[str]:
    return [f"--since={wanted.since}"] if wanted.since else []


def _records(repo: Path, wanted: Wanted) -> Iterator[Record | None]:
    """Yield the commits that changed files in place, newest first, without merges."""
    log_arguments = (
        "log", "--no-merges", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev", "-z",
        "--format=%x01%H %ct", "--no-color", *_since(wanted), "HEAD",
    )  # fmt: skip
    with git.start(repo, "cat-file", "--batch") as texts, git.start(repo, *log_arguments) as log:
        assert log.stdout is not None
        for touched in _parsed(_tokens(log.stdout)):
            yield _record(repo, touched, texts, wanted.language)


def _tokens(stream: IO[bytes]) -> Iterator[str]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from (os.fsdecode(token) for token in whole)
    if rest:
        yield os.fsdecode(rest)


def _parsed(tokens: Iterator[str]) -> Iterator[_Touched]:
    """Read ``\\x01commit time``, then for each file ``:modes blobs M`` and its path."""
    commit, time_s, files = "", 0, list[tuple[str, str, str]]()
    for token in tokens:
        token = token.lstrip("\n")
        if token.startswith("\x01"):
            if files:
                yield _Touched(commit, time_s, tuple(files))
            commit, time = token[1:].split(" ", 1)
            time_s, files = int(time), []
        elif token.startswith(":"):
            modes_before, modes_after, before, after, _ = token.split(" ")
            path = next(tokens, "")
            if modes_before.endswith(("644", "755")) and modes_after.endswith(("644", "755")):
                files.append((path, before, after))
    if files:
        yield _Touched(commit, time_s, tuple(files))


def _record(repo: Path, touched: _Touched, texts: git.Running, language: str) -> Record | None:
    """Return a commit with the texts of its files; None if there is nothing to type."""
    if len(touched.files) > MOST_FILES:
        return None
    settings, files = LspSettings(), []
    for path, *blobs in touched.files:
        found = language_of(path)
        if found is None or language not in ("", found) or refuse_file(path, settings):
            continue
        before, after = (_text(texts, blob, path) for blob in blobs)
        if before and after:
            files.append({"path": path, "language": found, "before": before, "after": after})
    if not files:
        return None
    name = repo.resolve().name
    return {"repo": name, "commit": touched.commit, "time": touched.time_s, "files": files}


def _text(texts: git.Running, blob: str, path: str) -> str:
    """Return a file's text; "" for binaries, large and generated files, and secrets."""
    assert texts.stdin is not None and texts.stdout is not None
    texts.stdin.write(f"{blob}\n".encode())
    texts.stdin.flush()
    answer = texts.stdout.readline().split()
    if len(answer) != 3:  # "… missing": a clone that lacks it
        return ""
    size = int(answer[2])
    data = texts.stdout.read(size)
    texts.stdout.read(1)
    if size > MOST_BYTES or b"\0" in data:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if is_generated(text) or secret_in(text, path) else text
