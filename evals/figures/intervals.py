"""Figures with their 95 % intervals, and the comparison of two runs over the same episodes.

Shares by Wilson (https://www.jstor.org/stable/2276774), means and ratios by a seeded bootstrap over
groups (gaps of one problem, hunks of one commit stand or fall together), paired differences by the
same, and McNemar's exact test where an episode either succeeds or not. Knows nothing of models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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
    terms = [*zip(tops, bottoms or [1.0] * len(tops), strict=True)]
    return combined(terms, _quotient, groups or range(len(terms)), seed)


def _quotient(sums: Floats) -> float | None:
    return float(sums[0] / sums[1]) if sums[1] else None


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
    found = []
    for times in draws(len(numbers), seed):
        reached = np.cumsum(times[member])  # [values]
        found.append(ordered[np.searchsorted(reached, q * reached[-1])])
    return Figure(float(np.quantile(ordered, q)), *middle_95(found), len(values))


def combined(
    terms: Sequence[Sequence[float]],
    combine: Callable[[Floats], float | None],
    groups: Sequence[Hashable],
    seed: int = 0,
) -> Figure:
    """A figure of the sums of several terms over all episodes, bootstrapped by group.

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
    """The one bootstrap: how often each group is drawn with replacement, [groups], again and
    again."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = rng.integers(groups, size=groups)
        yield np.bincount(drawn, minlength=groups).astype(np.float64)


def middle_95(found: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


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
