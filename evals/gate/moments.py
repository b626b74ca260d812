"""Moments whose outcome is known: gaps and hunks of commits, gaps and lines of files.

A commit says what came next, and what came in the end: whatever a candidate writes or deletes can
be held against that. Drawn by hashes, a small part of a large file, sources taking turns, so that
what is there of a broken-off run is a fair part of the whole. Knows nothing of models.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from redraft.model.edits.hunks import last_burst
from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

from ..benchmarks.carry_on import scenarios
from ..benchmarks.commit_moments import CommitMoment, steps_of
from ..benchmarks.infill_gaps import Problem, gaps_of
from ..figures.samples import MOST_LINES, CommitChange, changes_of, in_turn, rank, unix
from .half_typed import half_typed
from .places import begun_gaps

#: How many of each kind come in a turn: about as much ghost text as next edits.
TURN = {"commit": 4, "gap": 3, "begun": 4, "typing": 1}


@dataclass(frozen=True, slots=True)
class Known:
    """A moment, and the text that came of it in the end."""

    kind: str  # commit, gap, begun, typing or carry-on
    asked: CommitMoment | Problem
    after: str  # the whole text in the end; for a gap, with the gap filled
    wanted: tuple[str, ...] = ()  # whole texts that are right besides

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.asked.id}"

    @property
    def language(self) -> str:
        return self.asked.language

    @property
    def group(self) -> str:
        """Moments of one group stand or fall together."""
        return self.asked.group


def known_moments(
    commits: Path | None, files: Path | None, share: float, limit: int | None, seed: int
) -> list[Known]:
    """The moments of a sample, sources and languages taking turns.

    Args:
        commits: a ``*-commits.jsonl.zst``; files: a ``*-files.jsonl.zst``.
        share: of their lines, how many are looked at, 0 … 1.
    """
    found: dict[str, list[Known]] = {kind: [] for kind in TURN}
    if commits is not None:
        for each in _of_commits(_some(commits, share, seed)):
            found[each.kind].append(each)
    if files is not None:
        for each in _of_files(_some(files, share, seed), seed):
            found[each.kind].append(each)
    lists = {kind: in_turn(each, None, seed) for kind, each in found.items()}
    return list(_taking_turns(lists))[:limit]


def in_suite() -> list[Known]:
    """The scenarios of ``redraft eval edits --suite carry-on``: they judge, and nothing is fitted
    on them."""
    return [
        Known("carry-on", each.step, each.wanted[-1] if each.wanted else each.text, each.wanted)
        for each in scenarios()
    ]


def _taking_turns(lists: dict[str, list[Known]]) -> Iterator[Known]:
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
    """Records of a file, a ``share`` of them by the hash of their name."""
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


def _of_commits(records: Iterable[dict[str, Any]]) -> Iterator[Known]:
    changes = (change for record in records for change in changes_of(record))
    for _, group in groupby(changes, key=lambda change: change.commit):
        files = list(group)
        for at, change in enumerate(files):
            for step in steps_of(change, files[:at], files[at + 1 :]):
                yield Known("commit", step, change.after)
            for gap in gaps_of(change):
                yield Known("gap", gap, change.after)
            yield from _begun(change)


def _begun(change: CommitChange) -> Iterator[Known]:
    return (Known("begun", gap, gap.filled(gap.middle)) for gap in begun_gaps(change))


def _of_files(records: Iterable[dict[str, Any]], seed: int) -> Iterator[Known]:
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
        yield from (Known("gap", gap, change.after) for gap in gaps_of(change))


def _typed(name: str, path: str, language: str, text: str, rng: random.Random) -> Iterator[Known]:
    """Return a moment within a line being typed, where the file has a suitable line."""
    moment = half_typed(path, text, rng)
    if moment is None:
        return
    step = CommitMoment(
        id=f"{name}:typing",
        group=name,
        path=path,
        language=language,
        kind="near the last edit",
        text=moment.text,
        cursor=moment.cursor,
        edits=tuple(map(last_burst, moment.edits)),
        wanted=moment.wanted,
    )
    yield Known("typing", step, step.wanted)
