"""``redraft gate``: fit, show and delete the gate that decides what is shown."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import Eagerness

from .evaluation import options as opt
from .options import with_options

if TYPE_CHECKING:
    from redraft.evals.gate.own import OwnSamples

OUTCOMES = RunSpec("outcomes", model="redraft-0.5b", context_tokens=1_024)

app = typer.Typer(
    help="Fit, show or delete your own gate. The gate decides which suggestions are shown.",
    no_args_is_help=True,
)


# --- the user's gate ------------------------------------------------------------------------------


@app.command()
def fit(
    eagerness: Annotated[Eagerness, typer.Option(help="Eagerness to fit for.")] = "medium",
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing, and run at low priority.")
    ] = False,
) -> None:
    """Fit your own gate on your recordings. It is used only if it beats the shipped one."""
    from redraft.evals.gate.own import own_samples
    from redraft.lsp.recording.recordings_folder import Recordings
    from redraft.model.gate.eagerness import RATIOS
    from redraft.model.gate.gate import shipped, write_gate
    from redraft.model.training.gate.fit import fit_own
    from redraft.model.training.gate.kto import Objective

    from .console import harmless
    from .console import out as console

    if quiet and hasattr(os, "nice"):
        os.nice(10)
    recordings = Recordings()
    own = own_samples([kept.path for kept in recordings.kept()])
    want = {task: Objective(ratios[eagerness]) for task, ratios in RATIOS.items()}
    made, verdict = fit_own(shipped(), own.samples, want, own.other_model > 0)
    lines = [verdict.told, *_left_out(own)]
    if own.count:
        card = {
            "taken": verdict.taken, "told": verdict.told, "weights": own.weights,
            "outcomes": own.count, "shown": own.shown, "hidden": own.hidden,
            "shipped": shipped().name, "eagerness": eagerness, "left_out": _left_out(own),
        }  # fmt: skip
        write_gate(recordings.learned, made, card)
    else:
        recordings.forget()  # what it was fitted on is gone
        lines = ["Nothing to learn from yet: the shipped gate is in use.", *lines[1:]]
    for line in [] if quiet else lines:
        console.print(harmless(line), markup=False)


def _left_out(own: OwnSamples) -> list[str]:
    """Return lines that say what was not learned from, and why."""
    lines = []
    if own.other_model:
        lines.append(f"{own.other_model} answers of other weights are left out.")
    if own.unlabelled:
        lines.append(f"{own.unlabelled} candidates are left out: their outcome is unknown.")
    return lines + [f"Left out, as it cannot be read: {each}" for each in own.unreadable]


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which gate is in use, and why."""
    from redraft.lsp.recording.own_gate import OUTDATED
    from redraft.lsp.recording.recordings_folder import Recordings
    from redraft.model.gate.gate import SHIPPED, is_outdated, read_gate, shipped

    from .console import harmless
    from .console import out as console

    recordings = Recordings()
    state: dict[str, Any] = {"in_use": shipped().name, "own": None, "file": None}
    state["shipped"] = read_gate(SHIPPED)[1]
    if recordings.has_learned():
        made, card = read_gate(recordings.learned)
        state |= {"own": card, "file": str(recordings.learned)}
        if is_outdated(made):
            state["own"] = card | {"taken": False, "told": OUTDATED}
        elif card.get("taken") is True:
            state["in_use"] = made.name
    if as_json:
        console.print_json(data=state, ensure_ascii=True)
        return
    card = state["own"] or {}
    console.print(f"In use: {harmless(str(state['in_use']))}", markup=False)
    if state["own"] is None:
        console.print(
            "Your own gate: none yet. Turn on 'redraft record on': after 50 accepted or rejected "
            "suggestions the language server fits one, and uses it if it beats the shipped gate."
        )
    else:
        lines = (card.get("told", ""), *card.get("left_out", ()), state["file"])
        for line in lines:
            console.print(harmless(str(line)), markup=False)


@app.command()
def reset() -> None:
    """Delete your own gate and use the shipped one. Recordings stay."""
    from redraft.lsp.recording.recordings_folder import Recordings

    from .console import out as console

    recordings = Recordings()
    path = recordings.learned
    if recordings.forget():
        console.print(f"Deleted {path.name}. The shipped gate is in use.")
    elif path.exists():
        raise SettingsError(
            f"{path} is not a gate of Redraft, so it was not deleted. Move it away yourself."
        )
    else:
        console.print("You have no gate of your own. The shipped gate is in use.")


# --- the shipped one ----------------------------------------------------------------------------


@app.command(hidden=True)
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
    suite: Annotated[
        Literal["carry-on"] | None,
        typer.Option(help="Ask at scenarios, which are for testing gates only."),
    ] = None,
    spec: RunSpec = OUTCOMES,
    resume: opt.Resume = False,
) -> None:
    """Ask a model at moments whose outcome is known, for 'redraft gate ship' and 'eval gate'."""
    from redraft.evals.pipeline import evaluate
    from redraft.evals.sources.known import in_suite, known_moments

    sources = [path for path in (commits, files) if path]
    if bool(sources) == (suite is not None):
        raise SettingsError(
            "Name --commits FILE.jsonl.zst, --files FILE.jsonl.zst or both; or --suite carry-on."
        )
    source = suite or " ".join(path.name for path in sources)
    with (
        opt.opened(replace(spec, source=source)) as (full, predictor),
        opt.open_run_for(opt.SavedRun(out, resume), full) as run,
        opt.progress_of("asking") as progress,
    ):
        if suite:
            moments = in_suite()
        else:
            moments = known_moments(commits, files, spec.share, spec.limit, spec.seed)
        evaluate(moments, run, predictor, progress)


@app.command(hidden=True)
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
    from redraft.evals.gate.fit import card_of, fit_gate, judges_among, samples_of
    from redraft.evals.gate.samples import newest, shown_to_gate
    from redraft.evals.run import read_run
    from redraft.model.gate.gate import SHIPPED, read_gate, write_gate

    from .console import out as console

    read = [read_run(path) for path in runs]
    if judges_among(read):
        raise SettingsError(
            f"{', '.join(judges_among(read))} is for testing and never fitted on. Name runs over "
            "training commits."
        )
    labels = list(shown_to_gate(newest(read)))
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
