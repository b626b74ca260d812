"""``redraft eval``: how good a model is, with intervals, and whether one is better than another.

Translates options into calls of ``redraft.evals`` and shows what comes back as tables and JSON;
measures nothing itself.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from redraft.model.errors import SettingsError

from .replay import register as register_replay
from .report import register

if TYPE_CHECKING:
    from redraft.evals.edits import Asking
    from redraft.evals.gaps import Problem
    from redraft.evals.perplexity import Scaling
    from redraft.evals.runs import RunFile
    from redraft.evals.scenery import Kind
    from redraft.evals.steps import Step
    from redraft.evals.subject import Subject
    from redraft.model.answering import Model
    from redraft.model.backend import Backend
    from redraft.model.plan import Plan

app = typer.Typer(help="Measure how good a model is, and compare two runs.", no_args_is_help=True)
register(app)  # report and check
register_replay(app)


def _writable(json_file: Path | None) -> Path | None:
    from .figures import check_writable

    return check_writable(json_file)


Limit = Annotated[
    int | None, typer.Option(min=1, help="Episodes at most; a smaller sample is part of a larger.")
]
ModelName = Annotated[str, typer.Option("--model", help="Of 'redraft model list'.")]
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
Change = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change the plan, as accept_above=0.3."),
]
Context = Annotated[int, typer.Option(min=64, max=32768, help="Prompt budget, tokens.")]
#: Holds every problem of HumanEval-Infilling whole (577 tokens at most, 261 of them suffix).
WHOLE = 2_048
#: What "auto" picks on two CPU cores.
SERVED = 1_024
MaxTokens = Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")]
Out = Annotated[
    Path | None, typer.Option(metavar="RUN.jsonl", help="Write every episode there, as it comes.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the summary there.", callback=_writable),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample, the draws and the bootstrap.")]


Commits = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jsonl.zst", help="Commits of repositories not trained on."),
]


@app.command()
def infill(
    human_eval: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl.gz", help="HumanEval-Infilling: pass@1.")
    ] = None,
    commits: Commits = None,
    limit: Limit = None,
    model: ModelName = "redraft-135m",
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    provider: Provider = None,
    threads: Threads = None,
    plan: PlanName = "medium",
    threshold: Threshold = None,
    change: Change = None,
    context: Annotated[
        int | None,
        typer.Option(
            min=64, max=32768, help="Prompt budget, tokens. Default: 2048, for commits 1024."
        ),
    ] = None,
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
    """Fill gaps: HumanEval-Infilling by its tests, or held-out commits by exact match."""
    from redraft.evals.infill import Asking, solve, tables
    from redraft.evals.samples import in_turn
    from redraft.evals.sandbox import weakness

    from .figures import show_tables

    problems, source = _gaps(human_eval, commits)
    if human_eval is not None and weakness():
        _warn(f"The sandbox is weak here: {weakness()}.")
    chosen, context = _plan(plan, threshold, change), context or (WHOLE if human_eval else SERVED)
    subject = _subject(model, adapter, weights, variant, provider, out)
    with _loaded(subject, threads, context) as judged:
        _check(chosen, judged)
        settings = {
            "benchmark": "infill", **source, **_about(subject), "plan": plan,
            "threshold": threshold, "set": change or [], "context": context,
            "max_tokens": max_tokens, "max_lines": max_lines, "seed": seed,
        }  # fmt: skip
        with open_run_for(out, settings, resume) as run:
            asking = Asking(chosen, max_tokens, max_lines, seed)
            asked = in_turn(problems, limit, seed)
            with progress_of("filling gaps") as progress:
                episodes = solve(judged, asked, asking, run, jobs, progress)
            show_tables(run, list(tables(episodes, seed)), json_file)


def _gaps(human_eval: Path | None, commits: Path | None) -> tuple[list[Problem], dict[str, str]]:
    from redraft.evals.gaps import gaps_of
    from redraft.evals.gaps import human_eval as read
    from redraft.evals.samples import fingerprint, read_changes

    if human_eval is not None and commits is None:
        problems, name = read(human_eval), human_eval.name
    elif commits is not None and human_eval is None:
        problems = [gap for change in read_changes(commits) for gap in gaps_of(change)]
        name = commits.name
    else:
        raise SettingsError("Name what to fill: --human-eval FILE or --commits FILE, one of them.")
    return problems, {"source": name, "sample": fingerprint(problems)}


@app.command()
def edits(
    commits: Annotated[
        Path,
        typer.Option(metavar="FILE.jsonl.zst", help="Commits of repositories not trained on."),
    ],
    limit: Limit = None,
    model: ModelName = "redraft-135m",
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    provider: Provider = None,
    threads: Threads = None,
    plan: PlanName = "medium",
    threshold: Threshold = None,
    change: Change = None,
    context: Context = SERVED,
    max_tokens: MaxTokens = 128,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="An edit less sure than this is not shown.")
    ] = 0.0,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Leave out a kind of context: history, definitions, imports, viewed, related, "
            "region or far. May be given repeatedly.",
        ),
    ] = None,
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Leave out each kind in turn, on the same steps: one table."),
    ] = False,
    likelihood: Annotated[
        bool,
        typer.Option(
            "--likelihood", help="Only how likely the true edit is; no answer is written."
        ),
    ] = False,
    out: Out = None,
    resume: Resume = False,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Foresee the next hunk of held-out commits, given the ones before it."""
    from redraft.evals.edits import Asking, foresee, tables
    from redraft.evals.samples import fingerprint, in_turn, read_changes
    from redraft.evals.scenery import kinds_named
    from redraft.evals.steps import steps_in

    from .figures import show_tables

    left_out = kinds_named(without or ())
    if ablate and left_out:
        raise SettingsError("--ablate leaves out each kind by itself: do not name any --without.")
    steps = list(steps_in(read_changes(commits)))
    chosen = _plan(plan, threshold, change)
    subject = _subject(model, adapter, weights, variant, provider, out)
    asking = Asking(chosen, context, max_tokens, seed, least, left_out, writes=not likelihood)
    settings = {
        "benchmark": "edits", "source": commits.name, "sample": fingerprint(steps),
        **_about(subject), "plan": plan, "threshold": threshold, "set": change or [],
        "context": context, "max_tokens": max_tokens, "least": least, "seed": seed,
        "without": sorted(left_out), "likelihood": likelihood,
    }  # fmt: skip
    asked = in_turn(steps, limit, seed)
    with _loaded(subject, threads, context) as judged:
        _check(chosen, judged)
        _check_likelihood(likelihood, judged)
        if ablate:
            return _ablate(judged, asked, asking, settings, out, resume, json_file)
        with open_run_for(out, settings, resume) as run:
            with progress_of("foreseeing edits") as progress:
                episodes = foresee(judged, asked, asking, run, progress)
            show_tables(run, list(tables(episodes, seed)), json_file)


def _check_likelihood(wanted: bool, model: Model) -> None:
    from redraft.evals.likelihood import knows

    if wanted and not knows(model):
        raise SettingsError(
            "These weights were not trained to write causally, so they tell no likelihood. Leave "
            "out --likelihood."
        )


def _ablate(
    model: Model,
    steps: list[Step],
    asking: Asking,
    settings: dict[str, Any],
    out: Path | None,
    resume: bool,
    json_file: Path | None,
) -> None:
    from redraft.evals.ablation import ALL, ablate, arms, file_of

    from .figures import show_arms

    def open_file(name: str, without: frozenset[Kind]) -> RunFile:
        path = file_of(out, name) if out is not None else None
        return open_run_for(path, settings | {"without": sorted(without)}, resume)

    with progress_of("foreseeing edits in all ways") as progress:
        runs = ablate(model, steps, asking, open_file, progress)
    show_arms(runs[ALL], arms(runs, asking.seed), json_file)


@app.command()
def perplexity(
    code: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Folders or files of code, or a *.jsonl.zst."),
    ],
    lengths: Annotated[str, typer.Option(help="Tokens, between commas.")] = "4096,8192,16384,32768",
    scaling: Annotated[str, typer.Option(help="Of positions.")] = "none,linear,ntk,yarn",
    repositories: Annotated[int, typer.Option(min=1, help="Used of those given, at most.")] = 3,
    model: ModelName = "redraft-135m",
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    provider: Provider = None,
    threads: Threads = None,
    out: Out = None,
    resume: Resume = False,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Perplexity of the last 1,024 tokens of long contexts, under each scaling of positions."""
    from redraft.evals import perplexity as long

    from .figures import show_perplexity

    sizes, scalings = _lengths(lengths, long.SCORED), _scalings(scaling)
    subject = _subject(model, adapter, weights, variant, provider, out)

    def load(name: long.Scaling) -> Backend:
        return long.Rescaled(subject.folder, subject.provider, threads, name)

    found = long.prepare(subject.folder, code, sizes, scalings, repositories)
    settings = {
        "benchmark": "perplexity", "code": " ".join(path.name for path in code),
        "sample": long.fingerprint(found), **_about(subject), "scored": long.SCORED,
    }  # fmt: skip
    with open_run_for(out, settings, resume) as run:
        with progress_of("reading") as progress:
            long.measure(found, load, run, progress)
        show_perplexity(run, list(long.cells(run, found, seed)), json_file)


def _lengths(text: str, least: int) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and least < int(part) <= 32_768 for part in parts):
        raise typer.BadParameter(
            f"{text!r}: give lengths from {least + 1} to 32768 with commas between them.",
            param_hint="--lengths",
        )
    return sorted({int(part) for part in parts})


def _scalings(text: str) -> list[Scaling]:
    from redraft.evals.perplexity import SCALINGS

    wanted = {part.strip() for part in text.split(",")}
    if unknown := sorted(wanted - set(SCALINGS)):
        raise typer.BadParameter(
            f"{', '.join(unknown)}: choose among {', '.join(SCALINGS)}.", param_hint="--scaling"
        )
    return [name for name in SCALINGS if name in wanted]


@app.command("compare")
def compare_runs(
    a: Annotated[Path, typer.Argument(metavar="A.jsonl")],
    b: Annotated[Path, typer.Argument(metavar="B.jsonl")],
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Is run B better than run A, on the episodes that both have?"""
    from redraft.evals.compare import compare
    from redraft.evals.runs import read_run

    from .figures import show_comparison

    first, second = read_run(a), read_run(b)
    show_comparison(first, second, *compare(first, second, seed), json_file)


# --- what every benchmark does --------------------------------------------------------------------


def _plan(name: str, threshold: float | None, changes: list[str] | None) -> Plan:
    from redraft.evals.plans import plan_named

    return plan_named(name, threshold, changes or ())


def _check(plan: Plan, model: Model) -> None:
    from redraft.evals.plans import check_plan

    check_plan(plan, model.backend.config)


def _subject(
    model: str,
    adapter: str,
    weights: Path | None,
    variant: str | None,
    provider: str | None,
    out: Path | None,
) -> Subject:
    from redraft.evals.subject import find_subject

    from .console import bar

    keep = out.absolute().parent / "judged" if out is not None else None
    with bar() as show:
        return find_subject(
            adapter, weights, variant, provider, keep, lambda p: show(p.stage, p.fraction), model
        )


@contextmanager
def _loaded(subject: Subject, threads: int | None, context: int) -> Iterator[Model]:
    """The model to judge in memory, which is given back afterwards."""
    from redraft.evals.subject import load

    model = load(subject, context, threads)
    try:
        yield model
    finally:
        model.backend.close()


def _about(subject: Subject) -> dict[str, str]:
    return {
        "model": subject.label,
        "model_sha256": subject.identity,
        "variant": subject.variant,
    }


def open_run_for(out: Path | None, settings: dict[str, Any], resume: bool) -> RunFile:
    """The run that ``--out`` and ``--resume`` mean, with this machine and command in its header."""
    from redraft.evals.latency import machine
    from redraft.evals.runs import open_run

    return open_run(out, settings, machine() | {"command": _command()}, resume)


def _command() -> str:
    """What was typed, without the folders of this machine."""
    typed = [Path(each).name if os.sep in each else each for each in sys.argv[1:]]
    return shlex.join(["redraft", *typed])


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
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


def _warn(message: str) -> None:
    from .console import err

    err.print(f"note: {message}", style="yellow", markup=False)
