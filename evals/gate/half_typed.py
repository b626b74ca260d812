"""Moments of a file at which only the beginning of a line is typed; the rest is wanted.

Pure given a ``random.Random``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.model.edits.hunks import Hunk, apply_history
from redraft.model.records import RecentEdit


@dataclass(frozen=True, slots=True)
class HalfTyped:
    """A document with a line of which only a part is there, and the recent edits."""

    text: str
    edits: tuple[RecentEdit, ...]
    cursor: int  # index into text
    wanted: str  # the document with the whole line


def half_typed(path: str, text: str, rng: random.Random) -> HalfTyped | None:
    """Return a line that is half typed, behind the lines typed above it; None where none fits.

    Its names stand elsewhere in the file too, all but one, so that the rest can be foreseen.
    """
    lines = text.split("\n")
    for _ in range(10):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = _pause_in(line, rng)
        if cut is None or not _is_foreseeable(line, lines[:at] + lines[at + 1 :]):
            continue
        first = at
        while at - first < rng.randint(0, 3) and first > 0 and lines[first - 1].strip():
            first -= 1
        state = [*lines[:first], *lines[at + 1 :]]
        edits: tuple[RecentEdit, ...] = ()
        if first < at:
            written = Hunk(first, first, tuple(lines[first:at]))
            state, edits, _ = apply_history(path, state, [written], 1)
        state.insert(at, line[:cut])
        cursor = sum(len(above) + 1 for above in state[:at]) + cut
        return HalfTyped("\n".join(state), edits, cursor, text)
    return None


_PAUSE = re.compile(r"[,;:(\[{.=] ?|(?<=\w)(?=\W)|(?<=\W)(?=\w)")


def _pause_in(line: str, rng: random.Random) -> int | None:
    """Return where to stop within a line: mostly behind a mark or a name, rarely in a name."""
    begin, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if not 12 <= end - begin <= 100:
        return None
    places = [m.end() for m in _PAUSE.finditer(line, begin + 3, end - 2)]
    if rng.random() < 0.2 or not places:
        return rng.randrange(begin + 3, end - 2)
    return rng.choice(places)


def _is_foreseeable(line: str, others: Sequence[str]) -> bool:
    """Return whether its names stand elsewhere in the file, all but one."""
    words = set(re.findall(r"[^\W\d]\w{2,}", line))
    known = set(re.findall(r"[^\W\d]\w{2,}", "\n".join(others)))
    return len(words) > 1 and len(words - known) < 2
