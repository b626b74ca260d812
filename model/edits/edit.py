"""Edits of a document, by characters (`Edit`) and by lines (`LineChange`).

Pure. Offsets are indices into ``str``; lines are 0-based, and ranges exclude their end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..text.common import find_changed_part


@dataclass(frozen=True, slots=True)
class Edit:
    """``new`` in place of ``text[start:end]``."""

    text: str  # the document
    start: int
    end: int
    new: str

    @property
    def old(self) -> str:
        """The replaced text."""
        return self.text[self.start : self.end]

    @property
    def result(self) -> str:
        """The document after the edit."""
        return self.text[: self.start] + self.new + self.text[self.end :]

    @property
    def lines(self) -> tuple[int, int]:
        """The lines [first, last) of the document that change."""
        least = self.least()
        first = self.text.count("\n", 0, least.start)
        return first, first + least.old.count("\n") + 1

    def least(self) -> Edit:
        """Return the edit without the characters that stay the same at either end."""
        head, old, new = find_changed_part(self.old, self.new)
        start = self.start + head
        return replace(self, start=start, end=start + len(old), new=new)

    def whole_lines(self) -> tuple[int, int, str]:
        """Return the edit widened to whole lines: start, end (before the line end) and new text."""
        least = self.least()
        start = self.text.rfind("\n", 0, least.start) + 1
        end = self.text.find("\n", least.end)
        end = len(self.text) if end < 0 else end
        before, after = self.text[start : least.start], self.text[least.end : end]
        return start, end, before + least.new + after

    def shape(self) -> tuple[int, int, str]:
        """Return :meth:`whole_lines`, or only the lines that are inserted or deleted as a whole."""
        least = self.least()
        starts = least.start == 0 or self.text[least.start - 1] == "\n"
        if starts and all(part == "" or part.endswith("\n") for part in (least.old, least.new)):
            return least.start, least.end, least.new
        return self.whole_lines()


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines [first, first + len(old)) become ``new``; lines carry no line end."""

    first: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @property
    def last(self) -> int:
        """The line behind the change, before it is made."""
        return self.first + len(self.old)

    @property
    def end(self) -> int:
        """The line behind the change, once it is made."""
        return self.first + len(self.new)

    @property
    def growth(self) -> int:
        """Lines that the text gains."""
        return len(self.new) - len(self.old)

    @property
    def characters(self) -> int:
        """Characters of the old and the new lines."""
        return sum(map(len, (*self.old, *self.new)))

    def trim(self) -> LineChange:
        """Return the change without the lines that stay the same at either end."""
        head, old, new = find_changed_part(self.old, self.new)
        return LineChange(self.first + head, old, new)

    def distance(self, other: LineChange) -> int:
        """Return the lines between this change and a later one; 0 if they touch."""
        return max(0, other.first - self.end, self.first - other.last)

    def then(self, other: LineChange) -> LineChange:
        """Return this change and a later one that touches it as one change."""
        head = other.old[: max(0, self.first - other.first)]
        tail = other.old[max(0, self.end - other.first) :] if other.old else ()
        first = self.first - len(head)
        middle = [*head, *self.new, *tail]
        at = other.first - first
        middle[at : at + len(other.old)] = other.new
        return LineChange(first, (*head, *self.old, *tail), tuple(middle))

    def reach(self, other: LineChange, lines: Sequence[str]) -> LineChange:
        """Return this change, not made yet, widened by unchanged ``lines`` to touch ``other``."""
        above, below = lines[other.end : self.first], lines[self.last : other.first]
        old, new = (*above, *self.old, *below), (*above, *self.new, *below)
        return LineChange(self.first - len(above), old, new)


def on_top(newest: LineChange, changes: list[LineChange]) -> list[LineChange]:
    """Return ``newest`` and the earlier ``changes`` at their places after it.

    The newest is merged with the first change that it touches; others that it touches are dropped.
    """
    whole, apart = newest, list[LineChange]()
    for change in changes:
        if change.distance(newest) == 0:
            whole = change.then(newest) if whole is newest else whole
        elif newest.first < change.first:
            apart.append(replace(change, first=change.first + newest.growth))
        else:
            apart.append(change)
    return [whole, *apart]


NO_CHANGE = 0


def key_of(change: LineChange) -> int:
    """Return a hash of a state of an edit; ``NO_CHANGE`` for the state it began with."""
    change = change.trim()
    changed = change.old or change.new
    return hash((change.first, len(change.old), change.new)) if changed else NO_CHANGE
