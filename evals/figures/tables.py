"""From episodes to tables of figures: which fields are averaged how, over all and by part.

A part (a language, a length) with fewer than ``LEAST`` episodes is not measured, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .intervals import LEAST, Cell, Figure, combined, draws_over, figures, unmeasured
from .metrics import show_quiet_score
from .runs import Episode

MetricKind = Literal["share", "mean", "ratio"]
Better = Literal["more", "less", ""]
_ARROWS: dict[Better, str] = {"more": " ↑", "less": " ↓", "": ""}
LEGEND = "↑ more is better, ↓ less is"


@dataclass(frozen=True, slots=True)
class Metric:
    """One column: a field that is true or false, a mean, or a ratio of two sums.

    Episodes in which the field is absent or None do not count.
    """

    name: str
    kind: MetricKind
    field: str
    by: str = ""  # ratio: the field whose sum divides
    digits: int = 1
    better: Better = ""  # which direction; none: it is neither good nor bad by itself

    #: Does it reckon its interval by itself, being no share, mean or ratio?
    alone: ClassVar[bool] = False

    @property
    def heading(self) -> str:
        """Its name, and which direction is better."""
        return self.name + _ARROWS[self.better]

    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure:
        """Of these episodes alone."""
        some = list(episodes)
        everything = np.ones(len(some), np.bool_)
        return figures(some, [Cell(self, everything, least)], draws_over(some, seed))[0]

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

    alone: ClassVar[bool] = True

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
class TableRow:
    """All figures over some of the episodes."""

    label: str
    n: int
    figures: dict[str, Figure]  # by the metric's name


@dataclass(frozen=True, slots=True)
class Table:
    """One way to part the episodes."""

    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[TableRow, ...]

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
    return Table(title, tuple(metrics), _rows(metrics, episodes, {"all": 1}, lambda _: "all", seed))


def parted(
    title: str,
    metrics: Sequence[Metric],
    episodes: Sequence[Episode],
    label: Callable[[Episode], str],
    seed: int,
) -> Table:
    """A row for each value of ``label``, in the order of its first number, then by name."""
    names = sorted({label(each) for each in episodes}, key=order_of)
    rows = _rows(metrics, episodes, dict.fromkeys(names, LEAST), label, seed)
    return Table(title, tuple(metrics), rows)


def _rows(
    metrics: Sequence[Metric],
    episodes: Sequence[Episode],
    least: dict[str, int],
    label: Callable[[Episode], str],
    seed: int,
) -> tuple[TableRow, ...]:
    """Return a row for each name of ``least``, which holds the fewest episodes of a measured row.

    All rows share the draws of the whole run.
    """
    names = np.asarray([label(each) for each in episodes])
    cells = [Cell(metric, names == name, few) for name, few in least.items() for metric in metrics]
    found = iter(figures(episodes, cells, draws_over(episodes, seed)))
    return tuple(
        TableRow(name, int((names == name).sum()), {metric.name: next(found) for metric in metrics})
        for name in least
    )


def order_of(label: str) -> tuple[int, str]:
    digits = label.partition("-")[0].partition("+")[0]
    return (int(digits) if digits.isdecimal() else 0, label)
