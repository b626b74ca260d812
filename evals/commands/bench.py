"""``redraft bench``: how long an editor waits on this machine, and what that takes.

Translates options into calls of ``redraft.evals.latency`` and shows what comes back.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.evals.spec import RunSpec
from redraft.model.config import AUTO
from redraft.model.errors import SettingsError
from redraft.server.commands.options import load, model_for, with_options, write_json

from . import run_options as opt

if TYPE_CHECKING:
    from collections.abc import Callable

    from redraft.evals.run import Run
    from redraft.model.predict import Model

STOPPED = 130  # what a shell calls a command that Ctrl-C ended
BENCH = RunSpec("bench")

app = typer.Typer(add_completion=False)


@app.command(rich_help_panel="Measuring")
@with_options
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure less, in under a minute.")
    ] = False,
    workspace: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Measure only the index, the context and the memory of this workspace. A "
            "*-files.jsonl.zst counts as a workspace of 5,000 of its files.",
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Compare only with the llama.cpp server at this address, line by line.",
        ),
    ] = None,
    spec: RunSpec = BENCH,
    out: opt.Out = None,
    json_file: opt.Json = None,
) -> None:
    """Measure this machine: latency, tokens per pass, the cost of a keystroke, and memory.

    --limit is the number of requests of each kind (default: 12). Without --context-tokens several
    prompt budgets are measured.
    """
    if workspace is not None:
        return measure_workspace(workspace, json_file)
    from redraft.model.load import onnx_loader

    named = None if spec.model == AUTO else spec.model
    where = {"variant": spec.variant or None, "provider": spec.provider or None}
    settings = load(model=named, threads=spec.threads, **where)
    model = model_for(settings)
    spec = replace(
        spec,
        source=f"beside {beside}" if beside else "",
        model=model,
        variant=settings.variant or "",
        provider=settings.provider or "",
        context_tokens=_context(spec, quick, beside),
    )
    loader = onnx_loader(model, settings.variant, settings.provider, settings.threads)

    def load_model() -> Model:
        return loader(lambda *_: None)

    with opt.open_run_for(opt.SavedRun(out), opt.identify_model(spec)) as run:
        run_bench(run, load_model, json_file, quick, spec.limit, beside)


def _context(spec: RunSpec, quick: bool, beside: str | None) -> int | None:
    from redraft.evals.latency.editor_latency import QUICK_CONTEXT

    default = 1_024 if beside else QUICK_CONTEXT if quick else None
    return spec.context_tokens or default


def run_bench(
    run: Run,
    load_model: Callable[[], Model],
    json_file: Path | None,
    quick: bool = False,
    limit: int | None = None,
    beside: str | None = None,
) -> None:
    """Measure into ``run`` and show its tables. Ctrl-C ends it with what there is by then.

    Raises:
        RedraftError: the model cannot be loaded, or the other server cannot be asked.
        Exit: it was stopped.
    """
    from redraft.evals.latency import editor_latency as measuring
    from redraft.evals.latency.beside import compare
    from redraft.evals.pipeline import TABLES
    from redraft.evals.scorers.aims import results
    from redraft.server.commands.console import bar, out

    from .print_tables import show_tables

    amount = measuring.QUICK if quick else measuring.Amount()
    if limit:
        amount = replace(amount, runs=limit, keys=limit * measuring.KEYS_PER_RUN)
    stopped = False
    with bar() as show:

        def say(what: str) -> None:
            show(what, None)

        try:
            if beside:
                say("loading the model")
                model = load_model()
                try:
                    context = run.spec.context_tokens or 0
                    for each in compare(model, beside, context, amount.runs, say):
                        run.add(each)
                finally:
                    model.backend.close()
            else:
                measuring.measure(run, load_model, amount, say)
        except KeyboardInterrupt:
            stopped = True
    rows = run.rows()
    aims = [*results(rows, run.spec.model)]
    show_tables(run, list(TABLES["bench"](rows, run.spec.seed)), json_file, aims)
    if stopped:
        out.print("Stopped: what is above was measured before, the rest is missing.")
        raise typer.Exit(STOPPED)


def measure_workspace(place: Path, json_file: Path | None) -> None:
    """Print the cost of indexing a workspace and the memory of a language server there.

    Args:
        place: a folder, or a ``*-files.jsonl.zst`` of which 5,000 files are taken.

    Raises:
        SettingsError: there is neither, or ``json_file`` cannot be written.
    """
    if place.is_dir():
        return _measure_folder(place.resolve(), json_file)
    if not place.is_file():
        raise SettingsError(
            f"{place} is neither a folder nor a file. Name the root of a workspace, or a file such "
            "as train-files.jsonl.zst."
        )
    from redraft.evals.latency.workspace_costs import unpack

    with tempfile.TemporaryDirectory(prefix="redraft-workspace-") as folder:
        unpack(place, Path(folder))
        _measure_folder(Path(folder).resolve(), json_file)


def _measure_folder(folder: Path, json_file: Path | None) -> None:
    from redraft.evals.latency import REDRAFT
    from redraft.evals.latency.workspace_costs import memory_of, workspace_cost
    from redraft.server.commands.console import bar, out
    from rich.table import Table
    from rich.text import Text

    # Nothing answers at this address: no engine is started, and no model loaded.
    command = [*REDRAFT, "lsp", "--server", "http://127.0.0.1:9"]
    with bar() as progress:
        progress("a language server reads the workspace", None)
        memory = memory_of(command, folder)
        progress("the index by itself", None)
        figures = memory | workspace_cost(folder)
    figures = {name: round(value, 3) for name, value in figures.items()}
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0))
    for name, value in figures.items():
        table.add_row(Text(name), Text(f"{value:g}"))
    out.print(table, soft_wrap=False)
    write_json(json_file, figures)
