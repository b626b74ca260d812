"""Edits of the history: in progress, finished, and as the hunks that a model is shown.

Edits look as they do in training (``model/edits/hunks.py``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from redraft.model.edits.edit import NO_CHANGE, Edit, LineChange
from redraft.model.edits.hunks import CONTEXT_LINES, hunks_of, last_burst
from redraft.model.records import RecentEdit
from redraft.model.text.common import find_changed_part
from unidiff.patch import Hunk, Line

from .open_documents import Splice
from .positions import without_surrogates

#: Changes at most this far apart, in lines and in seconds, are one edit.
NEAR_LINES = 8
PAUSE_S = 1.0

MAX_LINES = 200  # of one edit; a longer one is continued in the next
STATES = 64  # former states of an edit that an undo is recognised by
_BULK_PLACES = 3  # places far apart in one message: a formatter, or a rename
_LONGEST = 16_000  # characters of one edit; a longer one is data, not typing
_PAIRS = ("", "()", "[]", "{}", "<>", '""', "''", "``")  # "": only written, or only deleted


@dataclass(frozen=True, slots=True, eq=False)
class HistoryEntry:
    """A finished edit."""

    uri: str
    path: str
    span: LineChange  # in the document as it was just before
    hunks: tuple[Hunk, ...]  # of the span; each applies to the text that the one before leaves
    at_s: float  # when it ended
    snapshot: int  # id of the snapshot it is based on
    accepted: bool = False
    states: frozenset[int] = frozenset()  # of the document on the way, as key_of()
    shown: tuple[RecentEdit, ...] = field(init=False)  # kept, because every key asks for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", as_shown(self.path, self.hunks, self.accepted))


@dataclass(slots=True)
class EditInProgress:
    """Edit in progress."""

    span: LineChange
    began_s: float
    last_s: float
    accepted: bool = False
    #: States on the way: of this edit alone, and together with the finished one it touches.
    states: deque[int] = field(default_factory=lambda: deque([NO_CHANGE], maxlen=STATES))
    joined: deque[int] = field(default_factory=lambda: deque(maxlen=STATES))

    def continues(self, change: LineChange, now: float, *, accepted: bool) -> bool:
        """Return whether ``change`` is part of this edit."""
        return (
            now - self.last_s <= PAUSE_S
            and self.span.distance(change) <= NEAR_LINES
            and self.accepted == accepted
            and max(len(self.span.old), len(self.span.new)) <= MAX_LINES
        )


def is_one_key(splices: Sequence[Splice]) -> bool:
    """Return whether one key may have made the changes, though they alter several characters.

    Tab, Enter and Backspace write or delete an indentation. Between two brackets that the editor
    closed, Backspace deletes both.
    """
    if len(splices) != 1:
        return False
    old, new = "\n".join(splices[0].removed), "\n".join(splices[0].added)
    return all(text.isspace() or text in _PAIRS for text in find_changed_part(old, new)[1:])


def is_scattered(splices: Sequence[Splice]) -> bool:
    """Return whether one message changed places far apart, or very long lines."""
    places = 1
    for one, other in pairwise(splices):
        places += abs(one.first - other.first) > NEAR_LINES
    longest = sum(len(line) for splice in splices for line in (*splice.removed, *splice.added))
    return places >= _BULK_PLACES or longest > _LONGEST


def hunks_of_span(span: LineChange, lines: Sequence[str], top: int = 0) -> tuple[Hunk, ...]:
    """Return the differences that a span makes, as hunks with context.

    Each applies to the text that the one before leaves.

    Args:
        span: changed lines.
        lines: of the text after the change, from its 0-based line ``top`` on; three lines on
            either side of the span are enough.
    """
    begin = max(top, span.first - CONTEXT_LINES)
    above = lines[begin - top : span.first - top]
    below = lines[span.end - top : span.end + CONTEXT_LINES - top]
    state = [without_surrogates(line) for line in (*above, *span.old, *below)]
    after = [without_surrogates(line) for line in (*above, *span.new, *below)]
    hunks, growth = [], 0
    for part in hunks_of(list(state), after):
        first = part.first + growth
        last, start = first + len(part.old), max(0, first - CONTEXT_LINES)
        context = state[start:first], state[last : last + CONTEXT_LINES]
        hunks.append(_hunk(begin + start, context, part))
        state[first:last] = part.new
        growth += part.growth
    return tuple(hunks)


def _hunk(first: int, context: tuple[list[str], list[str]], change: LineChange) -> Hunk:
    """Return a hunk that begins in the 0-based line ``first``."""
    above, below = context
    around = len(above) + len(below)
    old, new = around + len(change.old), around + len(change.new)
    # The format names a range of no lines by the line above it.
    hunk = Hunk(first + bool(old), old, first + bool(new), new)
    for sign, part in ((" ", above), ("-", change.old), ("+", change.new), (" ", below)):
        for line in part:
            hunk.append(Line(f"{line}\n", sign))
    return hunk


def as_shown(path: str, hunks: Iterable[Hunk], accepted: bool) -> tuple[RecentEdit, ...]:
    """Return hunks as a model is shown them."""
    plain = (RecentEdit(path, hunk.target_start - 1, "".join(map(str, hunk))) for hunk in hunks)
    return tuple(replace(last_burst(edit), accepted=accepted) for edit in plain)


def as_accepted(path: str, edit: Edit, lines: Sequence[str]) -> tuple[RecentEdit, ...]:
    """Return a suggestion as the history would show it once accepted; ``lines``: those after it."""
    start, end, new = edit.whole_lines()
    old, first = edit.text[start:end], edit.text.count("\n", 0, start)
    span = LineChange(first, tuple(old.split("\n")), tuple(new.split("\n")))
    return as_shown(path, hunks_of_span(span.trim(), lines), accepted=True)
