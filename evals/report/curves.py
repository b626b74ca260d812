"""The numbers of a report besides its figures: curves over thresholds, calibration, latency.

Pure functions; knows nothing of pages or benchmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..figures.intervals import LEAST, share
from ..figures.resampling import Resampling

BINS = 10  # of calibration
POINTS = 60  # of a drawn curve of thresholds; one of times has twice as many


# --- the threshold --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """What would happen if exactly the candidates of at least ``threshold`` were shown."""

    threshold: float
    shown: float  # share of all moments
    right: float  # share of what is shown
    low: float
    high: float
    n: int  # shown


def threshold_curve(
    scores: Sequence[float | None],
    right: Sequence[bool | None],
    draws: Resampling,
) -> list[Point]:
    """Acceptance against shown rate as the threshold falls, at :data:`POINTS` at the most.

    Args:
        scores, right: of each moment's candidate; None where there is none.
    """
    known = np.asarray(
        [s is not None and r is not None for s, r in zip(scores, right, strict=True)]
    )
    if not known.any():
        return []
    score = np.asarray([-1.0 if s is None else s for s in scores])
    hit = np.asarray([bool(r) for r in right]) & known
    levels = np.unique(score[known])[::-1]
    if len(levels) > POINTS:
        levels = np.unique(np.quantile(score[known], np.linspace(0, 1, POINTS)))[::-1]
    shown = known[:, None] & (score[:, None] >= levels)  # [moments, levels]
    hits = shown & hit[:, None]
    lows, highs = draws.ratios(hits.astype(float), shown.astype(float))
    points = []
    for at, level in enumerate(levels):
        n, h = int(shown[:, at].sum()), int(hits[:, at].sum())
        low, high = float(lows[at]), float(highs[at])
        if h in (0, n):
            sure = share(h, n)
            low, high = sure.low or 0.0, 1.0 if sure.high is None else sure.high
        points.append(Point(float(level), n / len(score), h / n, low, high, n))
    return points


# --- calibration ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Candidates of about one confidence."""

    said: float  # mean score
    right: float  # share that was right
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether what is said to be 80 % sure is right in 80 % of the cases."""

    bins: tuple[CalibrationBin, ...]
    ece: float  # expected calibration error: mean distance of said and right, by candidates
    n: int


def calibration(scores: Sequence[float | None], right: Sequence[bool | None]) -> Calibration | None:
    """Bins of equal width; None: fewer than ``LEAST`` can be judged, too few to tell anything.

    The error is that of https://arxiv.org/abs/1706.04599, section 2.
    """
    pairs = [(s, r) for s, r in zip(scores, right, strict=True) if s is not None and r is not None]
    if len(pairs) < LEAST:
        return None
    held: dict[int, list[tuple[float, bool]]] = {}
    for score, hit in pairs:
        held.setdefault(min(int(score * BINS), BINS - 1), []).append((score, hit))
    found, error = [], 0.0
    for _, some in sorted(held.items()):
        n, hits = len(some), sum(hit for _, hit in some)
        said, sure = sum(score for score, _ in some) / n, share(hits, n)
        found.append(CalibrationBin(said, hits / n, sure.low or 0.0, sure.high or 0.0, n))
        error += abs(said - hits / n) * n / len(pairs)
    return Calibration(tuple(found), error, len(pairs))


# --- latency --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """How long something took, ms."""

    p50: float
    p95: float
    p99: float
    n: int
    steps: tuple[tuple[float, float], ...]  # (ms, share that took at most so long), for a drawing


def spread(values: Sequence[float]) -> LatencyCurve | None:
    """None: nothing was timed."""
    if not values:
        return None
    ordered = np.sort(np.asarray(values, np.float64))
    shares = np.unique(np.linspace(0, 1, min(2 * POINTS, len(ordered))))
    points = np.quantile(ordered, shares)
    p50, p95, p99 = (float(one) for one in np.quantile(ordered, (0.5, 0.95, 0.99)))
    steps = tuple((float(ms), float(at)) for ms, at in zip(points, shares, strict=True))
    return LatencyCurve(p50, p95, p99, len(ordered), steps)
