"""Moments within held-out commits: some hunks are made, the next one is to be foreseen.

Hunks come in the order in which a person would make them; those made are the recent edits, and the
cursor stands where the last one left it, or near the next one where that is out of sight. The
commit's files are edited one after the other: those before are as the commit left them and were
looked at, those behind are as it found them. About one moment in ten has nothing left to do. Kept
apart from the training rows on purpose. Knows nothing of models.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

from redraft.lsp.history import SHOWN_EDITS
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import apply_history, hunks_of, last_burst
from redraft.model.prompts.redraft3 import window
from redraft.model.records import RecentEdit
from redraft.model.training.commits import end_of_edits, order_hunks

from ..figures.samples import CommitChange

FROM_BEFORE = 3  # recent edits of the file edited before, at most
MOST_LINES = 12  # of the next hunk, on either side
MOST_CHARS = 300  # that it writes: 128 tokens hold them
MOST_STEPS = 2  # of one file, with something to do
NOTHING_LEFT = 1 / 9  # for each of those: one sample in ten

Sight = Literal["near the last edit", "elsewhere", "nothing left"]


@dataclass(frozen=True, slots=True)
class OtherFile:
    """Another file of the commit, as it stands at the moment."""

    path: str
    language: str
    text: str
    cursor: int | None  # where the last edit of it ended; None: nobody was there yet


@dataclass(frozen=True, slots=True)
class CommitMoment:
    """A moment."""

    id: str
    group: str  # the commit
    path: str
    language: str
    kind: Sight
    text: str
    cursor: int
    edits: tuple[RecentEdit, ...]  # oldest first
    wanted: str  # the whole text after the next hunk; where nothing is left, ``text`` itself
    others: tuple[OtherFile, ...] = ()  # what was edited last comes last


def steps_in(changes: Iterable[CommitChange]) -> Iterator[CommitMoment]:
    """Moments of commits whose files come one after the other, as ``read_changes`` gives them."""
    for _, group in groupby(changes, key=lambda change: change.commit):
        files = list(group)
        for at, change in enumerate(files):
            yield from steps_of(change, files[:at], files[at + 1 :])


def steps_of(
    change: CommitChange, done: Sequence[CommitChange] = (), waiting: Sequence[CommitChange] = ()
) -> Iterator[CommitMoment]:
    """Some moments with something to do, and sometimes the one after the last hunk.

    Args:
        done: files of the commit that were edited before this one.
        waiting: those that are edited later.
    """
    if not change.before:
        return
    old = change.before.split("\n")
    hunks = order_hunks(hunks_of(old, change.after.split("\n")), old)
    if len(hunks) < 2:  # without a first edit there is nothing to foresee a second one by
        return
    rng = random.Random(change.id)
    around = _Around(_others(done, waiting), _last_edits(done))
    targets = rng.sample(range(1, len(hunks)), len(hunks) - 1)
    found = (_before(change, old, hunks, target, around, rng) for target in targets)
    steps = list(islice((step for step in found if step is not None), MOST_STEPS))
    yield from steps
    if rng.random() < NOTHING_LEFT * len(steps):
        yield _after_all(change, old, hunks, around)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is there besides the file."""

    others: tuple[OtherFile, ...]
    edits: tuple[RecentEdit, ...]  # made elsewhere before


def _others(done: Sequence[CommitChange], waiting: Sequence[CommitChange]) -> tuple[OtherFile, ...]:
    found = [
        OtherFile(each.path, each.language, each.before, None) for each in waiting if each.before
    ]
    for each in done:
        hunks = hunks_of(each.before.split("\n"), each.after.split("\n"))
        lines = each.after.split("\n")
        last = hunks[-1] if hunks else LineChange(0)
        line = min(last.first + sum(hunk.growth for hunk in hunks[:-1]), len(lines) - 1)
        cursor = sum(len(text) + 1 for text in lines[:line])
        found.append(OtherFile(each.path, each.language, each.after, cursor))
    return tuple(found)


def _last_edits(done: Sequence[CommitChange]) -> tuple[RecentEdit, ...]:
    """The last edits in the file that was edited before; a new file is no edit."""
    if not done or not done[-1].before:
        return ()
    change, old = done[-1], done[-1].before.split("\n")
    hunks = order_hunks(hunks_of(old, change.after.split("\n")), old)
    if not hunks:
        return ()
    _, edits, _ = apply_history(change.path, old, hunks, len(hunks))
    return edits[-FROM_BEFORE:]


def _before(
    change: CommitChange,
    old: list[str],
    hunks: list[LineChange],
    target: int,
    around: _Around,
    rng: random.Random,
) -> CommitMoment | None:
    """The moment before hunk ``target``; None where that one is too large or cannot be shown."""
    state, edits, hunk = apply_history(change.path, old, hunks, target)
    written = "\n".join(hunk.new)
    if max(len(hunk.new), hunk.last - hunk.first) > MOST_LINES or len(written) > MOST_CHARS:
        return None
    kind: Sight = "near the last edit"
    line, column = _cursor(old, hunks[:target], len(state))
    if not _holds(window(line, len(state)), hunk):
        kind = "elsewhere"
        line = min(max(0, hunk.first + rng.randint(-4, 4)), len(state) - 1)
        column = len(state[line])
        if not _holds(window(line, len(state)), hunk):
            return None
    wanted = [*state[: hunk.first], *hunk.new, *state[hunk.last :]]
    return _step(change, kind, target, state, (line, column), edits, wanted, around)


def _holds(region: tuple[int, int], hunk: LineChange) -> bool:
    return region[0] <= hunk.first and hunk.last <= region[1]


def _after_all(
    change: CommitChange, old: list[str], hunks: list[LineChange], around: _Around
) -> CommitMoment:
    state, edits, _ = apply_history(change.path, old, hunks, len(hunks))
    cursor = _cursor(old, hunks, len(state))
    return _step(change, "nothing left", len(hunks), state, cursor, edits, state, around)


def _cursor(old: list[str], applied: list[LineChange], total: int) -> tuple[int, int]:
    """Line and column where the last edit left it."""
    line, column = end_of_edits(old, applied) or (0, 0)
    return (line, column) if line < total else (total - 1, 0)


def _step(
    change: CommitChange,
    kind: Sight,
    made: int,
    state: list[str],
    cursor: tuple[int, int],
    edits: tuple[RecentEdit, ...],
    wanted: list[str],
    around: _Around,
) -> CommitMoment:
    line, column = cursor
    before = sum(len(text) + 1 for text in state[:line])
    return CommitMoment(
        id=f"{change.id}:{made}",
        group=change.commit,
        path=change.path,
        language=change.language,
        kind=kind,
        text="\n".join(state),
        cursor=before + min(column, len(state[line])),
        edits=tuple(map(last_burst, (*around.edits, *edits)[-SHOWN_EDITS:])),
        wanted="\n".join(wanted),
        others=around.others,
    )
