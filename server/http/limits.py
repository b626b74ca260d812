"""The engine behind the limits of ``redraft serve`` and its metrics."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine

from redraft.model.errors import InvalidRequest, Overloaded
from redraft.model.records import (
    CanvasState,
    EditRequest,
    ModelStatus,
    Prediction,
    Predictor,
    StepCallback,
)

from ..settings import Settings
from .prometheus import Metrics


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


class Limits:
    """A ``Predictor`` that bounds requests, shares equal ones and counts them.

    The queue is the engine's.
    """

    def __init__(self, engine: Predictor, settings: Settings, metrics: Metrics) -> None:
        self._engine, self._settings, self._metrics = engine, settings, metrics
        self._shared: dict[tuple[EditRequest, bool], Shared] = {}

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        """Predict within the server's limits.

        Identical requests at the same time share one computation, unless they draw at random
        without a seed: some clients send each question three times.

        Raises:
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
            self._metrics.shared.inc()
        try:
            return await shared.join(on_step)
        finally:
            if not shared.waiting and self._shared.get(key) is shared:
                del self._shared[key]
                await shared.stop()

    async def status(self) -> ModelStatus:
        return await self._engine.status()

    async def close(self) -> None:
        await self._engine.close()

    async def _compute(self, request: EditRequest, on_step: StepCallback | None) -> Prediction:
        try:
            with self._metrics.in_flight.track_inprogress():
                prediction = await self._engine.predict(request, on_step)
        except Overloaded:
            self._metrics.refused.inc()
            raise
        if not request.read_ahead:
            self._metrics.observe(request.task, prediction)
        return prediction

    def _within_limits(self, request: EditRequest) -> EditRequest:
        if request.candidates > self._settings.max_candidates:
            raise InvalidRequest(
                f"{request.candidates} candidates were asked for; this server gives at most "
                f"{self._settings.max_candidates}. Ask for fewer, or raise 'max_candidates'."
            )
        # Clamped, not refused: several clients ask for thousands whatever they need, and an
        # answer that was cut says so in its finish reason.
        tokens = min(request.max_tokens, self._settings.max_tokens)
        return dataclasses.replace(request, max_tokens=tokens)
