"""``redraft eval``: how good a model is, with intervals, and whether one is better than another.

Translates options into calls of ``redraft.evals`` and shows what comes back as tables and JSON;
measures nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from redraft.model.errors import SettingsError
from redraft.model.gate.eagerness import threshold as threshold_for

from . import eval_options as opt
from .eval_gate import gate
from .eval_infill import infill
from .eval_replay import replay
from .options import with_options

if TYPE_CHECKING:
    from redraft.evals.benchmarks.baselines import Policy
    from redraft.evals.benchmarks.commit_moments import CommitMoment
    from redraft.evals.benchmarks.judged_model import JudgedModel
    from redraft.evals.benchmarks.next_edit import EditAsking
    from redraft.evals.benchmarks.perplexity import Scaling
    from redraft.evals.benchmarks.server_context import ContextKind
    from redraft.evals.figures.runs import RunFile
    from redraft.model.decode.completion import Plan
    from redraft.model.predict import Model
    from redraft.model.runtime.backend import Backend

app = typer.Typer(help="Measure how good a model is, and compare two runs.", no_args_is_help=True)
for command in (infill, gate, replay):
    app.command()(command)

CHAT_CONTEXT = 2_048  # tokens; the requests are short
CONVERSES = opt.Judged("qwen2.5-coder-0.5b")


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
    least: Annotated[
        float, typer.Option(min=0, max=1, help="Sureness from which an edit is shown.")
    ] = threshold_for("medium"),
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
    from redraft.evals.benchmarks import carry_on, next_edit
    from redraft.evals.figures.samples import fingerprint, in_turn

    from .eval_tables import show_tables

    if suite is not None and (ablate or likelihood):
        raise SettingsError("--ablate and --likelihood are for --commits, not for --suite.")
    source, cases = _cases(commits, suite)
    plan = planned.made()
    chosen_model = None if baseline else opt.judged_model(judged, kept.out)
    asking = next_edit.EditAsking(
        plan, context, max_tokens, kept.seed, least, writes=not likelihood
    )
    settings = {
        "benchmark": "edits", "source": source, "sample": fingerprint(cases),
        **opt.about(chosen_model, baseline), **planned.about(), "context": context,
        "max_tokens": max_tokens, "least": least, "seed": kept.seed,
        "without": [], "likelihood": likelihood,
    }  # fmt: skip
    asked = in_turn(cases, limit, kept.seed)
    with _foreseeing(baseline, chosen_model, judged.threads, context) as model:
        _check_model(model, plan, likelihood)
        if ablate:
            return _ablate(model, asked, asking, settings, kept)
        benchmark = carry_on if suite is not None else next_edit
        with opt.open_run_for(kept.out, settings, kept.resume) as run:
            with opt.progress_of("foreseeing edits") as progress:
                episodes = run.fill(asked, lambda one: benchmark.ask(model, one, asking), progress)
            show_tables(run, list(benchmark.tables(episodes, kept.seed)), kept.json_file)


def _cases(commits: Path | None, suite: str | None) -> tuple[str, list[Any]]:
    """Return the name of what is asked about, and the cases."""
    from redraft.evals.benchmarks import carry_on
    from redraft.evals.benchmarks.commit_moments import steps_in
    from redraft.evals.figures.samples import read_changes

    if commits is not None and suite is None:
        return commits.name, list(steps_in(read_changes(commits)))
    if suite is not None and commits is None:
        return suite, carry_on.scenarios()
    raise SettingsError("Give either --commits FILE.jsonl.zst or --suite carry-on.")


@contextmanager
def _foreseeing(
    baseline: str | None, chosen_model: JudgedModel | None, threads: int | None, context: int
) -> Iterator[Model | Policy]:
    from redraft.evals.benchmarks.baselines import POLICIES

    if chosen_model is None:
        yield opt.rule_of(baseline or "", POLICIES)
        return
    with opt.loaded(chosen_model, threads, context) as judged:
        yield judged


def _check_model(model: Model | Policy, plan: Plan, likelihood: bool) -> None:
    from redraft.evals.benchmarks.baselines import Policy
    from redraft.evals.benchmarks.likelihood import has_likelihood

    if not isinstance(model, Policy):
        opt.check_plan_of(plan, model)
    if likelihood and (isinstance(model, Policy) or not has_likelihood(model)):
        raise SettingsError(
            "These weights were not trained to write causally, so they tell no likelihood. Leave "
            "out --likelihood."
        )


def _ablate(
    model: Model | Policy,
    steps: list[CommitMoment],
    asking: EditAsking,
    settings: dict[str, Any],
    kept: opt.Kept,
) -> None:
    from redraft.evals.benchmarks.ablation import ALL, ablate, arms, file_of

    from .eval_tables import show_arms

    def open_file(name: str, without: frozenset[ContextKind]) -> RunFile:
        path = file_of(kept.out, name) if kept.out is not None else None
        return opt.open_run_for(path, settings | {"without": sorted(without)}, kept.resume)

    with opt.progress_of("foreseeing edits in all ways") as progress:
        runs = ablate(model, steps, asking, open_file, progress)
    show_arms(runs[ALL], arms(runs, asking.seed), kept.json_file)


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
    from redraft.evals.benchmarks import perplexity as long

    from .eval_tables import show_perplexity

    sizes, scalings = _lengths(lengths, long.SCORED), _scalings(scaling)
    chosen_model = opt.judged_model(judged, kept.out)

    def load(name: long.Scaling) -> Backend:
        return long.Rescaled(chosen_model.folder, chosen_model.provider, judged.threads, name)

    found = long.prepare(chosen_model.folder, code, sizes, scalings)
    settings = {
        "benchmark": "perplexity", "code": " ".join(path.name for path in code),
        "sample": long.fingerprint(found), **opt.about(chosen_model), "scored": long.SCORED,
    }  # fmt: skip
    with opt.open_run_for(kept.out, settings, kept.resume) as run:
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
    from redraft.evals.benchmarks.perplexity import SCALINGS

    wanted = {part.strip() for part in text.split(",")}
    if unknown := sorted(wanted - set(SCALINGS)):
        raise typer.BadParameter(
            f"{', '.join(unknown)}: choose among {', '.join(SCALINGS)}.", param_hint="--scaling"
        )
    return [name for name in SCALINGS if name in wanted]


@app.command()
@with_options
def chat(
    limit: opt.Limit = None,
    judged: opt.Judged = CONVERSES,
    plan: opt.PlanName = "medium",
    max_tokens: Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")] = 160,
    kept: opt.Kept = opt.NOTHING_KEPT,
) -> None:
    """Put fifty small requests to a model that converses, and look at what its answers hold."""
    from redraft.evals.benchmarks import conversations
    from redraft.evals.figures.samples import fingerprint, in_turn

    from .eval_tables import show_tables

    tasks = conversations.tasks()
    chosen_model = opt.judged_model(judged, kept.out)
    settings = {
        "benchmark": "chat", "sample": fingerprint(tasks), **opt.about(chosen_model), "plan": plan,
        "max_tokens": max_tokens, "seed": kept.seed,
    }  # fmt: skip
    asked = in_turn(tasks, limit, kept.seed)
    how = opt.Planned(plan).made()
    with (
        opt.loaded(chosen_model, judged.threads, CHAT_CONTEXT) as ready,
        opt.open_run_for(kept.out, settings, kept.resume) as run,
    ):
        with opt.progress_of("conversing") as progress:
            episodes = run.fill(
                asked, lambda task: conversations.ask(ready, task, how, max_tokens), progress
            )
        show_tables(run, list(conversations.tables(episodes, kept.seed)), kept.json_file)


@app.command("compare")
def compare_runs(
    a: Annotated[Path, typer.Argument(metavar="A.jsonl")],
    b: Annotated[Path, typer.Argument(metavar="B.jsonl")],
    json_file: opt.Json = None,
    seed: opt.Seed = 0,
) -> None:
    """Is run B better than run A, on the episodes that both have?"""
    from redraft.evals.figures.compare import compare
    from redraft.evals.figures.runs import read_run

    from .eval_tables import show_comparison

    first, second = read_run(a), read_run(b)
    show_comparison(first, second, *compare(first, second, seed), json_file)
