"""The 95 % interval of every figure in a table, from one bootstrap for a whole run.

All resampling is of whole groups (problems, commits, sessions), for every figure of a run at once.
Pure functions, independent of tables and benchmarks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .intervals import Figure, Floats, draws, share, unmeasured
from .runs import Episode


class Column(Protocol):
    """What is read of a column of ``tables.py``."""

    @property
    def kind(self) -> Literal["share", "mean", "ratio"]: ...
    @property
    def field(self) -> str: ...
    @property
    def by(self) -> str: ...
    @property
    def alone(self) -> bool: ...
    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure: ...


RESAMPLES = 1_000
FEW_GROUPS = 8  # under which resampling groups says nothing; episodes are resampled instead
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


def draws_over(episodes: Sequence[Episode], seed: int = 0) -> Resampling:
    """By the episodes' groups; one without any stands for itself."""
    groups = [each.get("group", each.get("id", at)) for at, each in enumerate(episodes)]
    return Resampling(groups, seed)


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric over some episodes of a run."""

    metric: Column
    members: NDArray[np.bool_]  # [episodes]
    least: int = 1  # episodes under which it is not measured


def figures(episodes: Sequence[Episode], cells: Sequence[Cell], draws: Resampling) -> list[Figure]:
    """Every cell's value and interval.

    A share that is 0 or 1, or of which no draw differs, has Wilson's interval: resampling equal
    values finds no spread. Metrics that are no share, mean or ratio reckon for themselves.
    """
    found = iter(_figures(episodes, [cell for cell in cells if not cell.metric.alone], draws))
    return [_alone(episodes, cell, draws) if cell.metric.alone else next(found) for cell in cells]


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
        elif cell.metric.kind == "share" and (value in (0.0, 1.0) or lows[column] == highs[column]):
            found.append(share(round(value * n), n))
        else:
            found.append(Figure(value, float(lows[column]), float(highs[column]), n))
    return found


def _columns(
    episodes: Sequence[Episode], metric: Column
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    tops = _values(episodes, metric.field)
    bottoms = _values(episodes, metric.by) if metric.kind == "ratio" else np.ones(len(episodes))
    return tops, bottoms, ~(np.isnan(tops) | np.isnan(bottoms))


def _values(episodes: Sequence[Episode], field: str) -> Floats:
    values = [each.get(field) for each in episodes]
    return np.asarray(
        [float(value) if isinstance(value, int | float) else np.nan for value in values]
    )
