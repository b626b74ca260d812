"""``redraft eval chat``: whether a model can still converse, and stops by itself.

Translates options into calls of ``redraft.evals`` and shows what comes back; measures nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .eval_options import (
    Adapter,
    Json,
    Limit,
    ModelName,
    Out,
    PlanName,
    Provider,
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

CONTEXT = 2_048  # tokens; the requests are short


def register(app: typer.Typer) -> None:
    """The command under ``redraft eval``."""
    app.command()(chat)


def chat(
    limit: Limit = None,
    model: ModelName = "qwen2.5-coder-0.5b",
    adapter: Adapter = "shipped",
    weights: Weights = None,
    variant: Variant = None,
    provider: Provider = None,
    threads: Threads = None,
    plan: PlanName = "medium",
    max_tokens: Annotated[int, typer.Option(min=1, max=1024, help="Of an answer.")] = 160,
    out: Out = None,
    resume: Resume = False,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Put fifty small requests to a model that converses, and look at what its answers hold."""
    from redraft.evals.benchmarks import conversations
    from redraft.evals.figures.samples import fingerprint, in_turn
    from redraft.evals.sandbox.sandbox import run_program

    from .eval_tables import show_tables

    tasks = conversations.tasks()
    subject = subject_of(model, adapter, weights, variant, provider, out)
    settings = {
        "benchmark": "chat", "sample": fingerprint(tasks), **about(subject), "plan": plan,
        "max_tokens": max_tokens, "seed": seed,
    }  # fmt: skip
    asked = in_turn(tasks, limit, seed)
    with (
        loaded(subject, threads, CONTEXT) as judged,
        open_run_for(out, settings, resume) as run,
    ):
        with progress_of("conversing") as progress:
            episodes = conversations.converse(
                judged, asked, plan_of(plan, None, None), max_tokens, run_program, run, progress
            )
        show_tables(run, list(conversations.tables(episodes, seed)), json_file)
