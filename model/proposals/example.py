"""What one recent edit did, as every family reads it: lines that became others, and their parts.

Pure; knows nothing of where anything could be done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..edits.edit_patterns import MOST_CHARS, changes_in, paired
from ..records import Importable, RecentEdit
from ..text.common import common_ends

#: Languages of texts, in which words are no names.
PROSE = frozenset(("markdown", "plaintext", "restructuredtext", "latex"))
NAME = re.compile(r"[^\W\d]\w*")
_END = re.compile(r"[\s;,)\]}]*$")

#: Edits read, the newest first; and pairs of lines and runs of new lines of all together.
MOST_EDITS, MOST_PAIRS, MOST_RUNS = 6, 48, 24


@dataclass(frozen=True, slots=True)
class Pair:
    """A line that became another."""

    old: str
    new: str
    age: int  # of its edit: 0 is the newest

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Before what changed, what it was, what it is, and behind."""
        head, tail = common_ends(self.old, self.new)
        end_old, end_new = len(self.old) - tail, len(self.new) - tail
        return self.old[:head], self.old[head:end_old], self.new[head:end_new], self.old[end_old:]

    @property
    def entry(self) -> tuple[str, str, str, str]:
        """The same, where something was put into a list, so that it begins behind a bracket, a
        comma or a bar if it may: of ``f(int a)`` and ``f(int b, int a)`` not ``b, int``."""
        before, old, new, after = self.parts
        if old:
            return before, old, new, after
        for by in range(len(new)):
            end = new[len(new) - by :]
            if not before.endswith(end):
                continue
            head = before[: len(before) - by]
            if head.rstrip()[-1:] in ("(", ",", "[", "{", "|"):
                return head, old, end + new[: len(new) - by], end + after
        return before, old, new, after


@dataclass(frozen=True, slots=True)
class Added:
    """Lines that are new, between others."""

    lines: tuple[str, ...]
    above: str  # "": none is known
    below: str
    age: int
    around: tuple[str, ...] = ()  # the lines of the hunk as they are after it
    at: int = 0  # where among these the new lines begin


@dataclass(frozen=True, slots=True)
class Found:
    """Lines [first, last), 0-based, could become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    age: int
    evidence: int = 0  # 0 … 3: how much spoke for it, as the family counts
    name: str = ""  # that stands there or comes there, where the family knows one
    told: bool = True  # else only its place is known: what it writes is a guess
    family: str = ""  # where it is not of the family of whoever found it


@dataclass(frozen=True, slots=True)
class Example:
    """The recent edits, newest first."""

    pairs: tuple[Pair, ...]
    added: tuple[Added, ...]
    gone: frozenset[str]  # lines taken away, stripped
    come: frozenset[str]  # lines written, stripped
    grown: tuple[Added, ...] = ()  # lines put behind one that only got another end
    removed: tuple[str, ...] = ()  # lines taken away with nothing in their place
    language: str = ""  # of the document, as an LSP id; "": unknown
    elsewhere: tuple[str, ...] = ()  # texts of other places that the question brings
    importable: tuple[Importable, ...] = ()  # names that the workspace defines


def read(
    edits: Sequence[RecentEdit],
    language: str = "",
    elsewhere: Sequence[str] = (),
    importable: Sequence[Importable] = (),
) -> Example:
    """What ``edits``, oldest first, did."""
    pairs: list[Pair] = []
    added: list[Added] = []
    grown: list[Added] = []
    removed: list[str] = []
    gone: set[str] = set()
    come: set[str] = set()
    for age, edit in enumerate(reversed(edits[-MOST_EDITS:])):
        for change in changes_in(edit.diff):
            pairs += _pairs(change.old, change.new, age)
            below, around = "".join(change.below), tuple(change.around)
            kept = len(change.old)
            if not kept:
                above = "".join(change.above)
                added.append(Added(tuple(change.new), above, below, age, around, change.first))
            elif len(change.new) > kept and _stay(change.old, change.new[:kept]):
                above, first = change.new[kept - 1], change.first + kept
                grown.append(Added(tuple(change.new[kept:]), above, below, age, around, first))
            removed += change.old if not change.new else []
            gone |= {line.strip() for line in change.old}
            come |= {line.strip() for line in change.new}
    return Example(
        tuple(pairs[:MOST_PAIRS]),
        tuple(added[:MOST_RUNS]),
        frozenset(gone),
        frozenset(come),
        tuple(grown[:MOST_RUNS]),
        tuple(removed[:MOST_PAIRS]),
        language,
        tuple(elsewhere),
        tuple(importable),
    )


def _stay(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether lines stay as they are, but for the brackets and marks that the last ends in."""
    return [*old[:-1], _END.sub("", old[-1])] == [*new[:-1], _END.sub("", new[-1])]


def _pairs(old: list[str], new: list[str], age: int) -> Iterator[Pair]:
    for one, two in paired(old, new):
        if max(len(one), len(two)) <= MOST_CHARS:
            yield Pair(one, two, age)


def readable(lines: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Of the lines [first, last) those that are not too long to be read."""
    return (at for at in range(first, last) if len(lines[at]) <= MOST_CHARS)


def words(text: str) -> list[str]:
    return NAME.findall(text)
