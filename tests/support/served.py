"""The HTTP service around a scripted model, on a free port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from redraft.model.records import EditRequest, Predictor
from redraft.model.wire import request_to_json
from redraft.server.app import create_app
from redraft.server.http.listen import listen
from redraft.server.settings import Settings

from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import ScriptedPredictor

INFILL = {"prompt": "a", "suffix": "b"}
CHAT = {"messages": [{"role": "user", "content": "a"}]}
DECISION = {"state": "a", "questions": {"b": {"type": "noul", "instructions": "c"}}}
RECORD = request_to_json(EditRequest(task="infill", path="a.py", text="ab", cursor=1))
#: A body for each route that takes one.
POSTED: dict[str, dict[str, Any]] = {
    "/v1/completions": INFILL,
    "/v1/fim/completions": INFILL,
    "/v1/edit/completions": mercury_body(mercury_as_zed("", "x = 1<|cursor|>", "")),
    "/infill": {"input_prefix": "a"},
    "/api/generate": {**INFILL, "stream": False},
    "/api/chat": {**CHAT, "stream": False},
    "/api/show": {"model": "fake-1m"},
    "/v1/chat/completions": CHAT,
    "/v1/decisions": DECISION,
    "/v1/systemone": DECISION,
    "/feedback": {"request_id": "x", "user_action": "accept"},
    "/redraft/v1/predict": RECORD,
}


#: Routes that hold a conversation.
TALK = ("/api/chat", "/v1/chat/completions", "/v1/decisions", "/v1/systemone")


@asynccontextmanager
async def served(
    predictor: Predictor, settings: Settings | None = None
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """Start a server, and yield it with a client."""
    settings = settings or Settings(shutdown_s=0.1)
    app: web.Application = create_app(predictor, settings)
    async with (
        listen(app, host="127.0.0.1", port=0, shutdown_s=settings.shutdown_s) as url,
        aiohttp.ClientSession(base_url=url) as client,
    ):
        yield url, client


def never_a_500(
    routes: Sequence[str], bodies: st.SearchStrategy[bytes], predictor: ScriptedPredictor
) -> None:
    """Send drawn ``bodies`` to ``routes`` of a server, and check that none ends in a 500."""
    loop = asyncio.new_event_loop()
    context = served(predictor)
    _, client = loop.run_until_complete(context.__aenter__())

    async def send(path: str, body: bytes) -> int:
        async with client.post(path, data=body) as answer:
            await answer.read()
            return answer.status

    @hypothesis_settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(path=st.sampled_from(routes), body=bodies)
    def check(path: str, body: bytes) -> None:
        assert loop.run_until_complete(send(path, body)) < 500

    try:
        check()
    finally:
        loop.run_until_complete(context.__aexit__(None, None, None))
        loop.close()


def send(
    path: str,
    body: bytes | dict[str, Any] | None = None,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    settings: Settings | None = None,
    predictor: ScriptedPredictor | None = None,
) -> tuple[int, dict[str, str], dict[str, Any]]:
    """(status, headers, error) of one request; afterwards the server must still be well."""

    async def run() -> tuple[int, dict[str, str], dict[str, Any]]:
        async with served(predictor or ScriptedPredictor(), settings) as (_, client):
            data = json.dumps(body).encode() if isinstance(body, dict) else body
            async with client.request(method, path, data=data, headers=headers) as answer:
                error = (await answer.json()).get("error", {})
                found = answer.status, dict(answer.headers), error
            async with client.get("/health") as health:
                assert health.status == 200
            return found

    return asyncio.run(run())


def post(
    path: str,
    body: dict[str, Any] | bytes,
    predictor: ScriptedPredictor | None = None,
    settings: Settings | None = None,
) -> tuple[int, Any]:
    """(status, JSON) of one request to a fresh server."""

    async def run() -> tuple[int, Any]:
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with (
            served(predictor or ScriptedPredictor(), settings) as (_, client),
            client.post(path, **sent) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    return asyncio.run(run())


def got(path: str, predictor: ScriptedPredictor) -> Any:
    """Return the JSON that a fresh server answers to GET."""

    async def run() -> Any:
        async with served(predictor) as (_, client), client.get(path) as answer:
            assert answer.status == 200
            return await answer.json()

    return asyncio.run(run())


def events(path: str, body: dict[str, Any], predictor: ScriptedPredictor) -> list[Any]:
    """Return the JSON of each event of a stream, which has to end as OpenAI's do."""

    async def run() -> str:
        async with (
            served(predictor) as (_, client),
            client.post(path, json={**body, "stream": True}) as answer,
        ):
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            return await answer.text()

    *blocks, done, end = asyncio.run(run()).split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    assert all(block.startswith("data: ") for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


async def eventually(condition: object, timeout_s: float = 20.0) -> None:
    """Wait until ``condition()`` is true; fail after ``timeout_s``."""
    assert callable(condition)
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


def message(answer: Any) -> str:
    """Return the sentence of an error in either form."""
    error = answer["error"]
    return str(error if isinstance(error, str) else error["message"])
