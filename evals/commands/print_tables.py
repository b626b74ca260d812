"""Tables of evaluations with intervals for people, JSON for programs.

A table that is wider than the terminal is printed row by row, so that no word is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from redraft.evals.compare import Difference, compare_rows
from redraft.evals.example import Row
from redraft.evals.figures import LEAST
from redraft.evals.run import Run
from redraft.evals.scorers.aims import AimResult
from redraft.evals.tables import LEGEND, Table
from redraft.server.commands.console import out
from redraft.server.commands.options import write_json
from rich.measure import Measurement
from rich.table import Table as Drawn
from rich.text import Text

WIDE = 200  # columns, if the output is no terminal


def show_tables(
    run: Run, tables: list[Table], json_file: Path | None, aims: Sequence[AimResult] = ()
) -> None:
    _say_settings(run)
    for table in tables:
        if any(figure.measured for row in table.rows for figure in row.figures.values()):
            show_sheet(_drawn(table))
        elif table.rows:
            out.print(Text(f"{table.title}: not measured, each part needs {LEAST} examples", "dim"))
    out.print(Text(LEGEND, "dim"))
    if aims:
        show_aims(aims)
    content = _summary(run) | {"tables": [table.as_json() for table in tables]}
    write_json(json_file, content | ({"aims": [asdict(one) for one in aims]} if aims else {}))


def show_aims(found: Sequence[AimResult]) -> None:
    """Show the aims of performance beside what was measured."""
    sheet = Sheet("aims", ("", "measured", "aim", ""))
    for one in found:
        sign = "≤" if one.is_most else "≥"
        sheet.add_row(
            one.name,
            f"{one.value:,.3g}",
            f"{sign} {one.limit:g}",
            "met" if one.is_met else "missed",
        )
    show_sheet(sheet)


def show_less(parts: Mapping[str, Sequence[Row]], fields: Sequence[str], seed: int) -> None:
    """Show the paired differences of each part from the first, of some fields."""
    first, *others = parts
    sheet = Sheet(f"less {first}", ("", *fields))
    for name in others:
        found = {one.field: one for one in compare_rows(parts[first], parts[name], seed)[1]}
        sheet.add_row(name, *(_change(found[each]) if each in found else "–" for each in fields))
    show_sheet(sheet)


def _change(one: Difference) -> str:
    """Return a difference with its interval: of shares in points."""
    figure = one.difference
    scale, digits = (100, 1) if one.share else (1, 2)
    value, low, high = (scale * (each or 0.0) for each in (figure.value, figure.low, figure.high))
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def _say_settings(run: Run) -> None:
    said = ", ".join(f"{key} {value}" for key, value in run.spec.about().items())
    out.print(Text(said, "dim"))


def _summary(run: Run) -> dict[str, Any]:
    return {"settings": run.spec.about(), "machine": run.machine}


@dataclass(slots=True)
class Sheet:
    """A table for people: as such where there is room, else a paragraph for each row."""

    title: str
    headings: tuple[str, ...]  # the first is the row's name
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        self.rows.append(cells)

    def table(self) -> Drawn:
        drawn = Drawn(title=self.title, title_justify="left", box=None, padding=(0, 3, 0, 0))
        for heading in self.headings:
            drawn.add_column(Text(heading), no_wrap=True)
        for row in self.rows:
            drawn.add_row(*map(Text, row))
        return drawn

    def paragraphs(self) -> Iterator[str]:
        """Each row's cells below its name, the figures one below the other."""
        yield self.title
        width = max((len(heading) for heading in self.headings[1:]), default=0)
        for name, *cells in self.rows:
            yield f"{self.headings[0]} {name}".strip()
            for heading, cell in zip(self.headings[1:], cells, strict=False):
                if cell:
                    yield f"  {heading.ljust(width)}  {cell}".rstrip()


def show_sheet(sheet: Sheet) -> None:
    if not out.is_terminal:
        out.width = max(out.width, WIDE)
    table = sheet.table()
    if sheet.rows and _room(table) > out.width:
        for line in sheet.paragraphs():
            out.print(Text(line), soft_wrap=False)
    else:
        out.print(table, soft_wrap=False)


def _room(table: Drawn) -> int:
    """Return the columns that the table needs."""
    unlimited = out.options.update(max_width=10_000)
    return Measurement.get(out, unlimited, table).maximum


def _drawn(table: Table) -> Sheet:
    """Metrics as rows where there is one part, else a row a part."""
    if len(table.rows) == 1:
        (row,) = table.rows
        label = "" if row.label == "all" else row.label
        drawn = Sheet(table.title, (label, f"n = {row.n:,}"))
        for metric in table.metrics:
            drawn.add_row(metric.heading, metric.show(row.figures[metric.name]))
        return drawn
    drawn = Sheet(table.title, ("", "n", *(metric.heading for metric in table.metrics)))
    for row in table.rows:
        if any(figure.measured for figure in row.figures.values()):
            figures = [metric.show(row.figures[metric.name]) for metric in table.metrics]
        else:
            figures = [f"not measured: {LEAST} are needed"]
        drawn.add_row(row.label, f"{row.n:,}", *figures)
    return drawn


def show_comparison(
    a: Run, b: Run, common: int, found: list[Difference], json_file: Path | None
) -> None:
    for name, run, other in (("A", a, b), ("B", b, a)):
        others = other.spec.about()
        differing = {k: v for k, v in run.spec.about().items() if others.get(k) != v}
        said = ", ".join(f"{key} {value}" for key, value in differing.items())
        out.print(Text(f"{name}  {said or 'same settings'}", "dim"))
    drawn = Sheet(f"{common:,} examples in both", ("", "n", "A", "B", "B - A", "only A / B", "p"))
    for one in found:
        drawn.add_row(*_difference(one))
    show_sheet(drawn)
    write_json(
        json_file,
        {"a": a.spec.about(), "b": b.spec.about(), "fields": [asdict(one) for one in found]},
    )


def _difference(one: Difference) -> tuple[str, ...]:
    change = one.difference
    assert change.value is not None and change.low is not None and change.high is not None
    if not one.share:
        span = f"{change.value:+,.2f} [{change.low:+,.2f}, {change.high:+,.2f}]"
        return one.field, f"{change.n:,}", f"{one.a:,.2f}", f"{one.b:,.2f}", span, "", ""
    span = f"{change.value:+.1%} [{change.low:+.1%}, {change.high:+.1%}]"
    alone = f"{one.only_a} / {one.only_b}"
    return one.field, f"{change.n:,}", f"{one.a:.1%}", f"{one.b:.1%}", span, alone, f"{one.p:.2g}"
