"""Predictors of a replay: one whose answers take simulated time, and one that blocks.

The simulated clock stops while the model computes. Then the answer takes as long as that took, or a
fixed time. Answers of an interrupted run are given again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from redraft.model.errors import InvalidRequest, RedraftError, WeightsError
from redraft.model.records import EditRequest, ModelStatus, Prediction, Predictor, StepCallback
from redraft.model.wire import from_json, request_to_json, to_json

from .clock import Result


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

    def as_json(self) -> dict[str, Any]:
        """Return the answer as a run keeps it: lists, no tuples."""
        prediction = None
        if self.prediction is not None:
            prediction = json.loads(json.dumps(to_json(self.prediction)))
        return {
            "key": key_of(self.request),
            "latency_ms": self.latency_ms,
            "prediction": prediction,
            "error": self.error,
        }


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
        self._known: dict[str, deque[dict[str, Any]]] = {}
        self._blocked_s = 0.0  # real time that the model took
        self.failure: RedraftError | None = None  # the model is gone: no replay can continue

    def remember(self, answers: Iterable[dict[str, Any]]) -> None:
        """Give these answers again where the same is asked."""
        for each in answers:
            self._known.setdefault(each["key"], deque()).append(each)

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
        known = self._known.get(key_of(answer.request))
        if known:
            earlier = known.popleft()
            answer.latency_ms, answer.error = earlier["latency_ms"], earlier["error"]
            if earlier["prediction"] is not None:
                answer.prediction = from_json(earlier["prediction"], Prediction)
            return
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


def key_of(request: EditRequest) -> str:
    """Return a hash that equal requests share."""
    body = json.dumps(request_to_json(request), sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:24]


class ThreadedPredictor:
    """A predictor in a separate event loop and thread, asked by blocking calls."""

    def __init__(self, open_: Callable[[], Predictor]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def opened() -> Predictor:
            return open_()

        self._predictor = self._run(opened())

    def ask(self, request: EditRequest) -> Prediction:
        """Return the answer to a request."""
        return self._run(self._predictor.predict(request))

    def ready(self, poll_s: float = 0.05) -> ModelStatus:
        """Return the status once the model can answer.

        Raises:
            WeightsError: it never will.
        """

        async def ready() -> ModelStatus:
            while (status := await self._predictor.status()).state != "ready":
                if status.state == "failed":
                    said = f"The model {status.model} cannot be used: {status.message}"
                    raise WeightsError(said)
                await asyncio.sleep(poll_s)
            return status

        return self._run(ready())

    def close(self) -> None:
        """Close the predictor and its thread."""
        self._run(self._predictor.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, main: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(main, self._loop).result()
