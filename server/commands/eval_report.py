"""``redraft eval report`` and ``check``: runs on disk as a page, and against accepted scores.

Reads run files, calls ``redraft.evals``, writes files and tables; measures nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.errors import SettingsError

if TYPE_CHECKING:
    from redraft.evals.report.baseline_check import Line
    from redraft.evals.report.build import NamedRun

Runs = Annotated[list[Path], typer.Argument(metavar="RUN.jsonl...", help="Files that --out wrote.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the bootstrap.")]


def register(app: typer.Typer) -> None:
    """The commands under ``redraft eval``."""
    app.command()(report)
    app.command(hidden=True)(check)


def report(
    runs: Runs,
    html: Annotated[
        Path, typer.Option(metavar="OUT.html", help="The page; a .json goes beside it.")
    ],
    seed: Seed = 0,
) -> None:
    """One page that holds everything: runs side by side, and every episode to look at."""
    from redraft.evals.report.build import as_json, build, headlines
    from redraft.evals.report.html_page import page

    from .console import bar, out

    beside = html.with_suffix(".json")
    if html == beside:
        raise SettingsError(
            f"{html}: the JSON goes beside the page. Name the page, as report.html."
        )
    if taken := {html.resolve(), beside.resolve()} & {run.resolve() for run in runs}:
        raise SettingsError(f"{taken.pop().name} is a run that is read here. Name another --html.")
    with bar() as show:
        show("reading", None)
        named = _read(runs)
        show("resampling", None)
        sections = build(named, seed)
        show("drawing", None)
        drawn = page(sections)
    try:
        html.write_text(drawn, encoding="utf-8", newline="\n")
        beside.write_text(json.dumps(as_json(sections), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{error.filename} cannot be written: {error.strerror}.") from error
    size = html.stat().st_size
    for section in sections:
        for line in headlines(section):
            out.print(line, markup=False)
    out.print(f"{html} ({size / 1e6:.1f} MB) and {beside.name}", markup=False)


def check(
    runs: Runs,
    update: Annotated[
        bool, typer.Option("--update", help="Accept the runs' scores from now on.")
    ] = False,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Default: the one that came along.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Has a run fallen below the accepted scores by more than its noise? Then exit with 1."""
    from redraft.evals.report.baseline_check import ACCEPTED, FAILING, accept, read_accepted
    from redraft.evals.report.baseline_check import check as held

    from .console import err, out

    path, named = baseline or ACCEPTED, _read(runs)
    if update:
        made = accept(named, path, seed)
        out.print(f"{path.name} now holds {len(made)} of these runs as accepted.", markup=False)
    lines = held(named, read_accepted(path), seed)
    _show(lines)
    fallen = [line for line in lines if line.verdict in FAILING]
    if fallen:
        err.print(f"{len(fallen)} of {len(lines)} scores do not hold.", style="red", markup=False)
        raise typer.Exit(1)


def _read(paths: Sequence[Path]) -> list[NamedRun]:
    """The runs, each under a name of its own."""
    from redraft.evals.figures.runs import read_run
    from redraft.evals.report.build import NamedRun

    found: dict[str, NamedRun] = {}
    for path in paths:
        name, count = path.stem, 2
        while name in found:
            name, count = f"{path.stem} ({count})", count + 1
        found[name] = NamedRun(name, read_run(path))
    return list(found.values())


def _show(lines: Sequence[Line]) -> None:
    from .eval_tables import Sheet, show_sheet

    headings = ("run", "score", "accepted", "of", "found", "of", "difference", "verdict")
    drawn = Sheet("runs against the accepted scores", headings)
    for line in lines:
        change, show = line.difference, line.metric.show
        span = "–"
        if change.value is not None and change.low is not None and change.high is not None:
            kind = ".1%" if line.metric.kind == "share" else f".{line.metric.digits}f"
            span = f"{change.value:+{kind}} [{change.low:+{kind}}, {change.high:+{kind}}]"
        drawn.add_row(
            line.run, line.metric.name, show(line.accepted), f"{line.accepted.n:,}",
            show(line.found), f"{line.found.n:,}", span, line.verdict,
        )  # fmt: skip
    show_sheet(drawn)
