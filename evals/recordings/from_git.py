"""The history of a git repository as commits to be typed anew.

Reads with the ``git`` command line: names of the changed files from one ``git log``, their texts
from one ``git cat-file``. Nothing of the repository is run or changed, nothing is fetched. Knows
nothing of streams; see :mod:`.simulated`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard
from redraft.lsp.context import git
from redraft.lsp.context.workspace import MOST_BYTES, is_made
from redraft.lsp.recording.format import header, line_of
from redraft.lsp.refusals import refuse_file
from redraft.lsp.secret_files import secret_in
from redraft.lsp.settings import LspSettings
from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

from .simulated import Simulation, TypingPlan, plan_of

MOST_FILES = 20  # of a commit; more are a rename, a licence or a formatter's
_CHUNK = 1 << 16

OnStep = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which commits."""

    since: str = ""  # as git understands it: "2024-01-01", "6 months ago"
    most: int | None = None  # streams to make; None: all there are
    language: str = ""  # of the files, as LSP names it; "": any that is code
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """What was made of a history."""

    path: Path
    commits: int  # typed anew
    looked_at: int  # those, and others that had too few edits or too many
    changes: int


@dataclass(frozen=True, slots=True)
class _Touched:
    """A commit, and the files it changed: path, blob before, blob after."""

    commit: str
    time_s: int
    files: tuple[tuple[str, str, str], ...]


def import_git(source: Path, out: Path, wanted: Wanted, made_by: str, show: OnStep) -> Imported:
    """Write the newest commits of a repository as one simulated recording, oldest first.

    Args:
        source: the repository's folder, or a file of commits as training has them.

    Raises:
        InstallError: there is no git.
        SettingsError: that is no repository, it has nothing to type, or nothing can be written.
    """
    plans, looked_at = _plans(source, wanted, show)
    if not plans:
        raise SettingsError(
            f"None of the {looked_at} commits of {source} can be typed anew: each needs 3 to 40 "
            "edits of code. Look further back with --since, or name another --language."
        )
    try:
        with out.open("wb") as file:
            changes = _write(file, source.resolve().name, plans, made_by, show)
    except OSError as error:
        raise SettingsError(f"{out} cannot be written ({error}); name another --out") from error
    return Imported(out, len(plans), looked_at, changes)


def _write(file: IO[bytes], name: str, plans: list[TypingPlan], made_by: str, show: OnStep) -> int:
    """Type the commits; returns how many changes that takes."""
    simulation, changes = Simulation(), 0
    uuid = f"git-{name}-{plans[-1].commit[:12]}"
    file.write(line_of(header(uuid, "", 1000 * plans[0].time_s, made_by, simulated=True)))
    for number, plan in enumerate(plans):
        show(f"typing commits of {name}", number / len(plans))
        for entry in simulation.type(plan):
            file.write(line_of(entry))
            changes += entry["kind"] == "changed"
    return changes


def _plans(source: Path, wanted: Wanted, show: OnStep) -> tuple[list[TypingPlan], int]:
    """The commits that can be typed anew, oldest first, and how many were looked at."""
    if source.is_file():
        total, records = None, _packed(source, wanted)
    else:
        total, records = _count(source, wanted), _records(source, wanted)
    plans: list[TypingPlan] = []
    looked_at = 0
    for looked_at, record in enumerate(records, 1):
        done = looked_at / total if total else 0.0
        done = max(done, len(plans) / wanted.most if wanted.most else 0.0)
        show(f"reading {source.name}: {len(plans)} commits", min(1.0, done) if done else None)
        plan = plan_of(record, wanted.seed) if record is not None else None
        plans += [plan] if plan is not None else []
        if len(plans) == wanted.most:
            break
    return sorted(plans, key=lambda plan: plan.time_s), looked_at


def _packed(source: Path, wanted: Wanted) -> Iterator[dict[str, Any] | None]:
    """The commits of a file ``*-commits.jsonl.zst``."""
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


def _records(repo: Path, wanted: Wanted) -> Iterator[dict[str, Any] | None]:
    with git.start(repo, "cat-file", "--batch") as texts:
        for touched in _commits(repo, wanted):
            yield _record(repo, touched, texts, wanted.language)


def _count(repo: Path, wanted: Wanted) -> int:
    """How many commits there are to look at. Refuses what is no repository."""
    try:
        said = git.ask(
            repo,
            *("rev-list", "--count", "--no-merges", *_since(wanted), "HEAD"),
            within_s=None,
            most_bytes=_CHUNK,
        )
    except OSError as error:
        raise _unreadable(repo, error.strerror or str(error)) from None
    if said.code:
        raise _unreadable(repo, said.why or "no reason given")
    return int(said.output)


def _commits(repo: Path, wanted: Wanted) -> Iterator[_Touched]:
    """Newest first, without merges: those that changed files in place."""
    arguments = ["log", "--no-merges", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev"]
    arguments += ["-z", "--format=%x01%H %ct", "--no-color"]
    arguments += [*_since(wanted), "HEAD"]
    with git.start(repo, *arguments) as log:
        assert log.stdout is not None
        yield from _parsed(_tokens(log.stdout))


def _tokens(stream: IO[bytes]) -> Iterator[str]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from (os.fsdecode(token) for token in whole)
    if rest:
        yield os.fsdecode(rest)


def _parsed(tokens: Iterator[str]) -> Iterator[_Touched]:
    """``\\x01commit time``, then for each file ``:modes blobs M`` and its path."""
    commit, time_s, files = "", 0, list[tuple[str, str, str]]()
    for token in tokens:
        token = token.lstrip("\n")
        if token.startswith("\x01"):
            if files:
                yield _Touched(commit, time_s, tuple(files))
            commit, told = token[1:].split(" ", 1)
            time_s, files = int(told), []
        elif token.startswith(":"):
            modes_before, modes_after, before, after, _ = token.split(" ")
            path = next(tokens, "")
            if modes_before.endswith(("644", "755")) and modes_after.endswith(("644", "755")):
                files.append((path, before, after))
    if files:
        yield _Touched(commit, time_s, tuple(files))


def _record(
    repo: Path, touched: _Touched, texts: git.Running, language: str
) -> dict[str, Any] | None:
    """A commit with the texts of its files; None where there is nothing to type."""
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
    told = {"repo": repo.resolve().name, "commit": touched.commit, "time": touched.time_s}
    return {**told, "files": files} if files else None


def _text(texts: git.Running, blob: str, path: str) -> str:
    """A file's text; "" for what nobody types, binaries, large and generated files, and secrets."""
    assert texts.stdin is not None and texts.stdout is not None
    texts.stdin.write(f"{blob}\n".encode())
    texts.stdin.flush()
    told = texts.stdout.readline().split()
    if len(told) != 3:  # "… missing": a clone that lacks it
        return ""
    size = int(told[2])
    data = texts.stdout.read(size)
    texts.stdout.read(1)
    if size > MOST_BYTES or b"\0" in data:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if is_made(text) or secret_in(text, path) else text


def _since(wanted: Wanted) -> list[str]:
    return [f"--since={wanted.since}"] if wanted.since else []


def _unreadable(repo: Path, why: str) -> SettingsError:
    return SettingsError(
        f"git cannot read the history of {repo}: {why}. Name the folder of a repository that has "
        "commits."
    )
