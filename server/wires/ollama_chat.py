"""Ollama's ``POST /api/chat``: the same conversations as ``/v1/chat/completions``.

``format`` is "json" or a schema. Calls and arguments are objects here, not text.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.records import CanvasState, Prediction
from redraft.model.validation import Json

from ..http.bodies import LINES, SERVICE, Stream, json_response, read_body
from ..settings import Settings
from .answers import FINISH_REASONS
from .chat import check_chats
from .chat_body import Chat, read_chat
from .chat_stream import StreamedText
from .completion import loaded
from .ollama import durations, now
from .tools import read_calls

routes = web.RouteTableDef()

#: Ollama's options, and what they are called where they are read.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
}


@routes.post("/api/chat")
async def chat(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    asked, streamed = await read_body(http, lambda data: read_ollama(data, service.settings))
    status = await service.status()
    check_chats(asked.body.model, status)
    name = status.chat_model or loaded(status)
    if not streamed:
        return json_response(_last(name, asked, await service.predict(asked.request), ""))
    stream, told = Stream(http, LINES, plain_errors=True), StreamedText(asked.request.stop)

    async def finish(prediction: Prediction) -> None:
        await stream.send(_last(name, asked, prediction, told.text))

    async def on_state(state: CanvasState) -> None:
        if not asked.whole and (text := told.more(state)):
            message = {"role": "assistant", "content": text}
            head = {"model": name, "created_at": now()}
            await stream.send({**head, "message": message, "done": False})

    return await stream.follow(service, asked.request, finish, on_state)


def read_ollama(data: Json, settings: Settings) -> tuple[Chat, bool]:
    """The question, and whether its answer is streamed.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    options, format_ = data.get("options") or {}, data.get("format")
    if not isinstance(options, dict):
        raise InvalidRequest("'options' must be an object. Send one, or none.")
    body: Json = {key: data[key] for key in ("messages", "model", "tools") if data.get(key)}
    body |= {
        theirs: options[ours]
        for ours, theirs in _OPTIONS.items()
        if options.get(ours) is not None
        and not (ours == "num_predict" and options[ours] in (-1, -2))
    }
    if format_ == "json":
        body["response_format"] = {"type": "json_object"}
    elif format_:
        schema = {"name": "format", "schema": format_}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    streamed = data.get("stream", True)
    if not isinstance(streamed, bool):
        raise InvalidRequest("'stream' must be true or false.")
    return read_chat(body, settings), streamed


def _last(name: str, asked: Chat, prediction: Prediction, told: str) -> Json:
    candidate = prediction.candidates[0]
    text, calls = read_calls(candidate.text, asked.tools.names)
    message: dict[str, Any] = {"role": "assistant", "content": text.removeprefix(told)}
    if calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
            for call in calls
        ]
    return {
        "model": name,
        "created_at": now(),
        "message": message,
        "done": True,
        "done_reason": FINISH_REASONS[candidate.finish],
        **durations(prediction),
    }
