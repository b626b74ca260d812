"""The engine without requests: it frees its model, and loads it again for the next one."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest
from redraft.model.engine import PATIENCE_S, Engine
from redraft.model.errors import EngineGone, ModelNotReady, WeightsError
from redraft.model.predict import LoadProgress, Model
from redraft.model.records import ModelStatus
from redraft.server.settings import Settings
from support.editors.predictor import READY, ScriptedPredictor
from support.models.engines_of import ANSWER, REQUEST, Clock, make_model, ready, run, until
from support.models.fake_backend import FakeBackend, Script, ids
from support.served import got, send

UNLOADED = ModelStatus(
    "unloaded", "fake-1m int8", "CPU", message="its memory was freed after 15 idle minutes"
)


class Loader:
    """Makes a new model each time; a load waits for ``gate``."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.loading = threading.Event()
        self.models: list[weakref.ref[FakeBackend]] = []
        self.error: Exception | None = None

    def __call__(self, report: LoadProgress) -> Model:
        self.loading.set()
        assert self.gate.wait(10)
        if self.error is not None:
            raise self.error
        model = make_model(Script(ids(ANSWER)))
        assert isinstance(model.backend, FakeBackend)
        self.models.append(weakref.ref(model.backend))
        return model


async def unloaded(engine: Engine) -> ModelStatus:
    return await until(engine, lambda status: status.state == "unloaded")


def test_an_idle_engine_frees_its_model_until_asked() -> None:
    loader = Loader()

    async def work() -> None:
        engine = Engine(loader, "fake", unload_s=0.05)
        await ready(engine)
        assert (await engine.predict(REQUEST)).candidates
        status = await unloaded(engine)
        assert status.model == "fake fp32"
        assert "the next request loads it again" in status.message
        await asyncio.sleep(0.1)
        gc.collect()
        assert [model() for model in loader.models] == [None]
        assert (await engine.predict(REQUEST)).candidates[0].text == ANSWER[1:]
        assert len(loader.models) == 2
        await unloaded(engine)
        await engine.close()
        assert (await engine.status()).state == "absent"

    run(work())


def test_an_engine_without_a_limit_keeps_its_model() -> None:
    loader = Loader()

    async def work() -> None:
        engine = Engine(loader, "fake")
        await ready(engine)
        await asyncio.sleep(0.2)
        assert (await engine.status()).state == "ready"
        await engine.close()

    run(work())


def test_requests_wait_while_the_model_is_loaded_again() -> None:
    loader = Loader()

    async def work() -> None:
        engine = Engine(loader, "fake", unload_s=0.05)
        await ready(engine)
        await unloaded(engine)
        loader.gate.clear()
        loader.loading.clear()
        first = asyncio.create_task(engine.predict(REQUEST))
        assert await asyncio.to_thread(loader.loading.wait, 10)
        assert (await engine.status()).state == "loading"
        second = asyncio.create_task(engine.predict(REQUEST))
        given_up = asyncio.create_task(engine.predict(REQUEST))
        await asyncio.sleep(0)
        given_up.cancel()
        loader.gate.set()
        assert (await first).candidates
        assert (await second).candidates
        await engine.close()

    run(work())


def test_a_model_that_cannot_be_loaded_again_says_why() -> None:
    loader = Loader()

    async def work() -> None:
        engine = Engine(loader, "fake", unload_s=0.05)
        await ready(engine)
        await unloaded(engine)
        loader.error = WeightsError("weights.bin is gone. Pull again.")
        with pytest.raises(ModelNotReady, match=r"weights\.bin is gone"):
            await engine.predict(REQUEST)
        assert (await engine.status()).state == "failed"
        with pytest.raises(ModelNotReady):
            await engine.predict(REQUEST)
        await engine.close()

    run(work())


def test_a_request_waits_so_long_for_a_slow_load() -> None:
    loader, clock = Loader(), Clock()

    async def work() -> None:
        engine = Engine(loader, "fake", clock=clock, unload_s=0.05)
        await ready(engine)
        await unloaded(engine)
        loader.gate.clear()
        loader.loading.clear()
        asking = asyncio.create_task(engine.predict(REQUEST))
        assert await asyncio.to_thread(loader.loading.wait, 10)
        clock.now += PATIENCE_S + 1
        with pytest.raises(ModelNotReady, match="is loading"):
            await asking
        loader.gate.set()
        await engine.close()

    run(work())


def test_an_unloaded_engine_can_be_closed() -> None:
    async def work() -> None:
        engine = Engine(Loader(), "fake", unload_s=0.05)
        await ready(engine)
        await unloaded(engine)
        await engine.close()
        with pytest.raises(EngineGone):
            await engine.predict(REQUEST)

    run(work())


def test_a_server_with_an_unloaded_model_is_well() -> None:
    predictor = ScriptedPredictor(statuses=[UNLOADED])
    health = got("/health", predictor)
    assert (health["status"], health["message"]) == ("unloaded", UNLOADED.message)
    assert got("/api/ps", predictor) == {"models": []}
    assert got("/redraft/v1/status", predictor)["status"]["state"] == "unloaded"
    assert send("/v1/completions", {"prompt": "a", "suffix": "b"}, predictor=predictor)[0] == 200
    assert READY.can_answer and UNLOADED.can_answer


def test_the_usual_time_is_a_quarter_of_an_hour() -> None:
    assert Settings().idle_unload_s == 15 * 60
