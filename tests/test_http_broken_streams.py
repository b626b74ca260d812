"""A stream that fails after its first piece ends with an error in the client's own format."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from redraft.model.errors import EngineGone
from redraft.model.records import CanvasState
from support.predictor import CHATTY, ScriptedPredictor
from support.served import served

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
