"""The official ``openai`` client's conversations against a live server, sync and async."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from redraft.model.errors import Overloaded
from redraft.server.settings import Settings
from support.predictor import CHATTY, READY, ScriptedPredictor, chatting
from support.served import served

openai = pytest.importorskip("openai", reason="the dev extra installs the openai client")

KEY = "a-long-random-text"
ASK: dict[str, Any] = {"model": "fake-1m", "messages": [{"role": "user", "content": "hello"}]}
ADD = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {}}},
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls one method of ``chat.completions`` of a client of either kind."""

    def called(
        method: str, predictor: ScriptedPredictor | None = None, key: str = KEY, **fields: Any
    ) -> Any:
        async def run() -> Any:
            settings = Settings(api_key=SecretStr(KEY), shutdown_s=0.1)
            async with served(predictor or chatting("Hello to you."), settings) as (url, _):
                how = {"base_url": f"{url}/v1", "api_key": key, "max_retries": 0}
                if request.param == "sync":
                    with openai.OpenAI(**how) as client:
                        found = getattr(client.chat.completions, method)
                        return await asyncio.to_thread(_listed, found, fields)
                async with openai.AsyncOpenAI(**how) as client:
                    answer = await getattr(client.chat.completions, method)(**fields)
                    if isinstance(answer, openai.AsyncStream):
                        return [one async for one in answer]
                    return answer

        return asyncio.run(run())

    return called


def _listed(method: Any, fields: dict[str, Any]) -> Any:
    answer = method(**fields)
    return list(answer) if isinstance(answer, openai.Stream) else answer


def test_an_answer_and_a_stream_of_it(use: Callable[..., Any]) -> None:
    answer = use("create", **ASK, max_completion_tokens=50, seed=1, n=1)
    assert answer.choices[0].message.content == "Hello to you."
    how = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = use("create", **ASK, **how)
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "Hello to you."
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens


def test_a_call_and_a_stream_of_it(use: Callable[..., Any]) -> None:
    must = {"tools": [ADD], "tool_choice": "required"}
    bare = '{"name": "add", "arguments": {"a": 1}}'  # what is written behind the mark
    answer = use("create", chatting(bare), **ASK, **must)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.type, call.function.name) == ("function", "add")
    chunks = use("create", chatting(CALL), **ASK, tools=[ADD], stream=True)
    (part,) = chunks[0].choices[0].delta.tool_calls
    assert json.loads(part.function.arguments) == {"a": 1}


def test_an_answer_parsed_into_a_class(use: Callable[..., Any]) -> None:
    class Person(BaseModel):
        name: str
        age: int

    answer = use("parse", chatting('{"name": "Ann", "age": 30}'), **ASK, response_format=Person)
    assert answer.choices[0].message.parsed == Person(name="Ann", age=30)


@pytest.mark.parametrize(
    ("error", "change", "predictor"),
    [
        ("BadRequestError", {}, ScriptedPredictor(statuses=[READY])),
        ("BadRequestError", {"temperature": 9}, None),
        ("NotFoundError", {"model": "redraft-9b"}, None),
        ("AuthenticationError", {"key": "wrong"}, None),
        ("RateLimitError", {}, ScriptedPredictor([Overloaded("full", 3)], statuses=[CHATTY])),
        ("InternalServerError", {}, ScriptedPredictor([RuntimeError("x")], statuses=[CHATTY])),
    ],
)
def test_errors_are_the_clients_own(
    use: Callable[..., Any],
    error: str,
    change: dict[str, Any],
    predictor: ScriptedPredictor | None,
) -> None:
    with pytest.raises(getattr(openai, error)):
        use("create", predictor, **{**ASK, **change})
