"""Official clients of other services, called against a live server, sync and async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, SecretStr
from redraft.model.errors import Overloaded
from redraft.server.settings import Settings

from support.editors.predictor import CHATTY, ScriptedPredictor, chatting
from support.served import served

KEY = "a-long-random-text"
ASK: dict[str, Any] = {"model": "fake-1m", "messages": [{"role": "user", "content": "hello"}]}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'

#: The name of an exception of the clients, a change of :data:`ASK` that leads to it, a model.
ERRORS: list[tuple[str, dict[str, Any], ScriptedPredictor | None]] = [
    ("BadRequestError", {"temperature": 9}, None),
    ("NotFoundError", {"model": "redraft-9b"}, None),
    ("AuthenticationError", {"key": "wrong"}, None),
    ("RateLimitError", {}, ScriptedPredictor([Overloaded("full", 3)], statuses=[CHATTY])),
    ("InternalServerError", {}, ScriptedPredictor([RuntimeError("x")], statuses=[CHATTY])),
]


class Person(BaseModel):
    """Parsed answer of the service."""

    name: str
    age: int


def caller(client: Callable[[str, str], Any]) -> Callable[..., Any]:
    """Return a function that calls one method of ``client(url, key)`` and lists what it streams."""

    def call(
        method: str, predictor: ScriptedPredictor | None = None, key: str = KEY, **fields: Any
    ) -> Any:
        async def run() -> Any:
            settings = Settings(api_key=SecretStr(KEY), shutdown_s=0.1)
            async with served(predictor or chatting("Hello to you."), settings) as (url, _):
                made = found = client(url, key)
                for name in method.split("."):
                    found = getattr(found, name)
                try:
                    answer = await asyncio.to_thread(_listed, found, fields)
                    answer = await answer if inspect.isawaitable(answer) else answer
                    return [one async for one in answer] if hasattr(answer, "__aiter__") else answer
                finally:
                    closed = (getattr(made, "close", None) or made.aclose)()
                    if closed is not None:
                        await closed

        return asyncio.run(run())

    return call


def _listed(method: Any, fields: dict[str, Any]) -> Any:
    answer = method(**fields)
    return list(answer) if isinstance(answer, Iterator) else answer
