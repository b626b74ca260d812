"""Lists as they are written: one item below the other, told by indentation, or one behind the
other within a line.

Read from text alone, so that it is the same for all languages and for text that does not parse yet:
the arms of a ``match``, the fields of a class, the entries of a literal, the names of a union.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .example import words

KEYWORDS = frozenset(
    words(
        "def class func function fn fun let const var val return import from pub public private "
        "static final self this if else for while case match new async await export type struct "
        "enum interface void int str string bool float None null nil true false True False default "
        "protected readonly mut"
    )
)
#: Lines on either side of an item that its list may reach.
MOST_LINES = 120
#: Languages in which the type of what is declared stands before its name.
TYPE_FIRST = frozenset(("java", "c", "cpp", "csharp"))
_DECLARED = re.compile(r"^\s*(?:[\w.]+(?:<[^=]*>)?[\[\]*&?]*\s+)+\*?(\w+)\s*(?:=.*)?[;,)]*\s*$")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Item:
    """Lines [first, last) of a text, the first of which names it."""

    first: int
    last: int


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def items_around(lines: Sequence[str], at: int, blank_ends: bool = False) -> list[Item]:
    """The items of the list to which the one that begins in line ``at`` belongs, in order.

    Args:
        blank_ends: whether a blank line ends the list.
    """
    depth = indent(lines[at])
    low = at
    while low > max(0, at - MOST_LINES) and _inside(lines[low - 1], depth, blank_ends):
        low -= 1
    high = at + 1
    while high < min(len(lines), at + MOST_LINES) and _inside(lines[high], depth, blank_ends):
        high += 1
    begins = [
        row
        for row in range(low, high)
        if lines[row].strip()
        and indent(lines[row]) == depth
        and lines[row].lstrip()[0] not in ")]}"
    ]
    return [
        Item(row, _end_of(lines, row, end))
        for row, end in zip(begins, [*begins[1:], high], strict=False)
    ]


def _inside(line: str, depth: int, blank_ends: bool) -> bool:
    return not blank_ends if not line.strip() else indent(line) >= depth


def _end_of(lines: Sequence[str], first: int, last: int) -> int:
    """Where an item ends of which the next begins at ``last``: before a bracket that closes what is
    around it, and before blank lines."""
    depth = 0
    for row in range(first, last):
        depth += sum((char in _PAIRS) - (char in _CLOSING) for char in lines[row])
        if depth < 0 and row > first and lines[row].strip()[:1] in _CLOSING:
            last = row
            break
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return last


def entries_around(line: str, at: int) -> list[tuple[int, int]]:
    """The entries [start, end) of the list within a line to which the character ``at`` belongs,
    parted by commas or bars; [] where there is none, or it goes on in other lines."""
    opened, closed = _brackets(line, at)
    bars = parted(line, opened, closed, "|")
    if len(bars) > 1:
        head = line.rfind("=", opened, at) + 1 or line.rfind(":", opened, at) + 1
        tail = len(line) if closed == len(line) else closed
        found = parted(line, max(opened, head), tail, "|")
        return [_stripped(line, *entry, ";,") for entry in found]
    if opened == 0 or closed == len(line):
        return []
    entries = [_stripped(line, *entry, "") for entry in parted(line, opened, closed, ",")]
    return [entry for entry in entries if entry[0] < entry[1]]


def _brackets(line: str, at: int) -> tuple[int, int]:
    """Behind the bracket that is open at ``at``, and where it is closed; the line's ends where it
    is not within this line."""
    depth, opened = 0, 0
    for place in range(at - 1, -1, -1):
        if line[place] in _CLOSING:
            depth += 1
        elif line[place] in _PAIRS:
            if depth == 0:
                opened = place + 1
                break
            depth -= 1
    depth = 0
    for place in range(at, len(line)):
        if line[place] in _PAIRS:
            depth += 1
        elif line[place] in _CLOSING:
            if depth == 0:
                return opened, place
            depth -= 1
    return opened, len(line)


def parted(line: str, start: int, end: int, mark: str) -> list[tuple[int, int]]:
    """Parts of ``line[start:end]`` between marks that stand in no bracket and no quotes."""
    parts, depth, begin, quote = [], 0, start, ""
    for place in range(start, end):
        char = line[place]
        if quote:
            quote = "" if char == quote and line[place - 1] != "\\" else quote
        elif char in "\"'`":
            quote = char if char in line[place + 1 : end] else ""
        elif char in _PAIRS:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == mark and depth == 0 and line[place - 1 : place + 2].count(mark) == 1:
            parts.append((begin, place))
            begin = place + 1
    return [*parts, (begin, end)]


def _stripped(line: str, start: int, end: int, ends: str) -> tuple[int, int]:
    text = line[start:end]
    kept = text.rstrip().rstrip(ends).rstrip()
    return start + len(text) - len(text.lstrip()), start + len(kept)


def named_apart(one: str, other: str, language: str = "") -> tuple[str, str] | None:
    """The names by which two items of a list are told apart; None where they do not read alike."""
    if language in TYPE_FIRST:
        declared = _DECLARED.match(one), _DECLARED.match(other)
        if declared[0] is not None and declared[1] is not None:
            pair = declared[0][1], declared[1][1]
            return pair if pair[0] != pair[1] else None
    for a, b in zip(words(one), words(other), strict=False):
        if a != b:
            telling = a not in KEYWORDS and b not in KEYWORDS and len(a) > 1 and len(b) > 1
            return (a, b) if telling else None
    return None
