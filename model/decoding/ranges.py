"""Which line ranges a next edit may begin with, and how likely each is: a tree of a few tokens.

Every pass over some range tells how likely each next character was at every place along it, so one
pass also prices the siblings of what it ran. Pure: logits in, ranges out; ``judged_edits.py`` runs
the passes. Knows nothing of what is written after a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..prompt.constraints import next_chars
from ..records import LEAST_LOG
from ..runtime.backend import FloatArray
from .probabilities import softmax


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a range line such as ``12-1``, or a whole one such as ``12-14⏎``."""

    text: str
    logs: tuple[float, ...]  # log-probability of each character

    @property
    def total(self) -> float:
        return sum(self.logs)

    @property
    def whole(self) -> bool:
        return self.text.endswith("\n")

    @property
    def range(self) -> tuple[int, int]:
        """1-based first and last line; only of a whole one."""
        first, _, last = self.text.strip().partition("-")
        return int(first), int(last)


@dataclass(slots=True)
class RangeTree:
    """Openings priced so far.

    Args:
        count: lines of the region.
        cursor: 1-based line that unpriced ranges are guessed to be near.
        chars: token of each character that a range is made of.
        end_token: ends the answer at once.
    """

    count: int
    cursor: int
    chars: Mapping[str, int]
    end_token: int
    nothing: float = LEAST_LOG  # log-probability of no edit
    _known: dict[str, dict[str, float]] = field(default_factory=dict)

    def tokens(self, text: str) -> list[int]:
        return [self.chars[char] for char in text]

    def note(self, written: str, logits: FloatArray) -> None:
        """``logits`` [vocab] of the character after ``written``."""
        if written in self._known:
            return
        allowed = sorted(next_chars(written, self.count))
        ids = [self.chars[char] for char in allowed]
        if not written:
            ids.append(self.end_token)
        logs = _logs(softmax(logits[ids].astype(np.float64)))
        if not written:
            self.nothing = logs.pop()
        self._known[written] = dict(zip(allowed, logs, strict=True))

    def opening(self, text: str) -> Opening | None:
        """``text`` with its price; None where some of it has none yet."""
        logs = []
        for place, char in enumerate(text):
            known = self._known.get(text[:place])
            if known is None or char not in known:
                return None
            logs.append(known[char])
        return Opening(text, tuple(logs))

    def open(self) -> Iterator[Opening]:
        """Whole ranges, and beginnings behind which nothing is priced yet."""
        stack = [Opening("", ())]
        while stack:
            at = stack.pop()
            for char, log in self._known.get(at.text, {}).items():
                longer = Opening(at.text + char, (*at.logs, log))
                if longer.text in self._known:
                    stack.append(longer)
                else:
                    yield longer

    def guess(self, written: str) -> str:
        """A whole range that begins with ``written``: one line, as near to the cursor as can be."""
        first, dash, last = written.partition("-")
        if not dash:
            starts = [n for n in range(1, self.count + 1) if str(n).startswith(first)]
            if not starts:
                return f"{self.count + 1}-{self.count}\n"  # behind the last line
            nearest = min(starts, key=lambda n: abs(n - self.cursor))
            return f"{nearest}-{nearest}\n"
        low = int(first) - 1
        fitting = [n for n in range(low, self.count + 1) if str(n).startswith(last)]
        at = int(first)
        return f"{first}-{min(fitting, key=lambda n: (abs(n - at), n))}\n"


def _logs(probabilities: NDArray[np.float64]) -> list[float]:
    return [math.log(p) if p > 0 else LEAST_LOG for p in probabilities.tolist()]
