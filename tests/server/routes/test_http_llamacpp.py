"""llama.cpp's ``/infill`` as llama.vim and llama.vscode send it."""

from __future__ import annotations

import asyncio
import json

import pytest
from redraft.model.records import CanvasState, EditRequest, Prediction
from redraft.server.routes.llamacpp import keep_indented, within
from support.edit_prompts import VIM
from support.editors.predictor import ScriptedPredictor, State
from support.served import post, served


def test_llama_vim_gets_its_fields_by_whole_names() -> None:
    predictor = ScriptedPredictor()
    status, body = post("/infill", VIM, predictor)
    assert status == 200
    assert body == {
        "content": "return a + b",
        "timings/prompt_n": 10,
        "timings/prompt_ms": 12.0,
        "timings/prompt_per_token_ms": 1.2,
        "timings/prompt_per_second": pytest.approx(833.3, abs=0.1),
        "timings/predicted_n": 5,
        "timings/predicted_ms": 20.0,
        "timings/predicted_per_token_ms": 4.0,
        "timings/predicted_per_second": 250.0,
        "truncated": False,
        "tokens_cached": 30,
    }
    [request] = predictor.requests
    assert request.text == "import os\nx = f()\nprint(x)\n"
    assert request.cursor == len("import os\nx = f(")
    assert [one.path for one in request.related] == ["old.py", "new.py"]
    assert (request.max_tokens, request.stop, request.temperature) == (128, ("\n\n",), 0.0)


def test_llama_vscode_gets_everything() -> None:
    body = {key: value for key, value in VIM.items() if key not in ("response_fields", "stop")}
    status, answer = post("/infill", body)
    assert status == 200
    assert answer["content"] == "return a + b"
    assert (answer["stop"], answer["stop_type"], answer["truncated"]) == (True, "eos", False)
    assert answer["timings"]["predicted_n"] == 5


def test_no_tokens_to_predict_warms_the_cache_only() -> None:
    predictor = ScriptedPredictor()
    warm = VIM | {"input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0}
    status, body = post("/infill", warm | {"samplers": [], "response_fields": [""]}, predictor)
    assert (status, body) == (200, {})
    [request] = predictor.requests
    assert request.max_tokens == 1
    assert len(request.related) == 2


def test_any_number_of_tokens_means_the_servers_limit() -> None:
    predictor = ScriptedPredictor()
    post("/infill", VIM | {"n_predict": -1}, predictor)
    assert predictor.requests[0].max_tokens == 1024


def test_a_least_indentation_ends_the_content() -> None:
    predictor = ScriptedPredictor([("a", "\n    b\n", "\n", "c")])
    _, body = post("/infill", VIM | {"n_indent": 4}, predictor)
    assert body["content"] == "a\n    b"
    assert keep_indented("a\r\n\tb\r\nc", 1) == "a\r\n\tb"
    assert keep_indented("x\n  y\n", 2) == "x\n  y\n"


def test_windows_line_ends_come_back() -> None:
    predictor = ScriptedPredictor([("a", "\n", "b")])
    _, body = post("/infill", VIM | {"input_suffix": ")\r\n"}, predictor)
    assert body["content"] == "a\r\nb"


def test_nothing_to_suggest_is_empty_content() -> None:
    _, body = post("/infill", VIM, ScriptedPredictor([()]))
    assert body["content"] == ""


async def test_a_stream_is_one_event_that_stops() -> None:
    sent = {"input_prefix": "a", "input_suffix": ";", "stream": True}
    async with served(ScriptedPredictor()) as (_, client):
        event, end = (await (await client.post("/infill", json=sent)).text()).split("\n\n")
    assert end == ""
    body = json.loads(event.removeprefix("data: "))
    assert (body["content"], body["stop"]) == ("return a + b", True)


#: A line, then another; the second is never finished.
SLOW: tuple[State, ...] = ((None, None), ("one", None), ("one\ntw", None))


def test_what_is_whole_when_time_is_up_is_the_answer() -> None:
    status, body = post(
        "/infill", VIM | {"t_max_predict_ms": 1e-9}, ScriptedPredictor(states=SLOW, hold=True)
    )
    assert status == 200
    assert body["content"] == "one"


def test_time_counts_from_a_step_and_by_whole_lines() -> None:
    async def run(limit_ms: float) -> Prediction | CanvasState:
        engine = ScriptedPredictor(states=SLOW)
        ticks = iter(range(100))
        request = EditRequest("infill", "a.py", "", 0)
        return await within(engine, request, limit_ms, clock=lambda: float(next(ticks)))

    early = asyncio.run(run(1_000))
    assert isinstance(early, CanvasState)
    assert early.step == 3  # the limit was over at the first, but no line was whole
    assert isinstance(asyncio.run(run(60_000)), Prediction)
    assert isinstance(asyncio.run(run(0)), Prediction)


def test_an_empty_request_is_an_empty_file() -> None:
    predictor = ScriptedPredictor()
    status, _ = post("/infill", {}, predictor)
    assert status == 200
    assert (predictor.requests[0].text, predictor.requests[0].cursor) == ("", 0)
