"""Mercury's official client, ``inceptionai``, against a live server, sync and async."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import ScriptedPredictor, chatting, editing
from support.sdk import ADD, ASK, CALL, ERRORS, KEY, Person, caller
from support.served import served

sdk = pytest.importorskip("inceptionai", reason="the dev extra installs the inceptionai client")

INFILL: dict[str, Any] = {"model": "fake-1m", "prompt": "def f(a, b):\n    ", "suffix": "\n"}


@pytest.fixture(params=["Inception", "AsyncInception"])
def use(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call one method of a client of either kind."""
    made = getattr(sdk, request.param)
    how = {"max_retries": 0, "_strict_response_validation": True}
    return caller(lambda url, key: made(base_url=url, api_key=key, **how))


def test_chat(use: Callable[..., Any]) -> None:
    answer = use("chat.completions.create", **ASK)
    assert answer.choices[0].message.content == "Hello to you."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens_details.reasoning_tokens == 0


def test_chat_streamed(use: Callable[..., Any]) -> None:
    how = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = use("chat.completions.create", **ASK, **how)
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "Hello to you." and len(texts) > 2
    assert chunks[-1].usage["total_tokens"] > 0


def test_chat_diffusing(use: Callable[..., Any]) -> None:
    chunks = use("chat.completions.create", **ASK, stream=True, diffusing=True)
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert texts[0] == "Hello ░" and "Hello to you." in texts


def test_all_that_chat_takes(use: Callable[..., Any]) -> None:
    predictor = chatting('{"a": 1}')
    answer = use(
        "chat.completions.create",
        predictor,
        **ASK,
        max_completion_tokens=9,
        temperature=0.2,
        stop=["END"],
        reasoning_effort="instant",
        reasoning_summary=False,
        realtime=True,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "a", "strict": True, "schema": {"type": "object"}},
        },
    )
    assert json.loads(answer.choices[0].message.content) == {"a": 1}
    assert predictor.requests[0].grammar is not None
    assert predictor.requests[0].max_tokens == 9


def test_calls(use: Callable[..., Any]) -> None:
    answer = use("chat.completions.create", chatting(CALL), **ASK, tools=[ADD])
    (call,) = answer.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1})
    assert answer.choices[0].finish_reason == "tool_calls"


def test_an_answer_parsed_into_a_class(use: Callable[..., Any]) -> None:
    predictor = chatting('{"name": "Ann", "age": 30}')
    answer = use("chat.completions.parse", predictor, **ASK, response_format=Person)
    assert answer.choices[0].message.parsed == Person(name="Ann", age=30)
    grammar = predictor.requests[0].grammar
    assert grammar is not None and json.loads(grammar.text)["required"] == ["name", "age"]


async def test_the_managed_stream() -> None:
    settings = Settings(api_key=SecretStr(KEY), shutdown_s=0.1)
    async with (
        served(chatting("Hello to you."), settings) as (url, _),
        sdk.AsyncInception(base_url=url, api_key=KEY, max_retries=0) as client,
        client.chat.completions.stream(**ASK) as stream,
    ):
        kinds = [event.type async for event in stream]
        whole = stream.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds
    assert whole.choices[0].message.content == "Hello to you."


def test_infill(use: Callable[..., Any]) -> None:
    answer = use("fim.completions.create", ScriptedPredictor(), **INFILL, max_tokens=9)
    assert answer.choices[0].text == "return a + b"
    assert answer.object == "text_completion"


def test_infill_streamed(use: Callable[..., Any]) -> None:
    chunks = use("fim.completions.create", ScriptedPredictor(), **INFILL, stream=True)
    assert "".join(choice.text or "" for chunk in chunks for choice in chunk.choices)


def test_a_next_edit(use: Callable[..., Any]) -> None:
    body = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))
    answer = use(
        "edit.completions.create",
        editing((1, 1, ["x = 2"])),
        model="fake-1m",
        messages=body["messages"],
    )
    assert answer.object == "edit.completion"
    assert "x = 2" in answer.choices[0].message.content


@pytest.mark.parametrize("method", ["list", "list_chat", "list_edit", "list_fim"])
def test_models(use: Callable[..., Any], method: str) -> None:
    found = use(f"models.{method}").data
    assert found[0].id == "fake-1m" and found[0].context_length > 0
    assert found[0].pricing.prompt == "0"


def test_decisions(use: Callable[..., Any]) -> None:
    questions = {
        "good": {"type": "noul"},
        "kind": {"type": "choice", "criteria": {"bug": None, "feature": "new"}},
        "how": {"type": "score", "criteria": ["calm", "urgent"]},
    }
    answer = use("decisions.create", model="fake-1m", state={"a": 1}, questions=questions)
    assert 0 < answer.answers["good"].noul < 1
    assert answer.answers["kind"].choice == "bug"
    assert answer.answers["how"].legend == {"0": "calm", "1": "urgent"}


@pytest.mark.parametrize(("error", "change", "predictor"), ERRORS)
def test_errors_are_the_clients_own(
    use: Callable[..., Any], error: str, change: dict[str, Any], predictor: ScriptedPredictor | None
) -> None:
    with pytest.raises(getattr(sdk, error)):
        use("chat.completions.create", predictor, **{**ASK, **change})
