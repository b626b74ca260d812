"""A predictor whose answers take simulated time, and the event loop whose clock is simulated.

The simulated clock stops while the model computes. Then the answer takes as long as that took, or a
fixed time. Answers of an interrupted run are given again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from redraft.model.errors import InvalidRequest, RedraftError
from redraft.model.records import EditRequest, ModelStatus, Prediction, Predictor, StepCallback
from redraft.model.wire import from_json, request_to_json, to_json

Result = TypeVar("Result")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s. ``time`` is the simulated clock."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self._advance))

    def time(self) -> float:
        return self._now

    def _advance(self, seconds: float) -> None:
        """Advance the clock a little further than asked.

        A timer of this very moment is due only then, and after a simulated year the loop's own
        tolerance of a nanosecond is lost in rounding.
        """
        self._now = math.nextafter(self._now + seconds, math.inf)


class _Jumping(selectors.SelectSelector):
    """Never sleeps through a timer: it tells that the time is over at once."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # no timer: only another thread can go on
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._advance(timeout)
        return ready


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Like ``asyncio.run``, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)


@dataclass(slots=True)
class TimedAnswer:
    """One question put to the model."""

    request: EditRequest
    asked_s: float  # simulated
    prepared_ms: float  # of real time, from the editor's question to the model's
    latency_ms: float = 0.0
    prediction: Prediction | None = None
    error: str = ""
    ended: float = 0.0  # real time, when it was given back

    def as_json(self) -> dict[str, Any]:
        """As it is on disk: lists, no tuples."""
        given = None
        if self.prediction is not None:
            given = json.loads(json.dumps(to_json(self.prediction)))
        return {
            "key": key_of(self.request),
            "latency_ms": self.latency_ms,
            "prediction": given,
            "error": self.error,
        }


@dataclass(slots=True)
class Trace:
    """The questions that one moment raised."""

    began: float  # real time, less what the model took until then
    answers: list[TimedAnswer] = field(default_factory=list)


#: Of whoever asks; tasks inherit it.
TRACE: ContextVar[Trace | None] = ContextVar("TRACE", default=None)


class ReplayPredictor:
    """Implements ``Predictor`` in a simulated loop.

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
        self.failure: RedraftError | None = None  # the model is gone: no replay can go on
        self.blocked_s = 0.0  # of real time, spent by the model

    def remember(self, answers: Iterable[dict[str, Any]]) -> None:
        """Give these again where the same is asked."""
        for each in answers:
            self._known.setdefault(each["key"], deque()).append(each)

    def real_time(self) -> float:
        """Seconds that everything but the model took."""
        return time.perf_counter() - self.blocked_s

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
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
            self.blocked_s += took_s
        answer.latency_ms = 1000 * took_s if self._latency_ms is None else self._latency_ms

    async def status(self) -> ModelStatus:
        return self._status

    async def close(self) -> None:
        pass


def key_of(request: EditRequest) -> str:
    """The same for the same question."""
    body = json.dumps(request_to_json(request), sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:24]


class ThreadedPredictor:
    """A real predictor in an event loop and a thread of its own, asked by blocking calls."""

    def __init__(self, open_: Callable[[], Predictor]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._predictor = self._run(_opened(open_))

    def ask(self, request: EditRequest) -> Prediction:
        return self._run(self._predictor.predict(request))

    def ready(self, poll_s: float = 0.05) -> ModelStatus:
        """Its status, once it can answer.

        Raises:
            WeightsError: it never will.
        """
        return self._run(_ready(self._predictor, poll_s))

    def close(self) -> None:
        self._run(self._predictor.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, what: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()


async def _opened(open_: Callable[[], Predictor]) -> Predictor:
    return open_()


async def _ready(predictor: Predictor, poll_s: float) -> ModelStatus:
    from redraft.model.errors import WeightsError

    while (status := await predictor.status()).state != "ready":
        if status.state == "failed":
            raise WeightsError(f"The model {status.model} cannot be used: {status.message}")
        await asyncio.sleep(poll_s)
    return status
