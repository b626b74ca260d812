"""Engine under overload, and what it does between requests."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import threading
import time

import pytest
from redraft.model.engine import PATIENCE_S, Engine
from redraft.model.errors import (
    ModelNotReady,
    Overloaded,
    PredictionTimeout,
    WeightsError,
)
from redraft.model.predict import Chore, LoadProgress, Model
from redraft.model.records import Prediction
from redraft.model.runtime.backend import Cancelled, FloatArray
from support.models.engines_of import (
    ANSWER,
    REQUEST,
    Clock,
    Held,
    make_model,
    ready,
    run,
)
from support.models.fake_backend import (
    Script,
    ids,
)


def test_under_overload_the_oldest_is_sent_away() -> None:
    held, clock = Held(ids(ANSWER)), Clock()

    async def work() -> None:
        engine = Engine(lambda report: make_model(held), "fake", 8, clock)
        await ready(engine)
        asked = [asyncio.create_task(engine.predict(REQUEST))]
        await held.reached()
        for until_the_next_s in (1.5, 1.5, 0.0):
            asked.append(asyncio.create_task(engine.predict(REQUEST)))
            await asyncio.sleep(0)
            clock.now += until_the_next_s
        held.gate.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        await engine.close()
        assert [type(one) for one in told] == [Prediction, Overloaded, Overloaded, Prediction]
        assert isinstance(told[1], Overloaded) and told[1].retry_after_s > 0

    run(work())


def test_a_waiting_request_learns_that_it_is_too_late() -> None:
    held, clock = Held(ids(ANSWER)), Clock()

    async def work() -> None:
        engine = Engine(lambda report: make_model(held), "fake", 8, clock)
        await ready(engine)
        running = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        waiting = asyncio.create_task(engine.predict(REQUEST))
        await asyncio.sleep(0)
        clock.now += PATIENCE_S + 1
        with pytest.raises(Overloaded, match="too late"):
            await asyncio.wait_for(waiting, 10)
        assert not running.done()
        held.gate.set()
        assert (await running).candidates
        await engine.close()

    run(work())


def test_a_prediction_that_takes_too_long_is_given_up() -> None:
    held, clock = Held(ids(ANSWER)), Clock()

    async def work() -> None:
        engine = Engine(lambda report: make_model(held), "fake", 8, clock, limit_s=5.0)
        await ready(engine)
        task = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        clock.now += 6
        held.gate.set()
        with pytest.raises(PredictionTimeout, match="6 s, the limit being 5 s"):
            await task
        assert (await engine.predict(REQUEST)).candidates
        await engine.close()

    run(work())


@pytest.mark.parametrize("when", ["before a request", "while it is computed"])
def test_weights_written_to_are_loaded_again_first(when: str) -> None:
    held, problems = Held(ids(ANSWER)), [""]
    loads = []

    def load(report: LoadProgress) -> Model:
        loads.append(report)
        problems[0] = ""
        model = make_model(held)
        model.backend.changed = lambda: problems[0]  # type: ignore[method-assign]
        return model

    async def work() -> None:
        engine = Engine(load, "fake")
        await ready(engine)
        if when == "before a request":
            held.gate.set()
            problems[0] = "weights.bin was written to"
            task = asyncio.create_task(engine.predict(REQUEST))
        else:
            task = asyncio.create_task(engine.predict(REQUEST))
            await held.reached()
            problems[0] = "weights.bin was written to"
            held.gate.set()
        with pytest.raises(ModelNotReady, match=r"weights\.bin was written to.*loaded again"):
            await task
        await ready(engine)
        assert (await engine.predict(REQUEST)).candidates
        await engine.close()

    run(work())
    assert len(loads) == 2


def test_an_error_for_a_caller_who_left_is_not_logged() -> None:
    complaints: list[str] = []

    class Failing(Held):
        def __call__(self, context: list[int], window: list[int]) -> FloatArray:
            super().__call__(context, window)
            assert self.gate.wait(10)
            raise WeightsError("no pass can be run")

    held = Failing(ids(ANSWER))

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        engine = Engine(lambda report: make_model(held), "fake")
        await ready(engine)
        asking = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        held.gate.set()
        time.sleep(0.3)  # the loop learns of the error only together with the cancellation
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await engine.close()

    run(work())
    gc.collect()
    assert complaints == []


def test_costs_are_measured_when_idle_and_give_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, interrupted, done = threading.Event(), threading.Event(), threading.Event()
    loaded = make_model(Script(ids(ANSWER)))
    interrupt = loaded.backend.interrupt

    def interrupting(now: bool) -> None:
        interrupt(now)
        if now:
            interrupted.set()

    monkeypatch.setattr(loaded.backend, "interrupt", interrupting)

    def measure() -> None:
        if not begun.is_set():
            begun.set()
            assert interrupted.wait(10)
            raise Cancelled
        done.set()

    async def work() -> Prediction:
        chores = (Chore(0.01, measure),)
        engine = Engine(lambda report: dataclasses.replace(loaded, chores=chores), "fake")
        try:
            await ready(engine)
            assert await asyncio.to_thread(begun.wait, 10)
            answer = await engine.predict(REQUEST)
            assert await asyncio.to_thread(done.wait, 10), "and it is tried again"
            return answer
        finally:
            await engine.close()

    assert run(work()).candidates


def test_the_engine_survives_failed_work_for_a_pause() -> None:
    loaded, done = make_model(Script(ids(ANSWER))), threading.Event()

    def fail() -> None:
        raise MemoryError("no room")

    async def work() -> Prediction:
        chores = (Chore(0.0, fail), Chore(0.0, done.set))
        engine = Engine(lambda report: dataclasses.replace(loaded, chores=chores), "fake")
        try:
            await ready(engine)
            assert await asyncio.to_thread(done.wait, 10)
            return await engine.predict(REQUEST)
        finally:
            await engine.close()

    assert run(work()).candidates
