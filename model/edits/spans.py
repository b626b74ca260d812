"""A run of lines that became another, and how two such changes make one.

Pure; knows nothing of documents, time, or what the lines say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..text.common import common_ends


@dataclass(frozen=True, slots=True)
class Span:
    """Lines [first, first + len(old)) became ``new``."""

    first: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @property
    def growth(self) -> int:
        return len(self.new) - len(self.old)

    @property
    def end(self) -> int:
        """The line behind it, once it is made."""
        return self.first + len(self.new)

    @property
    def characters(self) -> int:
        return sum(map(len, self.old)) + sum(map(len, self.new))

    def trimmed(self) -> Span:
        """Without the lines that stay the same at both ends."""
        head, tail = common_ends(self.old, self.new)
        old, new = self.old[head : len(self.old) - tail], self.new[head : len(self.new) - tail]
        return Span(self.first + head, old, new)

    def distance(self, other: Span) -> int:
        """Lines between this one, made, and one that is made after it; 0 where they touch."""
        return max(0, other.first - self.end, self.first - other.first - len(other.old))

    def then(self, other: Span) -> Span:
        """Both as one. ``other`` is made after this one and touches it."""
        head = other.old[: max(0, self.first - other.first)]
        tail = other.old[max(0, self.end - other.first) :] if other.old else ()
        first = self.first - len(head)
        middle = [*head, *self.new, *tail]
        at = other.first - first
        middle[at : at + len(other.old)] = other.new
        return Span(first, (*head, *self.old, *tail), tuple(middle))

    def reaching(self, other: Span, lines: Sequence[str]) -> Span:
        """This one, not made yet, widened by unchanged ``lines`` until it touches ``other``."""
        above = lines[other.end : self.first]
        below = lines[self.first + len(self.old) : other.first]
        old, new = (*above, *self.old, *below), (*above, *self.new, *below)
        return Span(self.first - len(above), old, new)


def on_top(newest: Span, spans: list[Span]) -> list[Span]:
    """``spans`` moved to where they are after the ``newest``, and that one before them; as one with
    the first that it touches, in place of all that it touches."""
    whole, apart = newest, []
    for span in spans:
        if span.distance(newest) == 0:
            whole = span.then(newest) if whole is newest else whole
        elif newest.first < span.first:
            apart.append(replace(span, first=span.first + newest.growth))
        else:
            apart.append(span)
    return [whole, *apart]


NO_CHANGE = 0


def key_of(span: Span) -> int:
    """Tells apart the states an edit goes through; 0 is the one it began with."""
    span = span.trimmed()
    changed = span.old or span.new
    return hash((span.first, len(span.old), span.new)) if changed else NO_CHANGE
