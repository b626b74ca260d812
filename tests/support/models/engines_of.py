"""Engines over scripted models, as their tests use them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from redraft.model.engine import Engine
from redraft.model.predict import Model
from redraft.model.records import EditRequest, ModelStatus
from redraft.model.runtime.backend import FloatArray, IntArray
from redraft.model.runtime.prefix_cache import PrefixCache

from support.models.fake_backend import (
    FakeBackend,
    FakeSequence,
    Predict,
    Script,
    always,
    fake_tokenizer,
    ids,
    small_config,
)

T = TypeVar("T")


TEXT = "def area(w, h):\n    size = \n\nprint(area(2, 3))\n"


CURSOR = TEXT.index("= ") + 2


REQUEST = EditRequest(task="infill", path="area.py", text=TEXT, cursor=CURSOR)


ANSWER = " wide * high"  # the space before the cursor is held back and written again


def make_model(predict: Predict, context_tokens: int = 512, verifier: str = "none") -> Model:
    backend = FakeBackend(predict, small_config(verifier=verifier))
    return Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 24), context_tokens)


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(bounded())


async def ready(engine: Engine) -> ModelStatus:
    return await until(engine, lambda status: status.state in ("ready", "failed"))


async def until(engine: Engine, wanted: Callable[[ModelStatus], bool]) -> ModelStatus:
    while not wanted(status := await engine.status()):
        await asyncio.sleep(0.001)
    return status


def with_engine(
    predict: Predict, work: Callable[[Engine], Awaitable[T]], queue_length: int = 4
) -> T:
    """Run ``work`` with an engine that is ready, and close it.

    Its clock stands still: on a busy machine requests would wait for too long and be refused.
    """

    async def all_of_it() -> T:
        engine = Engine(lambda report: make_model(predict), "fake", queue_length, Clock())
        try:
            await ready(engine)
            return await work(engine)
        finally:
            await engine.close()

    return run(all_of_it())


class Held(Script):
    """A script that waits at each pass until it is let go."""

    def __init__(self, target: list[int]) -> None:
        super().__init__(target, always(0.5))
        self.gate = threading.Event()
        self.entered = threading.Event()

    def __call__(self, context: list[int], window: list[int]) -> FloatArray:
        self.entered.set()
        return super().__call__(context, window)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 10)


class SlowBackend(FakeBackend):
    """A backend whose passes over a prompt wait for a gate, and take a moment."""

    def __init__(self, pass_s: float = 0.002) -> None:
        config = replace(small_config(verifier="ar"), prompt_format="redraft-3")
        super().__init__(Script(ids(ANSWER)), config)
        self.gate, self.entered, self.passes = threading.Event(), threading.Event(), 0
        self.gate.set()
        self._pass_s = pass_s

    def open(self, capacity: int) -> FakeSequence:
        sequence = super().open(capacity)
        extend = sequence.extend

        def slowly(tokens: IntArray) -> None:
            self.entered.set()
            assert self.gate.wait(10)
            self.passes += 1
            time.sleep(self._pass_s)
            extend(tokens)

        sequence.extend = slowly  # type: ignore[method-assign]
        return sequence


def engine_of(backend: SlowBackend) -> Engine:
    """Return an engine whose clock stands still."""
    model = Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 24), 4_096)
    return Engine(lambda report: model, "fake", 3, Clock())
