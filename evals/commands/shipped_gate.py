"""``redraft gate outcomes`` and ``gate ship``: the gate that comes with Redraft.

Translates options into calls of ``redraft.evals``; measures nothing itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.server.commands.options import with_options

from . import run_options as opt

OUTCOMES = RunSpec("outcomes", model="redraft-0.5b", context_tokens=1_024)

outcomes_app, ship_app = (typer.Typer(add_completion=False) for _ in range(2))


@outcomes_app.command(hidden=True)
@with_options
def outcomes(
    out: Annotated[
        Path,
        typer.Option(metavar="RUN.jsonl", help="Write every answer to this file, as it comes."),
    ],
    commits: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl.zst", help="Ask for gaps of these commits."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl.zst", help="Ask for gaps and begun lines of these files."),
    ] = None,
    spec: RunSpec = OUTCOMES,
    resume: opt.Resume = False,
) -> None:
    """Ask a model at moments whose outcome is known, for 'redraft gate ship' and 'eval gate'."""
    from redraft.evals.pipeline import evaluate
    from redraft.evals.sources.known import sample_moments

    sources = [path for path in (commits, files) if path]
    if not sources:
        raise SettingsError("Name --commits FILE.jsonl.zst, --files FILE.jsonl.zst or both.")
    source = " ".join(path.name for path in sources)
    with (
        opt.open_and_identify(replace(spec, source=source)) as (full, predictor),
        opt.open_run_for(opt.SavedRun(out, resume), full) as run,
        opt.progress_of("asking") as progress,
    ):
        moments = sample_moments(commits, files, spec.share, spec.limit, spec.seed)
        evaluate(moments, run, predictor, progress)


@ship_app.command(hidden=True)
def ship(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.jsonl…",
            help="Runs of 'redraft gate outcomes' or 'redraft eval steps --outcomes'.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="GATE.json", help="Default: the one that is shipped.")
    ] = None,
    version: Annotated[str, typer.Option(help="Version of the gate, for people.")] = "1",
) -> None:
    """Fit the gate that comes with Redraft on outcomes of training commits. Takes seconds.

    A task of which the runs hold nothing keeps the shipped weights.
    """
    from redraft.evals.gate.samples import candidates_for_gate, newest
    from redraft.evals.gate.shipped_fit import card_of, fit_gate, judges_among, samples_of
    from redraft.evals.run import read_run
    from redraft.model.gate.gate import SHIPPED, read_gate, write_gate
    from redraft.server.commands.console import out as console

    read = [read_run(path) for path in runs]
    if judges_among(read):
        raise SettingsError(
            f"{', '.join(judges_among(read))} is for testing and never fitted on. Name runs over "
            "training commits."
        )
    labels = list(candidates_for_gate(newest(read)))
    samples = samples_of(labels)
    if not labels:
        raise SettingsError("These runs hold no candidate that a rule lets pass. Name larger ones.")
    made = card_of(samples, labels, read)
    before = read_gate(SHIPPED)[1].get("heads", {})
    card = {"made_by": "redraft gate ship", "heads": {**before, **made}}
    write_gate(out or SHIPPED, fit_gate(samples, f"shipped {version}"), card)
    for task, told in made.items():
        line = (
            f"{task}: {told['candidates']} candidates, {told['kept']} kept, {told['exact']} exact"
        )
        if (others := told["on_others"]) is not None:
            error, by_chance = others["error"], others["by_chance"]
            line += f"; ECE of repositories left out {error:.3f} ({by_chance:.3f} by chance alone)"
        console.print(line, markup=False)
