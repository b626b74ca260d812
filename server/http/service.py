"""What stands between every wire format and the predictor: limits, a bounded queue, numbers.

Knows nothing of HTTP and of any wire format.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from redraft.model.errors import InvalidRequest, Overloaded, RedraftError
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

#: Seconds after which a refused client may come back, at least and at most.
LEAST_AWAY_S, MOST_AWAY_S = 1.0, 10.0


class Shared:
    """One computation and those who wait for it."""

    def __init__(
        self, compute: Callable[[StepCallback | None], Coroutine[None, None, Prediction]]
    ) -> None:
        self.wanted = 0  # by so many
        self._listeners: list[StepCallback] = []
        self._compute = compute
        self._task: asyncio.Task[Prediction] | None = None

    async def join(self, on_step: StepCallback | None) -> Prediction:
        """The prediction. Cancelling this leaves the others theirs."""
        self.wanted += 1
        if on_step is not None:
            self._listeners.append(on_step)
        try:
            if self._task is None:
                show = None if on_step is None else self._show
                self._task = asyncio.create_task(self._compute(show))
            await asyncio.wait((self._task,))
            return self._task.result()
        finally:
            self.wanted -= 1
            if on_step is not None:
                self._listeners.remove(on_step)

    def _show(self, state: CanvasState) -> None:
        for listener in tuple(self._listeners):  # one may leave meanwhile
            listener(state)

    async def stop(self) -> None:
        """Ends the computation if it still runs."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError, RedraftError):
            await self._task


class HeldBody:
    """What the body of one request takes of the memory for all of them, bytes."""

    def __init__(self, service: Service) -> None:
        self.size = 0
        self._service = service

    def grow(self, by: int) -> None:
        """
        Raises:
            Overloaded: all bodies together would take more than the limit.
        """
        self._service.hold(by)
        self.size += by


#: Of the request being answered.
HELD: ContextVar[HeldBody | None] = ContextVar("held", default=None)


class Service:
    """One predictor behind one queue; shared by all wires of an application."""

    def __init__(self, predictor: Predictor, settings: Settings, metrics: Metrics) -> None:
        self._predictor = predictor
        self.settings = settings
        self.metrics = metrics
        # Conversations have another model and take longer by far.
        self._under_way = {"edits": 0, "chat": 0}  # requests computed or waiting
        self._last_s = 0.0  # the time of the last computation
        self._body_bytes = 0  # of requests under way
        self._shared: dict[tuple[EditRequest, bool], Shared] = {}

    async def status(self) -> ModelStatus:
        return await self._predictor.status()

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """The prediction, within the server's limits; computed once for all who ask the very same
        at once, if it would come out the same: some clients send each question three times.

        Raises:
            Overloaded: the queue is full; carries when to come back.
            InvalidRequest: more candidates than the server allows.
        """
        request = self._within_limits(request)
        if request.temperature > 0 and request.seed is None:
            return await self._compute(request, on_step)
        key = request, on_step is not None  # canvas states cost something: only for those who look
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = Shared(lambda show: self._compute(request, show))
        else:
            self.metrics.shared.inc()
        try:
            return await shared.join(on_step)
        finally:
            if not shared.wanted and self._shared.get(key) is shared:
                del self._shared[key]
                await shared.stop()

    async def _compute(self, request: EditRequest, on_step: StepCallback | None) -> Prediction:
        model = "edits" if request.conversation is None else "chat"
        self.check_room(model)
        self._under_way[model] += 1
        try:
            with self._counted(), self.metrics.in_flight.track_inprogress():
                prediction = await self._predictor.predict(request, on_step)
        finally:
            self._under_way[model] -= 1
        self.metrics.observe(request.task, prediction)
        self._last_s = (prediction.stats.total_ms - prediction.stats.queue_ms) / 1_000
        return prediction

    def check_room(self, model: str = "edits") -> None:
        """Refuse a request before its body is read, if as many are under way as may be.

        The engine's queue decides which of those under way have waited too long.

        Raises:
            Overloaded: carries when to come back.
        """
        under_way = self._under_way[model]
        if under_way < self.settings.queue_length:
            return
        with self._counted():
            raise Overloaded(
                f"{under_way} requests are computed or waiting already, and no more can be "
                "answered in time. Try again in a moment.",
                retry_after_s=min(max(self._last_s * under_way, LEAST_AWAY_S), MOST_AWAY_S),
            )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Overloaded:
            self.metrics.refused.inc()
            raise

    async def follow(self, request: EditRequest) -> AsyncGenerator[CanvasState | Prediction, None]:
        """Each canvas state as it comes, then the prediction. Closing it stops the computation."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[CanvasState | Prediction | BaseException] = asyncio.Queue()

        def pass_on(state: CanvasState) -> None:
            # The engine may call from its own thread.
            loop.call_soon_threadsafe(arrived.put_nowait, state)

        def finish(task: asyncio.Task[Prediction]) -> None:
            end = asyncio.CancelledError() if task.cancelled() else task.exception()
            # Through the loop as well, so that it comes after the last state.
            loop.call_soon(arrived.put_nowait, end or task.result())

        computing = asyncio.create_task(self.predict(request, pass_on))
        computing.add_done_callback(finish)
        try:
            while True:
                event = await arrived.get()
                if isinstance(event, BaseException):  # raised where the caller waits
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

    @contextmanager
    def body_held(self, size: int) -> Iterator[None]:
        """Memory for the body of a request until that is answered.

        Raises:
            Overloaded: all bodies together would take more than the limit.
        """
        held = HeldBody(self)
        before = HELD.set(held)
        try:
            held.grow(size)
            yield
        finally:
            HELD.reset(before)
            self._body_bytes -= held.size

    def hold(self, size: int) -> None:
        """
        Raises:
            Overloaded: as :meth:`body_held`.
        """
        limit = self.settings.max_bodies_bytes
        if self._body_bytes and self._body_bytes + size > limit:
            self.metrics.refused.inc()
            raise Overloaded(
                f"The bodies of the requests under way take {self._body_bytes} bytes, and the "
                f"limit of all is {limit}. Try again in a moment."
            )
        self._body_bytes += size
