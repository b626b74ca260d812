"""Moments within held-out commits: some hunks are made, the next one is to be foreseen.

Hunks come in the order in which a person would make them; those made are the recent edits, and the
cursor stands where the last one left it, or near the next one where that is out of sight. The
commit's files are edited one after the other: those before are as the commit left them and were
looked at, those behind are as it found them. About one moment in ten has nothing left to do. Kept
apart from the training rows on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

from redraft.lsp.documents.history import SHOWN_EDITS
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import apply_history, hunks_of, last_burst
from redraft.model.prompts.redraft3 import window
from redraft.model.records import RecentEdit
from redraft.model.training.commit_edits import order_hunks
from redraft.model.training.moments import end_of_edits

from ..example import Example, Moment, OtherFile, Truth
from .commits import CommitChange

FROM_BEFORE = 3  # recent edits of the file edited before, at most
MOST_LINES = 12  # of the next hunk, on either side
MOST_CHARS = 300  # that it writes: 128 tokens hold them
MOST_STEPS = 2  # of one file, with something to do
NOTHING_LEFT = 1 / 9  # for each of those: one sample in ten

Sight = Literal["near the last edit", "elsewhere", "nothing left"]
Lines = list[str]


def steps_in(changes: Iterable[CommitChange]) -> Iterator[Example]:
    """Return the moments of commits whose files follow each other, as of ``read_changes``."""
    for _, group in groupby(changes, key=lambda change: change.commit):
        files = list(group)
        for at, change in enumerate(files):
            yield from steps_of(change, files[:at], files[at + 1 :])


def steps_of(
    change: CommitChange, done: Sequence[CommitChange] = (), waiting: Sequence[CommitChange] = ()
) -> Iterator[Example]:
    """Return some moments with something to do, and sometimes the one after the last hunk.

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
    """Other files and earlier edits of a commit."""

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
    """Return the last edits in the file that was edited before; a new file is no edit."""
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
    old: Lines,
    hunks: list[LineChange],
    target: int,
    around: _Around,
    rng: random.Random,
) -> Example | None:
    """Return the moment before hunk ``target``, None if that is too large or out of sight."""
    state, edits, hunk = apply_history(change.path, old, hunks, target)
    written = "\n".join(hunk.new)
    if max(len(hunk.new), hunk.last - hunk.first) > MOST_LINES or len(written) > MOST_CHARS:
        return None
    sight: Sight = "near the last edit"
    line, column = _cursor(old, hunks[:target], len(state))
    if not _holds(window(line, len(state)), hunk):
        sight = "elsewhere"
        line = min(max(0, hunk.first + rng.randint(-4, 4)), len(state) - 1)
        column = len(state[line])
        if not _holds(window(line, len(state)), hunk):
            return None
    moment = _moment(change, state, (line, column), edits, around)
    wanted = "\n".join([*state[: hunk.first], *hunk.new, *state[hunk.last :]])
    return _example(change, sight, target, moment, (wanted,))


def _holds(region: tuple[int, int], hunk: LineChange) -> bool:
    return region[0] <= hunk.first and hunk.last <= region[1]


def _after_all(
    change: CommitChange, old: Lines, hunks: list[LineChange], around: _Around
) -> Example:
    state, edits, _ = apply_history(change.path, old, hunks, len(hunks))
    moment = _moment(change, state, _cursor(old, hunks, len(state)), edits, around)
    return _example(change, "nothing left", len(hunks), moment, ())


def _cursor(old: Lines, applied: list[LineChange], total: int) -> tuple[int, int]:
    """Return line and column where the last edit ended."""
    line, column = end_of_edits(old, applied) or (0, 0)
    return (line, column) if line < total else (total - 1, 0)


def _moment(
    change: CommitChange,
    state: Lines,
    cursor: tuple[int, int],
    edits: tuple[RecentEdit, ...],
    around: _Around,
) -> Moment:
    line, column = cursor
    before = sum(len(text) + 1 for text in state[:line])
    return Moment(
        path=change.path,
        language=change.language,
        text="\n".join(state),
        cursor=before + min(column, len(state[line])),
        edits=tuple(map(last_burst, (*around.edits, *edits)[-SHOWN_EDITS:])),
        others=around.others,
    )


def _example(
    change: CommitChange, sight: Sight, made: int, moment: Moment, wanted: tuple[str, ...]
) -> Example:
    tags = {"kind": sight, "language": change.language}
    truth = Truth(wanted, change.after)
    return Example(f"{change.id}:{made}", change.commit, "next_edit", tags, moment, truth)
