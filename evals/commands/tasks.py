"""``redraft eval``: how good a model is, with intervals, and whether one is better than another.

Translates options into calls of ``redraft.evals`` and shows what comes back as tables and JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import threshold
from redraft.server.commands.options import with_options

from . import run_options as opt
from .compare_gates import gate
from .places import places
from .replay import replay
from .runs import compare, report, score, show
from .steps import scenes, steps

if TYPE_CHECKING:
    from redraft.evals.example import Example
    from redraft.evals.gather import ContextKind
    from redraft.evals.predictors import ReadyPredictor
    from redraft.evals.run import Run

app = typer.Typer(
    help="Measure how good a model is, and compare two runs.",
    no_args_is_help=True,
    rich_help_panel="Measuring",
    add_completion=False,
)
for command in (gate, places, replay, steps, scenes, compare, score, show, report):
    app.command()(command)

SERVED = 1_024  # tokens of a prompt that "auto" picks on two CPU cores
#: Tokens that hold every problem of HumanEval-Infilling whole (577 at most, 261 of them suffix).
WHOLE = 2_048

INFILL = RunSpec("infill", max_tokens=64)
EDITS = RunSpec(
    "edits", context_tokens=SERVED, max_tokens=128, threshold=threshold("medium", "next_edit")
)
CHAT = RunSpec("chat", model="qwen2.5-coder-0.5b", context_tokens=2_048, max_tokens=160)


@app.command()
@with_options
def infill(
    human_eval: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl.gz",
            help="Fill the gaps of HumanEval-Infilling and run its tests in bubblewrap.",
        ),
    ] = None,
    no_sandbox: opt.NoSandbox = False,
    commits: opt.Commits = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Fill gaps in these folders, files or a *-files.jsonl.zst."
        ),
    ] = None,
    spec: RunSpec = INFILL,
    kept: opt.SavedRun = opt.NOTHING_KEPT,
) -> None:
    """Fill gaps: HumanEval-Infilling by its tests, or held-out commits and files by exact match.

    Without --context-tokens a prompt has 2048 tokens with --human-eval, else 1024.
    """
    from redraft.evals.sandbox.sandbox import check_bubblewrap

    examples, source = _gaps(human_eval, commits, files)
    if human_eval is not None and not no_sandbox:
        check_bubblewrap()
    tokens = spec.context_tokens or (WHOLE if human_eval else SERVED)
    spec = opt.with_source(replace(spec, context_tokens=tokens), source, examples)
    with opt.open_and_identify(spec) as (full, predictor):
        asked = _sampled(examples, spec)
        _warn_of_long(asked, predictor, spec.max_tokens or 0)
        _evaluate(full, asked, predictor, kept, "filling gaps", no_sandbox)


def _warn_of_long(asked: Sequence[Example], predictor: ReadyPredictor, most: int) -> None:
    if predictor.model is None:
        return
    encode = predictor.model.tokenizer.encode
    long = sum(len(encode(each.middle)) > most for each in asked)
    if long:
        opt.warn(
            f"{long} of {len(asked)} true answers have more than {most} tokens and cannot be "
            "written whole: see --max-tokens."
        )


def _gaps(
    human_eval: Path | None, commits: Path | None, files: list[Path] | None
) -> tuple[list[Example], str]:
    """Return the gaps to fill, and the name of where they come from."""
    from redraft.evals.sources.code_files import read_sources
    from redraft.evals.sources.commits import read_changes
    from redraft.evals.sources.gaps import gaps_of, whole_files
    from redraft.evals.sources.gaps import human_eval as read

    if [human_eval, commits, files or None].count(None) != 2:
        raise SettingsError(
            "Name what to fill: --human-eval FILE, --commits FILE or --files PATH, one of them."
        )
    if human_eval is not None:
        return read(human_eval), human_eval.name
    if commits is not None:
        changes, name = read_changes(commits), commits.name
    else:
        changes = (each for source in read_sources(files or ()) for each in whole_files(*source))
        name = " ".join(path.name for path in files or ())
    examples = [gap for change in changes for gap in gaps_of(change)]
    if not examples:
        raise SettingsError(f"{name} holds no gap to fill. Name a folder or file of code.")
    return examples, name


@app.command()
@with_options
def edits(
    commits: opt.Commits = None,
    suite: Annotated[
        Literal["carry-on"] | None,
        typer.Option(help="Measure on scenarios that come with Redraft instead."),
    ] = None,
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Leave out each kind of context in turn, in one table."),
    ] = False,
    spec: RunSpec = EDITS,
    kept: opt.SavedRun = opt.NOTHING_KEPT,
) -> None:
    """Predict the next hunk of held-out commits, given the ones before it.

    --suite carry-on continues what was begun in 120 small scenarios.
    """
    if suite is not None and (ablate or spec.likelihood):
        raise SettingsError("--ablate and --likelihood are for --commits, not for --suite.")
    examples, source = _moments(commits, suite)
    spec = opt.with_source(replace(spec, task=suite or "edits"), source, examples)
    with opt.open_and_identify(spec) as (full, predictor):
        _check_likelihood(predictor, spec.likelihood)
        asked = _sampled(examples, spec)
        if ablate:
            return _ablate(full, asked, predictor, kept)
        _evaluate(full, asked, predictor, kept, "predicting edits")


def _moments(commits: Path | None, suite: str | None) -> tuple[list[Example], str]:
    """Return the moments to ask at, and the name of where they come from."""
    from redraft.evals.sources.carry_on import scenarios
    from redraft.evals.sources.commits import read_changes
    from redraft.evals.sources.next_edits import steps_in

    if commits is not None and suite is None:
        return list(steps_in(read_changes(commits))), commits.name
    if suite is not None and commits is None:
        return scenarios(), suite
    raise SettingsError("Give either --commits FILE.jsonl.zst or --suite carry-on.")


def _check_likelihood(predictor: ReadyPredictor, likelihood: bool) -> None:
    from redraft.evals.scorers.likelihood import has_likelihood

    if likelihood and (predictor.model is None or not has_likelihood(predictor.model)):
        raise SettingsError(
            "These weights were not trained to write causally, so they have no likelihood. Leave "
            "out --likelihood."
        )


def _ablate(
    spec: RunSpec, asked: Sequence[Example], predictor: ReadyPredictor, kept: opt.SavedRun
) -> None:
    """Measure once with all context and once without each kind; each way has its run file."""
    from redraft.evals.pipeline import ABLATIONS, evaluate_in_turn
    from redraft.evals.scorers.next_edit_scores import BY_CONTEXT
    from redraft.evals.tables import rows_of_parts

    from .print_tables import show_less, show_tables

    with ExitStack() as files, opt.progress_of("predicting edits in all ways") as progress:
        runs = {
            name: files.enter_context(_without(spec, kept, name, left_out))
            for name, left_out in ABLATIONS.items()
        }
        evaluate_in_turn(asked, runs.values(), predictor, progress)
    parts = {f"without {name}": run.rows() for name, run in runs.items()}
    table = rows_of_parts("next edit, with kinds of context left out", BY_CONTEXT, parts, spec.seed)
    show_tables(runs["nothing"], [table], kept.json_file)
    show_less(parts, ("exact", "chrf", "nats"), spec.seed)


def _without(
    spec: RunSpec, kept: opt.SavedRun, name: str, kinds: tuple[ContextKind, ...]
) -> AbstractContextManager[Run]:
    """Open the run without some context: ``a.jsonl`` becomes ``a-without-history.jsonl``."""
    out = kept.out
    if out is not None and kinds:
        out = out.with_name(f"{out.stem}-without-{name}{out.suffix}")
    return opt.open_run_for(replace(kept, out=out), replace(spec, without=kinds))


@app.command()
@with_options
def chat(
    no_sandbox: opt.NoSandbox = False,
    spec: RunSpec = CHAT,
    kept: opt.SavedRun = opt.NOTHING_KEPT,
) -> None:
    """Put fifty small requests to a model that converses, and check its answers.

    Python that it writes runs in bubblewrap.
    """
    from redraft.evals.sandbox.sandbox import check_bubblewrap
    from redraft.evals.scorers.small_questions import examples

    questions = examples()
    if not no_sandbox:
        check_bubblewrap()
    with opt.open_and_identify(opt.with_source(spec, "", questions)) as (full, predictor):
        asked = _sampled(questions, spec)
        _evaluate(full, asked, predictor, kept, "conversing", no_sandbox)


def _sampled(examples: Sequence[Example], spec: RunSpec) -> list[Example]:
    from redraft.evals.sources.commits import in_turn

    return in_turn(examples, spec.limit, spec.seed)


def _evaluate(
    spec: RunSpec,
    asked: Sequence[Example],
    predictor: ReadyPredictor,
    kept: opt.SavedRun,
    what: str,
    no_sandbox: bool = False,
) -> None:
    """Ask, keep the run, and show its tables."""
    from redraft.evals.pipeline import TABLES, evaluate

    from .print_tables import show_tables

    execute = opt.execute_with(no_sandbox)
    with opt.open_run_for(kept, spec) as run:
        with opt.progress_of(what) as progress:
            rows = evaluate(asked, run, predictor, progress, execute)
        show_tables(run, list(TABLES[spec.task](rows, spec.seed)), kept.json_file)
