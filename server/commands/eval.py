"""``redraft eval``: how good a model is, with intervals, and whether one is better than another.

Translates options into calls of ``redraft.evals`` and shows what comes back as tables and JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import threshold as threshold_for
from redraft.model.records import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

from . import eval_options as opt
from .eval_gate import gate
from .eval_replay import replay
from .eval_runs import compare, score, show
from .options import with_options

if TYPE_CHECKING:
    from redraft.evals.example import Example
    from redraft.evals.gather import ContextKind
    from redraft.evals.perplexity import Scaling
    from redraft.evals.predictors import ReadyPredictor
    from redraft.evals.run import Run, RunSpec
    from redraft.model.runtime.backend import Backend

app = typer.Typer(help="Measure how good a model is, and compare two runs.", no_args_is_help=True)
for command in (gate, replay, compare, score, show):
    app.command()(command)

SHOWN_FROM = threshold_for("medium")
CHAT_CONTEXT = 2_048  # tokens; the questions are short
#: Holds every problem of HumanEval-Infilling whole (577 tokens at most, 261 of them suffix).
WHOLE = 2_048
CONVERSES = opt.Judged("qwen2.5-coder-0.5b")


@app.command()
@with_options
def infill(
    human_eval: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl.gz", help="HumanEval-Infilling: pass@1.")
    ] = None,
    commits: opt.Commits = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Held-out folders, files or a *-files.jsonl.zst."),
    ] = None,
    baseline: opt.Baseline = None,
    limit: opt.Limit = None,
    judged: opt.Judged = opt.USERS,
    planned: opt.Planned = opt.USUAL,
    context: Annotated[
        int | None,
        typer.Option(
            min=MIN_CONTEXT_TOKENS,
            max=MAX_CONTEXT_TOKENS,
            help="Prompt budget, tokens. Default: 2048, for commits 1024.",
        ),
    ] = None,
    max_tokens: opt.MaxTokens = 64,
    jobs: Annotated[int, typer.Option(min=1, help="Programs tried side by side.")] = 1,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Fill gaps: HumanEval-Infilling by its tests, or held-out commits and files by exact match."""
    from redraft.evals.sandbox.sandbox import protection

    from .console import out

    examples, source = _gaps(human_eval, commits, files)
    if human_eval is not None:
        out.print(protection(), markup=False, style="dim")
    context = context or (WHOLE if human_eval else opt.SERVED)
    spec = opt.spec_of("infill", source, examples, kept, planned)
    spec = replace(spec, context_tokens=context, max_tokens=max_tokens)
    with _asking(spec, baseline, judged, planned, kept, known=("none",)) as (spec, predictor):
        asked = _sampled(examples, limit, kept)
        _warn_of_long(asked, predictor, max_tokens)
        _evaluate(spec, asked, predictor, kept, "filling gaps", jobs)


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
    from redraft.evals.perplexity import sources
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
        changes = (each for source in sources(files or ()) for each in whole_files(*source))
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
        typer.Option(help="Scenarios that come with Redraft, in place of commits."),
    ] = None,
    baseline: opt.Baseline = None,
    limit: opt.Limit = None,
    judged: opt.Judged = opt.USERS,
    planned: opt.Planned = opt.USUAL,
    context: opt.Context = opt.SERVED,
    max_tokens: opt.MaxTokens = 128,
    least: opt.Least = SHOWN_FROM,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Leave out each kind of context in turn, on the same steps: one table.",
        ),
    ] = False,
    likelihood: Annotated[
        bool,
        typer.Option(
            "--likelihood", help="Only how likely the true edit is; no answer is written."
        ),
    ] = False,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Foresee the next hunk of held-out commits, given the ones before it; or carry on what was
    begun in 120 small scenarios."""
    if suite is not None and (ablate or likelihood):
        raise SettingsError("--ablate and --likelihood are for --commits, not for --suite.")
    examples, source = _moments(commits, suite)
    spec = replace(
        opt.spec_of(suite or "edits", source, examples, kept, planned),
        context_tokens=context,
        max_tokens=max_tokens,
        threshold=least,
        likelihood=likelihood,
    )
    with _asking(spec, baseline, judged, planned, kept) as (spec, predictor):
        _check_likelihood(predictor, likelihood)
        asked = _sampled(examples, limit, kept)
        if ablate:
            return _ablate(spec, asked, predictor, kept)
        _evaluate(spec, asked, predictor, kept, "foreseeing edits")


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
            "These weights were not trained to write causally, so they tell no likelihood. Leave "
            "out --likelihood."
        )


def _ablate(
    spec: RunSpec, asked: Sequence[Example], predictor: ReadyPredictor, kept: opt.Kept
) -> None:
    from redraft.evals.ablation import ALL, ablate, arms, file_of

    from .eval_tables import show_arms

    def open_file(name: str, without: tuple[ContextKind, ...]) -> Run:
        path = file_of(kept.out, name) if kept.out is not None else None
        return opt.open_run_for(path, replace(spec, without=without), kept.resume)

    with opt.progress_of("foreseeing edits in all ways") as progress:
        runs = ablate(asked, predictor, open_file, progress)
    show_arms(runs[ALL], arms(runs, kept.seed), kept.json_file)


@app.command()
@with_options
def chat(
    limit: opt.Limit = None,
    judged: opt.Judged = CONVERSES,
    planned: opt.Planned = opt.USUAL,
    max_tokens: Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")] = 160,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Put fifty small requests to a model that converses, and look at what its answers hold."""
    from redraft.evals.scorers.chat import examples

    questions = examples()
    spec = opt.spec_of("chat", "", questions, kept, planned)
    spec = replace(spec, context_tokens=CHAT_CONTEXT, max_tokens=max_tokens)
    with _asking(spec, None, judged, planned, kept) as (spec, predictor):
        _evaluate(spec, _sampled(questions, limit, kept), predictor, kept, "conversing")


# --- what these share -----------------------------------------------------------------------------


def _sampled(examples: Sequence[Example], limit: int | None, kept: opt.Kept) -> list[Example]:
    from redraft.evals.sources.commits import in_turn

    return in_turn(examples, limit, kept.seed)


@contextmanager
def _asking(
    spec: RunSpec,
    baseline: str | None,
    judged: opt.Judged,
    planned: opt.Planned,
    kept: opt.Kept,
    known: Sequence[str] | None = None,
) -> Iterator[tuple[RunSpec, ReadyPredictor]]:
    """Yield the description with its model, and the predictor, which is closed afterwards.

    Args:
        known: the baselines that there are for this task; None: all.
    """
    from redraft.evals.models import check_plan
    from redraft.evals.predictors import POLICIES, ready_with
    from redraft.evals.predictors import baseline as baseline_of

    if baseline is not None:
        names = known or POLICIES
        if baseline not in names:
            raise SettingsError(
                f"There is no baseline {baseline!r} here; choose {' or '.join(names)}."
            )
        yield replace(spec, model=baseline, baseline=baseline), baseline_of(baseline)
        return
    chosen_model = opt.judged_model(judged, kept.out)
    with opt.loaded(chosen_model, judged.threads, spec.context_tokens or opt.SERVED) as model:
        plan = planned.made()
        check_plan(plan, model.backend.config)
        yield opt.with_model(spec, chosen_model), ready_with(model, plan)


def _evaluate(
    spec: RunSpec,
    asked: Sequence[Example],
    predictor: ReadyPredictor,
    kept: opt.Kept,
    what: str,
    jobs: int = 1,
) -> None:
    """Ask, keep the run, and show its tables."""
    from redraft.evals.pipeline import TABLES, evaluate

    from .eval_tables import show_tables

    with opt.open_run_for(kept.out, spec, kept.resume) as run:
        with opt.progress_of(what) as progress:
            rows = evaluate(asked, run, predictor, jobs, progress)
        show_tables(run, list(TABLES[spec.task](rows, kept.seed)), kept.json_file)


@app.command()
@with_options
def perplexity(
    code: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Folders or files of code, or a *.jsonl.zst."),
    ],
    lengths: Annotated[str, typer.Option(help="Tokens, between commas.")] = "4096,8192,16384,32768",
    scaling: Annotated[str, typer.Option(help="Of positions.")] = "none,linear,ntk,yarn",
    judged: opt.Judged = opt.USERS,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Perplexity of the last 1,024 tokens of long contexts, under each scaling of positions."""
    from redraft.evals import perplexity as long
    from redraft.evals.run import RunSpec

    from .eval_tables import show_perplexity

    sizes, scalings = _lengths(lengths, long.SCORED), _scalings(scaling)
    chosen_model = opt.judged_model(judged, kept.out)

    def load(name: Scaling) -> Backend:
        return long.Rescaled(chosen_model.folder, chosen_model.provider, judged.threads, name)

    found = long.prepare(chosen_model.folder, code, sizes, scalings)
    source = " ".join(path.name for path in code)
    spec = opt.with_model(
        RunSpec("perplexity", source, long.fingerprint(found), seed=kept.seed), chosen_model
    )
    with opt.open_run_for(kept.out, spec, kept.resume) as run:
        with opt.progress_of("reading") as progress:
            long.measure(found, load, run, progress)
        show_perplexity(run, list(long.cells(run, found, kept.seed)), kept.json_file)


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
