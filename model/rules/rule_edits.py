"""The recent edits as the rules read them, and the edits that rules propose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate

from ..edits.edit import Edit, LineChange
from ..edits.hunks import line_changes, lines_of
from ..records import RecentEdit

NAME = re.compile(r"[^\W\d]\w*")

#: Edits read, the newest first; and pairs of lines of all together.
MOST_EDITS, MOST_PAIRS = 6, 48
#: Lines of an edit at most; a larger one is not repeated, and takes long to compare.
MOST_LINES = 200
MOST_CHARS = 500  # of a line

Pair = tuple[str, str]  # a line, and the one that it became


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """Lines [first, last) of the document, 0-based, become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    family: str  # of the rule
    chance: float  # that exactly this is the next edit
    name: str = ""  # that it imports

    @property
    def key(self) -> tuple[int, int, tuple[str, ...]]:
        """The change itself, whichever rule proposes it."""
        return self.first, self.last, self.lines

    @classmethod
    def of(cls, edit: Edit, family: str, chance: float) -> RuleEdit:
        """Return an edit of characters as one of whole lines."""
        return cls(*edit.lines, tuple(edit.whole_lines()[2].split("\n")), family, chance)

    def in_text(self, text: str) -> Edit:
        """Return the edit as a replacement of characters in the document's text."""
        starts = line_starts(text)
        start, end = starts[self.first], starts[self.last]
        new = "".join(f"{line}\n" for line in self.lines)
        if start > len(text):  # behind the last line, which has no line end
            return Edit(text, len(text), len(text), f"\n{new[:-1]}")
        if end > len(text):
            return Edit(text, start, len(text), new[:-1])
        return Edit(text, start, end, new)


@lru_cache(2)
def line_starts(text: str) -> tuple[int, ...]:
    """Return the place of each line, and one behind the last line end."""
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")))


def changes_in(diff: str) -> Iterator[tuple[LineChange, list[str]]]:
    """Yield each change of a hunk, and the lines of the whole hunk as they are after it."""
    lines = lines_of(diff)[:MOST_LINES]
    after = [text for sign, text in lines if sign != "-"]
    return ((change, after) for change in line_changes(lines))


def pair_lines(change: LineChange) -> list[Pair]:
    """Return the pairs of lines of which one became the other."""
    old, new = change.old, change.new
    if len(old) == len(new):
        return [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    pairs: list[Pair] = []
    stripped = [line.strip() for line in old], [line.strip() for line in new]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *stripped, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            pairs += zip(old[i1:i2], new[j1:j2], strict=True)
    return pairs


def pairs_of(edits: Sequence[RecentEdit]) -> list[Pair]:
    """Return the lines that ``edits``, oldest first, changed into others, the newest edit first."""
    changes = (
        change for edit in reversed(edits[-MOST_EDITS:]) for change, _ in changes_in(edit.diff)
    )
    pairs = (pair for change in changes for pair in pair_lines(change))
    return [pair for pair in pairs if max(map(len, pair)) <= MOST_CHARS][:MOST_PAIRS]


def lines_written(edits: Sequence[RecentEdit]) -> frozenset[str]:
    """Return the lines that ``edits`` wrote, without the spaces around them."""
    changes = (change for edit in edits[-MOST_EDITS:] for change, _ in changes_in(edit.diff))
    return frozenset(line.strip() for change in changes for line in change.new)


def words(text: str) -> list[str]:
    """Return the names in a text, in order."""
    return NAME.findall(text)
