"""Moments within held-out commits: some hunks are made, the next one is to be foreseen.

Hunks come in the order in which a person would make them; those made are the recent edits, and the
cursor stands where the last one left it, or near the next one where that is out of sight. About one
moment in ten has nothing left to do. Kept apart from the training rows on purpose. Knows nothing of
models.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from redraft.model.histories import Hunk, apply_history, end_of_edits, hunks_of, order_hunks
from redraft.model.prompt import window
from redraft.model.records import RecentEdit

from .samples import Change

HISTORY = 6  # recent edits shown at most
MOST_LINES = 12  # of the next hunk, on either side
MOST_CHARS = 300  # that it writes: 128 tokens hold them
MOST_STEPS = 2  # of one file, with something to do
NOTHING_LEFT = 1 / 9  # for each of those: one sample in ten

Sight = Literal["near the last edit", "elsewhere", "nothing left"]


@dataclass(frozen=True, slots=True)
class Step:
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


def steps_of(change: Change) -> Iterator[Step]:
    """Some moments with something to do, and sometimes the one after the last hunk."""
    if not change.before:
        return
    old = change.before.split("\n")
    hunks = order_hunks(hunks_of(old, change.after.split("\n")), old)
    if len(hunks) < 2:  # without a first edit there is nothing to foresee a second one by
        return
    rng = random.Random(change.id)
    targets = rng.sample(range(1, len(hunks)), len(hunks) - 1)
    found = (_before(change, old, hunks, target, rng) for target in targets)
    steps = list(islice((step for step in found if step is not None), MOST_STEPS))
    yield from steps
    if rng.random() < NOTHING_LEFT * len(steps):
        yield _after_all(change, old, hunks)


def _before(
    change: Change, old: list[str], hunks: list[Hunk], target: int, rng: random.Random
) -> Step | None:
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
    return _step(change, kind, target, state, (line, column), edits, wanted)


def _holds(region: tuple[int, int], hunk: Hunk) -> bool:
    return region[0] <= hunk.first and hunk.last <= region[1]


def _after_all(change: Change, old: list[str], hunks: list[Hunk]) -> Step:
    state, edits, _ = apply_history(change.path, old, hunks, len(hunks))
    cursor = _cursor(old, hunks, len(state))
    return _step(change, "nothing left", len(hunks), state, cursor, edits, state)


def _cursor(old: list[str], applied: list[Hunk], total: int) -> tuple[int, int]:
    """Line and column where the last edit left it."""
    line, column = end_of_edits(old, applied) or (0, 0)
    return (line, column) if line < total else (total - 1, 0)


def _step(
    change: Change,
    kind: Sight,
    made: int,
    state: list[str],
    cursor: tuple[int, int],
    edits: tuple[RecentEdit, ...],
    wanted: list[str],
) -> Step:
    line, column = cursor
    before = sum(len(text) + 1 for text in state[:line])
    return Step(
        id=f"{change.id}:{made}",
        group=change.commit,
        path=change.path,
        language=change.language,
        kind=kind,
        text="\n".join(state),
        cursor=before + min(column, len(state[line])),
        edits=edits[-HISTORY:],
        wanted="\n".join(wanted),
    )
