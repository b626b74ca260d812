"""Moments whose outcome is known, for fitting and testing the gate.

Moments are gaps and hunks of commits, gaps and half-typed lines of files. A commit says what came
next and what came in the end, which shows whether a candidate is right. They are drawn by hashes, a
small part of a large file, kinds taking turns, so that an interrupted run holds a fair part.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import apply_history, last_burst
from redraft.model.errors import SettingsError
from redraft.model.records import RecentEdit
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

from ..example import Example, Moment, Truth
from .begun import begun_gaps
from .carry_on import scenarios
from .commits import MOST_LINES, CommitChange, changes_of, in_turn, rank, unix
from .gaps import gaps_of
from .next_edits import steps_of


def half_typed(path: str, language: str, text: str, rng: random.Random) -> Moment | None:
    """Return a line that is half typed, behind the lines typed above it; None if none fits.

    Its names stand elsewhere in the file too, all but one, so that the rest can be foreseen.
    """
    lines = text.split("\n")
    for _ in range(10):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = _pause_in(line, rng)
        if cut is None or not _is_foreseeable(line, lines[:at] + lines[at + 1 :]):
            continue
        first = at
        while at - first < rng.randint(0, 3) and first > 0 and lines[first - 1].strip():
            first -= 1
        state = [*lines[:first], *lines[at + 1 :]]
        edits: tuple[RecentEdit, ...] = ()
        if first < at:
            written = LineChange(first, (), tuple(lines[first:at]))
            state, edits, _ = apply_history(path, state, [written], 1)
        state.insert(at, line[:cut])
        cursor = sum(len(above) + 1 for above in state[:at]) + cut
        bursts = tuple(map(last_burst, edits))
        return Moment(path, language, "\n".join(state), cursor, bursts)
    return None


_PAUSE = re.compile(r"[,;:(\[{.=] ?|(?<=\w)(?=\W)|(?<=\W)(?=\w)")


def _pause_in(line: str, rng: random.Random) -> int | None:
    """Return where to stop within a line: mostly behind a mark or a name, rarely in a name."""
    begin, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if not 12 <= end - begin <= 100:
        return None
    places = [m.end() for m in _PAUSE.finditer(line, begin + 3, end - 2)]
    if rng.random() < 0.2 or not places:
        return rng.randrange(begin + 3, end - 2)
    return rng.choice(places)


def _is_foreseeable(line: str, others: Sequence[str]) -> bool:
    """Return whether its names stand elsewhere in the file, all but one."""
    words = set(re.findall(r"[^\W\d]\w{2,}", line))
    known = set(re.findall(r"[^\W\d]\w{2,}", "\n".join(others)))
    return len(words) > 1 and len(words - known) < 2


#: How many of each kind come in a turn: about as much ghost text as next edits.
TURN = {"commit": 4, "gap": 3, "begun": 4, "typing": 1}


def known_moments(
    commits: Path | None, files: Path | None, share: float, limit: int | None, seed: int
) -> list[Example]:
    """Return the moments of a sample, kinds and languages taking turns.

    Args:
        commits: a ``*-commits.jsonl.zst``; files: a ``*-files.jsonl.zst``.
        share: of their lines, how many are looked at, 0 … 1.
    """
    found: dict[str, list[Example]] = {kind: [] for kind in TURN}
    if commits is not None:
        for each in _of_commits(_some(commits, share, seed)):
            found[each.kind].append(each)
    if files is not None:
        for each in _of_files(_some(files, share, seed), seed):
            found[each.kind].append(each)
    lists = {kind: in_turn(each, None, seed) for kind, each in found.items()}
    return list(_taking_turns(lists))[:limit]


def in_suite() -> list[Example]:
    """Return the scenarios. They judge, and nothing is fitted on them."""
    return [_known("carry-on", each) for each in scenarios()]


def _known(kind: str, example: Example) -> Example:
    name, tags = f"{kind}:{example.id}", {**example.tags, "kind": kind}
    return replace(example, id=name, tags=tags)


def _taking_turns(lists: dict[str, list[Example]]) -> Iterator[Example]:
    left = {kind: iter(each) for kind, each in lists.items() if each}
    while left:
        for kind in list(left):
            for _ in range(TURN[kind]):
                one = next(left[kind], None)
                if one is None:
                    del left[kind]
                    break
                yield one


def _some(path: Path, share: float, seed: int) -> Iterator[dict[str, Any]]:
    """Return records of a file, a ``share`` of them by the hash of their name."""
    most = int(share * 2**32)
    try:
        for record in read_records(path):
            name = f"{record['repo']}@{record.get('commit', record.get('path'))}"
            if int.from_bytes(rank(seed, name)[:4], "big") < most:
                yield record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is not a file of commits or files ({type(error).__name__}: {error}). Name one "
            "such as train-commits.jsonl.zst."
        ) from error


def _of_commits(records: Iterable[dict[str, Any]]) -> Iterator[Example]:
    changes = (change for record in records for change in changes_of(record))
    for _, group in groupby(changes, key=lambda change: change.commit):
        files = list(group)
        for at, change in enumerate(files):
            for step in steps_of(change, files[:at], files[at + 1 :]):
                yield _known("commit", step)
            for gap in gaps_of(change):
                yield _known("gap", gap)
            yield from _begun(change)


def _begun(change: CommitChange) -> Iterator[Example]:
    return (_known("begun", gap) for gap in begun_gaps(change))


def _of_files(records: Iterable[dict[str, Any]], seed: int) -> Iterator[Example]:
    for record in records:
        path, text = record["path"], unix(record["text"])
        language = language_of(path)
        if language is None or text.count("\n") >= MOST_LINES:
            continue
        name = f"{record['repo']}:{path}"
        rng = random.Random(f"{seed}:{name}")
        yield from _typed(name, path, language, text, rng)
        change = CommitChange(name, name, path, language, "", text)
        yield from _begun(change)
        yield from (_known("gap", gap) for gap in gaps_of(change))


def _typed(name: str, path: str, language: str, text: str, rng: random.Random) -> Iterator[Example]:
    """Return a moment within a line being typed, where the file has a suitable line."""
    moment = half_typed(path, language, text, rng)
    if moment is not None:
        tags = {"kind": "typing", "language": language}
        truth = Truth((text,), text)
        yield Example(f"typing:{name}:typing", name, "next_edit", tags, moment, truth)
