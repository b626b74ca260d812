"""A scripted ``Predictor`` for tests of the HTTP service and the engine process.

Knows no model: the answer is ``pieces``, resolved one piece a step from the right.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web
from redraft.model.errors import InvalidRequest, ModelNotReady
from redraft.model.records import (
    Candidate,
    CanvasState,
    Confidence,
    EditRequest,
    ModelStatus,
    Prediction,
    Stats,
    StepCallback,
)
from redraft.server.app import create_app
from redraft.server.http.listen import listening
from redraft.server.settings import Settings

READY = ModelStatus("ready", "fake-1m int8", "CPU", None, "", 4096)


@dataclass
class ScriptedPredictor:
    pieces: tuple[str, ...] = ("return", " a", " +", " b")
    finish: str = "end"
    state: ModelStatus = READY
    error: Exception | None = None
    hold: bool = False  # wait for ever after the first step
    requests: list[EditRequest] = field(default_factory=list)
    running: int = 0
    cancelled: int = 0
    closed: bool = False

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        self.running += 1
        try:
            # From a thread of its own, as the engine does it.
            await asyncio.to_thread(self._steps, on_step)
            if self.hold:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return self._prediction(request)

    def _steps(self, on_step: StepCallback | None) -> None:
        for step in range(1, len(self.pieces)):
            shown = len(self.pieces) - step
            state = CanvasState(step, tuple([None] * shown) + self.pieces[shown:])
            if on_step is not None:
                on_step(state)

    def _prediction(self, request: EditRequest) -> Prediction:
        text = "".join(self.pieces)
        candidate = Candidate(
            start=request.cursor,
            end=request.cursor,
            text=text,
            confidence=Confidence(0.9, 0.5, 0.8),
            tokens=len(self.pieces) + 1,
            steps=len(self.pieces),
            finish=self.finish,  # type: ignore[arg-type]
        )
        candidates = (candidate,) * request.candidates if self.pieces else ()
        stats = Stats(
            prompt_tokens=40,
            reused_tokens=30,
            computed_tokens=10,
            canvas_tokens=len(self.pieces) + 1,
            denoise_steps=len(self.pieces),
            prefill_ms=12.0,
            denoise_ms=20.0,
            total_ms=33.0,
        )
        reason = "" if candidates else "nothing to add"
        return Prediction("p-1", "fake-1m int8", candidates, reason, stats)

    async def status(self) -> ModelStatus:
        return self.state

    async def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def served(
    predictor: ScriptedPredictor, settings: Settings | None = None
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """A live server on a port of its own, its URL, and a client for it."""
    settings = settings or Settings(shutdown_s=0.1)
    app: web.Application = create_app(predictor, settings)
    async with (
        listening(app, host="127.0.0.1", port=0, shutdown_s=settings.shutdown_s) as url,
        aiohttp.ClientSession(base_url=url) as client,
    ):
        yield url, client


async def eventually(condition: object, timeout_s: float = 20.0) -> None:
    """Waits until ``condition()`` is true; fails after ``timeout_s``."""
    assert callable(condition)
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


# --- engines for the engine process, named on its command line ----------------------------------


class ProcessPredictor(ScriptedPredictor):
    """Answers with its process id; what the text says can hold or kill it."""

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        notes = os.environ.get("FAKE_ENGINE_NOTES")
        if "<hold>" in request.text:
            Path(notes or os.devnull).write_text(str(os.getpid()))
            await asyncio.Event().wait()
        if "<hold once>" in request.text and notes and not Path(notes).exists():
            Path(notes).write_text(str(os.getpid()))
            await asyncio.Event().wait()
        if "<crash>" in request.text:
            os.kill(os.getpid(), 9) if hasattr(os, "kill") else os._exit(9)
        if "<refuse>" in request.text:
            raise InvalidRequest("'text' is refused by the fake engine.")
        self.pieces = (str(os.getpid()),)
        return await super().predict(request, on_step)


def process_engine(settings: Settings) -> ProcessPredictor:
    return ProcessPredictor()


class LoadingPredictor(ProcessPredictor):
    """Is ready some time after its start."""

    def __init__(self) -> None:
        super().__init__()
        self.ready_s = time.monotonic() + float(os.environ["FAKE_ENGINE_LOADS_S"])

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        if time.monotonic() < self.ready_s:
            raise ModelNotReady("The model fake is loading. Try again in a moment.")
        return await super().predict(request, on_step)

    async def status(self) -> ModelStatus:
        return READY if time.monotonic() >= self.ready_s else ModelStatus("loading", "fake-1m")


def loading_engine(settings: Settings) -> LoadingPredictor:
    return LoadingPredictor()


def broken_engine(settings: Settings) -> ProcessPredictor:
    raise RuntimeError("the fake engine cannot start")


def hanging_engine(settings: Settings) -> ProcessPredictor:
    threading.Event().wait()
    raise AssertionError("unreachable")
