"""``redraft eval``: how good a model is, with intervals, and whether one is better than another.

Translates options into calls of ``redraft.evals`` and shows what comes back as tables and JSON;
measures nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from redraft.model.errors import SettingsError

if TYPE_CHECKING:
    from redraft.evals.infill import Problem
    from redraft.evals.runs import RunFile
    from redraft.evals.subject import Subject
    from redraft.evals.tables import Table
    from redraft.model.answering import Model
    from redraft.model.plan import Plan

app = typer.Typer(help="Measure how good a model is, and compare two runs.", no_args_is_help=True)

Limit = Annotated[
    int | None, typer.Option(min=1, help="Episodes at most; a smaller sample is part of a larger.")
]
Adapter = Annotated[
    str, typer.Option(help="'shipped', 'none' for the bare base, or an adapter's .safetensors.")
]
Weights = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="A ready folder, instead of an adapter.")
]
Variant = Annotated[
    str | None, typer.Option(help="int8, q8, fp32 or fp16. Default: the best for the provider.")
]
Provider = Annotated[
    Literal["CPU", "CUDA"] | None,
    typer.Option(help="Where to run. Default: CUDA where it works.", case_sensitive=False),
]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="CPU threads of the model.")]
PlanName = Annotated[
    str,
    typer.Option("--plan", help="low, medium, high, leftmost-first or autoregressive."),
]
Threshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Probability to place a token; else the plan's.")
]
Context = Annotated[int, typer.Option(min=64, max=32768, help="Prompt budget, tokens.")]
MaxTokens = Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")]
Out = Annotated[
    Path | None, typer.Option(metavar="RUN.jsonl", help="Write every episode there, as it comes.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the summary there.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample, the draws and the bootstrap.")]


@app.command()
def infill(
    human_eval: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl.gz", help="HumanEval-Infilling: pass@1.")
    ] = None,
    limit: Limit = None,
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    provider: Provider = None,
    threads: Threads = None,
    plan: PlanName = "medium",
    threshold: Threshold = None,
    context: Context = 4096,
    max_tokens: MaxTokens = 64,
    max_lines: Annotated[
        int | None, typer.Option(min=1, help="Cut answers after so many lines. Default: never.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Programs tried side by side.")] = 1,
    out: Out = None,
    resume: Resume = False,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Fill gaps: HumanEval-Infilling by its tests, held-out commits by exact match."""
    from redraft.evals.infill import Asking, solve, tables
    from redraft.evals.sandbox import weakness

    problems, source = _problems(human_eval, None, limit, seed)
    if human_eval is not None and weakness():
        _warn(f"The sandbox is weak here: {weakness()}.")
    chosen = _plan(plan, threshold)
    with _judged(adapter, weights, variant, provider, threads, context, out) as (subject, model):
        _check(chosen, model)
        settings = {
            "benchmark": "infill", **source, **_about(subject), "plan": plan,
            "threshold": threshold, "context": context, "max_tokens": max_tokens,
            "max_lines": max_lines, "seed": seed,
        }  # fmt: skip
        with _run(out, settings, resume) as run, _progress("filling gaps") as progress:
            asking = Asking(chosen, max_tokens, max_lines, seed)
            episodes = solve(model, problems, asking, run, jobs, progress)
            _show(run, tables(episodes, seed), json_file)


def _problems(
    human_eval: Path | None, commits: Path | None, limit: int | None, seed: int
) -> tuple[list[Problem], dict[str, str]]:
    from redraft.evals.infill import human_eval as read
    from redraft.evals.samples import some
    from redraft.model.files import sha256_of

    if human_eval is None:
        raise SettingsError("Name what to fill: --human-eval FILE.jsonl.gz.")
    problems = some(read(human_eval), lambda each: each.id, limit, seed)
    return problems, {"source": human_eval.name, "source_sha256": sha256_of(human_eval)}


# --- what every benchmark does --------------------------------------------------------------------


def _plan(name: str, threshold: float | None) -> Plan:
    from redraft.evals.plans import plan_named

    return plan_named(name, threshold)


def _check(plan: Plan, model: Model) -> None:
    from redraft.evals.plans import check_plan

    check_plan(plan, model.backend.config)


@contextmanager
def _judged(
    adapter: str,
    weights: Path | None,
    variant: str | None,
    provider: str | None,
    threads: int | None,
    context: int,
    out: Path | None,
) -> Iterator[tuple[Subject, Model]]:
    """The model to judge, loaded; its memory is given back afterwards."""
    from redraft.evals.subject import find_subject, load

    from .console import bar

    keep = out.absolute().parent / "judged" if out is not None else None
    with bar() as show:
        subject = find_subject(
            adapter, weights, variant, provider, keep, lambda p: show(p.stage, p.fraction)
        )
        show("loading the model", None)
        model = load(subject, context, threads)
    try:
        yield subject, model
    finally:
        model.backend.close()


def _about(subject: Subject) -> dict[str, str]:
    return {
        "model": subject.label,
        "model_sha256": subject.identity,
        "variant": subject.variant,
    }


def _run(out: Path | None, settings: dict[str, Any], resume: bool) -> RunFile:
    from redraft.evals.latency import machine
    from redraft.evals.runs import open_run

    return open_run(out, settings, machine(), resume)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time that is left, on standard error."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from .console import err

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _show(run: RunFile, found: Iterator[Table], json_file: Path | None) -> None:
    from rich.text import Text

    from .console import out

    tables = list(found)
    settings = ", ".join(f"{k} {v}" for k, v in run.settings.items() if "sha256" not in k)
    out.print(Text(settings, "dim"))
    for table in tables:
        out.print(_drawn(table), soft_wrap=False)
    _write_json(
        json_file,
        {
            "settings": run.settings,
            "machine": run.machine,
            "tables": [table.as_json() for table in tables],
        },
    )


def _drawn(table: Table) -> Any:
    """Metrics as rows where there is one part, else a row a part."""
    from rich.table import Table as Drawn

    drawn = Drawn(title=table.title, title_justify="left", box=None, padding=(0, 3, 0, 0))
    if len(table.rows) == 1 and table.rows[0].label == "all":
        (row,) = table.rows
        drawn.add_column("")
        drawn.add_column(f"n = {row.n:,}")
        for metric in table.metrics:
            drawn.add_row(metric.name, metric.show(row.figures[metric.name]))
        return drawn
    for heading in ("", "n", *(metric.name for metric in table.metrics)):
        drawn.add_column(heading, overflow="fold")
    for row in table.rows:
        figures = (metric.show(row.figures[metric.name]) for metric in table.metrics)
        drawn.add_row(row.label, f"{row.n:,}", *figures)
    return drawn


def _write_json(path: Path | None, content: dict[str, Any]) -> None:
    if path is None:
        return
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error


def _warn(message: str) -> None:
    from .console import err

    err.print(f"note: {message}", style="yellow", markup=False)
