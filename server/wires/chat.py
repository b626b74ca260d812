"""``POST /v1/chat/completions``, as OpenAI and Mercury have it: text, calls, streams.

A stream sends what of the answer stays as it is; with ``diffusing`` the whole text so far after
every step. Where a grammar or a call is written, it comes in one piece.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidRequest, NoChatTemplate
from redraft.model.prompts.excerpt import unix
from redraft.model.records import (
    Candidate,
    CanvasState,
    Conversation,
    EditRequest,
    Message,
    ModelStatus,
    Prediction,
    Quality,
    Role,
    ToolCall,
)
from redraft.model.validation import AtLeastOne, Flag, Json, Text, between, brief, read
from redraft.model.weights.provide import names_with_template

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_body
from ..http.service import Service
from ..settings import Settings
from .answers import FINISH_REASONS
from .completion import CompletionRequest, Head, check_model, loaded, usage
from .feedback import LEDGER
from .guided import grammar_of
from .tools import Tools, call_to_json, calls_to_deltas, grammar_of_call, read_calls, read_tools


class StreamedText:
    """The part of one answer that was sent so far.

    Args:
        stops: text that may begin one of these strings is not sent yet.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.text = ""
        self._held = max(map(len, stops), default=0)

    def more(self, state: CanvasState) -> str:
        """Return what is new and final, less what may begin a stop string."""
        sure = "".join(piece or "" for piece in state.pieces[: state.sure])
        upto = max(len(sure) - self._held, 0)
        new = sure[len(self.text) : upto] if sure.startswith(self.text) else ""
        self.text += new
        return new


Effort = Literal["instant", "minimal", "low", "medium", "high"]
#: How boldly an answer is written, by how much effort is asked for.
QUALITIES: dict[str, Quality] = {
    "instant": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
}
#: Roles of the wire, and what templates know them by.
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
#: More is a mistake, and costs a second to lay out.
MAX_MESSAGES = 10_000
#: Before a call that must be made; the same in every model that knows calls.
CALL_OPENS = "<tool_call>\n"


@dataclass(frozen=True, slots=True)
class ContentPart:
    type: Text
    text: Text = ""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    name: Text
    arguments: object = "{}"


@dataclass(frozen=True, slots=True)
class Called:
    function: CalledFunction
    id: Text = ""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: object = ""  # a string, or text parts
    name: Text = ""
    tool_calls: tuple[Called, ...] = ()
    tool_call_id: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody(CompletionRequest):
    """The fields that are looked at here; ``guided.py`` and ``tools.py`` read theirs."""

    messages: tuple[Turn, ...]
    max_completion_tokens: AtLeastOne | None = None
    reasoning_effort: Effort = "medium"
    logprobs: Flag = False


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request, understood."""

    request: EditRequest
    body: ChatBody
    tools: Tools

    @property
    def whole(self) -> bool:
        """True if nothing may be sent before the answer is complete.

        It may be a call, or go back a few tokens to be brought to its end.
        """
        return bool(self.tools.functions) or self.request.grammar is not None


def read_chat(data: Json, settings: Settings) -> Chat:
    """Read the body of a chat request into a question for the engine.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    body = read(ChatBody, data)
    if not body.messages:
        raise InvalidRequest("'messages' is empty. Send at least one.")
    if len(body.messages) > MAX_MESSAGES:
        raise InvalidRequest(
            f"'messages' has {len(body.messages):,} entries, at most {MAX_MESSAGES:,} are read. "
            "Leave out the oldest."
        )
    if body.logprobs:
        raise InvalidRequest("'logprobs' is not available here. Leave it out.")
    between("n", body.n, 1, settings.max_candidates)
    tools, grammar = read_tools(data), grammar_of(data)
    if tools.must and grammar is not None:
        raise InvalidRequest(
            "'tool_choice' demands a call, and 'response_format' or its like another answer. Send "
            "one of the two."
        )
    wanted = body.max_completion_tokens or body.max_tokens or settings.max_tokens
    conversation = Conversation(
        messages=tuple(_message(turn, index) for index, turn in enumerate(body.messages)),
        tools=json.dumps(tools.functions, ensure_ascii=False) if tools.functions else "",
        think=body.reasoning_effort not in ("instant", "minimal"),
        begins=CALL_OPENS if tools.must else "",
    )
    request = replace(
        body.template(min(wanted, settings.max_tokens), settings.max_stops, body.n),
        task="chat",
        path="",
        quality=QUALITIES[body.reasoning_effort],
        grammar=grammar_of_call(tools) if tools.must else grammar,
        conversation=conversation,
    )
    return Chat(request, body, tools)


def _message(turn: Turn, index: int) -> Message:
    where = f"messages[{index}]"
    calls = tuple(
        _called(call, f"{where}.tool_calls[{place}].function.arguments")
        for place, call in enumerate(turn.tool_calls)
    )
    if calls and turn.role != "assistant":
        raise InvalidRequest(f"'{where}.tool_calls' belong to an assistant, not to {turn.role!r}.")
    return Message(
        role=ROLES[turn.role],
        content=unix(_content(turn.content, f"{where}.content")),
        name=turn.name,
        tool_calls=calls,
        tool_call_id=turn.tool_call_id,
    )


def _content(content: object, where: str) -> str:
    if not isinstance(content, list):
        return read(Text, content, where)
    parts: Sequence[ContentPart] = read(tuple[ContentPart, ...], content, where)
    for index, part in enumerate(parts):
        if part.type not in ("text", "input_text"):
            raise InvalidRequest(
                f"'{where}[{index}].type' is {brief(part.type)}; this model reads text alone."
            )
    return "".join(part.text for part in parts)


def _called(call: Called, where: str) -> ToolCall:
    value = call.function.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"'{where}' is not JSON: {error}. Send a JSON object.") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"'{where}' must be a JSON object, as text. Send one.")
    return ToolCall(call.id, call.function.name, json.dumps(value, ensure_ascii=False))


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
    stream, sent = Stream(http, EVENT_STREAM), StreamedText(asked.request.stop)
    counted = asked.body.stream_options.include_usage

    async def send(choices: list[Json], used: Json | None = None) -> None:
        # With include_usage every chunk has the field, null but in the last.
        await stream.send(head.body(choices, CHUNK) | ({"usage": used} if counted else {}))

    async def finish(prediction: Prediction) -> None:
        http.app[LEDGER].given(head.id)
        for index, one in enumerate(_candidates(prediction, asked)):
            text, calls = read_calls(one.text, asked.tools.names)
            rest = text if asked.body.diffusing or index else text.removeprefix(sent.text)
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
        elif not asked.whole and (text := sent.more(state)):
            await send([_delta(0, {"role": "assistant", "content": text})])

    return await stream.follow(service, asked.request, finish, on_state)
