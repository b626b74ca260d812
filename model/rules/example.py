"""The recent edits as the rules read them, and the edits that rules propose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from ..edits.edit import Edit
from ..records import RecentEdit
from ..text.common import common_ends
from .patterns import MOST_CHARS, changes_in, paired

NAME = re.compile(r"[^\W\d]\w*")

#: Edits read, the newest first; and pairs of lines of all together.
MOST_EDITS, MOST_PAIRS = 6, 48


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """Lines [first, last) of the document, 0-based, become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    family: str  # of the rule
    chance: float  # that exactly this is the next edit
    age: int = 0  # of the edit that it follows: 0 is the newest
    evidence: int = 0  # 0 … 3: how much speaks for it, as the rule counts
    name: str = ""  # that it imports

    @property
    def key(self) -> tuple[int, int, tuple[str, ...]]:
        """The change itself, whichever rule proposes it."""
        return self.first, self.last, self.lines

    def in_text(self, text: str) -> Edit:
        """Return the edit as a replacement of characters in the document's text."""
        starts = _line_starts(text)
        start, end = starts[self.first], starts[self.last]
        new = "".join(f"{line}\n" for line in self.lines)
        if start > len(text):  # behind the last line, which has no line end
            return Edit(text, len(text), len(text), f"\n{new[:-1]}")
        if end > len(text):
            return Edit(text, start, len(text), new[:-1])
        return Edit(text, start, end, new)


@lru_cache(2)
def _line_starts(text: str) -> tuple[int, ...]:
    """Return the place of each line, and one behind the last line end."""
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")))


@dataclass(frozen=True, slots=True)
class Pair:
    """A line that became another."""

    old: str
    new: str
    age: int  # of its edit: 0 is the newest

    @property
    def entry(self) -> tuple[str, str]:
        """Return the text that changed and the text that it became.

        Text put into a list begins behind a bracket, a comma or a bar if it may: of ``f(int a)``
        and ``f(int b, int a)`` it is ``int b, `` and not ``b, int ``.
        """
        head, tail = common_ends(self.old, self.new)
        before = self.old[:head]
        old, new = (line[head : len(line) - tail] for line in (self.old, self.new))
        if old:
            return old, new
        for by in range(len(new)):
            end = new[len(new) - by :]
            if not before.endswith(end):
                continue
            if before[: len(before) - by].rstrip()[-1:] in ("(", ",", "[", "{", "|"):
                return old, end + new[: len(new) - by]
        return old, new


def pairs_of(edits: Sequence[RecentEdit]) -> list[Pair]:
    """Return the lines that ``edits``, oldest first, changed into others, the newest edit first."""
    pairs = [
        Pair(old, new, age)
        for age, edit in enumerate(reversed(edits[-MOST_EDITS:]))
        for change in changes_in(edit.diff)
        for old, new in paired(change.old, change.new)
        if max(len(old), len(new)) <= MOST_CHARS
    ]
    return pairs[:MOST_PAIRS]


def written_lines(edits: Sequence[RecentEdit]) -> frozenset[str]:
    """Return the lines that ``edits`` wrote, without the spaces around them."""
    return frozenset(
        line.strip()
        for edit in edits[-MOST_EDITS:]
        for change in changes_in(edit.diff)
        for line in change.new
    )


def readable(lines: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Return the lines of [first, last) that are not too long to be read."""
    return (at for at in range(first, last) if len(lines[at]) <= MOST_CHARS)


def words(text: str) -> list[str]:
    """Return the names in a text, in order."""
    return NAME.findall(text)
