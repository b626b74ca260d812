"""The official ``openai`` client against a live server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import SecretStr
from redraft.server.settings import Settings
from support.predictor import ScriptedPredictor
from support.served import served

openai = pytest.importorskip("openai", reason="the dev extra installs the openai client")

KEY = "a-long-random-text"


def with_client(
    use: Callable[[Any], Awaitable[Any]],
    predictor: ScriptedPredictor | None = None,
    api_key: str = KEY,
    **settings: Any,
) -> Any:
    async def run() -> Any:
        chosen = Settings(api_key=SecretStr(KEY), shutdown_s=0.1, **settings)
        async with (
            served(predictor or ScriptedPredictor(), chosen) as (url, _),
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=api_key, max_retries=0) as client,
        ):
            return await use(client)

    return asyncio.run(run())


def test_a_completion_with_a_suffix() -> None:
    predictor = ScriptedPredictor()
    answer = with_client(
        lambda client: client.completions.create(
            model="fake-1m",
            prompt="def f(a, b):\n    ",
            suffix="\n",
            max_tokens=20,
            temperature=0,
            seed=1,
            stop=["\n\n"],
        ),
        predictor,
    )
    assert answer.choices[0].text == "return a + b"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens_details.cached_tokens == 30
    assert answer.usage.total_tokens == 45
    assert predictor.requests[0].stop == ("\n\n",)


def test_a_streamed_completion_with_usage() -> None:
    async def use(client: Any) -> list[Any]:
        stream = await client.completions.create(
            model="fake-1m",
            prompt="a",
            suffix=";",
            stream=True,
            stream_options={"include_usage": True},
        )
        return [chunk async for chunk in stream]

    chunks = with_client(use)
    texts = [choice.text for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == "return a + b"
    assert chunks[-1].usage.completion_tokens == 5


def test_denoising_states_through_an_extra_field() -> None:
    async def use(client: Any) -> list[str]:
        stream = await client.completions.create(
            model="fake-1m", prompt="a", suffix=";", stream=True, extra_body={"diffusing": True}
        )
        return [choice.text async for chunk in stream for choice in chunk.choices]

    assert with_client(use) == ["░░░ b", "░░ + b", "░ a + b", "return a + b"]


def test_models_are_listed() -> None:
    async def use(client: Any) -> list[str]:
        return [model.id async for model in client.models.list()]

    assert with_client(use) == ["fake-1m", "fake-1m-int8"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"model": "redraft-9"}, "NotFoundError", "fake-1m"),
        ({"max_tokens": -1}, "BadRequestError", "max_tokens"),
        ({"prompt": [1, 2]}, "BadRequestError", "token arrays"),
    ],
)
def test_refusals_are_the_clients_own_errors(change: dict[str, Any], error: str, says: str) -> None:
    fields = {"model": "fake-1m", "prompt": "a", "suffix": ";"} | change
    with pytest.raises(getattr(openai, error)) as caught:
        with_client(lambda client: client.completions.create(**fields))
    assert says in caught.value.body["message"]


def test_a_wrong_key_is_the_clients_authentication_error() -> None:
    with pytest.raises(openai.AuthenticationError):
        with_client(
            lambda client: client.completions.create(model="fake-1m", prompt="a"),
            api_key="wrong",
        )


def test_a_full_queue_is_the_clients_rate_limit_error() -> None:
    async def use(client: Any) -> None:
        ask = {"model": "fake-1m", "prompt": "a", "suffix": ";"}
        first = asyncio.create_task(client.completions.create(**ask | {"prompt": "first"}))
        while not predictor.running:
            await asyncio.sleep(0.01)
        with pytest.raises(openai.RateLimitError) as caught:
            await client.completions.create(**ask)
        assert int(caught.value.response.headers["Retry-After"]) >= 1
        first.cancel()

    predictor = ScriptedPredictor(hold=True)
    with_client(use, predictor, queue_length=1)
