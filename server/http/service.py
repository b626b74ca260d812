"""Limits, a bounded queue and metrics between the routes and the predictor."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress

from redraft.model.errors import InvalidRequest, Overloaded
from redraft.model.records import (
    CanvasState,
    EditRequest,
    ModelStatus,
    Prediction,
    Predictor,
    StepCallback,
)
from redraft.model.wire import check_request

from ..settings import Settings
from .prometheus import Metrics

#: Bounds of the time after which a refused client may retry, seconds.
MIN_RETRY_S, MAX_RETRY_S = 1.0, 10.0


class Shared:
    """A computation that several identical requests wait for."""

    def __init__(
        self, compute: Callable[[StepCallback | None], Coroutine[None, None, Prediction]]
    ) -> None:
        self.waiting = 0  # number of requests
        self._listeners: list[StepCallback] = []
        self._compute = compute
        self._task: asyncio.Task[Prediction] | None = None

    async def join(self, on_step: StepCallback | None) -> Prediction:
        """Return the prediction. Cancelling one call does not cancel it for the others."""
        self.waiting += 1
        if on_step is not None:
            self._listeners.append(on_step)
        try:
            if self._task is None:
                show = None if on_step is None else self._show
                self._task = asyncio.create_task(self._compute(show))
                self._task.add_done_callback(_retrieve_error)
            await asyncio.wait((self._task,))
            return self._task.result()
        finally:
            self.waiting -= 1
            if on_step is not None:
                self._listeners.remove(on_step)

    def _show(self, state: CanvasState) -> None:
        for listener in tuple(self._listeners):  # one may be removed meanwhile
            listener(state)

    async def stop(self) -> None:
        """Cancel the computation if it still runs."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait((self._task,))


def _retrieve_error(task: asyncio.Task[Prediction]) -> None:
    """Retrieve the error of a computation, which asyncio would log where every client has left."""
    if not task.cancelled():
        task.exception()


class Service:
    """The predictor behind its queue, shared by all routes."""

    def __init__(self, predictor: Predictor, settings: Settings, metrics: Metrics) -> None:
        self._predictor = predictor
        self.settings = settings
        self.metrics = metrics
        # Conversations run on another model and take much longer. What is read ahead waits for all.
        self._under_way = {"edits": 0, "chat": 0, "ahead": 0}  # requests computed or waiting
        self._last_s = 0.0  # the time of the last computation
        self._shared: dict[tuple[EditRequest, bool], Shared] = {}

    async def status(self) -> ModelStatus:
        return await self._predictor.status()

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """Predict within the server's limits.

        Identical requests at the same time share one computation, unless they draw at random
        without a seed: some clients send each question three times.

        Raises:
            Overloaded: the queue is full; says when to retry.
            InvalidRequest: more candidates than the server allows.
        """
        request = self._within_limits(request)
        if request.temperature > 0 and request.seed is None:
            return await self._compute(request, on_step)
        key = request, on_step is not None  # intermediate states cost time, so only on request
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = Shared(lambda show: self._compute(request, show))
        else:
            self.metrics.shared.inc()
        try:
            return await shared.join(on_step)
        finally:
            if not shared.waiting and self._shared.get(key) is shared:
                del self._shared[key]
                await shared.stop()

    async def _compute(self, request: EditRequest, on_step: StepCallback | None) -> Prediction:
        model = "edits" if request.conversation is None else "chat"
        model = "ahead" if request.read_ahead else model
        self.check_room(model)
        self._under_way[model] += 1
        try:
            with self._counted(), self.metrics.in_flight.track_inprogress():
                prediction = await self._predictor.predict(request, on_step)
        finally:
            self._under_way[model] -= 1
        if request.read_ahead:
            return prediction
        self.metrics.observe(request.task, prediction)
        self._last_s = (prediction.stats.total_ms - prediction.stats.queue_ms) / 1_000
        return prediction

    def check_room(self, model: str = "edits") -> None:
        """Refuse a request before its body is parsed, if the queue is full.

        The engine's own queue decides which accepted requests have waited too long.

        Raises:
            Overloaded: says when to retry.
        """
        under_way = self._under_way[model]
        if under_way < self.settings.queue_length:
            return
        with self._counted():
            raise Overloaded(
                f"{under_way} requests are computed or waiting already, and no more can be "
                "answered in time. Try again in a moment.",
                retry_after_s=min(max(self._last_s * under_way, MIN_RETRY_S), MAX_RETRY_S),
            )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Overloaded:
            self.metrics.refused.inc()
            raise

    async def follow(self, request: EditRequest) -> AsyncGenerator[CanvasState | Prediction, None]:
        """Yield each intermediate state, then the prediction. Closing it stops the computation."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[CanvasState | Prediction | BaseException] = asyncio.Queue()

        def pass_on(state: CanvasState) -> None:
            # The engine may call from another thread.
            loop.call_soon_threadsafe(arrived.put_nowait, state)

        def finish(task: asyncio.Task[Prediction]) -> None:
            end = asyncio.CancelledError() if task.cancelled() else task.exception()
            # Through the loop as well, so that it arrives after the last state.
            loop.call_soon(arrived.put_nowait, end or task.result())

        computing = asyncio.create_task(self.predict(request, pass_on))
        computing.add_done_callback(finish)
        try:
            while True:
                event = await arrived.get()
                if isinstance(event, BaseException):  # raised in the caller
                    raise event
                yield event
                if isinstance(event, Prediction):
                    return
        finally:
            computing.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await computing

    def _within_limits(self, request: EditRequest) -> EditRequest:
        settings = self.settings
        if request.candidates > settings.max_candidates:
            raise InvalidRequest(
                f"{request.candidates} candidates were asked for; this server gives at most "
                f"{settings.max_candidates}. Ask for fewer, or raise 'max_candidates'."
            )
        # Clamped, not refused: several clients ask for thousands whatever they need, and an
        # answer that was cut says so in its finish reason.
        tokens = min(request.max_tokens, settings.max_tokens)
        request = dataclasses.replace(request, max_tokens=tokens)
        check_request(request)
        return request
