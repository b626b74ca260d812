"""Figures with their 95 % intervals, and the comparison of two runs over the same episodes.

Shares by Wilson (https://www.jstor.org/stable/2276774), means and ratios by a seeded bootstrap over
groups (gaps of one problem, hunks of one commit stand or fall together), paired differences by the
same, and McNemar's exact test where an episode either succeeds or not. Knows nothing of models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
LEAST = 50  # samples under which a part (a language, a length) counts as not measured

_Z = 1.959963984540054  # 95 %, both sides


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and the interval that holds it with 95 %; no number where too little was seen."""

    value: float | None
    low: float | None
    high: float | None
    n: int  # episodes

    @property
    def measured(self) -> bool:
        return self.value is not None


def unmeasured(n: int) -> Figure:
    return Figure(None, None, None, n)


def share(hits: int, n: int) -> Figure:
    """``hits`` of ``n`` with Wilson's interval."""
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
    """Sum of ``tops`` by sum of ``bottoms`` (default: ones, so the mean), bootstrapped by group."""
    bottoms = bottoms or [1.0] * len(tops)
    groups = groups or range(len(tops))
    top, bottom = _by_group(tops, groups), _by_group(bottoms, groups)
    if bottom.sum() == 0:
        return unmeasured(len(tops))
    low, high = _bootstrap(top, bottom, seed)
    return Figure(float(top.sum() / bottom.sum()), low, high, len(tops))


def quantile(
    values: Sequence[float], q: float, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Figure:
    """The value that the share ``q`` of ``values`` does not exceed, bootstrapped by group."""
    if not values:
        return unmeasured(0)
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, np.float64)[order]  # [values]
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(group, len(numbers)) for group in groups or range(len(values))]
    member = np.asarray(of)[order]  # [values], the group of each
    rng, n = np.random.default_rng(seed), len(numbers)
    found = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(n, size=n), minlength=n)  # [groups]
        reached = np.cumsum(times[member])  # [values]
        found.append(ordered[np.searchsorted(reached, q * reached[-1])])
    low, high = np.quantile(found, (0.025, 0.975))
    return Figure(float(np.quantile(ordered, q)), float(low), float(high), len(values))


def combined(
    terms: Sequence[Sequence[float]],
    combine: Callable[[NDArray[np.float64]], float | None],
    groups: Sequence[Hashable],
    seed: int = 0,
) -> Figure:
    """A figure of the sums of several terms over all episodes, bootstrapped by group.

    Args:
        terms: of each episode, as many of each.
        combine: from the sums [terms] to the figure; None where they do not give one.
    """
    sums: dict[Hashable, NDArray[np.float64]] = {}
    for each, group in zip(terms, groups, strict=True):
        sums[group] = sums.get(group, np.zeros(len(each))) + np.asarray(each, np.float64)
    table = np.stack([*sums.values()]) if sums else np.zeros((0, 0))  # [groups, terms]
    value = combine(table.sum(axis=0)) if len(table) else None
    if value is None:
        return unmeasured(len(terms))
    rng = np.random.default_rng(seed)
    drawn = (table[rng.integers(len(table), size=len(table))].sum(axis=0) for _ in range(RESAMPLES))
    found = [figure for figure in map(combine, drawn) if figure is not None]
    low, high = np.quantile(found, (0.025, 0.975))
    return Figure(value, float(low), float(high), len(terms))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p that a coin is fair which fell ``only_a`` and ``only_b`` times."""
    n, k = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return 1.0
    term = tail = 1  # n over 0; integers: no n is too large
    for i in range(k):
        term = term * (n - i) // (i + 1)  # n over i + 1
        tail += term
    return min(1.0, 2 * tail / (1 << n))


def _by_group(values: Iterable[float], groups: Iterable[Hashable]) -> NDArray[np.float64]:
    sums: dict[Hashable, float] = {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + float(value)
    return np.asarray(list(sums.values()), np.float64)  # [groups]


def _bootstrap(
    top: NDArray[np.float64], bottom: NDArray[np.float64], seed: int
) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the ratio over resampled groups."""
    rng = np.random.default_rng(seed)
    n = len(top)
    found = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(n, size=n)
        below = bottom[drawn].sum()
        if below:
            found.append(top[drawn].sum() / below)
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)
