"""Now and then the gate shows what it is a little too unsure of, or hides what it is just sure of.

Of what it always hides, nobody ever says what they would have made of it on the screen. So at few
moments, where the user has turned it on, the threshold lies a little lower or higher. Which moments
these are is drawn from a seed, the same however often one is looked at, so that nothing flickers.
Pure: the seed is an argument.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

#: How far the threshold is moved, and at which share of the moments; half of them each way.
BAND = 0.1
SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Lot:
    """The threshold at a moment."""

    usual: float  # sureness, 0 … 1
    threshold: float  # as drawn; beyond 0 … 1 it shows all, or nothing
    explores: bool

    def propensity(self, sure: float) -> float:
        """How probable it was, before the lot was drawn, that a sureness would do."""
        if not self.explores:
            return float(sure >= self.usual)
        lower, higher = sure >= self.usual - BAND, sure >= self.usual + BAND
        return (1 - SHARE) * (sure >= self.usual) + SHARE / 2 * (lower + higher)


def lot_of(usual: float, explores: bool, moment: str) -> Lot:
    """Draw for a moment.

    Args:
        explores: does the user want it?
        moment: tells it from others, and holds the seed.
    """
    if not explores:
        return Lot(usual, usual, False)
    drawn = random.Random(moment).random()
    move = 0.0 if drawn >= SHARE else BAND if drawn < SHARE / 2 else -BAND
    return Lot(usual, usual + move, True)
