"""Requests that wait: loading, order, cancelling, closing, overload, and idle work."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import threading
import time
from collections.abc import Callable

import pytest
from redraft.model.engine import PATIENCE_S, RETRY_AFTER_S, Engine
from redraft.model.errors import (
    EngineGone,
    InvalidRequest,
    ModelNotReady,
    Overloaded,
    PredictionTimeout,
    WeightsError,
)
from redraft.model.predict import Chore, LoadProgress, Model
from redraft.model.records import CanvasState, ModelStatus, Prediction
from redraft.model.runtime.backend import Cancelled, FloatArray
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.engines_of import (
    ANSWER,
    REQUEST,
    Clock,
    Held,
    make_model,
    ready,
    run,
    until,
    with_engine,
)
from support.models.fake_backend import (
    FakeBackend,
    Script,
    always,
    fake_tokenizer,
    ids,
    small_config,
)


def test_loading_reports_progress_and_then_the_model() -> None:
    shown = threading.Event()
    go_on = threading.Event()

    def loader(report: LoadProgress) -> Model:
        report("downloading", 0.25, "download")
        shown.set()
        assert go_on.wait(10)
        return make_model(Script(ids(ANSWER)), context_tokens=2_048)

    async def work() -> tuple[ModelStatus, ModelStatus]:
        engine = Engine(loader, "fake")
        try:
            assert await asyncio.to_thread(shown.wait, 10)
            during = await engine.status()
            with pytest.raises(ModelNotReady, match=r"downloading .25%"):
                await engine.predict(REQUEST)
            go_on.set()
            return during, await ready(engine)
        finally:
            await engine.close()

    during, after = run(work())
    assert (during.state, during.progress) == ("downloading", 0.25)
    assert (after.state, after.model, after.provider) == ("ready", "fake fp32", "CPU")
    assert after.context_tokens == 2_048


def failing_once() -> Callable[[LoadProgress], Model]:
    tries: list[int] = []

    def loader(report: LoadProgress) -> Model:
        tries.append(1)
        if len(tries) == 1:
            raise WeightsError("The disk is full. Free some space.")
        return make_model(Script(ids(ANSWER)))

    return loader


def test_a_failed_load_says_why_and_can_be_tried_again() -> None:
    clock = Clock()

    async def work() -> None:
        engine = Engine(failing_once(), "fake", clock=clock)
        try:
            failed = await ready(engine)
            assert (failed.state, failed.message) == (
                "failed",
                "The disk is full. Free some space.",
            )
            with pytest.raises(ModelNotReady, match="disk is full"):
                await engine.predict(REQUEST)
            clock.now += RETRY_AFTER_S / 2
            with pytest.raises(ModelNotReady):
                await engine.predict(REQUEST)
            assert (await engine.status()).state == "failed"  # too soon for another try
            clock.now += RETRY_AFTER_S / 2
            with pytest.raises(ModelNotReady):
                await engine.predict(REQUEST)
            await until(engine, lambda status: status.state == "ready")
            assert (await engine.predict(REQUEST)).candidates
        finally:
            await engine.close()

    run(work())


def test_an_unexpected_load_error_is_a_failure() -> None:
    def loader(report: LoadProgress) -> Model:
        raise KeyError("surprise")

    async def work() -> ModelStatus:
        engine = Engine(loader, "fake")
        try:
            return await ready(engine)
        finally:
            await engine.close()

    status = run(work())
    assert status.state == "failed"
    assert "surprise" in status.message
    assert "redraft doctor" in status.message


def test_requests_are_answered_in_turn() -> None:
    async def work(engine: Engine) -> list[Prediction]:
        return await asyncio.gather(*(engine.predict(REQUEST) for _ in range(4)))

    predictions = with_engine(Script(ids(ANSWER)), work, queue_length=4)
    assert {p.candidates[0].text for p in predictions} == {ANSWER[1:]}
    assert len({p.request_id for p in predictions}) == 4


def test_an_unanswerable_request_takes_no_place() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(InvalidRequest, match="'cursor' must be between"):
            await engine.predict(dataclasses.replace(REQUEST, cursor=-1))

    with_engine(Script(ids(ANSWER)), work)


def test_a_cancelled_waiting_request_frees_its_place() -> None:
    held = Held(ids(ANSWER))

    async def work(engine: Engine) -> None:
        running = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        waiting = asyncio.create_task(engine.predict(REQUEST))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        next_one = asyncio.create_task(engine.predict(REQUEST))
        await asyncio.sleep(0)
        held.gate.set()
        assert (await running).candidates
        assert (await next_one).candidates

    with_engine(held, work, queue_length=2)


def test_a_cancelled_computation_frees_its_place() -> None:
    held = Held(ids(ANSWER))

    async def work(engine: Engine) -> None:
        running = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        next_one = asyncio.create_task(engine.predict(REQUEST))
        await asyncio.sleep(0)
        held.gate.set()
        assert (await next_one).candidates

    with_engine(held, work, queue_length=1)


def test_cancelling_ends_a_computation_within_a_step() -> None:
    held = Held(ids(ANSWER))

    async def work(engine: Engine) -> None:
        task = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.gate.set()
        other = dataclasses.replace(REQUEST, max_tokens=1)
        await engine.predict(other)

    with_engine(held, work)
    assert len(held.windows) == 2, "one pass of the cancelled request, one of the next"


class Stoppable(FakeBackend):
    """Its first pass takes until it is interrupted."""

    def __init__(self) -> None:
        super().__init__(Script(ids(ANSWER)), small_config())
        self.entered, self.stopped, self.passes = threading.Event(), threading.Event(), 0

    def _predict(self, context: list[int], window: list[int]) -> FloatArray:
        self.passes += 1
        if self.passes == 1:
            self.entered.set()
            assert self.stopped.wait(10)
        if self.stopped.is_set():
            raise Cancelled
        return super()._predict(context, window)

    def interrupt(self, now: bool) -> None:
        (self.stopped.set if now else self.stopped.clear)()


def test_cancelling_interrupts_only_its_own_pass() -> None:
    backend = Stoppable()

    async def work() -> Prediction:
        model = Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 24), 512)
        engine = Engine(lambda report: model, "fake")
        try:
            await ready(engine)
            first = asyncio.create_task(engine.predict(REQUEST))
            assert await asyncio.to_thread(backend.entered.wait, 10)
            waiting = asyncio.create_task(engine.predict(REQUEST))
            await asyncio.sleep(0)
            given_up = asyncio.create_task(engine.predict(REQUEST))
            await asyncio.sleep(0)
            given_up.cancel()  # it was not its turn
            await asyncio.gather(given_up, return_exceptions=True)
            assert not backend.stopped.is_set()
            first.cancel()
            return await waiting
        finally:
            await engine.close()

    assert run(work()).candidates[0].text == ANSWER[1:]


def test_steps_are_shown_in_the_callers_loop_first() -> None:
    async def work(engine: Engine) -> tuple[list[CanvasState], set[int], Prediction]:
        states: list[CanvasState] = []
        threads: set[int] = set()

        def on_step(state: CanvasState) -> None:
            states.append(state)
            threads.add(threading.get_ident())

        return states, threads, await engine.predict(REQUEST, on_step)

    states, threads, prediction = with_engine(Script(ids(ANSWER), always(0.5)), work)
    assert threads == {threading.get_ident()}
    assert [state.step for state in states] == list(range(1, prediction.stats.denoise_steps + 1))
    assert states[-1].show() == prediction.candidates[0].text


def test_waiting_time_is_counted() -> None:
    held = Held(ids(ANSWER))
    clock = Clock()

    async def work() -> Prediction:
        engine = Engine(lambda report: make_model(held), "fake", clock=clock)
        try:
            await ready(engine)
            first = asyncio.create_task(engine.predict(REQUEST))
            await held.reached()
            second = asyncio.create_task(engine.predict(REQUEST))
            await asyncio.sleep(0)
            clock.now += 0.5
            held.gate.set()
            await first
            return await second
        finally:
            await engine.close()

    stats = run(work()).stats
    assert stats.queue_ms == pytest.approx(500)
    assert stats.total_ms == pytest.approx(500)


def test_closing_ends_all_requests_and_frees_the_model() -> None:
    held = Held(ids(ANSWER))
    models: list[Model] = []

    def loader(report: LoadProgress) -> Model:
        models.append(make_model(held))
        return models[0]

    async def work() -> None:
        engine = Engine(loader, "fake")
        await ready(engine)
        tasks = [asyncio.create_task(engine.predict(REQUEST)) for _ in range(2)]
        await held.reached()
        closing = asyncio.create_task(engine.close())
        await asyncio.sleep(0)
        held.gate.set()
        await closing
        for task in tasks:
            with pytest.raises(EngineGone):
                await task
        with pytest.raises(EngineGone):
            await engine.predict(REQUEST)
        await engine.close()
        assert (await engine.status()).state == "absent"

    run(work())
    assert isinstance(models[0].backend, FakeBackend)
    assert models[0].backend.closed


def test_closing_interrupts_a_load_that_reports() -> None:
    reports: list[int] = []

    def loader(report: LoadProgress) -> Model:
        for step in range(10_000):
            report("downloading", step / 10_000, "")
            reports.append(step)
            threading.Event().wait(0.001)
        raise AssertionError("was not interrupted")

    async def work() -> str:
        engine = Engine(loader, "fake")
        await until(engine, lambda status: status.state == "downloading")
        await engine.close()
        return (await engine.status()).state

    assert run(work()) == "absent"
    assert len(reports) < 10_000


def test_a_caller_whose_loop_is_gone_stops_no_engine() -> None:
    held = Held(ids(ANSWER))
    engine = Engine(lambda report: make_model(held), "fake")
    run(ready(engine))

    async def leave() -> None:
        task = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        del task

    run(leave())
    held.gate.set()
    assert run(engine.predict(REQUEST)).candidates
    run(engine.close())


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
        model.backend.why_changed = lambda: problems[0]  # type: ignore[method-assign]
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
