"""Hostile requests to the routes of edits, feedback, llama.cpp and Ollama: no fault of ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import SecretStr
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_cursortab, mercury_body, zeta2_as_zed
from support.predictor import ScriptedPredictor, editing
from support.served import eventually, never_a_500, post, served

ROUTES = ("/v1/edit/completions", "/feedback", "/infill", "/api/generate", "/api/show")
EDIT = mercury_body(mercury_as_cursortab([], ["a<|cursor|>"], []))


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b"[1, 2]", "JSON array"),
        (b'{"prompt": NaN}', "NaN"),
        (b'{"prompt": "\xff"}', "UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_broken_body_is_explained_in_the_routes_own_shape(
    path: str, body: bytes, says: str
) -> None:
    status, answer = post(path, body)
    assert status == 400
    error = answer["error"]
    message = error if path.startswith("/api/") else error["message"]
    assert says in message


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_demands_the_key_where_there_is_one(path: str) -> None:
    status, _ = post(path, {}, settings=Settings(api_key=SecretStr("secret"), shutdown_s=0.1))
    assert status == 401


@pytest.mark.parametrize("path", ROUTES)
def test_a_body_over_the_limit_is_refused(path: str) -> None:
    status, answer = post(
        path, {"prompt": "x" * 5_000}, settings=Settings(max_body_bytes=2_000, shutdown_s=0.1)
    )
    assert status == 413
    error = answer["error"]
    assert "2000 bytes" in (error if path.startswith("/api/") else error["message"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/edit/completions", EDIT),
        ("/v1/edit/completions", EDIT | {"stream": True, "diffusing": True}),
        ("/v1/completions", {"prompt": zeta2_as_zed("", "a", "", 0)}),
        ("/infill", {"input_prefix": "a", "t_max_predict_ms": 60_000}),
        ("/api/generate", {"prompt": "a"}),
    ],
)
def test_a_superseded_request_that_is_dropped_stops_computing(
    path: str, body: dict[str, Any]
) -> None:
    async def run() -> ScriptedPredictor:
        predictor = ScriptedPredictor(hold=True)
        async with served(predictor) as (_, client):

            async def ask() -> bytes:
                async with client.post(path, json=body) as answer:
                    return await answer.read()

            asking = asyncio.create_task(ask())
            await eventually(lambda: predictor.running == 1)
            asking.cancel()
            await eventually(lambda: predictor.running == 0)
        return predictor

    assert len(asyncio.run(run()).cancelled) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": JSON}), max_size=2)
NAMES = st.sampled_from(
    (
        "prompt",
        "suffix",
        "input_prefix",
        "input_suffix",
        "input_extra",
        "n_predict",
        "n_indent",
        "t_max_predict_ms",
        "response_fields",
        "options",
        "request_id",
        "user_action",
        "stop",
        "stream",
        "raw",
        "model",
        "eagerness",
        "messages",
    )
)


def test_no_json_whatever_makes_a_500() -> None:
    bodies = st.dictionaries(NAMES, JSON | MESSAGES).map(lambda one: json.dumps(one).encode())
    never_a_500(ROUTES, bodies, editing((1, 1, ["A"])))
