"""Engines for the engine process, as its command line names them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

from redraft.model.engine import Engine
from redraft.model.errors import InvalidRequest, ModelNotReady
from redraft.model.records import EditRequest, ModelStatus, Prediction, StepCallback
from redraft.server.settings import Settings

from support.editors.predictor import READY, ScriptedPredictor
from support.models.engines_of import SlowBackend, engine_of


async def its_process(request: EditRequest) -> str:
    """Return the id of the process. Marks in the text make it wait, freeze or crash."""
    notes = os.environ.get("FAKE_ENGINE_NOTES")
    once = "<hold once>" in request.text and notes and not Path(notes).exists()
    if "<hold>" in request.text or once:
        Path(notes or os.devnull).write_text(str(os.getpid()))
        await asyncio.Event().wait()
    if "<crash>" in request.text:
        os.kill(os.getpid(), 9) if hasattr(os, "kill") else os._exit(9)
    if "<freeze>" in request.text:
        time.sleep(60)  # blocks the event loop: not even the status is answered
    if "<busy>" in request.text:
        until = time.monotonic() + 7
        while time.monotonic() < until:
            pass
    if "<refuse>" in request.text:
        raise InvalidRequest("'text' is refused by the fake engine.")
    return str(os.getpid())


class LoadingPredictor(ScriptedPredictor):
    """A predictor that becomes ready some time after its start."""

    def __init__(self) -> None:
        super().__init__([its_process])
        self.ready_s = time.monotonic() + float(os.environ["FAKE_ENGINE_LOADS_S"])

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        if time.monotonic() < self.ready_s:
            raise ModelNotReady("The model fake is loading. Try again in a moment.")
        return await super().predict(request, on_step)

    async def status(self) -> ModelStatus:
        return READY if time.monotonic() >= self.ready_s else ModelStatus("loading", "fake-1m")


async def slowly(request: EditRequest) -> str:
    """Return the id of the process after a while, and note cancelled requests."""
    notes = Path(os.environ["FAKE_ENGINE_NOTES"])
    note(notes, "asked")
    try:
        await asyncio.sleep(60 if "<hold>" in request.text else 0.5)
    except asyncio.CancelledError:
        note(notes, "given up")
        raise
    return str(os.getpid())


def note(notes: Path, what: str) -> None:
    with notes.open("a") as file:
        file.write(f"{what}\n")


def slow_engine(settings: Settings) -> ScriptedPredictor:
    return ScriptedPredictor([slowly])


def process_engine(settings: Settings) -> ScriptedPredictor:
    return ScriptedPredictor([its_process])


def loading_engine(settings: Settings) -> LoadingPredictor:
    return LoadingPredictor()


def reading_engine(settings: Settings) -> Engine:
    return engine_of(SlowBackend(0.05))


def broken_engine(settings: Settings) -> ScriptedPredictor:
    raise RuntimeError("the fake engine cannot start")


def hanging_engine(settings: Settings) -> ScriptedPredictor:
    threading.Event().wait()
    raise AssertionError("unreachable")
