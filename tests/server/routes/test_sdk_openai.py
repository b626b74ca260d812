"""The official ``openai`` client against a live server, sync and async."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.editors.predictor import READY, ScriptedPredictor, chatting
from support.sdk import ADD, ASK, CALL, ERRORS, Person, caller

sdk = pytest.importorskip("openai", reason="the dev extra installs the openai client")

INFILL: dict[str, Any] = {"model": "fake-1m", "prompt": "a", "suffix": ";"}
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.fixture(params=["OpenAI", "AsyncOpenAI"])
def use(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call one method of a client of either kind."""
    made = getattr(sdk, request.param)
    return caller(lambda url, key: made(base_url=f"{url}/v1", api_key=key, max_retries=0))


def test_a_completion_with_a_suffix(use: Callable[..., Any]) -> None:
    predictor = ScriptedPredictor()
    how = {"max_tokens": 20, "temperature": 0, "seed": 1, "stop": ["\n\n"]}
    answer = use("completions.create", predictor, **INFILL, **how)
    assert answer.choices[0].text == "return a + b"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens_details.cached_tokens == 30
    assert answer.usage.total_tokens == 45
    assert predictor.requests[0].stop == ("\n\n",)


def test_a_streamed_completion_with_usage(use: Callable[..., Any]) -> None:
    chunks = use("completions.create", ScriptedPredictor(), **INFILL, **STREAM)
    texts = [choice.text for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "return a + b"
    assert chunks[-1].usage.completion_tokens == 5


def test_decisions(use: Callable[..., Any]) -> None:
    if not hasattr(sdk.OpenAI, "decisions"):
        pytest.skip("this release of openai has no decisions")
    answer = use(
        "decisions.create",
        chatting("x"),
        model="redraft",
        input=[{"role": "user", "content": "I was charged twice."}],
        questions=[
            {"type": "predicate", "name": "billing", "instructions": "Is this about billing?"},
            {
                "type": "choice",
                "instructions": "Which?",
                "choices": [{"value": True}, {"value": "later"}],
            },
            {
                "type": "score",
                "name": "urgent",
                "instructions": "How urgent?",
                "levels": [{"label": "low"}, {"label": "high", "description": "today"}],
            },
        ],
    )
    billing, which, urgent = answer.answers
    assert 0 < billing.probability < 1 and billing.name == "billing"
    assert which.choice is True and which.name is None
    assert [level.label for level in urgent.probabilities] == ["low", "high"]
    assert answer.usage.total_tokens > 3 and answer.usage.input_tokens_details.cached_tokens >= 0


def test_models_are_listed(use: Callable[..., Any]) -> None:
    found = use("models.list", ScriptedPredictor())
    names = [model.id for model in (found if isinstance(found, list) else found.data)]
    assert names == ["fake-1m", "fake-1m-int8"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"model": "redraft-9"}, "NotFoundError", "fake-1m"),
        ({"max_tokens": -1}, "BadRequestError", "max_tokens"),
        ({"prompt": [1, 2]}, "BadRequestError", "token arrays"),
    ],
)
def test_refusals_are_the_clients_own_errors(
    use: Callable[..., Any], change: dict[str, Any], error: str, says: str
) -> None:
    with pytest.raises(getattr(sdk, error)) as caught:
        use("completions.create", ScriptedPredictor(), **{**INFILL, **change})
    assert says in caught.value.body["message"]


@pytest.mark.parametrize(
    ("error", "change", "predictor"),
    [*ERRORS, ("BadRequestError", {}, ScriptedPredictor(statuses=[READY]))],
)
def test_errors_are_the_clients_own(
    use: Callable[..., Any], error: str, change: dict[str, Any], predictor: ScriptedPredictor | None
) -> None:
    with pytest.raises(getattr(sdk, error)):
        use("chat.completions.create", predictor, **{**ASK, **change})


def test_a_chat_and_a_stream_of_it(use: Callable[..., Any]) -> None:
    answer = use("chat.completions.create", **ASK, max_completion_tokens=50, seed=1, n=1)
    assert answer.choices[0].message.content == "Hello to you."
    chunks = use("chat.completions.create", **ASK, **STREAM)
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "Hello to you."
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens


def test_a_call_and_a_stream_of_it(use: Callable[..., Any]) -> None:
    must = {"tools": [ADD], "tool_choice": "required"}
    bare = '{"name": "add", "arguments": {"a": 1}}'  # what is written behind the mark
    answer = use("chat.completions.create", chatting(bare), **ASK, **must)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.type, call.function.name) == ("function", "add")
    chunks = use("chat.completions.create", chatting(CALL), **ASK, tools=[ADD], stream=True)
    (part,) = chunks[0].choices[0].delta.tool_calls
    assert json.loads(part.function.arguments) == {"a": 1}


def test_an_answer_parsed_into_a_class(use: Callable[..., Any]) -> None:
    said = chatting('{"name": "Ann", "age": 30}')
    answer = use("chat.completions.parse", said, **ASK, response_format=Person)
    assert answer.choices[0].message.parsed == Person(name="Ann", age=30)
