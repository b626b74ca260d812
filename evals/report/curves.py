"""The numbers of a report: figures with bootstrap intervals, curves over thresholds, calibration.

All resampling is of whole groups (problems, commits, sessions), for every figure of a run at once,
so that a page of four runs takes seconds. Pure functions; knows nothing of pages or benchmarks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..figures.intervals import Figure, share, unmeasured
from ..figures.runs import Episode
from ..figures.tables import Metric

Floats = NDArray[np.float64]

RESAMPLES = 1_000
FEW_GROUPS = 8  # under which resampling groups says nothing; episodes are resampled instead
BINS = 10  # of calibration
_BLOCK_CELLS = 4_000_000  # of the weights held at once


class Resampling:
    """Draws of whole groups with replacement, the same for every figure."""

    def __init__(
        self, groups: Sequence[Hashable], seed: int = 0, resamples: int = RESAMPLES
    ) -> None:
        numbers: dict[Hashable, int] = {}
        self.group = np.asarray([numbers.setdefault(one, len(numbers)) for one in groups], np.int64)
        self.by_episode = len(numbers) < FEW_GROUPS
        if self.by_episode:
            self.group = np.arange(len(groups))
        self.count = int(self.group.max()) + 1 if len(groups) else 0
        self.seed, self.resamples = seed, resamples

    def ratios(self, tops: Floats, bottoms: Floats) -> tuple[Floats, Floats]:
        """The 95 % interval of each column's sum of tops by its sum of bottoms.

        Args:
            tops, bottoms: [episodes, columns].

        Returns:
            Lower and upper ends [columns]; NaN where no draw had anything below.
        """
        columns = tops.shape[1]
        if not self.count:
            return np.full(columns, np.nan), np.full(columns, np.nan)
        sums = np.zeros((self.count, 2 * columns))
        np.add.at(sums, self.group, np.hstack([tops, bottoms]))
        drawn = np.vstack([weights @ sums for weights in self._weights()])  # [resamples, 2 columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = drawn[:, :columns] / drawn[:, columns:]
        found[~np.isfinite(found)] = np.nan
        ends = np.full((2, columns), np.nan)
        some = ~np.isnan(found).all(axis=0)
        if some.any():
            ends[:, some] = np.nanquantile(found[:, some], (0.025, 0.975), axis=0)
        return ends[0], ends[1]

    def _weights(self) -> Iterator[Floats]:
        """How often each group is drawn, some resamples at a time: [block, groups]."""
        rng = np.random.default_rng(self.seed)
        block = max(1, min(self.resamples, _BLOCK_CELLS // self.count))
        for start in range(0, self.resamples, block):
            size = min(block, self.resamples - start)
            drawn = rng.integers(self.count, size=(size, self.count))
            drawn += np.arange(size)[:, None] * self.count
            counts = np.bincount(drawn.ravel(), minlength=size * self.count)
            yield counts.reshape(size, self.count).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric over some episodes of a run."""

    metric: Metric
    members: NDArray[np.bool_]  # [episodes]
    least: int = 1  # episodes under which it is not measured


def figures(episodes: Sequence[Episode], cells: Sequence[Cell], draws: Resampling) -> list[Figure]:
    """Every cell's value and interval.

    A share that is 0 or 1 has Wilson's interval: resampling equal values finds no spread. Metrics
    that are no share, mean or ratio reckon for themselves.
    """
    found = iter(_figures(episodes, [cell for cell in cells if not _special(cell.metric)], draws))
    return [
        _alone(episodes, cell, draws) if _special(cell.metric) else next(found) for cell in cells
    ]


def _special(metric: Metric) -> bool:
    return metric.kind != "share" and type(metric).figure is not Metric.figure


def _alone(episodes: Sequence[Episode], cell: Cell, draws: Resampling) -> Figure:
    some = [each for each, is_in in zip(episodes, cell.members, strict=True) if is_in]
    return cell.metric.figure(some, cell.least, draws.seed)


def _figures(episodes: Sequence[Episode], cells: Sequence[Cell], draws: Resampling) -> list[Figure]:
    if not cells:
        return []
    tops = np.zeros((len(episodes), len(cells)))
    bottoms = np.zeros_like(tops)
    counts = np.zeros(len(cells), np.int64)
    columns = {cell.metric: _columns(episodes, cell.metric) for cell in cells}
    for column, cell in enumerate(cells):
        top, bottom, known = columns[cell.metric]
        counted = known & cell.members
        tops[counted, column], bottoms[counted, column] = top[counted], bottom[counted]
        counts[column] = counted.sum()
    lows, highs = draws.ratios(tops, bottoms)
    found = []
    for column, cell in enumerate(cells):
        n, below = int(counts[column]), bottoms[:, column].sum()
        value = float(tops[:, column].sum() / below) if below else 0.0
        if n < max(cell.least, 1) or not below:
            found.append(unmeasured(n))
        elif cell.metric.kind == "share" and value in (0.0, 1.0):
            found.append(share(round(value * n), n))
        else:
            found.append(Figure(value, float(lows[column]), float(highs[column]), n))
    return found


def _columns(
    episodes: Sequence[Episode], metric: Metric
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    tops = _values(episodes, metric.field)
    bottoms = _values(episodes, metric.by) if metric.kind == "ratio" else np.ones(len(episodes))
    return tops, bottoms, ~(np.isnan(tops) | np.isnan(bottoms))


def _values(episodes: Sequence[Episode], field: str) -> Floats:
    values = [each.get(field) for each in episodes]
    return np.asarray(
        [float(value) if isinstance(value, int | float) else np.nan for value in values]
    )


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
    most: int = 60,
) -> list[Point]:
    """Acceptance against shown rate as the threshold falls, at ``most`` thresholds at the most.

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
    if len(levels) > most:
        levels = np.unique(np.quantile(score[known], np.linspace(0, 1, most)))[::-1]
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
class Bin:
    """Candidates of about one confidence."""

    said: float  # mean score
    right: float  # share that was right
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether what is said to be 80 % sure is right in 80 % of the cases."""

    bins: tuple[Bin, ...]
    ece: float  # expected calibration error: mean distance of said and right, by candidates
    n: int


def calibration(
    scores: Sequence[float | None], right: Sequence[bool | None], bins: int = BINS
) -> Calibration | None:
    """Bins of equal width; None: there is nothing to judge.

    The error is that of https://arxiv.org/abs/1706.04599, section 2.
    """
    pairs = [(s, r) for s, r in zip(scores, right, strict=True) if s is not None and r is not None]
    if not pairs:
        return None
    held: dict[int, list[tuple[float, bool]]] = {}
    for score, hit in pairs:
        held.setdefault(min(int(score * bins), bins - 1), []).append((score, hit))
    found, error = [], 0.0
    for _, some in sorted(held.items()):
        n, hits = len(some), sum(hit for _, hit in some)
        said, sure = sum(score for score, _ in some) / n, share(hits, n)
        found.append(Bin(said, hits / n, sure.low or 0.0, sure.high or 0.0, n))
        error += abs(said - hits / n) * n / len(pairs)
    return Calibration(tuple(found), error, len(pairs))


# --- latency --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, ms."""

    p50: float
    p95: float
    p99: float
    n: int
    steps: tuple[tuple[float, float], ...]  # (ms, share that took at most so long), for a drawing


def spread(values: Sequence[float], most: int = 120) -> Spread | None:
    """None: nothing was timed."""
    if not values:
        return None
    ordered = np.sort(np.asarray(values, np.float64))
    shares = np.unique(np.linspace(0, 1, min(most, len(ordered))))
    points = np.quantile(ordered, shares)
    p50, p95, p99 = (float(one) for one in np.quantile(ordered, (0.5, 0.95, 0.99)))
    steps = tuple((float(ms), float(at)) for ms, at in zip(points, shares, strict=True))
    return Spread(p50, p95, p99, len(ordered), steps)
