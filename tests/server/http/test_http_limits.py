"""Bodies, connections and models at their limits: a clear error each, and the server stays up."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import Any

import pytest
from redraft.model.engine import Engine
from redraft.model.errors import EngineGone, ModelNotReady, SettingsError
from redraft.model.prompts.excerpt import MAX_RELATED
from redraft.model.prompts.registry import Middle, Unknown, recognise
from redraft.model.records import CanvasState
from redraft.server.app import create_app
from redraft.server.http.bodies import LARGE_BODY
from redraft.server.http.listen import check_free, listen
from redraft.server.routes import openai
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_cursortab, mercury_body, zeta2_as_zed
from support.editors.predictor import CHATTY, ScriptedPredictor
from support.models.engines_of import ANSWER, Clock, Held, make_model, ready
from support.models.fake_backend import ids
from support.served import eventually, send, served

INFILL = {"prompt": "a", "suffix": "b"}
EDIT = mercury_body(mercury_as_cursortab([], ["a<|cursor|>"], []))


async def test_a_huge_body_in_chunks_is_refused() -> None:
    async def pieces() -> Any:
        for _ in range(8):
            yield b" " * 1_000

    settings = Settings(max_body_bytes=4_000, shutdown_s=0.1)
    async with (
        served(ScriptedPredictor(), settings) as (_, client),
        client.post("/v1/completions", data=pieces()) as answer,
    ):
        status, error = answer.status, (await answer.json())["error"]
    assert status == 413
    assert "4000 bytes" in error["message"]


def test_a_small_body_that_unpacks_huge_is_refused() -> None:
    bomb = gzip.compress(b" " * 1_000_000)
    status, _, _ = send(
        "/v1/completions",
        bomb,
        headers={"Content-Encoding": "gzip"},
        settings=Settings(max_body_bytes=100_000, shutdown_s=0.1),
    )
    assert status == 413


@pytest.mark.parametrize("path", ["/nothing", "/health", "/v1/completions", "/v1/models"])
async def test_an_unreadable_body_ends_its_connection(path: str) -> None:
    async with served(ScriptedPredictor()) as (_, client):
        for _ in range(3):
            packed = {"Content-Encoding": "gzip"}
            async with client.post(path, data=b"no gzip at all", headers=packed) as answer:
                assert 400 <= answer.status < 500
                assert answer.headers["Connection"] == "close"
                assert path != "/v1/completions" or "invalid_body" in await answer.text()
            async with client.get("/health") as answer:
                assert answer.status == 200


def test_one_line_of_five_megabytes_is_taken() -> None:
    predictor = ScriptedPredictor()
    send("/v1/completions", {"prompt": "x" * 5_000_000, "suffix": ""}, predictor=predictor)
    assert predictor.requests[0].cursor == 5_000_000


async def test_a_stalled_body_is_given_up() -> None:
    settings = Settings(body_timeout_s=0.2, shutdown_s=0.1)
    async with served(ScriptedPredictor(), settings) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        )
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 20)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_timeout" in answer


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\x00\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
    ],
)
async def test_bytes_that_are_no_request_do_no_harm(garbage: bytes) -> None:
    async with served(ScriptedPredictor()) as (url, client):
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(garbage)
        await writer.drain()
        writer.close()
        async with client.get("/health") as health:
            assert health.status == 200


def test_a_fault_of_ours_is_a_500_that_shows_no_inside() -> None:
    predictor = ScriptedPredictor([ZeroDivisionError("the secret text of the user")])
    status, _, error = send("/v1/completions", INFILL, predictor=predictor)
    assert status == 500
    assert error["code"] == "internal_error"
    assert "secret" not in json.dumps(error)


def test_an_unready_model_is_a_503_to_try_again() -> None:
    predictor = ScriptedPredictor([ModelNotReady("The weights are loading (40 %).")])
    status, headers, error = send("/v1/completions", INFILL, predictor=predictor)
    assert status == 503
    assert error["code"] == "model_not_ready"
    assert int(headers["Retry-After"]) >= 1


async def test_a_full_queue_answers_429_and_recovers() -> None:
    held = Held(ids(ANSWER))
    engine = Engine(lambda report: make_model(held), "fake", queue_length=2, clock=Clock())
    await ready(engine)
    async with served(engine) as (_, client):
        waiting = [
            asyncio.create_task(client.post("/v1/completions", json={**INFILL, "prompt": prompt}))
            for prompt in ("first", "second")
        ]
        await eventually(lambda: held.entered.is_set() and len(engine._queue) == 1)
        for path in ("/v1/completions", "/v1/fim/completions"):
            async with client.post(path, json=INFILL) as answer:
                assert answer.status == 429
                assert 1 <= int(answer.headers["Retry-After"]) <= 10
                assert (await answer.json())["error"]["code"] == "overloaded"
        async with client.get("/health") as health:
            assert health.status == 200
        for one in waiting:
            one.cancel()
        await eventually(lambda: len(engine._queue) == 0)
        held.gate.set()
        await eventually(lambda: engine._computing is None)
        async with client.post("/v1/completions", json=INFILL) as answer:
            assert answer.status == 200
        async with client.get("/metrics") as answer:
            assert "redraft_predictions_refused_total 2.0" in await answer.text()
    await engine.close()


async def test_others_are_answered_during_a_large_body(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slowly(prompt: str) -> Middle:
        reading.set()
        assert go_on.wait(20), "nobody else was answered meanwhile"
        return Middle(prompt, "")

    monkeypatch.setattr(openai, "recognise", slowly)
    async with served(ScriptedPredictor()) as (_, client):
        body = {"prompt": "x" * LARGE_BODY}
        large = asyncio.create_task(client.post("/v1/completions", json=body))
        await eventually(reading.is_set)
        async with client.get("/health") as health:
            assert health.status == 200
        go_on.set()
        assert (await large).status == 200


@pytest.mark.parametrize(
    ("head", "one", "tail"),
    [
        (
            "",
            "<|file_sep|>{}.py\nx\n",
            "<|file_sep|>a.py\n<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>",
        ),
        (
            "<[fim-suffix]>\nz\n<[fim-prefix]>",
            "<filename>{}.py\nx\n",
            "<filename>a.py\n<<<<<<< CURRENT\nx<|user_cursor|>\n=======\n<[fim-middle]>",
        ),
    ],
)
def test_of_many_files_the_most_useful_are_read(head: str, one: str, tail: str) -> None:
    prompt = head + "<|file_sep|>repository\n" * (not head)
    prompt += "".join(one.format(i) for i in range(5_000)) + tail
    meant = recognise(prompt)
    assert not isinstance(meant, Unknown)
    related = meant.related
    assert [file.path for file in related] == [f"{i}.py" for i in reversed(range(MAX_RELATED))]


async def test_a_port_in_use_is_named_with_the_way_out() -> None:
    async with served(ScriptedPredictor()) as (url, _):
        port = int(url.rpartition(":")[2])
        app = create_app(ScriptedPredictor(), Settings())
        with pytest.raises(SettingsError, match=rf"{port}.*--port"):
            async with listen(app, host="127.0.0.1", port=port, shutdown_s=0):
                raise AssertionError("it listened on a port in use")
        with pytest.raises(SettingsError, match=rf"{port}.*--port"):
            await check_free("127.0.0.1", port)
        with pytest.raises(SettingsError, match=r"192.0.2.1, port 1: [^(]*--host"):
            await check_free("192.0.2.1", 1)
    await check_free("127.0.0.1", port)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/edit/completions", EDIT),
        ("/v1/edit/completions", EDIT | {"stream": True, "diffusing": True}),
        ("/v1/fim/completions", INFILL),
        ("/v1/fim/completions", INFILL | {"stream": True, "diffusing": True}),
        ("/v1/completions", {"prompt": zeta2_as_zed("", "a", "", 0)}),
        ("/infill", {"input_prefix": "a", "t_max_predict_ms": 60_000}),
        ("/api/generate", {"prompt": "a"}),
    ],
)
async def test_a_dropped_request_stops_computing(path: str, body: dict[str, Any]) -> None:
    predictor = ScriptedPredictor(hold=True)
    async with served(predictor) as (_, client):

        async def ask() -> bytes:
            async with client.post(path, json=body) as answer:
                return await answer.read()

        asking = asyncio.create_task(ask())
        await eventually(lambda: predictor.running == 1)
        asking.cancel()
        await eventually(lambda: predictor.running == 0)
    assert len(predictor.cancelled) == 1


TURN = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
GAP = {"prompt": "def f():\n    ", "suffix": "\n", "stream": True, "diffusing": True}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", GAP),
    ("/v1/fim/completions", GAP),
    ("/v1/chat/completions", TURN),
    ("/api/chat", TURN),
]


async def _pieces(path: str, body: dict[str, Any], error: Exception) -> list[str]:
    states = [CanvasState(1, ("return", " a"), 2)]
    predictor = ScriptedPredictor([error], states=states, statuses=[CHATTY])
    async with (
        served(predictor) as (_, client),
        asyncio.timeout(20),
        client.post(path, json=body) as answer,
    ):
        assert answer.status == 200
        lines = (await answer.text()).splitlines()
    return [line.removeprefix("data: ") for line in lines if line]


@pytest.mark.parametrize("error", [ValueError("a bug"), EngineGone("it is gone")])
@pytest.mark.parametrize(("path", "body"), ASKED)
def test_an_error_ends_the_stream(path: str, body: dict[str, Any], error: Exception) -> None:
    first, *_, last = asyncio.run(_pieces(path, body, error))
    assert "error" not in json.loads(first)
    told = json.loads(last)["error"]
    message = told if path.startswith("/api/") else told["message"]
    assert isinstance(message, str)
    assert ("gone" in message) == isinstance(error, EngineGone)
    assert "a bug" not in message
