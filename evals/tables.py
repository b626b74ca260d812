"""Tables of figures: which fields of rows are averaged how, overall and by part.

A part (a language, a length) with fewer than ``LEAST`` rows is not measured, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .example import Row
from .figures import LEAST, Cell, Figure, figure_of_sums, figures, no_figure, quantile
from .metrics import show_quiet_score

MetricKind = Literal["share", "mean", "ratio"]
Better = Literal["more", "less", ""]
_ARROWS: dict[Better, str] = {"more": " ↑", "less": " ↓", "": ""}
#: Sessions of a replay from which on they are what is resampled, instead of stretches of them.
ENOUGH_SESSIONS = 10
LEGEND = "↑ more is better, ↓ less is"


@dataclass(frozen=True, slots=True)
class Metric:
    """Column of a table: a field that is true or false, a mean, or a ratio of two sums.

    Rows in which the field is absent or None do not count.
    """

    name: str
    kind: MetricKind
    field: str
    by: str = ""  # ratio: the field whose sum divides
    digits: int = 1
    better: Better = ""  # which direction; none: it is neither good nor bad by itself

    #: Whether it computes its interval by itself, being no share, mean or ratio.
    alone: ClassVar[bool] = False

    @property
    def heading(self) -> str:
        """Name, and which direction is better."""
        return self.name + _ARROWS[self.better]

    def figure(self, rows: Iterable[Row], least: int = 1, seed: int = 0) -> Figure:
        """Return the figure of some rows."""
        some = list(rows)
        everything = np.ones(len(some), np.bool_)
        return figures(some, [Cell(self, everything, least)], seed)[0]

    def show(self, figure: Figure) -> str:
        """Return value and interval for people."""
        if figure.value is None or figure.low is None or figure.high is None:
            return f"not measured (n={figure.n})" if figure.n else "–"
        if self.kind == "share":
            return f"{figure.value:.1%} [{figure.low:.1%}, {figure.high:.1%}]"
        value = f"{figure.value:,.{self.digits}f}"
        if figure.n == 1:  # resampling one value says nothing
            return value
        return f"{value} [{figure.low:,.{self.digits}f}, {figure.high:,.{self.digits}f}]"


@dataclass(frozen=True, slots=True)
class Percentile(Metric):
    """A value that the share ``q`` of rows does not exceed."""

    q: float = 0.5

    alone: ClassVar[bool] = True

    def figure(self, rows: Iterable[Row], least: int = 1, seed: int = 0) -> Figure:
        counted = [each for each in rows if each.get(self.field) is not None]
        if len(counted) < max(least, 1):
            return no_figure(len(counted))
        values = [float(each[self.field]) for each in counted]
        return quantile(values, self.q, [each["group"] for each in counted], seed)


@dataclass(frozen=True, slots=True)
class Score(Metric):
    """The show/quiet score."""

    alone: ClassVar[bool] = True

    def figure(self, rows: Iterable[Row], least: int = 1, seed: int = 0) -> Figure:
        counted = list(rows)
        terms = [
            [term for name in self.TERMS for term in _sum_and_count(each.get(name))]
            for each in counted
        ]
        seen = [each for each in counted if each.get(self.field) is not None]
        if len(seen) < max(least, 1):
            return no_figure(len(seen))
        return figure_of_sums(terms, _score, [each["group"] for each in counted], seed)

    TERMS = ("delta_chrf", "shown_left", "quiet")


def _sum_and_count(value: float | bool | None) -> tuple[float, float]:
    return (0.0, 0.0) if value is None else (float(value), 1.0)


def _score(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score of sums and counts in turn, [draws, 1]; NaN where a count is 0."""
    found = np.full((len(sums), 1), np.nan)
    for at, each in enumerate(sums):
        if each[1::2].all():
            found[at] = show_quiet_score(*(float(x) for x in each[::2] / each[1::2]))
    return found


@dataclass(frozen=True, slots=True)
class TableRow:
    """All figures over some of the rows."""

    label: str
    n: int
    figures: dict[str, Figure]  # by the metric's name


@dataclass(frozen=True, slots=True)
class Table:
    """A table of figures: the examples of a run, grouped by one property."""

    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[TableRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return title and rows with their figures."""
        return {
            "title": self.title,
            "rows": [
                {"label": row.label, "n": row.n}
                | {name: asdict(figure) for name, figure in row.figures.items()}
                for row in self.rows
            ],
        }


def overall(title: str, metrics: Sequence[Metric], rows: Sequence[Row], seed: int) -> Table:
    """Return one row of figures over all rows."""
    return Table(title, tuple(metrics), _rows(metrics, rows, {"all": 1}, lambda _: "all", seed))


def table_by_label(
    title: str,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    label: Callable[[Row], str],
    seed: int,
) -> Table:
    """Return a row for each value of ``label``, in the order of its first number, then by name."""
    names = sorted({label(each) for each in rows}, key=order_of)
    found = _rows(metrics, rows, dict.fromkeys(names, LEAST), label, seed)
    return Table(title, tuple(metrics), found)


def rows_of_parts(
    title: str, metrics: Sequence[Metric], parts: Mapping[str, Sequence[Row]], seed: int
) -> Table:
    """Return a row for each part, however small, resampled by itself."""
    found: list[TableRow] = []
    for label, rows in parts.items():
        found += (replace(row, label=label) for row in overall("", metrics, rows, seed).rows)
    return Table(title, tuple(metrics), tuple(found))


def _rows(
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    least: Mapping[str, int],
    label: Callable[[Row], str],
    seed: int,
) -> tuple[TableRow, ...]:
    """Return a table row for each name of ``least``, which holds the fewest rows to measure.

    All table rows share the draws of the whole run.
    """
    names = np.asarray([label(each) for each in rows])
    cells = [Cell(metric, names == name, few) for name, few in least.items() for metric in metrics]
    found = iter(figures(rows, cells, seed))
    return tuple(
        TableRow(name, int((names == name).sum()), {metric.name: next(found) for metric in metrics})
        for name in least
    )


def order_of(label: str) -> tuple[int, str]:
    """Return what parts are ordered by: the first number of a label, then the label."""
    digits = label.partition("-")[0].partition("+")[0]
    return (int(digits) if digits.isdecimal() else 0, label)


def group_by_session(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a replay grouped by session if it has enough sessions."""
    if not by_session(rows):
        return list(rows)
    return [each | {"group": each["session"]} for each in rows]


def by_session(rows: Sequence[Row]) -> bool:
    """Return whether rows are of a replay with enough sessions to resample these."""
    return len({each.get("session") for each in rows}) >= ENOUGH_SESSIONS
