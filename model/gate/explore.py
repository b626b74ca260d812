"""Exploration: at few moments the threshold is a little lower or higher than usual.

Outcomes of what the gate always hides are never seen. Where the user allows it, some of them are
drawn for showing. The draw depends on the seed and the moment alone, so that a suggestion does not
flicker.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

#: By how much the threshold is moved, and at which share of the moments; half of them each way.
BAND = 0.1
SHARE = 0.02


@dataclass(frozen=True, slots=True)
class ExplorationDraw:
    """The threshold at one moment."""

    usual: float  # 0 … 1
    threshold: float  # as drawn; outside 0 … 1 it shows everything, or nothing
    explores: bool

    def propensity(self, score: float) -> float:
        """Return how probable it was before the draw that a score is shown."""
        if not self.explores:
            return float(score >= self.usual)
        lower, higher = score >= self.usual - BAND, score >= self.usual + BAND
        return (1 - SHARE) * (score >= self.usual) + SHARE / 2 * (lower + higher)


def draw_threshold(usual: float, explores: bool, moment: str) -> ExplorationDraw:
    """Draw the threshold of a moment.

    Args:
        explores: whether the user allows it.
        moment: identifies the moment, and holds the seed.
    """
    if not explores:
        return ExplorationDraw(usual, usual, False)
    drawn = random.Random(moment).random()
    move = 0.0 if drawn >= SHARE else BAND if drawn < SHARE / 2 else -BAND
    return ExplorationDraw(usual, usual + move, True)
