"""Predictor of a replay, whose answers take simulated time.

The simulated clock stops while the model computes. Then the answer takes as long as that took, or a
fixed time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from redraft.model.errors import InvalidRequest, RedraftError
from redraft.model.records import EditRequest, ModelStatus, Prediction, Predictor, StepCallback


@dataclass(slots=True)
class TimedAnswer:
    """A request to the model, and its answer."""

    request: EditRequest
    asked_s: float  # simulated
    prepared_ms: float  # real time, from the editor's question to the model's
    latency_ms: float = 0.0
    prediction: Prediction | None = None
    error: str = ""
    ended: float = 0.0  # real time at which it was returned; 0: it was given up


@dataclass(slots=True)
class Trace:
    """The requests that one question of the editor raised."""

    began: float  # real time, less what the model took until then
    answers: list[TimedAnswer] = field(default_factory=list)


#: The trace of the current task, and of the tasks that it starts.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)


class ReplayPredictor(Predictor):
    """Predictor in a simulated loop.

    Args:
        ask: the model; blocks until it has answered.
        latency_ms: of every answer; None: as long as the model really took.
    """

    def __init__(
        self,
        ask: Callable[[EditRequest], Prediction],
        status: ModelStatus,
        latency_ms: float | None = None,
    ) -> None:
        self._ask = ask
        self._status = status
        self._latency_ms = latency_ms
        self._blocked_s = 0.0  # real time that the model took
        self.failure: RedraftError | None = None  # the model is gone: no replay can continue

    def real_time(self) -> float:
        """Return a clock's seconds without those that the model took."""
        return time.perf_counter() - self._blocked_s

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """Return the model's answer after its latency; no step is reported."""
        del on_step
        trace = TRACE.get()
        prepared_ms = 0.0 if trace is None else 1e3 * (self.real_time() - trace.began)
        answer = TimedAnswer(request, asyncio.get_running_loop().time(), prepared_ms)
        if trace is not None:
            trace.answers.append(answer)
        if self._latency_ms is None:
            self._compute(answer)
            await asyncio.sleep(answer.latency_ms / 1000)
        else:  # what is given up meanwhile need not be computed
            await asyncio.sleep(self._latency_ms / 1000)
            self._compute(answer)
        answer.ended = self.real_time()
        if answer.prediction is None:
            raise InvalidRequest(answer.error)
        return answer.prediction

    def _compute(self, answer: TimedAnswer) -> None:
        began = time.perf_counter()
        try:
            answer.prediction = self._ask(answer.request)
        except InvalidRequest as error:
            answer.error = str(error)
        except RedraftError as error:
            self.failure = error
            raise
        finally:
            took_s = time.perf_counter() - began
            self._blocked_s += took_s
        answer.latency_ms = 1000 * took_s if self._latency_ms is None else self._latency_ms

    async def status(self) -> ModelStatus:
        """Return the model's status."""
        return self._status

    async def close(self) -> None:
        """Leave the model open for other recordings."""
