"""``redraft eval compare``, ``score``, ``show`` and ``report``: commands that read runs.

Translates options into calls of ``redraft.evals`` and shows what comes back.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from redraft.model.errors import SettingsError
from redraft.server.commands.options import check_writable

from . import run_options as opt

RunPath = Annotated[Path, typer.Argument(metavar="RUN.jsonl")]


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.jsonl")],
    b: Annotated[Path, typer.Argument(metavar="B.jsonl")],
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if B is worse in any field.")
    ] = False,
    json_file: opt.Json = None,
) -> None:
    """Compare run B with run A, on the examples that both have."""
    from redraft.evals.compare import compare as compare_runs
    from redraft.evals.run import read_run

    from .print_tables import show_comparison

    first, second = read_run(a), read_run(b)
    common, found = compare_runs(first, second)
    show_comparison(first, second, common, found, json_file)
    worse = [each.field for each in found if each.is_worse]
    if check and worse:
        opt.warn(f"B is worse than A in {', '.join(worse)}.")
        raise typer.Exit(1)


def score(
    path: RunPath,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Show an edit whose score is at least this."),
    ] = None,
    no_sandbox: opt.NoSandbox = False,
    out: opt.Out = None,
    json_file: opt.Json = None,
) -> None:
    """Repeat filters, gate and metrics on a run's answers. No model is asked.

    --out writes the run with its new scores, for comparison with the old.
    """
    from redraft.evals.pipeline import TABLES, rescore
    from redraft.evals.run import open_run, read_run

    from .print_tables import show_tables

    before = read_run(path)
    changed = before.spec
    if threshold is not None:
        changed = replace(changed, threshold=threshold)
    found = rescore(before, changed, opt.execute_with(no_sandbox))
    with open_run(out, changed, before.machine, resume=False) as written:
        for example in found.examples.values():
            written.add(example)
    show_tables(found, list(TABLES[changed.task](found.rows(), changed.seed)), json_file)


def show(path: RunPath, example: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Show one example of a run: the moment, the request, the candidates and the decision."""
    from redraft.evals.run import read_run
    from redraft.server.commands.console import out

    run = read_run(path)
    if example not in run.examples:
        some = ", ".join(list(run.examples)[:3])
        raise SettingsError(f"{path.name} has no example {example!r}. It has {some}, ….")
    out.print_json(data=run.examples[example].to_json(), ensure_ascii=False)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN.jsonl...")],
    html: Annotated[
        Path, typer.Option("--html", help="Write the page here.", callback=check_writable)
    ],
) -> None:
    """Write a page with the tables, charts and examples of runs, and how they differ."""
    from redraft.evals.report import page
    from redraft.evals.run import read_run
    from redraft.server.commands.console import out

    named = {path.stem: read_run(path) for path in runs}
    html.write_text(page(named), encoding="utf-8")
    out.print(f"Wrote {html}.", markup=False)
