"""From episodes to tables of figures: which fields are averaged how, over all and by part.

A part (a language, a length) with fewer than ``LEAST`` episodes is not measured, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .intervals import LEAST, Figure, combined, ratio, share, unmeasured
from .metrics import show_quiet_score
from .runs import Episode

Kind = Literal["share", "mean", "ratio"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One column: a field that is true or false, a mean, or a ratio of two sums.

    Episodes in which the field is absent or None do not count.
    """

    name: str
    kind: Kind
    field: str
    by: str = ""  # ratio: the field whose sum divides
    digits: int = 1

    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure:
        counted = [each for each in episodes if each.get(self.field) is not None]
        if len(counted) < max(least, 1):
            return unmeasured(len(counted))
        values = [float(each[self.field]) for each in counted]
        if self.kind == "share":
            return share(round(sum(values)), len(values))
        below = [float(each[self.by]) for each in counted] if self.kind == "ratio" else None
        return ratio(values, below, [each["group"] for each in counted], seed)

    def show(self, figure: Figure) -> str:
        """For people: value and interval."""
        if figure.value is None or figure.low is None or figure.high is None:
            return f"not measured (n={figure.n})" if figure.n else "–"
        if self.kind == "share":
            return f"{figure.value:.1%} [{figure.low:.1%}, {figure.high:.1%}]"
        return (
            f"{figure.value:,.{self.digits}f} "
            f"[{figure.low:,.{self.digits}f}, {figure.high:,.{self.digits}f}]"
        )


@dataclass(frozen=True, slots=True)
class Score(Metric):
    """The show/quiet score."""

    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure:
        counted = list(episodes)
        terms = [
            [term for name in self.TERMS for term in _sum_and_count(each.get(name))]
            for each in counted
        ]
        seen = [each for each in counted if each.get(self.field) is not None]
        if len(seen) < max(least, 1):
            return unmeasured(len(seen))
        return combined(terms, _score, [each["group"] for each in counted], seed)

    TERMS = ("delta_chrf", "shown_left", "quiet")


def _sum_and_count(value: float | bool | None) -> tuple[float, float]:
    return (0.0, 0.0) if value is None else (float(value), 1.0)


def _score(sums: NDArray[np.float64]) -> float | None:
    if not sums[1::2].all():
        return None
    delta, show, quiet = (float(sums[at] / sums[at + 1]) for at in (0, 2, 4))
    return show_quiet_score(delta, show, quiet)


@dataclass(frozen=True, slots=True)
class Row:
    """All figures over some of the episodes."""

    label: str
    n: int
    figures: dict[str, Figure]  # by the metric's name


@dataclass(frozen=True, slots=True)
class Table:
    """One way to part the episodes."""

    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "rows": [
                {"label": row.label, "n": row.n}
                | {name: asdict(figure) for name, figure in row.figures.items()}
                for row in self.rows
            ],
        }


def overall(title: str, metrics: Sequence[Metric], episodes: Sequence[Episode], seed: int) -> Table:
    return Table(title, tuple(metrics), (_row("all", metrics, episodes, 1, seed),))


def parted(
    title: str,
    metrics: Sequence[Metric],
    episodes: Sequence[Episode],
    label: Callable[[Episode], str],
    seed: int,
) -> Table:
    """A row for each value of ``label``, in the order of its first number, then by name."""
    parts: dict[str, list[Episode]] = {}
    for episode in episodes:
        parts.setdefault(label(episode), []).append(episode)
    ordered = sorted(parts, key=order_of)
    rows = [_row(name, metrics, parts[name], LEAST, seed) for name in ordered]
    return Table(title, tuple(metrics), tuple(rows))


def _row(
    label: str, metrics: Sequence[Metric], episodes: Sequence[Episode], least: int, seed: int
) -> Row:
    figures = {metric.name: metric.figure(episodes, least, seed) for metric in metrics}
    return Row(label, len(episodes), figures)


def order_of(label: str) -> tuple[int, str]:
    digits = label.partition("-")[0].partition("+")[0]
    return (int(digits) if digits.isdecimal() else 0, label)
