"""``redraft eval chat``: whether a model can still converse, and stops by itself.

Translates options into calls of ``redraft.evals`` and shows what comes back; measures nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from . import eval_options as opt
from .options import with_options

CONTEXT = 2_048  # tokens; the requests are short
CONVERSES = opt.Judged("qwen2.5-coder-0.5b")


def register(app: typer.Typer) -> None:
    """The command under ``redraft eval``."""
    app.command()(with_options(chat))


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
        opt.loaded(chosen_model, judged.threads, CONTEXT) as ready,
        opt.open_run_for(kept.out, settings, kept.resume) as run,
    ):
        with opt.progress_of("conversing") as progress:
            episodes = run.fill(
                asked, lambda task: conversations.ask(ready, task, how, max_tokens), progress
            )
        show_tables(run, list(conversations.tables(episodes, kept.seed)), kept.json_file)
