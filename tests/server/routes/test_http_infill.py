"""Infill over HTTP as clients ask: shapes, streams, markers, usage, health, metrics, models."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redraft.model.errors import EngineGone
from redraft.model.prompts.registry import Middle, recognise
from redraft.model.records import EditRequest, ModelStatus
from redraft.server.app import create_app
from redraft.server.http.listen import listen
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import CHATTY, READY, ScriptedPredictor, infill
from support.served import events, eventually, post, served


def test_mercury_infill_has_text_message_and_reason() -> None:
    predictor = ScriptedPredictor()
    sent = {"model": "mercury-coder", "prompt": "def f(a, b):\n    ", "suffix": "\n"}
    status, body = post("/v1/fim/completions", {**sent, "max_tokens": 9}, predictor)
    assert status == 200
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    assert body["model"] == "fake-1m"
    assert body["choices"] == [
        {
            "index": 0,
            "text": "return a + b",
            "message": {"role": "assistant", "content": "return a + b"},
            "finish_reason": "stop",
        }
    ]
    assert body["usage"]["cached_input_tokens"] == 30
    [request] = predictor.requests
    assert request.text == "def f(a, b):\n    \n"
    assert request.cursor == len("def f(a, b):\n    ")
    assert request.max_tokens == 9


def test_openai_infill_counts_cached_tokens() -> None:
    status, body = post("/v1/completions", {"model": "fake-1m", "prompt": "a", "suffix": ";"})
    assert status == 200
    assert body["choices"] == [
        {"index": 0, "text": "return a + b", "logprobs": None, "finish_reason": "stop"}
    ]
    assert body["usage"] == {
        "prompt_tokens": 40,
        "completion_tokens": 5,
        "total_tokens": 45,
        "prompt_tokens_details": {"cached_tokens": 30},
        "cached_input_tokens": 30,
    }


def test_an_answer_cut_for_length_says_so() -> None:
    predictor = ScriptedPredictor([lambda asked: infill(asked, "x", finish="length")])
    _, body = post("/v1/completions", {"prompt": "a", "suffix": "b"}, predictor)
    assert body["choices"][0]["finish_reason"] == "length"


def test_nothing_to_suggest_is_one_empty_choice() -> None:
    predictor = ScriptedPredictor([()])
    _, body = post("/v1/fim/completions", {"prompt": "a", "suffix": "b"}, predictor)
    assert [choice["text"] for choice in body["choices"]] == [""]
    assert body["choices"][0]["finish_reason"] == "stop"


def test_sampling_fields_reach_the_engine() -> None:
    predictor = ScriptedPredictor()
    how = {"stop": ["\r\n", "END"], "temperature": 0.5, "top_p": 0.9, "seed": 7, "n": 3}
    body = {"prompt": ["a"], "suffix": "b", "max_tokens": 12.0, **how}
    post("/v1/completions", body, predictor)
    [request] = predictor.requests
    assert (request.stop, request.temperature, request.top_p) == (("\n", "END"), 0.5, 0.9)
    assert (request.seed, request.candidates, request.max_tokens) == (7, 3, 12)


def test_n_gives_n_choices_where_fewer_are_known() -> None:
    for text in ("return", ""):
        one = ScriptedPredictor([text])
        _, body = post("/v1/completions", {"prompt": "a", "suffix": "", "n": 3}, one)
        assert [choice["text"] for choice in body["choices"]] == [text] * 3
        assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    chunks = events(
        "/v1/completions", {"prompt": "a", "suffix": "", "n": 2}, ScriptedPredictor(["return"])
    )
    assert [chunk["choices"][0]["index"] for chunk in chunks] == [0, 1]


@pytest.mark.parametrize("value", [0, 5, True, "yes", None, False])
def test_probabilities_of_tokens_are_refused_by_name(value: Any) -> None:
    status, body = post("/v1/completions", {"prompt": "a", "suffix": "", "logprobs": value})
    if value is None or value is False:
        assert status == 200
    else:
        assert (status, body["error"]["param"]) == (400, "logprobs")
        assert "Leave it out" in body["error"]["message"]


def test_too_many_tokens_are_clamped_to_the_limit() -> None:
    predictor = ScriptedPredictor()
    status, _ = post(
        "/v1/completions", {"prompt": "a", "suffix": "b", "max_tokens": 10**9}, predictor
    )
    assert status == 200
    assert predictor.requests[0].max_tokens == 1024


def test_windows_line_ends_come_back_as_they_were_sent() -> None:
    predictor = ScriptedPredictor([("if x:", "\n", "    y")])
    _, body = post("/v1/completions", {"prompt": "a\r\n", "suffix": "\r\nb"}, predictor)
    assert predictor.requests[0].text == "a\n\nb"
    assert predictor.requests[0].cursor == 2
    assert body["choices"][0]["text"] == "if x:\r\n    y"


STRAY = "a = 1\nb = 2\nc = 3\n# pasted\r\ndef f(a):\n    return "
WINDOWS = "a = 1\r\nb = 2\r\n# pasted\ndef f(a):\r\n    return "


@pytest.mark.parametrize(("before", "end"), [(STRAY, "\n"), (WINDOWS, "\r\n")])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", ("prompt", "suffix")),
        ("/v1/fim/completions", ("prompt", "suffix")),
        ("/infill", ("input_prefix", "input_suffix")),
        ("/api/generate", ("prompt", "suffix")),
    ],
)
def test_new_lines_end_as_most_lines_do(
    path: str, fields: tuple[str, str], before: str, end: str
) -> None:
    predictor = ScriptedPredictor([("1 + 2", "\n", "    z = 3")])
    body = {fields[0]: before, fields[1]: f"{end}x = 4{end}", "stream": False}
    _, answer = post(path, body, predictor)
    choices = answer.get("choices", [{}])
    text = answer.get("content") or answer.get("response") or choices[0]["text"]
    assert text == f"1 + 2{end}    z = 3"


def test_stream_ends_with_the_whole_text_and_its_usage() -> None:
    body = {"prompt": "a", "suffix": ";", "stream_options": {"include_usage": True}}
    chunks = events("/v1/completions", body, ScriptedPredictor())
    assert "".join(c["text"] for chunk in chunks for c in chunk["choices"]) == "return a + b"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 5
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_stream_without_diffusing_has_no_canvas_states() -> None:
    chunks = events("/v1/fim/completions", {"prompt": "a", "suffix": ";"}, ScriptedPredictor())
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["return a + b"]


@pytest.mark.parametrize("path", ["/v1/fim/completions", "/v1/completions"])
def test_diffusing_streams_states_of_the_whole_answer(path: str) -> None:
    chunks = events(path, {"prompt": "a", "suffix": ";", "diffusing": True}, ScriptedPredictor())
    texts = [chunk["choices"][0]["text"] for chunk in chunks]
    assert texts == ["░░░ b", "░░ + b", "░ a + b", "return a + b"]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None, None, None, "stop"]


def test_an_error_before_a_stream_has_its_status() -> None:
    predictor = ScriptedPredictor([EngineGone("the engine is gone")])
    status, body = post("/v1/completions", {"prompt": "a", "suffix": "", "stream": True}, predictor)
    assert status == 502
    assert body["error"]["code"] == "engine_gone"


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>P\n<|fim_suffix|>S<|fim_middle|>",
        "<|fim_suffix|>S<|fim_prefix|>P\n<|fim_middle|>",
        "<fim_prefix>P\n<fim_suffix>S<fim_middle>",
        "<｜fim▁begin｜>P\n<｜fim▁hole｜>S<｜fim▁end｜>",
        "<PRE> P\n <SUF>S <MID>",
        "[SUFFIX]S[PREFIX]P\n",
    ],
)
def test_fim_markers_are_recognised(prompt: str) -> None:
    assert recognise(prompt) == Middle("P\n", "S")


def test_an_unknown_prompt_can_be_streamed() -> None:
    chunks = events("/v1/completions", {"prompt": "<|marker_1|>"}, ScriptedPredictor())
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [""]


def test_with_a_suffix_field_markers_are_ordinary_text() -> None:
    predictor = ScriptedPredictor()
    post("/v1/completions", {"prompt": "x = '<|im_start|>'\n", "suffix": ""}, predictor)
    assert predictor.requests[0].text == "x = '<|im_start|>'\n"


def test_a_plain_prompt_is_a_file_up_to_the_cursor() -> None:
    predictor = ScriptedPredictor()
    post("/v1/completions", {"prompt": "def f(x):\n  y = a[x] if a < b | c > d else 1"}, predictor)
    assert predictor.requests[0].cursor == len(predictor.requests[0].text)


async def test_models_lists_what_requests_may_name() -> None:
    async with served(ScriptedPredictor()) as (_, client):
        names = [m["id"] for m in (await (await client.get("/v1/models")).json())["data"]]
        for name in names:
            assert (await client.get(f"/v1/models/{name}")).status == 200
            answer = await client.post(
                "/v1/completions", json={"model": name, "prompt": "a", "suffix": ""}
            )
            assert answer.status == 200
    assert names == ["fake-1m", "fake-1m-int8"]


async def test_health_reports_progress_until_ready() -> None:
    predictor = ScriptedPredictor(statuses=[ModelStatus("loading", "fake-1m", progress=0.4)])
    async with served(predictor) as (_, client):
        loading = await client.get("/health")
        body = await loading.json()
        assert (loading.status, body["status"], body["progress"]) == (503, "loading", 0.4)
        predictor.statuses[:] = [READY]
        ready = await client.get("/health")
        assert (ready.status, (await ready.json())["status"]) == (200, "ready")


async def test_metrics_count_requests_tokens_and_stages() -> None:
    async with served(ScriptedPredictor()) as (_, client):
        await client.post("/v1/completions", json={"prompt": "a", "suffix": "b"})
        await client.post("/v1/completions", data=b"{")
        await client.get("/nowhere")
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = await answer.text()
    assert 'redraft_http_requests_total{route="/v1/completions",status="200"} 1.0' in text
    assert 'redraft_http_requests_total{route="/v1/completions",status="400"} 1.0' in text
    assert 'redraft_http_requests_total{route="unknown",status="404"} 1.0' in text
    assert 'redraft_tokens_total{kind="reused"} 30.0' in text
    assert 'redraft_stage_seconds_count{stage="prefill"} 1.0' in text
    assert 'redraft_predictions_total{answer="candidates",task="infill"} 1.0' in text


async def test_shutdown_lets_a_running_request_finish() -> None:
    async def gated(request: EditRequest) -> str:
        started.set()
        await gate.wait()
        return "x"

    started, gate = asyncio.Event(), asyncio.Event()
    app = create_app(ScriptedPredictor([gated]), Settings())
    async with aiohttp.ClientSession() as client:
        async with listen(app, host="127.0.0.1", port=0, shutdown_s=20) as url:
            ask = {"prompt": "a", "suffix": "b"}
            asking = asyncio.create_task(client.post(f"{url}/v1/completions", json=ask))
            await started.wait()
            asyncio.get_running_loop().call_later(0.2, gate.set)  # while it shuts down
        assert (await asking).status == 200


async def test_shutdown_ends_what_does_not_finish() -> None:
    predictor = ScriptedPredictor(hold=True)
    app = create_app(predictor, Settings())
    async with aiohttp.ClientSession() as client:
        async with listen(app, host="127.0.0.1", port=0, shutdown_s=0.1) as url:
            ask = {"prompt": "a", "suffix": "b"}
            asking = asyncio.create_task(client.post(f"{url}/v1/completions", json=ask))
            await eventually(lambda: predictor.running == 1)
        with pytest.raises(aiohttp.ClientError):
            await asking
    assert len(predictor.cancelled) == 1


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/fim/completions"])
def test_continues_requests_for_mercury_are_understood(path: str) -> None:
    """It names Mercury's model, and sends a marker where nothing follows."""
    predictor = ScriptedPredictor()
    body = {"model": "mercury-coder", "prompt": "def f(a, b):\n    ", "suffix": "<|endoftext|>"}
    status, answer = post(path, {**body, "max_tokens": 150, "temperature": 0}, predictor)
    assert (status, answer["choices"][0]["text"]) == (200, "return a + b")
    [request] = predictor.requests
    assert request.text == "def f(a, b):\n    "


INFILL = {"prompt": "x = ", "suffix": "\n"}
OLLAMA = {"prompt": "x = ", "stream": False}
EDIT = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", INFILL),
    ("/v1/completions", {"prompt": "x = "}),
    ("/v1/fim/completions", INFILL),
    ("/v1/edit/completions", EDIT),
    ("/infill", {"input_prefix": "x = "}),
    ("/api/generate", OLLAMA),
]


@pytest.mark.parametrize(("path", "body"), ASKED)
@pytest.mark.parametrize(
    "name", ["", None, "gpt-9", "mercury-coder", "codestral-latest", "fake-1m"]
)
def test_other_names_mean_the_loaded_one(path: str, body: dict[str, Any], name: str | None) -> None:
    status, answer = post(path, {**body, "model": name})
    assert (status, answer["model"]) == (200, "fake-1m")


@pytest.mark.parametrize(("path", "body"), [*ASKED, ("/api/show", {})])
def test_a_model_of_ours_not_loaded_is_an_error(path: str, body: dict[str, Any]) -> None:
    predictor = ScriptedPredictor()
    status, answer = post(path, {**body, "model": "redraft-9b"}, predictor)
    assert status == 404
    assert "'redraft-9b'" in str(answer["error"])
    assert "fake-1m, fake-1m-int8" in str(answer["error"])
    assert predictor.requests == []


async def test_an_unknown_models_error_lists_the_models() -> None:
    status = replace(CHATTY, chat_model="chatter-1b")
    async with (
        served(ScriptedPredictor(statuses=[status])) as (_, client),
        client.get("/v1/models") as listed,
        client.get("/v1/models/nope") as refused,
    ):
        names = [each["id"] for each in (await listed.json())["data"]]
        code, message = refused.status, (await refused.json())["error"]["message"]
    assert code == 404
    assert f"The models are {', '.join(names)}." in message
    assert len(names) > 2, "the model for conversations, too"


@pytest.mark.parametrize("name", ["my-coder", "my-coder-int8"])
def test_unloaded_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert post("/v1/completions", {**INFILL, "model": name})[0] == 200
    shipped = Path(__file__).parents[3] / "model" / "shipped" / "redraft-0.5b.json"
    folder = tmp_path / "my-coder"
    folder.mkdir()
    described = json.loads(shipped.read_text(encoding="utf-8"))
    imported = {
        **described,
        "name": "my-coder",
        "base": None,
        "adapter": None,
        "prebuilt": ["int8"],
    }
    imported["default_variant"] = "int8"
    (folder / "model.json").write_text(json.dumps(imported), encoding="utf-8")
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    status, answer = post("/v1/completions", {**INFILL, "model": name})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert "--model" in answer["error"]["message"]


def test_a_removed_model_is_refused_with_another() -> None:
    status, answer = post("/v1/completions", {**INFILL, "model": "redraft-135m"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert "use redraft-0.5b (redraft model pull redraft-0.5b)" in answer["error"]["message"]
