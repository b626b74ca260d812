"""Moments at which the typing of a line has only begun, made up from a file; the rest is wanted.

Pure given a ``random.Random``. Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from ..edits.hunks import Hunk, apply_history
from ..records import RecentEdit
from .moments import TrainingMoment


def half_typed(path: str, text: str, rng: random.Random) -> TrainingMoment | None:
    """A line of which a part is there, behind what was typed above it; its rest is wanted. Names
    that the file says elsewhere too make it foreseeable."""
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
        return TrainingMoment("typing", state, edits, Hunk(at, at + 1, (line,)), (at, cut))
    return None


_PAUSE = re.compile(r"[,;:(\[{.=] ?|(?<=\w)(?=\W)|(?<=\W)(?=\w)")


def _pause_in(line: str, rng: random.Random) -> int | None:
    """Where people stop within a line: mostly behind a mark or a name, rarely within a name."""
    begin, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if not 12 <= end - begin <= 100:
        return None
    places = [m.end() for m in _PAUSE.finditer(line, begin + 3, end - 2)]
    if rng.random() < 0.2 or not places:
        return rng.randrange(begin + 3, end - 2)
    return rng.choice(places)


def _is_foreseeable(line: str, others: Sequence[str]) -> bool:
    """Are its names said elsewhere in the file, all but one?"""
    words = set(re.findall(r"[^\W\d]\w{2,}", line))
    known = set(re.findall(r"[^\W\d]\w{2,}", "\n".join(others)))
    return len(words) > 1 and len(words - known) < 2
