"""``POST /v1/chat/completions``, as OpenAI and Mercury have it: text, calls, streams.

A stream sends what of the answer stays as it is; with ``diffusing`` the whole text so far after
every step. Where a grammar or a call is written, it comes in one piece.
"""

from __future__ import annotations

from itertools import cycle, islice

from aiohttp import web
from redraft.model.errors import NoChatTemplate
from redraft.model.records import Candidate, CanvasState, ModelStatus, Prediction
from redraft.model.validation import Json
from redraft.model.weights.provide import names_with_template

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_body
from ..http.service import Service
from .answers import FINISH_REASONS
from .chat_body import Chat, read_chat
from .chat_stream import StreamedText
from .completion import Head, check_model, loaded, usage
from .feedback import LEDGER
from .tools import call_to_json, calls_to_deltas, read_calls

routes = web.RouteTableDef()

WHOLE, CHUNK = "chat.completion", "chat.completion.chunk"


@routes.post("/v1/chat/completions")
async def chat(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    asked = await read_body(http, lambda data: read_chat(data, service.settings))
    status = await service.status()
    check_chats(asked.body.model, status)
    head = Head.new(status.chat_model or loaded(status), "chatcmpl-")
    if asked.body.stream:
        return await _stream(http, service, asked, head)
    prediction = await service.predict(asked.request)
    http.app[LEDGER].given(head.id)
    choices = [_choice(i, one, asked) for i, one in enumerate(_candidates(prediction, asked))]
    return json_response({**head.body(choices, WHOLE), "usage": chat_usage(prediction)})


def check_chats(name: str, status: ModelStatus) -> None:
    """
    Args:
        name: of the model that is asked for.

    Raises:
        UnknownModel: it is one of ours that is not loaded.
        NoChatTemplate: the loaded model cannot hold a conversation; names those that can.
    """
    if name != status.chat_model:
        check_model(name, status)
    if status.state == "ready" and not status.chat_model:
        names = ", ".join(names_with_template()) or "none of those pulled"
        raise NoChatTemplate(
            f"'model': {loaded(status)} came without a chat template. These have one: {names}. "
            "Start Redraft with one of them by --model."
        )


def chat_usage(prediction: Prediction) -> Json:
    return {**usage(prediction), "completion_tokens_details": {"reasoning_tokens": 0}}


def _candidates(prediction: Prediction, asked: Chat) -> list[Candidate]:
    """As many as were asked for; where the model knows fewer, they come again."""
    return [*islice(cycle(prediction.candidates), asked.body.n)]


def _choice(index: int, candidate: Candidate, asked: Chat) -> Json:
    text, calls = read_calls(candidate.text, asked.tools.names)
    message: Json = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["content"] = text or None
        message["tool_calls"] = [call_to_json(call) for call in calls]
    finish = "tool_calls" if calls else FINISH_REASONS[candidate.finish]
    return {"index": index, "message": message, "logprobs": None, "finish_reason": finish}


def _delta(index: int, delta: Json, finish: str | None = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


async def _stream(
    http: web.Request, service: Service, asked: Chat, head: Head
) -> web.StreamResponse:
    stream, told = Stream(http, EVENT_STREAM), StreamedText(asked.request.stop)
    counted = asked.body.stream_options.include_usage

    async def send(choices: list[Json], used: Json | None = None) -> None:
        # With include_usage every chunk has the field, null but in the last.
        await stream.send(head.body(choices, CHUNK) | ({"usage": used} if counted else {}))

    async def finish(prediction: Prediction) -> None:
        http.app[LEDGER].given(head.id)
        for index, one in enumerate(_candidates(prediction, asked)):
            text, calls = read_calls(one.text, asked.tools.names)
            rest = text if asked.body.diffusing or index else text.removeprefix(told.text)
            delta: Json = {"role": "assistant", "content": rest}
            if calls:
                delta |= {"content": rest or None, "tool_calls": calls_to_deltas(calls)}
            await send([_delta(index, delta)])
            reason = "tool_calls" if calls else FINISH_REASONS[one.finish]
            await send([_delta(index, {}, reason)])
        if counted:
            await send([], chat_usage(prediction))
        await stream.send("[DONE]")

    async def on_state(state: CanvasState) -> None:
        if asked.body.diffusing:
            await send([_delta(0, {"role": "assistant", "content": state.show()})])
        elif not asked.whole and (text := told.more(state)):
            await send([_delta(0, {"role": "assistant", "content": text})])

    return await stream.follow(service, asked.request, finish, on_state)
