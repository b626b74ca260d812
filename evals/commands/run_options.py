"""Options and helpers of the commands that measure: the predictor, the run on disk, the progress.

The options of a run are the fields of :class:`redraft.evals.spec.RunSpec`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.evals.spec import RunSpec
from redraft.server.commands.options import Group, check_writable

if TYPE_CHECKING:
    from redraft.evals.example import Example
    from redraft.evals.predictors import ReadyPredictor
    from redraft.evals.run import Run
    from redraft.evals.sandbox.sandbox import Execute

Out = Annotated[
    Path | None,
    typer.Option(metavar="RUN.jsonl", help="Write every example to this file, as it is measured."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in the file of --out.")]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Also write the figures to this file, as JSON.",
        callback=check_writable,
    ),
]
Commits = Annotated[
    Path | None,
    typer.Option(metavar="FILE.jsonl.zst", help="Measure on held-out commits of this file."),
]

NoSandbox = Annotated[
    bool,
    typer.Option(
        "--no-sandbox",
        help="Run programs of the model without bubblewrap, limited in time and memory alone.",
    ),
]


@dataclass(frozen=True, slots=True)
class SavedRun(Group):
    """The options that say what is written of a run."""

    out: Out = None
    resume: Resume = False
    json_file: Json = None


NOTHING_KEPT = SavedRun()


def apply_user_settings(spec: RunSpec) -> RunSpec:
    """Return the description with the user's settings for options that are not given.

    A ready folder runs as it demands.
    """
    from redraft.server.settings import load_settings

    if spec.weights is not None:
        return spec
    settings = load_settings()
    variant, provider = spec.variant or settings.variant, spec.provider or settings.provider
    return replace(spec, variant=variant or "", provider=provider or "")


def identify_model(spec: RunSpec) -> RunSpec:
    """Return the description with the name and hash of the model, fetched if it is missing."""
    from redraft.evals import predictors
    from redraft.server.commands.console import bar

    with bar() as show:
        return predictors.identify_model(spec, lambda p: show(p.stage, p.fraction))


def with_source(spec: RunSpec, source: str, examples: Sequence[Example]) -> RunSpec:
    """Return the description with the name and the fingerprint of its examples."""
    from redraft.evals.sources.commits import fingerprint

    return replace(spec, source=source, sample=fingerprint(examples))


@contextmanager
def open_and_identify(spec: RunSpec) -> Iterator[tuple[RunSpec, ReadyPredictor]]:
    """Yield the full description and the predictor, which is closed afterwards."""
    from redraft.evals.predictors import open_predictor

    spec = apply_user_settings(spec)
    full = identify_model(spec)
    predictor = open_predictor(spec)
    try:
        yield full, predictor
    finally:
        predictor.close()


@contextmanager
def open_run_for(kept: SavedRun, spec: RunSpec) -> Iterator[Run]:
    """Yield the run that ``--out`` and ``--resume`` mean; Ctrl-C says how to continue it."""
    from redraft.evals.provenance import machine
    from redraft.evals.run import open_run

    with open_run(kept.out, spec, machine() | {"command": _command()}, kept.resume) as run:
        try:
            yield run
        except KeyboardInterrupt:
            if kept.out is not None:
                warn(
                    f"stopped. {kept.out} has {len(run.examples):,} examples; repeat the command "
                    "with --resume to continue."
                )
            raise


def _command() -> str:
    """Return what was typed, without the folders of this machine."""
    typed = [Path(each).name if os.sep in each else each for each in sys.argv[1:]]
    return shlex.join(["redraft", *typed])


def execute_with(no_sandbox: bool) -> Execute:
    """Return what runs the programs that a model writes; warn where nothing holds them."""
    from redraft.evals.sandbox.sandbox import run_program

    if no_sandbox:
        warn("programs that the model writes can read and delete your files (--no-sandbox).")
    return partial(run_program, confined=not no_sandbox)


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that moves a bar with the time that is left, on standard error."""
    from redraft.server.commands.console import err
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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
    """Print a note on standard error."""
    from redraft.server.commands.console import err

    err.print(f"note: {message}", style="yellow", markup=False)
