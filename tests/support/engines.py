"""Engines for the engine process, as its command line names them."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from redraft.model.errors import InvalidRequest
from redraft.model.records import EditRequest
from redraft.server.settings import Settings

from support.predictor import ScriptedPredictor


async def its_process(request: EditRequest) -> str:
    """The process that answers; what the text says can hold or kill it."""
    notes = os.environ.get("FAKE_ENGINE_NOTES")
    once = "<hold once>" in request.text and notes and not Path(notes).exists()
    if "<hold>" in request.text or once:
        Path(notes or os.devnull).write_text(str(os.getpid()))
        await asyncio.Event().wait()
    if "<crash>" in request.text:
        os.kill(os.getpid(), 9) if hasattr(os, "kill") else os._exit(9)
    if "<refuse>" in request.text:
        raise InvalidRequest("'text' is refused by the fake engine.")
    return str(os.getpid())


def process_engine(settings: Settings) -> ScriptedPredictor:
    return ScriptedPredictor([its_process])


def broken_engine(settings: Settings) -> ScriptedPredictor:
    raise RuntimeError("the fake engine cannot start")


def hanging_engine(settings: Settings) -> ScriptedPredictor:
    threading.Event().wait()
    raise AssertionError("unreachable")
