"""Walks played into one run, which can be continued."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.lsp.editor_settings import LspSettings

from ..predictors import ReadyPredictor
from ..replay.simulated_predictor import ReplayPredictor
from ..run import OnDone, Run, quiet
from ..spec import RunSpec
from .walk_player import play
from .walk_scores import example_of
from .walks import AskedWalk


def play_all(
    walks: Sequence[AskedWalk],
    ready: ReadyPredictor,
    spec: RunSpec,
    run: Run,
    progress: OnDone = quiet,
    *,
    asks_all: bool = False,
) -> None:
    """Play what ``run`` lacks of the walks into it.

    Args:
        asks_all: ask about every place and show nothing.

    Raises:
        RedraftError: the model is gone; what is done stays in the run.
    """
    settings = LspSettings(
        eagerness=spec.eagerness, quality=spec.quality, context_tokens=spec.context_tokens
    )
    total, done = sum(len(one.after) for one in walks), 0
    for one in walks:
        names = [f"{one.walk.id}:{made}" for made in one.after]
        if run.find_missing(names):
            predictor = ReplayPredictor(ready.ask, ready.status, spec.latency_ms)
            for moment in play(one, predictor, settings, asks_all=asks_all):
                if moment.id not in run.examples:
                    run.add(example_of(moment))
        done += len(names)
        progress(done, total)
