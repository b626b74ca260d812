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


Floats = NDArray[np.float64]

RESAMPLES, TABLE_RESAMPLES = 2_000, 1_000
FEW_GROUPS = 8  # under which resampling groups says nothing; rows are resampled instead
_BLOCK_CELLS = 4_000_000  # of the weights held at once


def number_groups(groups: Iterable[Hashable]) -> tuple[NDArray[np.int64], int]:
    """Return the number of each row's group [rows], counted from 0, and how many there are."""
    numbers: dict[Hashable, int] = {}
    found = [numbers.setdefault(one, len(numbers)) for one in groups]
    return np.asarray(found, np.int64), len(numbers)


def independent_units(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the number of what each row is drawn with [rows]: its group, of few the row itself."""
    found, count = number_groups(groups)
    return np.arange(len(groups)) if count < FEW_GROUPS else found


def bootstrap(
    terms: Floats,
    combine: Callable[[Floats], Floats],
    group: NDArray[np.int64],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of figures that are made of sums over rows.

    Args:
        terms: [rows, terms], at least one row.
        combine: from sums [draws, terms] to figures [draws, figures], NaN where there is none.
        group: the number of each row's group, [rows]; whole groups are drawn with replacement.

    Returns:
        Lower and upper ends [figures]; NaN where no draw gave the figure.
    """
    sums = np.zeros((int(group.max()) + 1, terms.shape[1]))
    np.add.at(sums, group, terms)
    drawing = draws(len(sums), seed, resamples)
    size, parts = max(1, _BLOCK_CELLS // len(sums)), []
    while block := [*islice(drawing, size)]:
        parts.append(np.stack(block) @ sums)
    found = combine(np.vstack(parts))  # [draws, figures]
    ends = np.full((2, found.shape[1]), np.nan)
    some = ~np.isnan(found).all(axis=0)
    ends[:, some] = np.nanquantile(found[:, some], (0.025, 0.975), axis=0)
    return ends[0], ends[1]


def _quotients(sums: Floats) -> Floats:
    """Return the first half of the sums by the second [draws, terms / 2], NaN by nothing."""
    tops, bottoms = np.hsplit(sums, 2)
    return np.divide(tops, bottoms, out=np.full_like(tops, np.nan), where=bottoms != 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric over some rows of a run."""

    metric: Column
    members: NDArray[np.bool_]  # [rows]
    least: int = 1  # rows under which it is not measured


def figures(rows: Sequence[Row], cells: Sequence[Cell], seed: int = 0) -> list[Figure]:
    """Return every cell's value and interval. A row without a group is drawn by itself.

    A share that is 0 or 1, or of which no draw differs, has Wilson's interval: resampling equal
    values finds no spread. Metrics that are no share, mean or ratio reckon for themselves.
    """
    found = iter(_figures(rows, [cell for cell in cells if not cell.metric.alone], seed))
    return [_alone(rows, cell, seed) if cell.metric.alone else next(found) for cell in cells]


def _alone(rows: Sequence[Row], cell: Cell, seed: int) -> Figure:
    some = [each for each, is_in in zip(rows, cell.members, strict=True) if is_in]
    return cell.metric.figure(some, cell.least, seed)


def _figures(rows: Sequence[Row], cells: Sequence[Cell], seed: int) -> list[Figure]:
    if not rows or not cells:
        return [no_figure(0) for _ in cells]
    tops = np.zeros((len(rows), len(cells)))
    bottoms = np.zeros_like(tops)
    counts = np.zeros(len(cells), np.int64)
    columns = {cell.metric: _columns(rows, cell.metric) for cell in cells}
    for column, cell in enumerate(cells):
        top, bottom, known = columns[cell.metric]
        counted = known & cell.members
        tops[counted, column], bottoms[counted, column] = top[counted], bottom[counted]
        counts[column] = counted.sum()
    group = independent_units(
        [each.get("group", each.get("id", at)) for at, each in enumerate(rows)]
    )
    terms = np.hstack([tops, bottoms])
    lows, highs = bootstrap(terms, _quotients, group, seed, TABLE_RESAMPLES)
    found = []
    for column, cell in enumerate(cells):
        n, below = int(counts[column]), bottoms[:, column].sum()
        value = float(tops[:, column].sum() / below) if below else 0.0
        if n < max(cell.least, 1) or not below:
            found.append(no_figure(n))
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


def no_figure(n: int) -> Figure:
    return Figure(None, None, None, n)


def share(hits: int, n: int) -> Figure:
    """Return ``hits`` of ``n`` with Wilson's interval."""
    if n == 0:
        return no_figure(0)
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
    return figure_of_sums(terms, _quotients, groups or range(len(terms)), seed)


def quantile(
    values: Sequence[float], q: float, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Figure:
    """Return a quantile, interpolated as NumPy does, bootstrapped by group."""
    if not values:
        return no_figure(0)
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, np.float64)[order]  # [values]
    group, count = number_groups(groups or range(len(values)))
    found = [_quantile(ordered, times[group[order]], q) for times in draws(count, seed)]
    return Figure(float(np.quantile(ordered, q)), *middle_95(found), len(values))


def _quantile(ordered: Floats, times: Floats, q: float) -> float:
    """Return the quantile of ascending values, each of which counts ``times`` often."""
    reached = np.cumsum(times)
    at = q * (reached[-1] - 1)
    below = np.floor(at)
    low, high = ordered[np.searchsorted(reached, (below, np.ceil(at)), side="right")]
    return float(low + (at - below) * (high - low))


def figure_of_sums(
    terms: Sequence[Sequence[float]],
    combine: Callable[[Floats], Floats],
    groups: Sequence[Hashable],
    seed: int = 0,
) -> Figure:
    """Return a figure of the sums of several terms over all rows, bootstrapped by group.

    Args:
        terms: of each row, as many of each.
        combine: from sums [draws, terms] to the figure [draws, 1], NaN where there is none.
    """
    table = np.asarray(terms, np.float64)  # [rows, terms]
    value = float(combine(table.sum(axis=0)[None])[0, 0]) if len(table) else math.nan
    if math.isnan(value):
        return no_figure(len(terms))
    low, high = bootstrap(table, combine, number_groups(groups)[0], seed)
    return Figure(value, float(low[0]), float(high[0]), len(terms))


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
