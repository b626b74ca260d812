"""``redraft eval infill``: how well a model fills gaps.

Translates options into calls of ``redraft.evals`` and shows what comes back; measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from redraft.model.errors import SettingsError
from redraft.model.records import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

from . import eval_options as opt
from .options import with_options

if TYPE_CHECKING:
    from redraft.evals.benchmarks.infill import Writer
    from redraft.evals.benchmarks.infill_gaps import Problem
    from redraft.evals.benchmarks.judged_model import JudgedModel
    from redraft.model.decode.completion import Plan

#: Holds every problem of HumanEval-Infilling whole (577 tokens at most, 261 of them suffix).
WHOLE = 2_048


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
    from redraft.evals.benchmarks.infill import InfillAsking, solve, tables
    from redraft.evals.figures.samples import in_turn
    from redraft.evals.sandbox.sandbox import protection

    from .console import out
    from .eval_tables import show_tables

    problems, source = _gaps(human_eval, commits, files)
    if human_eval is not None:
        out.print(protection(), markup=False, style="dim")
    plan = planned.made()
    context = context or (WHOLE if human_eval else opt.SERVED)
    chosen_model = opt.judged_model(judged, kept.out)
    with _writing(baseline, chosen_model, judged.threads, context, plan) as writer:
        asked = in_turn(problems, limit, kept.seed)
        _warn_of_long(asked, writer, max_tokens)
        settings = {
            "benchmark": "infill", **source, **opt.about(chosen_model, baseline),
            **planned.about(), "context": context,
            "max_tokens": max_tokens, "seed": kept.seed,
        }  # fmt: skip
        with opt.open_run_for(kept.out, settings, kept.resume) as run:
            asking = InfillAsking(plan, max_tokens, kept.seed)
            with opt.progress_of("filling gaps") as progress:
                episodes = solve(writer, asked, asking, run, jobs, progress)
            show_tables(run, list(tables(episodes, kept.seed)), kept.json_file)


@contextmanager
def _writing(
    baseline: str | None, chosen_model: JudgedModel, threads: int | None, context: int, plan: Plan
) -> Iterator[Writer]:
    """Who fills the gaps, ready; of a model that a rule stands in for, the tokenizer alone."""
    from redraft.evals.benchmarks.baselines import NONE
    from redraft.evals.benchmarks.infill import by_model, by_rule
    from redraft.model.prompts.tokenizer import Tokenizer

    if baseline is not None:
        tokenizer = Tokenizer.from_file(chosen_model.folder / "tokenizer.json")
        yield by_rule(opt.rule_of(baseline, (NONE,)), tokenizer)
        return
    with opt.loaded(chosen_model, threads, context) as model:
        opt.check_plan_of(plan, model)
        yield by_model(model)


def _warn_of_long(asked: Sequence[Problem], writer: Writer, most: int) -> None:
    long = sum(len(writer.tokenizer.encode(each.middle)) > most for each in asked)
    if long:
        opt.warn(
            f"{long} of {len(asked)} true answers have more than {most} tokens and cannot be "
            "written whole: see --max-tokens."
        )


def _gaps(
    human_eval: Path | None, commits: Path | None, files: list[Path] | None
) -> tuple[list[Problem], dict[str, str]]:
    from redraft.evals.benchmarks.infill_gaps import gaps_of, whole_files
    from redraft.evals.benchmarks.infill_gaps import human_eval as read
    from redraft.evals.benchmarks.perplexity import sources
    from redraft.evals.figures.samples import fingerprint, read_changes

    if [human_eval, commits, files or None].count(None) != 2:
        raise SettingsError(
            "Name what to fill: --human-eval FILE, --commits FILE or --files PATH, one of them."
        )
    if human_eval is not None:
        problems, name = read(human_eval), human_eval.name
    elif commits is not None:
        problems = [gap for change in read_changes(commits) for gap in gaps_of(change)]
        name = commits.name
    else:
        changes = (each for source in sources(files or ()) for each in whole_files(*source))
        problems = [gap for change in changes for gap in gaps_of(change)]
        name = " ".join(path.name for path in files or ())
    if not problems:
        raise SettingsError(f"{name} holds no gap to fill. Name a folder or file of code.")
    return problems, {"source": name, "sample": fingerprint(problems)}
