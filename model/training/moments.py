"""Moments within the change of a file, and their classes.

Some hunks are made, and the next one is to be predicted.
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Literal, NamedTuple

from ..edits.edit import LineChange
from ..edits.hunks import apply_history, shift_of
from ..records import RecentEdit
from ..text.common import common_ends, common_tail
from .commit_edits import FileChange

_FAR = 40  # lines between the cursor and an edit that its region does not reach
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
Place = tuple[int, int]  # 0-based line and column


class EditClass(IntFlag):
    """Class of a next-edit row, in the byte that a shard holds for it.

    The byte of an infill row is the number of its kind in :data:`.middles.MIX`, doubled.
    """

    NEXT_EDIT = 1
    ELSEWHERE = 2  # the cursor is outside of the region
    NOTHING_LEFT = 4  # the region stays as it is
    TYPING = 8  # a line is half typed
    NEW_WORD = 16  # a word of the edit stands nowhere in the prompt
    SHARED_NAME = 32  # a name of the edit stands in the changed lines of the recent edits
    ONLY_DELETES = 64
    CHAIN = 128


#: The byte of prompt tokens in the loss; no row has it.
CODE = 255


def group_of(kind: int) -> str:
    """Return the name of the group in which rows of a class are reported."""
    if kind == CODE:
        return "code"
    if not kind & EditClass.NEXT_EDIT:
        return "infill"
    if kind & EditClass.NOTHING_LEFT:
        return "nothing_left"
    if kind & EditClass.TYPING:
        return "typing"
    if kind & EditClass.NEW_WORD:
        return "new_word"
    return "foreseeable" if kind & EditClass.SHARED_NAME else "unrelated"


@dataclass(frozen=True, slots=True)
class TrainingMoment:
    """A document in the middle of a change, and the edit to predict."""

    kind: Literal["edit", "typing", "none"]
    lines: list[str]
    edits: tuple[RecentEdit, ...]
    target: LineChange | None  # None: nothing is left to do here
    cursor: Place


def draw_moment(
    change: FileChange, typing: float, two_steps: float, rng: random.Random
) -> TrainingMoment:
    """Return a moment before a hunk: all of it, its next lines, or the rest of a line is missing.

    Args:
        typing: share of moments within a line being typed.
        two_steps: share of hunks of which a part is made already.
    """
    hunks = change.hunks
    at = rng.randrange(len(hunks))
    if at == 0 and rng.random() < 0.7:
        at = rng.randrange(len(hunks))  # moments with a history are worth more
    state, edits, hunk = apply_history(change.path, change.old, hunks, at)
    if rng.random() < typing:
        begun = begin_typing(state, hunk, rng.randrange(1_000))
        if begun:
            return TrainingMoment("typing", begun[0], edits, *begun[1:])
    half = (
        begin_hunk(hunk, rng) if rng.random() < (0.7 if len(hunk.new) > 6 else two_steps) else None
    )
    if half:
        state, more, _ = apply_history(change.path, state, [half.made], 1)
        return TrainingMoment("edit", state, edits + more, half.rest, half.cursor)
    here = end_of_edits(change.old, hunks[:at])
    line = cursor_near(hunk, here[0] if here else None, len(state), rng)
    return TrainingMoment("edit", state, edits, hunk, cursor_in(state, line, here, rng))


def nothing_left(change: FileChange, rng: random.Random) -> TrainingMoment:
    """Return a moment at which all is done, or what remains is far from the cursor."""
    hunks = change.hunks
    done = rng.randint(1, len(hunks)) if rng.random() < 0.4 else len(hunks)
    here = end_of_edits(change.old, hunks[:done])
    left = (hunk.first + shift_of(hunks[:done], hunk) for hunk in hunks[done:])
    if here and any(abs(place - here[0]) <= _FAR for place in left):
        done = len(hunks)
        here = end_of_edits(change.old, hunks)
    assert here is not None, "at least one hunk is applied"
    state, edits, _ = apply_history(change.path, change.old, hunks, done)
    line = min(here[0] + rng.choice((0, rng.randint(0, 6))), len(state) - 1)
    return TrainingMoment("none", state, edits, None, cursor_in(state, line, here, rng))


# --- parts of a hunk --------------------------------------------------------------------------


class HalfDone(NamedTuple):
    """A hunk in two steps."""

    made: LineChange
    rest: LineChange  # its place holds once the first step is made
    cursor: Place  # behind the first step


def begin_hunk(hunk: LineChange, rng: random.Random) -> HalfDone | None:
    """Return a hunk as what is made of it already and the rest; None where it has one step only.

    People write in steps: in recorded sessions 39 % of next edits lie within two lines of the
    last one, in commits a line changes once.
    """
    old, new = hunk.old, hunk.new
    if len(old) == len(new) == 1:
        return _begin_line(hunk, rng)
    if len(new) < 2:
        return None
    at = rng.randrange(1, len(new))
    if len(old) == len(new):  # lines changed in place, from top to bottom
        made = replace(hunk, old=old[:at], new=new[:at])
        rest = LineChange(hunk.first + at, old[at:], new[at:])
    else:
        until = at + rng.randint(1, 5)
        blank = next((i for i in range(at + 1, until) if not "".join(new[i : i + 1]).strip()), 0)
        made = replace(hunk, new=new[:at])
        rest = LineChange(hunk.first + at, (), new[at : blank or until])
    return HalfDone(made, rest, (rest.first - 1, len(new[at - 1])))


def _begin_line(hunk: LineChange, rng: random.Random) -> HalfDone | None:
    """Return the change of a line as some of its changed words and the others."""
    old, new = (_TOKENS.findall(lines[0]) for lines in (hunk.old, hunk.new))
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in codes if tag != "equal"]
    if len(changes) < 2:
        return None
    _, old_end, _, new_end = changes[rng.randrange(len(changes) - 1)]
    head = "".join(new[:new_end])
    line = head + "".join(old[old_end:])
    made, rest = (
        LineChange(hunk.first, *both) for both in ((hunk.old, (line,)), ((line,), hunk.new))
    )
    return HalfDone(made, rest, (hunk.first, len(head)))


def begin_typing(
    lines: list[str], hunk: LineChange, cut: int
) -> tuple[list[str], LineChange, Place] | None:
    """Return ``lines`` with the first changed line of ``hunk`` typed up to ``cut``.

    Where one line gives way to one, the ending that both share stands behind the cursor.

    Args:
        cut: characters of the changed part that are typed, taken modulo its length.

    Returns:
        The lines, the hunk that finishes the line, and the cursor; None where nothing is typed.
    """
    if not hunk.new:
        return None
    written = hunk.new[0]
    begin, ending = len(written) - len(written.lstrip()), 0
    if len(hunk.new) == len(hunk.old) == 1:
        begin, ending = common_ends(written, lines[hunk.first])
    kept = written[len(written) - ending :]
    typed = written[begin : len(written) - ending]
    if len(typed) < 2:
        return None
    column = begin + 1 + cut % (len(typed) - 1)
    line = written[:column] + kept
    state = [*lines[: hunk.first], line, *lines[hunk.last :]]
    return state, LineChange(hunk.first, (line,), hunk.new), (hunk.first, column)


# --- cursors ----------------------------------------------------------------------------------


def end_of_edits(old: list[str], applied: Sequence[LineChange]) -> Place | None:
    """Return where the last of the ``applied`` hunks left the cursor; None without one."""
    if not applied:
        return None
    hunk = applied[-1]
    line = hunk.first + shift_of(applied[:-1], hunk) + max(0, len(hunk.new) - 1)
    if not hunk.new:
        return line, 0
    written = hunk.new[-1]
    column = len(written)
    if hunk.growth == 0:  # lines were changed in place: the cursor stands behind the change
        column -= common_tail(written, old[hunk.last - 1])
    return line, max(column, len(written) - len(written.lstrip()))


def cursor_near(hunk: LineChange, last_edit: int | None, total: int, rng: random.Random) -> int:
    """Return the line of the cursor: that of the last edit if it is near, else around the hunk.

    A cursor that always stood at the hunk would teach that nothing is to be done elsewhere.
    """
    if last_edit is not None and abs(last_edit - hunk.first) <= 24 and rng.random() < 0.85:
        return min(last_edit, total - 1)
    return min(max(hunk.first + round(rng.gauss(0, 4)), 0), total - 1)


def cursor_in(lines: list[str], line: int, here: Place | None, rng: random.Random) -> Place:
    """Return the cursor in ``line``: ``here`` if that is in it, else mostly one of its ends."""
    if here and here[0] == line:
        return here
    text = lines[line]
    indent = len(text) - len(text.lstrip())
    return line, rng.choice((len(text), len(text), indent, rng.randint(0, len(text))))
