"""Requests that only read their prompt, before a question about it is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from redraft.model.engine import Engine, EngineJob
from redraft.model.errors import InvalidRequest, ModelNotReady
from redraft.model.predict import CPU_STEP, Model, predict
from redraft.model.records import (
    Conversation,
    EditRequest,
    Message,
    ModelStatus,
    Prediction,
    RecentEdit,
)
from redraft.model.wire import check_request, from_json, request_from_json, request_to_json, to_json
from support.models.engines_of import (
    ANSWER,
    TEXT,
    Clock,
    SlowBackend,
    engine_of,
    make_model,
    ready,
    run,
    until,
)
from support.models.fake_backend import FakeBackend, Script, ids
from support.models.rewriting import model_of

LINES = "".join(f"line_{number} = {number}\n" for number in range(60))
NEWEST = RecentEdit("a.py", 30, "-line_30 = 30\n+line_30 = 31\n")
QUESTION = EditRequest(
    "next_edit", "a.py", LINES, LINES.index("line_30"), max_tokens=60, edits=(NEWEST,)
)
TALK = Conversation((Message("user", "hello"),))
GHOST = EditRequest("infill", "b.py", TEXT, TEXT.index("= ") + 2)


def read(model: Model, request: EditRequest) -> Prediction:
    return predict(model, request, Clock())


def fresh() -> Model:
    return model_of({LINES: 1.0}, QUESTION)


def test_a_question_that_was_read_ahead_reads_nothing() -> None:
    model = fresh()
    ahead = read(model, replace(QUESTION, read_ahead="all"))
    assert (ahead.candidates, ahead.reason) == ((), "the prompt was read ahead")
    assert ahead.stats.computed_tokens == ahead.stats.prompt_tokens - 1
    assert not ahead.stats.denoise_steps
    asked = read(model, QUESTION)
    assert asked.stats.reused_tokens == asked.stats.prompt_tokens - 1
    assert asked.candidates == read(fresh(), QUESTION).candidates


def test_the_stable_part_ends_before_the_newest_edit() -> None:
    model = fresh()
    ahead = read(model, replace(QUESTION, read_ahead="stable"))
    assert 0 < ahead.stats.computed_tokens < ahead.stats.prompt_tokens - 1
    typed = LINES.replace("line_30 = 30", "line_30 = 3")
    newest = replace(NEWEST, diff="-line_30 = 30\n+line_30 = 3\n")
    next_key = read(model, replace(QUESTION, text=typed, edits=(newest,)))
    assert next_key.stats.reused_tokens >= ahead.stats.computed_tokens


def test_reading_the_same_again_costs_and_cuts_nothing() -> None:
    model = fresh()
    read(model, QUESTION)
    backend = model.backend
    assert isinstance(backend, FakeBackend)
    held = [list(each.tokens) for each in backend.sequences]
    for part in ("stable", "all"):
        again = read(model, replace(QUESTION, read_ahead=part))  # type: ignore[arg-type]
        assert again.stats.computed_tokens == 0
    assert [list(each.tokens) for each in backend.sequences] == held


def test_reading_ahead_takes_nothing_from_ghost_text() -> None:
    model = fresh()
    ghost = EditRequest("infill", "a.py", LINES, QUESTION.cursor)
    first = read(model, ghost)
    read(model, replace(QUESTION, read_ahead="all"))
    again = read(model, ghost)
    assert again.stats.reused_tokens == first.stats.prompt_tokens - 1


def test_only_infills_and_next_edits_are_read_ahead() -> None:
    body = request_to_json(replace(QUESTION, read_ahead="stable"))
    assert request_from_json(body)[0].read_ahead == "stable"
    body["request"]["read_ahead"] = "some"
    with pytest.raises(InvalidRequest, match="read_ahead"):
        request_from_json(body)
    assert "read_ahead" not in request_to_json(QUESTION)["request"], "older servers refuse it"
    chat = EditRequest("chat", "", "", 0, conversation=TALK, read_ahead="all")
    with pytest.raises(InvalidRequest, match="'read_ahead' is for infills and next edits"):
        check_request(chat)


def test_an_engine_must_say_that_it_reads_ahead() -> None:
    body = to_json(ModelStatus("ready", "fake"))
    del body["status"]["reads_ahead"]
    assert not from_json(body, ModelStatus).reads_ahead
    assert fresh().status().reads_ahead


# --- the engine ----------------------------------------------------------------------------------

LONG = replace(QUESTION, text=LINES * 4, read_ahead="all")


def test_a_question_stops_reading_ahead_between_passes() -> None:
    backend = SlowBackend()

    async def work() -> None:
        engine = engine_of(backend)
        try:
            await ready(engine)
            backend.gate.clear()
            ahead = asyncio.create_task(engine.predict(LONG))
            assert await asyncio.to_thread(backend.entered.wait, 10)
            question = asyncio.create_task(engine.predict(GHOST))
            await asyncio.sleep(0)
            backend.gate.set()
            await question
            assert not ahead.done()
            read_first = backend.sequences[0].tokens
            assert len(read_first) == CPU_STEP, "one pass was under way"
            stats = (await ahead).stats  # it goes on when the engine is idle
            assert stats.reused_tokens >= CPU_STEP
            assert stats.reused_tokens + stats.computed_tokens == stats.prompt_tokens - 1
        finally:
            await engine.close()

    run(work())


def test_a_pass_is_interrupted_unless_it_is_needed() -> None:
    question = replace(LONG, read_ahead="")
    asked = [EngineJob(each, None, 0.0) for each in (LONG, question, GHOST)]
    ahead, same, other = asked
    assert other.interrupts(ahead)
    assert not same.interrupts(ahead), "it goes on where the pass ends"
    assert not any(each.interrupts(same) for each in asked)
    assert not ahead.interrupts(ahead)


def test_reading_ahead_waits_and_goes_with_its_client() -> None:
    backend = SlowBackend()

    async def work() -> None:
        engine = engine_of(backend)
        try:
            await ready(engine)
            backend.gate.clear()
            question = asyncio.create_task(engine.predict(GHOST))
            assert await asyncio.to_thread(backend.entered.wait, 10)
            ahead = asyncio.create_task(engine.predict(LONG))
            others = [asyncio.create_task(engine.predict(GHOST)) for _ in range(2)]
            await asyncio.sleep(0.01)
            ahead.cancel()  # full queues do not touch each other
            backend.gate.set()
            await asyncio.gather(question, *others)
            await until(engine, lambda status: status.state == "ready")
            assert not engine._queue.has_any()
            before = backend.passes
            await asyncio.sleep(0.02)
            assert backend.passes == before
        finally:
            await engine.close()

    run(work())


def test_an_interrupted_reading_ends_with_its_client() -> None:
    backend = SlowBackend()

    async def work() -> None:
        engine = engine_of(backend)
        try:
            await ready(engine)
            for _ in range(3):
                ahead = asyncio.create_task(engine.predict(LONG))
                await asyncio.sleep(0.003)
                question = asyncio.create_task(engine.predict(GHOST))
                await asyncio.sleep(0)
                ahead.cancel()
                assert (await question).stats.prompt_tokens
            assert not engine._queue.has_any()
        finally:
            await engine.close()

    run(work())


def test_reading_ahead_loads_no_model() -> None:
    async def work() -> None:
        engine = Engine(lambda report: make_model(Script(ids(ANSWER))), "fake", unload_s=0.01)
        try:
            await until(engine, lambda status: status.state == "unloaded")
            with pytest.raises(ModelNotReady):
                await engine.predict(replace(GHOST, read_ahead="all"))
            assert (await engine.status()).state == "unloaded"
            assert (await engine.predict(GHOST)).candidates
        finally:
            await engine.close()

    run(work())
