"""Figures with their 95 % intervals, and the comparison of two runs over the same rows.

Shares by Wilson (https://www.jstor.org/stable/2276774), means and ratios by a seeded bootstrap over
groups (gaps of one problem, hunks of one commit stand or fall together), paired differences by the
same, and an exact sign test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .example import Row


class Column(Protocol):
    """The fields that are read of a column of ``tables.py``."""

    @property
    def kind(self) -> Literal["share", "mean", "ratio"]: ...
    @property
    def field(self) -> str: ...
    @property
    def by(self) -> str: ...
    @property
    def alone(self) -> bool: ...
    def figure(self, rows: Iterable[Row], least: int = 1, seed: int = 0) -> Figure: ...


TABLE_RESAMPLES = 1_000
FEW_GROUPS = 8  # under which resampling groups says nothing; rows are resampled instead
_BLOCK_CELLS = 4_000_000  # of the weights held at once


class Resampling:
    """Draws of whole groups with replacement, the same for every figure."""

    def __init__(
        self, groups: Sequence[Hashable], seed: int = 0, resamples: int = TABLE_RESAMPLES
    ) -> None:
        numbers: dict[Hashable, int] = {}
        self.group = np.asarray([numbers.setdefault(one, len(numbers)) for one in groups], np.int64)
        self.by_episode = len(numbers) < FEW_GROUPS
        if self.by_episode:
            self.group = np.arange(len(groups))
        self.count = int(self.group.max()) + 1 if len(groups) else 0
        self.seed, self.resamples = seed, resamples

    def ratios(self, tops: Floats, bottoms: Floats) -> tuple[Floats, Floats]:
        """Return the 95 % interval of each column's sum of tops by its sum of bottoms.

        Args:
            tops, bottoms: [rows, columns].

        Returns:
            Lower and upper ends [columns]; NaN where no draw had anything below.
        """
        columns = tops.shape[1]
        if not self.count:
            return np.full(columns, np.nan), np.full(columns, np.nan)
        sums = np.zeros((self.count, 2 * columns))
        np.add.at(sums, self.group, np.hstack([tops, bottoms]))
        drawing = draws(self.count, self.seed, self.resamples)
        size, parts = max(1, _BLOCK_CELLS // self.count), []
        while block := [*islice(drawing, size)]:
            parts.append(np.stack(block) @ sums)
        drawn = np.vstack(parts)  # [resamples, 2 columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = drawn[:, :columns] / drawn[:, columns:]
        found[~np.isfinite(found)] = np.nan
        ends = np.full((2, columns), np.nan)
        some = ~np.isnan(found).all(axis=0)
        if some.any():
            ends[:, some] = np.nanquantile(found[:, some], (0.025, 0.975), axis=0)
        return ends[0], ends[1]


def draws_over(rows: Sequence[Row], seed: int = 0) -> Resampling:
    """Draw by the groups of the rows; a row without one is a group by itself."""
    groups = [each.get("group", each.get("id", at)) for at, each in enumerate(rows)]
    return Resampling(groups, seed)


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric over some rows of a run."""

    metric: Column
    members: NDArray[np.bool_]  # [rows]
    least: int = 1  # rows under which it is not measured


def figures(rows: Sequence[Row], cells: Sequence[Cell], draws: Resampling) -> list[Figure]:
    """Return every cell's value and interval.

    A share that is 0 or 1, or of which no draw differs, has Wilson's interval: resampling equal
    values finds no spread. Metrics that are no share, mean or ratio reckon for themselves.
    """
    found = iter(_figures(rows, [cell for cell in cells if not cell.metric.alone], draws))
    return [_alone(rows, cell, draws) if cell.metric.alone else next(found) for cell in cells]


def _alone(rows: Sequence[Row], cell: Cell, draws: Resampling) -> Figure:
    some = [each for each, is_in in zip(rows, cell.members, strict=True) if is_in]
    return cell.metric.figure(some, cell.least, draws.seed)


def _figures(rows: Sequence[Row], cells: Sequence[Cell], draws: Resampling) -> list[Figure]:
    if not cells:
        return []
    tops = np.zeros((len(rows), len(cells)))
    bottoms = np.zeros_like(tops)
    counts = np.zeros(len(cells), np.int64)
    columns = {cell.metric: _columns(rows, cell.metric) for cell in cells}
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
        elif cell.metric.kind == "share" and (value in (0.0, 1.0) or lows[column] == highs[column]):
            found.append(share(round(value * n), n))
        else:
            found.append(Figure(value, float(lows[column]), float(highs[column]), n))
    return found


def _columns(rows: Sequence[Row], metric: Column) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    tops = _values(rows, metric.field)
    bottoms = _values(rows, metric.by) if metric.kind == "ratio" else np.ones(len(rows))
    return tops, bottoms, ~(np.isnan(tops) | np.isnan(bottoms))


def _values(rows: Sequence[Row], field: str) -> Floats:
    values = [each.get(field) for each in rows]
    return np.asarray(
        [float(value) if isinstance(value, int | float) else np.nan for value in values]
    )


Floats = NDArray[np.float64]

RESAMPLES = 2_000
LEAST = 50  # samples under which a part (a language, a length) counts as not measured

_Z = 1.959963984540054  # 95 %, both sides


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its 95 % interval, without a number if too little was measured."""

    value: float | None
    low: float | None
    high: float | None
    n: int  # rows

    @property
    def measured(self) -> bool:
        return self.value is not None


def unmeasured(n: int) -> Figure:
    return Figure(None, None, None, n)


def share(hits: int, n: int) -> Figure:
    """Return ``hits`` of ``n`` with Wilson's interval."""
    if n == 0:
        return unmeasured(0)
    p, z2 = hits / n, _Z * _Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Figure(p, max(0.0, middle - half), min(1.0, middle + half), n)


def ratio(
    tops: Sequence[float],
    bottoms: Sequence[float] | None = None,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Figure:
    """Return the sum of ``tops`` by that of ``bottoms`` (ones: the mean), bootstrapped by group."""
    terms = [*zip(tops, bottoms or [1.0] * len(tops), strict=True)]
    return combined(terms, _quotient, groups or range(len(terms)), seed)


def _quotient(sums: Floats) -> float | None:
    return float(sums[0] / sums[1]) if sums[1] else None


def quantile(
    values: Sequence[float], q: float, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Figure:
    """Return a quantile, interpolated as NumPy does, bootstrapped by group."""
    if not values:
        return unmeasured(0)
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, np.float64)[order]  # [values]
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(group, len(numbers)) for group in groups or range(len(values))]
    member = np.asarray(of)[order]  # [values], the group of each
    found = [_quantile(ordered, times[member], q) for times in draws(len(numbers), seed)]
    return Figure(float(np.quantile(ordered, q)), *middle_95(found), len(values))


def _quantile(ordered: Floats, times: Floats, q: float) -> float:
    """Return the quantile of ascending values, each of which counts ``times`` often."""
    reached = np.cumsum(times)
    at = q * (reached[-1] - 1)
    below = np.floor(at)
    low, high = ordered[np.searchsorted(reached, (below, np.ceil(at)), side="right")]
    return float(low + (at - below) * (high - low))


def combined(
    terms: Sequence[Sequence[float]],
    combine: Callable[[Floats], float | None],
    groups: Sequence[Hashable],
    seed: int = 0,
) -> Figure:
    """Return a figure of the sums of several terms over all rows, bootstrapped by group.

    Args:
        terms: of each episode, as many of each.
        combine: from the sums [terms] to the figure; None where they do not give one.
    """
    sums: dict[Hashable, Floats] = {}
    for each, group in zip(terms, groups, strict=True):
        sums[group] = sums.get(group, np.zeros(len(each))) + np.asarray(each, np.float64)
    table = np.stack([*sums.values()]) if sums else np.zeros((0, 0))  # [groups, terms]
    value = combine(table.sum(axis=0)) if len(table) else None
    if value is None:
        return unmeasured(len(terms))
    drawn = (combine(times @ table) for times in draws(len(table), seed))
    found = [figure for figure in drawn if figure is not None]
    return Figure(value, *middle_95(found), len(terms))


def draws(groups: int, seed: int = 0, resamples: int = RESAMPLES) -> Iterator[Floats]:
    """Yield how often each group is drawn with replacement, [groups], for each resample."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = rng.integers(groups, size=groups)
        yield np.bincount(drawn, minlength=groups).astype(np.float64)


def middle_95(found: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def sign_test(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p that a coin is fair which fell ``only_a`` and ``only_b`` times.

    Of single examples that succeed or fail this is McNemar's test.
    """
    n, k = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return 1.0
    term = tail = 1  # n over 0; integers: no n is too large
    for i in range(k):
        term = term * (n - i) // (i + 1)  # n over i + 1
        tail += term
    return min(1.0, 2 * tail / (1 << n))
