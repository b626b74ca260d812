"""Who predicts in a replay: a model in this process, one on a server, or a baseline.

A :class:`PredictorChoice` says which, in words that another process or machine understands. Knows
nothing of recordings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from redraft.model.errors import RedraftError, SettingsError
from redraft.model.predict import Model, predict
from redraft.model.records import EditRequest, ModelStatus, Prediction
from redraft.model.remote import RemotePredictor
from redraft.model.weights.registry import AUTO
from redraft.model.wire import check_request

from ..benchmarks.baselines import POLICIES, Policy
from ..benchmarks.judged_model import SHIPPED, JudgedModel, OnProgress, find_model, load
from .timed_predictor import ThreadedPredictor


@dataclass(frozen=True, slots=True)
class PredictorChoice:
    """Of a model, the same that other benchmarks say."""

    model: str = AUTO  # of the registry, or a policy
    adapter: str = SHIPPED
    weights: Path | None = None
    variant: str | None = None
    provider: str | None = None
    threads: int | None = None
    context_tokens: int = 1_024
    keep: Path | None = None  # where folders made of adapters are kept
    server: str = ""  # "http://host:port": asked instead of all that
    key: str | None = None  # the server's

    @property
    def is_policy(self) -> bool:
        return self.model in POLICIES

    def judged_model(self, report: OnProgress) -> JudgedModel:
        """The model's folder, fetched or made where it is missing."""
        return find_model(
            self.adapter,
            self.weights,
            self.variant,
            self.provider,
            self.keep,
            report,
            self.model,
        )


@dataclass(frozen=True, slots=True)
class ReadyPredictor:
    """Whoever predicts, ready."""

    ask: Callable[[EditRequest], Prediction]  # blocks
    status: ModelStatus
    close: Callable[[], None]


def open_predictor(who: PredictorChoice) -> ReadyPredictor:
    """Load or reach whoever is to predict.

    Raises:
        RedraftError: the model does not load, or the server cannot be reached.
    """
    if who.server:
        return _remote(who)
    if who.is_policy:
        policy = Policy(who.model)
        return ReadyPredictor(policy.ask, policy.status(), lambda: None)
    chosen_model = who.judged_model(lambda progress: None)
    model = load(chosen_model, who.context_tokens, who.threads)
    return ready_with(model, who.context_tokens)


def ready_with(model: Model, context_tokens: int) -> ReadyPredictor:
    """A model in memory."""

    def ask(request: EditRequest) -> Prediction:
        check_request(request)
        return predict(model, request, time.perf_counter)

    provider = model.backend.provider
    status = ModelStatus("ready", model.label, provider, context_tokens=context_tokens)
    return ReadyPredictor(ask, status, model.backend.close)


def _remote(who: PredictorChoice) -> ReadyPredictor:
    there = ThreadedPredictor(lambda: RemotePredictor(who.server, who.key))
    try:
        status = there.ready()
    except RedraftError:
        there.close()
        raise
    return ReadyPredictor(there.ask, status, there.close)


def check_who(who: PredictorChoice) -> None:
    """Refuse what cannot be meant.

    Raises:
        SettingsError: a baseline on a server, or weights for one.
    """
    elsewhere = bool(who.server) and (who.is_policy or who.weights or who.adapter != SHIPPED)
    idle = who.is_policy and (who.weights or who.adapter != SHIPPED)
    if elsewhere or idle:
        raise SettingsError(
            f"The predictor {who.server or who.model!r} has no adapter or weights to choose; leave "
            "out --adapter and --weights, and name one of --model and --server."
        )
