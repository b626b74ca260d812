"""What a soak counts, and what comes of it: a report for the table and for JSON.

Knows nothing of what is done. The clock is an argument.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..figures.spread import Spread

#: Share of the samples at the beginning that are left out of a slope: caches fill.
WARM_UP = 0.3
#: Blocks that the others are cut into: their medians are nearly independent, samples are not.
BLOCKS = 12
#: 97.5 % quantile of Student's t with BLOCKS - 2 degrees of freedom.
_T = 2.228
#: What a slope is told per.
EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Slope:
    """How memory grows: MB (1,000,000 bytes) per 10,000 events, with the 95 % interval."""

    value: float
    low: float
    high: float


def slope_of(samples: Sequence[tuple[int, int]]) -> Slope | None:
    """The line through medians of blocks, least squares; None: too few samples.

    Args:
        samples: events so far, and bytes.
    """
    kept = samples[int(len(samples) * WARM_UP) :]
    size = len(kept) // BLOCKS
    if size < 1 or kept[-1][0] == kept[0][0]:
        return None
    blocks = [kept[i * size : (i + 1) * size] for i in range(BLOCKS)]
    x = [statistics.median(events for events, _ in block) for block in blocks]
    y = [statistics.median(held for _, held in block) for block in blocks]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    rest = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    error = _T * math.sqrt(rest / (BLOCKS - 2) / spread)
    unit = EVENTS / 1e6
    return Slope(*(round(one * unit, 3) for one in (slope, slope - error, slope + error)))


@dataclass(frozen=True, slots=True)
class SoakReport:
    """What one mode came to."""

    mode: str
    seed: int
    seconds: float
    events: int  # messages and requests sent
    answers: int
    errors: int  # answers that say why there is nothing, other than those that are expected
    lost: int  # requests that nobody answered
    latency_ms: Spread
    memory_mb: tuple[float, float]  # after the warm-up, at the end
    slope: Slope | None
    counts: dict[str, float]  # what is particular to the mode
    broken: tuple[str, ...]  # what did not hold


@dataclass(slots=True)
class Tally:
    """Filled while a mode runs."""

    clock: Callable[[], float]
    events: int = 0
    answers: int = 0
    errors: int = 0
    lost: int = 0
    latency_ms: list[float] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)  # events, bytes
    counts: Counter[str] = field(default_factory=Counter)
    figures: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def sample(self, held_bytes: int) -> None:
        self.memory.append((self.events, held_bytes))

    def breaks(self, what: str) -> None:
        """Something did not hold."""
        if len(self.broken) < 50:
            self.broken.append(what)

    def take(self, other: Tally, name: str) -> None:
        """Count what another one counted, but for its times; what did not hold there by name."""
        self.events += other.events
        self.answers += other.answers
        self.errors += other.errors
        self.lost += other.lost
        self.counts.update(other.counts)
        for what in other.broken:
            self.breaks(f"{name}: {what}")

    def report(self, mode: str, seed: int, seconds: float) -> SoakReport:
        warm = self.memory[int(len(self.memory) * WARM_UP) :] or [(0, 0)]
        return SoakReport(
            mode=mode,
            seed=seed,
            seconds=round(seconds, 1),
            events=self.events,
            answers=self.answers,
            errors=self.errors,
            lost=self.lost,
            latency_ms=Spread.of(self.latency_ms),
            memory_mb=(round(warm[0][1] / 1e6, 1), round(warm[-1][1] / 1e6, 1)),
            slope=slope_of(self.memory),
            counts=dict(self.counts) | self.figures,
            broken=tuple(self.broken),
        )
