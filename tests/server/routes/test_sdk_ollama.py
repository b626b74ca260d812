"""Ollama's official client against a live server: what is served of it, sync and async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.editors.predictor import READY, ScriptedPredictor, chatting
from support.sdk import ADD, ASK, CALL, caller

ollama = pytest.importorskip("ollama", reason="the dev extra installs the ollama client")


@pytest.fixture(params=["Client", "AsyncClient"])
def use(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call one method of a client of either kind."""
    made = getattr(ollama, request.param)
    return caller(lambda url, key: made(host=url, headers={"Authorization": f"Bearer {key}"}))


def test_chat(use: Callable[..., Any]) -> None:
    predictor = chatting("Hello to you.")
    options = {"temperature": 0.3, "num_predict": 12, "seed": 4, "stop": ["END"]}
    answer = use("chat", predictor, **ASK, options=options)
    assert answer.message.content == "Hello to you." and answer.done_reason == "stop"
    (request,) = predictor.requests
    assert (request.temperature, request.max_tokens, request.seed) == (0.3, 12, 4)


def test_chat_streamed(use: Callable[..., Any]) -> None:
    parts = use("chat", chatting("Hello to you."), **ASK, stream=True)
    assert "".join(part.message.content for part in parts) == "Hello to you."
    assert [part.done for part in parts][-2:] == [False, True]


@pytest.mark.parametrize("form", ["json", {"type": "object", "properties": {}}])
def test_chat_in_a_format(use: Callable[..., Any], form: object) -> None:
    predictor = chatting("{}")
    use("chat", predictor, **ASK, format=form)
    grammar = predictor.requests[0].grammar
    assert grammar is not None and grammar.kind == "json_schema"


def test_calls(use: Callable[..., Any]) -> None:
    answer = use("chat", chatting(CALL), **ASK, tools=[ADD])
    (call,) = answer.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("add", {"a": 1})


def test_generate_list_and_show(use: Callable[..., Any]) -> None:
    predictor = ScriptedPredictor()
    answer = use("generate", predictor, model="fake-1m", prompt="a = ", suffix="\n")
    assert answer.response == "return a + b"
    assert use("list", predictor).models[0].model == "fake-1m"
    assert "insert" in use("show", predictor, model="fake-1m").capabilities


def test_errors_are_the_clients_own(use: Callable[..., Any]) -> None:
    with pytest.raises(ollama.ResponseError, match="chat template"):
        use("chat", ScriptedPredictor(statuses=[READY]), **ASK)
    with pytest.raises(ollama.ResponseError) as caught:
        use("chat", chatting("x"), **{**ASK, "model": "redraft-9b"})
    assert caught.value.status_code == 404
