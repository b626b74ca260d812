"""Stand-ins for the parts of Redraft that are slow or need weights. Used by tests alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from redraft.model.records import (
    Candidate,
    CanvasState,
    Confidence,
    EditRequest,
    ModelStatus,
    Prediction,
    StepCallback,
)

READY = ModelStatus("ready", model="fake fp32", provider="CPU", context_tokens=2048)

Item = TypeVar("Item")
Answer = str | Prediction | BaseException | Callable[[EditRequest], "Answer"]


def infill(request: EditRequest, *texts: str, confidence: float = 0.9) -> Prediction:
    """A prediction that offers ``texts`` at the cursor, best first."""
    sure = Confidence(mean=confidence, minimum=confidence, first=confidence)
    at = request.cursor
    candidates = tuple(Candidate(at, at, text, sure, len(text), 2, "end") for text in texts if text)
    reason = "" if candidates else "nothing to add"
    return Prediction("fake-1", "fake fp32", candidates, reason)


def rewrite(request: EditRequest, old: str, new: str, confidence: float = 0.9) -> Prediction:
    """A prediction that the first ``old`` of the text becomes ``new``; no edit where there is none,
    or where a next edit may not touch it."""
    sure = Confidence(mean=confidence, minimum=confidence, first=confidence)
    at = request.text.find(old)
    line = request.text.count("\n", 0, max(at, 0))
    inside = request.region is None or request.region[0] <= line < request.region[1]
    if at < 0 or not inside or old == new:
        return Prediction("fake-1", "fake fp32", (), "The model would change nothing here.")
    made = Candidate(at, at + len(old), new, sure, len(new), 2, "end")
    return Prediction("fake-1", "fake fp32", (made,))


@dataclass
class FakePredictor:
    """Gives scripted answers, the last one again and again, and records what it was asked.

    An answer is a text, a whole prediction, an error to raise, or a function of the request.
    """

    answers: list[Answer] = field(default_factory=list)
    delay_s: float = 0.0  # before each answer
    statuses: list[ModelStatus] = field(default_factory=lambda: [READY])  # the last one repeats
    status_error: Exception | None = None
    requests: list[EditRequest] = field(default_factory=list)
    cancelled: list[EditRequest] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    closed: bool = False

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        finally:
            self.running -= 1
        prediction = self._resolve(request, _next(self.answers, ""))
        if on_step is not None and prediction.candidates:
            on_step(CanvasState(1, (prediction.candidates[0].text,)))
        return prediction

    async def status(self) -> ModelStatus:
        if self.status_error is not None:
            raise self.status_error
        return _next(self.statuses, READY)

    async def close(self) -> None:
        self.closed = True

    def _resolve(self, request: EditRequest, answer: Answer) -> Prediction:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return infill(request, answer)
        if isinstance(answer, Prediction):
            return replace(answer)
        return self._resolve(request, answer(request))


def _next(scripted: list[Item], otherwise: Item) -> Item:
    if not scripted:
        return otherwise
    return scripted.pop(0) if len(scripted) > 1 else scripted[0]
