"""The bytes of answers: JSON without spaces, as llama.cpp writes it, on every route there is."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from redraft.model.engine.record_json import request_to_json
from redraft.model.errors import EngineGone
from redraft.model.records import EditRequest
from redraft.server.app import create_app
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.predictor import ScriptedPredictor
from support.served import served

INFILL = {"prompt": "a", "suffix": "b"}
EDIT = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))
CHAT = {"messages": [{"role": "user", "content": "a"}]}
DECISION = {"state": "a", "questions": {"b": {"type": "noul", "instructions": "c"}}}
RECORD = request_to_json(EditRequest(task="infill", path="a.py", text="ab", cursor=1), steps=True)

#: What each route is sent; one without a body is asked by GET.
ASKED: dict[str, list[dict[str, Any] | None]] = {
    "/health": [None],
    "/v1/completions": [INFILL, {**INFILL, "stream": True, "diffusing": True}, {"prompt": 7}],
    "/v1/fim/completions": [INFILL, {**INFILL, "stream": True, "diffusing": True}, {}],
    "/v1/edit/completions": [EDIT, {**EDIT, "stream": True}, {}],
    "/v1/models": [None],
    "/v1/models/{name}": [None],
    "/feedback": [{"request_id": "x", "user_action": "accept"}],
    "/infill": [{"input_prefix": "a"}, {"input_prefix": "a", "stream": True}, {"prompt": 7}],
    "/api/generate": [INFILL, {**INFILL, "stream": False}, {"prompt": 7}],
    "/api/tags": [None],
    "/api/show": [{"model": "fake-1m"}],
    "/api/ps": [None],
    "/api/version": [None],
    "/api/chat": [{**CHAT, "stream": False}, CHAT, {"messages": 7}],
    "/openapi.json": [None],
    "/v1/chat/completions": [CHAT, {**CHAT, "stream": True, "diffusing": True}, {}],
    "/v1/decisions": [DECISION, {}],
    "/v1/chat/completions/models": [None],
    "/v1/decisions/models": [None],
    "/v1/edit/completions/models": [None],
    "/v1/fim/completions/models": [None],
    "/redraft/v1/predict": [RECORD, {**RECORD, "steps": False}, {}],
    "/redraft/v1/status": [None],
}


async def answers(predictor: ScriptedPredictor) -> list[tuple[str, str]]:
    """Route and body of the answer to each of :data:`ASKED`."""
    found = []
    async with served(predictor) as (_, client):
        for route, bodies in ASKED.items():
            path = route.replace("{name}", "fake-1m")
            for body in bodies:
                method = "GET" if body is None else "POST"
                async with client.request(method, path, json=body) as answer:
                    found.append((path, await answer.text()))
        for method, path in (("GET", "/nowhere"), ("GET", "/infill"), ("GET", "/api/generate")):
            async with client.request(method, path) as answer:
                found.append((path, await answer.text()))
    return found


def values(text: str) -> list[str]:
    """The JSON texts of an answer: one, one a line, or one an event."""
    lines = (line.removeprefix("data: ") for line in text.splitlines())
    return [line for line in lines if line and line != "[DONE]"]


def test_every_route_is_asked() -> None:
    routes = {r.canonical for r in create_app(ScriptedPredictor(), Settings()).router.resources()}
    assert routes - {"/metrics"} == set(ASKED)


@pytest.mark.parametrize("error", [None, EngineGone("the engine is gone")])
def test_json_has_no_spaces_between_its_parts(error: Exception | None) -> None:
    for path, text in asyncio.run(answers(ScriptedPredictor([error]))):
        assert values(text), path
        for value in values(text):
            assert value == json.dumps(json.loads(value), separators=(",", ":")), path


def test_llama_vim_finds_the_content() -> None:
    """Its own look at an answer, by which it passes over any other."""
    answer = next(
        text for path, text in asyncio.run(answers(ScriptedPredictor())) if path == "/infill"
    )
    assert re.search(r'"content"\s*:"', answer)
