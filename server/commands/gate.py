"""``redraft gate``: the decision to show, learned from outcomes: make them, fit, look, forget.

Translates options into calls of ``redraft.evals`` and ``redraft.lsp``; decides nothing itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from redraft.model.errors import SettingsError

from .eval_options import (
    SERVED,
    Adapter,
    Context,
    Limit,
    ModelName,
    Resume,
    Seed,
    Threads,
    Variant,
    Weights,
    about,
    loaded,
    open_run_for,
    plan_of,
    progress_of,
    subject_of,
)

app = typer.Typer(help="The decision to show, learned from outcomes.", no_args_is_help=True)


@app.command()
def outcomes(
    out: Annotated[Path, typer.Option(metavar="RUN.jsonl", help="Written as they come.")],
    commits: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl.zst", help="Commits: next edits and gaps.")
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl.zst", help="Files: chains made up from them."),
    ] = None,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="Of the lines of these, how many are looked at.")
    ] = 0.05,
    limit: Limit = None,
    model: ModelName = "redraft-0.5b",
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    threads: Threads = None,
    context: Context = SERVED,
    resume: Resume = False,
    seed: Seed = 0,
) -> None:
    """Ask a model at moments whose outcome is known, for 'redraft gate fit' and 'eval gate'."""
    from redraft.evals.gate.moments import known_moments
    from redraft.evals.gate.outcomes import make_outcomes

    if commits is None and files is None:
        raise SettingsError("Name --commits FILE.jsonl.zst, --files FILE.jsonl.zst, or both.")
    subject = subject_of(model, adapter, weights, variant, None, out)
    moments = known_moments(commits, files, share, limit, seed)
    settings = {
        "benchmark": "gate outcomes", "share": share, "seed": seed, "context": context,
        "source": " ".join(path.name for path in (commits, files) if path), **about(subject),
    }  # fmt: skip
    plan = plan_of("medium", None, None)
    with (
        loaded(subject, threads, context) as judged,
        open_run_for(out, settings, resume) as run,
        progress_of("asking") as progress,
    ):
        make_outcomes(judged, moments, plan, context, run, progress)


@app.command()
def ship(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN.jsonl…", help="Of 'redraft gate outcomes'.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="GATE.json", help="Default: the one that is shipped.")
    ] = None,
    version: Annotated[str, typer.Option(help="Of the gate, for people.")] = "1",
) -> None:
    """Fit the gate that comes with Redraft on outcomes of training commits. Takes seconds."""
    from redraft.evals.figures.runs import read_run
    from redraft.evals.gate.fitting import (
        card_of,
        fit_gate,
        judges_among,
        samples_of,
        shown_to_gate,
    )
    from redraft.model.edits.gate_file import SHIPPED, write_gate

    from .console import out as console

    read = [read_run(path) for path in runs]
    if judges_among(read):
        raise SettingsError(
            f"{', '.join(judges_among(read))} judges gates and is never fitted on. Name runs over "
            "training commits."
        )
    samples = samples_of(each for run in read for each in shown_to_gate(run))
    gate = fit_gate(samples, f"shipped {version}")
    write_gate(out or SHIPPED, gate, card_of(samples, read))
    for task, each in samples.items():
        right = sum(one.kept for one in each)
        console.print(f"{task}: {len(each)} candidates, {right} right", markup=False)
