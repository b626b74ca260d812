"""Moments of a person's work on a commit at which the next edit is asked for.

Pure given a ``random.Random``. Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from ..edits.edit import LineChange
from ..edits.hunks import apply_history, shift_of
from ..records import RecentEdit
from .commits import FileChange, begin_block, begin_typing, cursor_line_of, end_of_edits

_FAR = 40  # lines between the cursor and an edit that its region does not reach


@dataclass(frozen=True, slots=True)
class TrainingMoment:
    """A document in the middle of a commit, and the edit to predict."""

    kind: Literal["edit", "typing", "none"]
    lines: list[str]
    edits: tuple[RecentEdit, ...]
    target: LineChange | None  # None: nothing is left to do here
    cursor: tuple[int, int]  # line, column


def draw_moment(change: FileChange, typing: float, rng: random.Random) -> TrainingMoment:
    """Some hunks are done, the next one is to be predicted: whole, its next few lines, or the rest
    of a line that is being typed.

    Args:
        typing: the share of moments within a line being typed; a larger one where there is no
            history, as little else tells what comes then.
    """
    hunks = change.hunks
    at = rng.randrange(len(hunks))
    if at == 0 and rng.random() < 0.7:
        at = rng.randrange(len(hunks))  # moments with a history are worth more
    state, edits, hunk = apply_history(change.path, change.old, hunks, at)
    if rng.random() < (typing if edits else max(typing, 0.5)):
        started = begin_typing(state, hunk, rng.randrange(1_000))
        if started:
            return TrainingMoment("typing", started[0], edits, *started[1:])
    block = begin_block(hunk, rng) if rng.random() < (0.7 if len(hunk.new) > 6 else 0.1) else None
    if block:
        written, rest = block
        state, more, _ = apply_history(change.path, state, [written], 1)
        end = rest.first - 1
        return TrainingMoment("edit", state, edits + more, rest, (end, len(state[end])))
    here = end_of_edits(change.old, hunks[:at])
    line = cursor_line_of(hunk, here[0] if here else None, len(state), rng)
    return TrainingMoment("edit", state, edits, hunk, _cursor(state, line, here, rng))


def nothing_left(change: FileChange, rng: random.Random) -> TrainingMoment:
    """All is done, or what remains is far from the cursor."""
    hunks = change.hunks
    done = len(hunks)
    if rng.random() < 0.4:
        done = rng.randint(1, done)
    here = end_of_edits(change.old, hunks[:done])
    assert here is not None  # at least one hunk is applied
    left = (h.first + shift_of(hunks[:done], h) for h in hunks[done:])
    if any(abs(place - here[0]) <= _FAR for place in left):
        done = len(hunks)
        here = end_of_edits(change.old, hunks)
        assert here is not None
    state, edits, _ = apply_history(change.path, change.old, hunks, done)
    line = min(here[0] + rng.choice((0, rng.randint(0, 6))), len(state) - 1)
    return TrainingMoment("none", state, edits, None, _cursor(state, line, here, rng))


def _cursor(
    lines: list[str], line: int, here: tuple[int, int] | None, rng: random.Random
) -> tuple[int, int]:
    """Where in ``line`` a person is: where the last edit ended if that is ``here``, else mostly at
    its end or where its text begins."""
    if here and here[0] == line:
        return here
    text = lines[line]
    indent = len(text) - len(text.lstrip())
    return line, rng.choice((len(text), len(text), indent, rng.randint(0, len(text))))
