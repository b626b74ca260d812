"""The engine: loading, queueing, cancelling, and what it makes of a request."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest
from redraft.model.decoding.denoise import Cancelled
from redraft.model.engine.answer import LoadProgress, Model, answer, warm_up
from redraft.model.engine.engine import RETRY_AFTER_S, Engine
from redraft.model.errors import (
    EngineGone,
    InvalidRequest,
    ModelNotReady,
    Overloaded,
    PredictionTimeout,
    RedraftError,
    WeightsError,
)
from redraft.model.records import CanvasState, EditRequest, ModelStatus, Prediction
from redraft.model.runtime.backend import CanvasOutput, FloatArray, IntArray
from redraft.model.runtime.prefix_cache import PrefixCache
from support.fake_backend import (
    MASK,
    FakeBackend,
    FakeSequence,
    Noise,
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


def make_model(predict: Predict, context_tokens: int = 512) -> Model:
    backend = FakeBackend(predict, small_config())
    return Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 24), context_tokens)


def predicted(predict: Predict, request: EditRequest = REQUEST) -> Prediction:
    return answer(make_model(predict), request, clock=Clock())


class Clock:
    """Seconds that pass only when told."""

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
    """Run ``work`` with an engine that is ready, and close it."""

    async def all_of_it() -> T:
        engine = Engine(lambda report: make_model(predict), "fake", queue_length)
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


# --- one answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [("def f():\n|    return a\n", "    a = 1\n"), ("def f():\n|\n", "    a = 1")],
)
def test_lines_above_a_line_end_with_a_break_where_the_next_was_too_unlikely(
    text: str, written: str
) -> None:
    cursor = text.index("|")
    request = dataclasses.replace(REQUEST, text=text.replace("|", ""), cursor=cursor)
    lines = "    a = 1\n    b = 2222222222\n"
    unsure = Script(ids(lines), lambda position, window: 0.95 if position < 9 else 0.4)
    (candidate,) = predicted(unsure, request).candidates
    assert (candidate.text, candidate.finish) == (written, "unsure")
    asked = dataclasses.replace(request, max_lines=1)
    (candidate,) = predicted(Script(ids(lines)), asked).candidates
    assert (candidate.text, candidate.finish) == (written, "length")
    (candidate,) = predicted(unsure, dataclasses.replace(request, temperature=1.0)).candidates
    assert candidate.finish != "unsure"


def test_an_infill_is_inserted_at_the_cursor_without_what_was_held_back() -> None:
    prediction = predicted(Script(ids(ANSWER)))
    (candidate,) = prediction.candidates
    assert (candidate.start, candidate.end, candidate.text) == (CURSOR, CURSOR, ANSWER[1:])
    assert candidate.finish == "end"
    assert candidate.tokens == len(ANSWER) + 1
    assert prediction.request_id.startswith("cmpl-")
    assert prediction.model == "fake fp32"


def test_a_next_edit_replaces_the_lines_it_names() -> None:
    request = dataclasses.replace(REQUEST, task="next_edit")
    (candidate,) = predicted(Script(ids("2-2\n    return w * h\n")), request).candidates
    changed = TEXT[: candidate.start] + candidate.text + TEXT[candidate.end :]
    assert changed == TEXT.replace("    size = \n", "    return w * h\n")


def test_no_edit_is_told_with_its_reason() -> None:
    request = dataclasses.replace(REQUEST, task="next_edit")
    prediction = predicted(Script([]), request)
    assert prediction.candidates == ()
    assert prediction.reason == "The model would change nothing here."


def test_an_edit_that_changes_nothing_is_not_a_candidate() -> None:
    request = dataclasses.replace(REQUEST, task="next_edit")
    assert predicted(Script(ids("4-4\nprint(area(2, 3))\n")), request).candidates == ()


def test_an_infill_of_nothing_is_told_with_its_reason() -> None:
    request = dataclasses.replace(REQUEST, cursor=TEXT.index("\n"))
    prediction = predicted(Script([]), request)
    assert (prediction.candidates, prediction.reason) == ((), "The model would write nothing here.")


@pytest.mark.parametrize(
    ("written", "max_lines", "says"),
    [("\n\nprint(area(2, 3))\n", 2, "follows the cursor"), ("\n\n", 1, "new line")],
)
def test_an_infill_that_adds_nothing_says_what_it_was(
    written: str, max_lines: int, says: str
) -> None:
    request = dataclasses.replace(REQUEST, cursor=TEXT.index("\nprint"), max_lines=max_lines)
    prediction = predicted(Script(ids(written)), request)
    assert prediction.candidates == ()
    assert says in prediction.reason


def test_statistics_count_prompt_cache_and_canvas() -> None:
    model = make_model(Script(ids(ANSWER)))
    first = answer(model, REQUEST, Clock()).stats
    assert first.reused_tokens == 0
    committed = len(ANSWER) // 8 * 8
    assert first.computed_tokens == first.prompt_tokens - 1 + committed
    assert first.canvas_tokens == len(ANSWER) + 1
    assert first.denoise_steps == 2
    again = answer(model, REQUEST, Clock()).stats
    assert again.reused_tokens == again.prompt_tokens - 1


def test_typing_reuses_the_cache_and_changes_no_answer() -> None:
    model = make_model(Noise(3))
    for count in range(1, 6):
        typed = "xyzuv"[:count]
        text = TEXT[:CURSOR] + typed + TEXT[CURSOR:]
        request = dataclasses.replace(REQUEST, text=text, cursor=CURSOR + count, max_tokens=20)
        warm = answer(model, request, Clock())
        cold = answer(make_model(Noise(3)), request, Clock())
        assert warm.candidates == cold.candidates
        assert warm.reason == cold.reason
        if count > 1:
            assert warm.stats.reused_tokens > warm.stats.prompt_tokens * 0.9


def test_the_answer_is_limited_as_asked() -> None:
    lines = dataclasses.replace(REQUEST, max_lines=1)
    (candidate,) = predicted(Script(ids(" a\n    b\n")), lines).candidates
    assert (candidate.text, candidate.finish) == ("a", "length")
    stop = dataclasses.replace(REQUEST, stop=("*",))
    (candidate,) = predicted(Script(ids(ANSWER)), stop).candidates
    assert (candidate.text, candidate.finish) == ("wide ", "stop")


def test_several_candidates_come_surest_first_and_none_twice() -> None:
    request = dataclasses.replace(REQUEST, candidates=4, max_tokens=10)
    prediction = predicted(Noise(5, scale=3.0), request)
    texts = [candidate.text for candidate in prediction.candidates]
    means = [candidate.confidence.mean for candidate in prediction.candidates]
    assert len(texts) == len(set(texts)) > 1
    assert means == sorted(means, reverse=True)


def test_a_seed_makes_sampling_repeatable() -> None:
    request = dataclasses.replace(REQUEST, temperature=1.0, seed=7, max_tokens=12)
    noise = Noise(2, scale=2.0)
    assert predicted(noise, request).candidates == predicted(noise, request).candidates
    others = {
        predicted(noise, dataclasses.replace(request, seed=seed)).candidates for seed in range(5)
    }
    assert len(others) > 1


def test_prefill_runs_in_chunks_and_hears_a_cancel_between_them() -> None:
    model = make_model(Script(ids(ANSWER)), context_tokens=4_096)
    request = dataclasses.replace(REQUEST, text="# padding\n" * 120 + TEXT, cursor=1200 + CURSOR)
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(Cancelled):
        answer(model, request, Clock(), cancelled)
    backend = model.backend
    assert isinstance(backend, FakeBackend)
    assert [entry for sequence in backend.sequences for entry in sequence.log] == [
        "prefill 256",
        "prefill 256",
    ]


def test_a_cancelled_answer_leaves_the_cache_usable() -> None:
    model = make_model(Noise(4))
    with pytest.raises(Cancelled):
        answer(model, REQUEST, Clock(), _after(3))
    warm = answer(model, REQUEST, Clock())
    assert warm.candidates == answer(make_model(Noise(4)), REQUEST, Clock()).candidates
    assert warm.stats.reused_tokens == warm.stats.prompt_tokens - 1


def _after(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is None


def test_warming_up_runs_every_kind_of_pass_and_keeps_no_sequence() -> None:
    seen: list[bool] = []

    class Watching(FakeSequence):
        def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
            seen.append(logits)
            assert window[1] == MASK
            return super().denoise(window, logits)

    class WatchingBackend(FakeBackend):
        def new_sequence(self, capacity: int) -> FakeSequence:
            sequence = Watching(self._predict, self._causal, capacity)
            self.sequences.append(sequence)
            return sequence

    backend = WatchingBackend(Noise(), small_config())
    warm_up(backend)
    assert seen == [False, True]
    assert backend.sequences == []


# --- requests that cannot be answered ---------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "guess"),
        ("quality", "best"),
        ("text", None),
        ("text", "a\0b"),
        ("path", "a\0"),
        ("cursor", -1),
        ("cursor", len(TEXT) + 1),
        ("cursor", 1.0),
        ("cursor", True),
        ("max_tokens", 0),
        ("max_tokens", 10**9),
        ("max_lines", 0),
        ("context_tokens", 3),
        ("context_tokens", 10**6),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", -0.1),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("seed", -1),
        ("candidates", 0),
        ("candidates", 1_000),
        ("path", "a\ud800.py"),
        ("stop", ("",)),
        ("stop", ("x",) * 100),
        ("region", (2, 1)),
        ("region", (0, 99)),
        ("region", (2, 4)),
    ],
)
def test_an_unusable_value_is_refused_with_the_name_of_its_field(field: str, value: object) -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(InvalidRequest, match=f"'{field}"):
            await engine.predict(dataclasses.replace(REQUEST, **{field: value}))
        assert (await engine.predict(REQUEST)).candidates

    with_engine(Script(ids(ANSWER)), work)


def test_a_failing_prediction_fails_alone() -> None:
    script = Script(ids(ANSWER))

    def predict(context: list[int], window: list[int]) -> FloatArray:
        if script.gate is None:
            script.gate = threading.Event()
            script.gate.set()
            raise ZeroDivisionError("boom")
        return script(context, window)

    async def work(engine: Engine) -> Prediction:
        with pytest.raises(RedraftError, match="boom"):
            await engine.predict(REQUEST)
        return await engine.predict(REQUEST)

    assert with_engine(predict, work).candidates[0].text == ANSWER[1:]


# --- loading ----------------------------------------------------------------------------------


def test_loading_reports_its_progress_and_then_the_model() -> None:
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


def test_an_unexpected_load_error_is_a_failure_like_any_other() -> None:
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


# --- queueing and cancelling ------------------------------------------------------------------


def test_requests_are_answered_in_turn() -> None:
    async def work(engine: Engine) -> list[Prediction]:
        return await asyncio.gather(*(engine.predict(REQUEST) for _ in range(4)))

    predictions = with_engine(Script(ids(ANSWER)), work, queue_length=4)
    assert {p.candidates[0].text for p in predictions} == {ANSWER[1:]}
    assert len({p.request_id for p in predictions}) == 4


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    held = Held(ids(ANSWER))

    async def work(engine: Engine) -> None:
        running = asyncio.create_task(engine.predict(REQUEST))
        await held.reached()
        waiting = [asyncio.create_task(engine.predict(REQUEST)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await engine.predict(REQUEST)
        assert refused.value.retry_after_s > 0
        held.gate.set()
        for task in (running, *waiting):
            assert (await task).candidates

    with_engine(held, work, queue_length=2)


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

    with_engine(held, work, queue_length=1)


def test_cancelling_stops_the_computation_within_a_step() -> None:
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


def test_steps_are_shown_in_the_callers_loop_before_the_answer() -> None:
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


# --- closing ----------------------------------------------------------------------------------


def test_closing_ends_running_and_waiting_requests_and_frees_the_model() -> None:
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


def test_a_caller_whose_loop_is_gone_does_not_stop_the_engine() -> None:
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


def test_vocabulary_of_the_fake_tokenizer_is_the_fakes() -> None:
    tokenizer = fake_tokenizer()
    assert tokenizer.encode("return é") == ids("return é")
    assert np.all([tokenizer.vocab_bytes[i] == b"" for i in range(17)])


# --- overload, hangs and weights that change ---------------------------------------------------


def test_under_overload_the_newest_is_answered_and_the_oldest_told_to_come_back() -> None:
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


def test_a_prediction_that_takes_too_long_is_given_up_and_the_next_is_answered() -> None:
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
def test_weights_that_were_written_to_are_loaded_again_before_they_are_used(when: str) -> None:
    held, problems = Held(ids(ANSWER)), [""]
    loads = []

    def load(report: LoadProgress) -> Model:
        loads.append(report)
        problems[0] = ""
        return dataclasses.replace(make_model(held), changed=lambda: problems[0])

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
