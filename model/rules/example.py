"""The recent edits as the rules read them: lines that became others, and lines that are new.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..records import Importable, RecentEdit
from ..text.common import common_ends
from .patterns import MOST_CHARS, changes_in, paired

NAME = re.compile(r"[^\W\d]\w*")

#: Edits read, the newest first; and pairs of lines of all together.
MOST_EDITS, MOST_PAIRS = 6, 48


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


@dataclass(frozen=True, slots=True)
class Found:
    """Lines [first, last), 0-based, could become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    age: int
    evidence: int = 0  # 0 … 3: how much spoke for it, as the rule counts
    name: str = ""  # that stands there or comes there, where the rule knows one
    family: str = ""  # of the rule that found it


@dataclass(frozen=True, slots=True)
class Example:
    """The recent edits, newest first."""

    pairs: tuple[Pair, ...]
    come: frozenset[str]  # lines written, stripped
    language: str = ""  # of the document, as an LSP id; "": unknown
    elsewhere: tuple[str, ...] = ()  # texts of other places that the question brings
    importable: tuple[Importable, ...] = ()  # names that the workspace defines


def read(
    edits: Sequence[RecentEdit],
    language: str = "",
    elsewhere: Sequence[str] = (),
    importable: Sequence[Importable] = (),
) -> Example:
    """Return the changes that ``edits``, oldest first, made."""
    pairs: list[Pair] = []
    come: set[str] = set()
    for age, edit in enumerate(reversed(edits[-MOST_EDITS:])):
        for change in changes_in(edit.diff):
            pairs += _pairs(change.old, change.new, age)
            come |= {line.strip() for line in change.new}
    return Example(
        tuple(pairs[:MOST_PAIRS]), frozenset(come), language, tuple(elsewhere), tuple(importable)
    )


def _pairs(old: list[str], new: list[str], age: int) -> Iterator[Pair]:
    for one, two in paired(old, new):
        if max(len(one), len(two)) <= MOST_CHARS:
            yield Pair(one, two, age)


def readable(lines: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Return the lines of [first, last) that are not too long to be read."""
    return (at for at in range(first, last) if len(lines[at]) <= MOST_CHARS)


def words(text: str) -> list[str]:
    """Return the names in a text, in order."""
    return NAME.findall(text)
