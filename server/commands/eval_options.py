"""What the commands that judge a model share: their options, the model, the run, the progress.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.records import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

from .options import Group, Provider, Threads, Variant, check_writable

if TYPE_CHECKING:
    from redraft.evals.example import Example
    from redraft.evals.models import JudgedModel
    from redraft.evals.run import Run, RunSpec
    from redraft.model.decode.completion import Plan
    from redraft.model.predict import Model


Limit = Annotated[
    int | None, typer.Option(min=1, help="Episodes at most; a smaller sample is part of a larger.")
]
ModelName = Annotated[
    str, typer.Option("--model", help="Of 'redraft model list'; auto: what users get.")
]
Adapter = Annotated[
    str, typer.Option(help="'shipped', 'none' for the bare base, or an adapter's .safetensors.")
]
Weights = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="A ready folder, instead of an adapter.")
]
PlanName = Annotated[
    str,
    typer.Option("--plan", help="low, medium, high or autoregressive."),
]
PlanChange = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change the plan, as second_tries=0."),
]
Context = Annotated[
    int, typer.Option(min=MIN_CONTEXT_TOKENS, max=MAX_CONTEXT_TOKENS, help="Prompt budget, tokens.")
]
#: What "auto" picks on two CPU cores.
SERVED = 1_024
Least = Annotated[
    float, typer.Option("--least", min=0, max=1, help="Score from which an edit is shown.")
]
MaxTokens = Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")]
Out = Annotated[
    Path | None, typer.Option(metavar="RUN.jsonl", help="Write every episode there, as it comes.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the summary there.", callback=check_writable
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample, the draws and the bootstrap.")]


@dataclass(frozen=True, slots=True)
class Judged(Group):
    """The options that say which model is judged, and where it runs."""

    model: ModelName
    adapter: Adapter = "shipped"
    weights: Weights = None
    variant: Variant = None
    provider: Provider = None
    threads: Threads = None


@dataclass(frozen=True, slots=True)
class Kept(Group):
    """The options that say what is written down of a run."""

    out: Out = None
    resume: Resume = False
    json_file: Json = None
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class Planned(Group):
    """The options that say how boldly answers are written."""

    plan: PlanName = "medium"
    change: PlanChange = None

    def made(self) -> Plan:
        from redraft.evals.models import plan_named

        return plan_named(self.plan, self.change or ())


USERS, NOTHING_KEPT, USUAL = Judged("auto"), Kept(), Planned()


Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="No model: 'none' never writes; 'copy-last-edit' repeats the last substitution; "
        "'rules' repeats recent edits as the engine does before the model judges them.",
    ),
]
Commits = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jsonl.zst", help="Commits of repositories not trained on."),
]


# --- what every benchmark does -----------------------------------------------------------------


def folder_of(out: Path | None) -> Path | None:
    """Where folders made of adapters are kept; None: in the cache."""
    return out.absolute().parent / "judged" if out is not None else None


def settled(judged: Judged) -> Judged:
    """The same, with what the user's settings say where an option is not given; a ready folder
    runs as it demands."""
    from ..settings import load_settings

    if judged.weights is not None:
        return judged
    settings = load_settings()
    variant, provider = judged.variant or settings.variant, judged.provider or settings.provider
    return replace(judged, variant=variant, provider=provider)


def judged_model(judged: Judged, out: Path | None) -> JudgedModel:
    from redraft.evals.models import find_model

    from .console import bar

    keep, judged = folder_of(out), settled(judged)
    with bar() as show:
        return find_model(
            judged.adapter,
            judged.weights,
            judged.variant,
            judged.provider,
            keep,
            lambda p: show(p.stage, p.fraction),
            judged.model,
        )


@contextmanager
def loaded(chosen_model: JudgedModel, threads: int | None, context: int) -> Iterator[Model]:
    """The model to judge in memory, which is given back afterwards."""
    from redraft.evals.models import load

    model = load(chosen_model, context, threads)
    try:
        yield model
    finally:
        model.backend.close()


def spec_of(
    task: str, source: str, examples: Sequence[Example], kept: Kept, planned: Planned
) -> RunSpec:
    """Return the description of a run, without its model and budgets."""
    from redraft.evals.run import RunSpec
    from redraft.evals.sources.commits import fingerprint

    changes = tuple(planned.change or ())
    sample = fingerprint(examples)
    return RunSpec(task, source, sample, plan=planned.plan, set=changes, seed=kept.seed)


def with_model(spec: RunSpec, chosen: JudgedModel) -> RunSpec:
    """Return the description with the model in it."""
    return replace(spec, model=chosen.label, model_sha256=chosen.identity, variant=chosen.variant)


def open_run_for(out: Path | None, spec: RunSpec, resume: bool) -> Run:
    """Return the run that ``--out`` and ``--resume`` mean, with this machine and command."""
    from redraft.evals.machine import machine
    from redraft.evals.run import open_run

    return open_run(out, spec, machine() | {"command": _command()}, resume)


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


def warn(message: str) -> None:
    from .console import err

    err.print(f"note: {message}", style="yellow", markup=False)
