"""Conversations: ``POST /v1/chat/completions`` of OpenAI and Mercury, with tool calls and streams.

A stream sends the part of the answer that is final; with ``diffusing``, the whole text after each
pass. An answer that follows a grammar or may be a tool call is sent in one piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidRequest, NoChatTemplate
from redraft.model.prompts.excerpt import unix
from redraft.model.records import (
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
from redraft.model.validation import (
    AtLeastOne,
    Flag,
    Json,
    Text,
    between,
    brief,
    dump_json,
    load_json,
    read,
)
from redraft.model.weights.store import names_with_template

from ..http.access import ENGINE, SETTINGS
from ..http.bodies import read_body
from ..settings import Settings
from .base import AnswerHead, CompletionBody, check_model, name_loaded, usage
from .constraints import grammar_of
from .prompt_questions import FINISH_REASONS
from .respond import Dialect, HttpQuestion, Reply, respond
from .tools import Tools, call_to_json, calls_to_deltas, grammar_of_call, read_calls, read_tools

routes = web.RouteTableDef()

Effort = Literal["instant", "minimal", "low", "medium", "high"]
#: The quality of an answer, by ``reasoning_effort``.
QUALITIES: dict[str, Quality] = {
    "instant": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
}
#: Roles of chat templates, by the roles of messages.
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
#: A longer conversation takes a second to render, and is mostly a mistake.
MAX_MESSAGES = 10_000
#: Text before a call that must be made; the same for every model that can call tools.
CALL_OPENS = "<tool_call>\n"


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A part of a message."""

    type: Text
    text: Text = ""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """``tool_calls[].function``."""

    name: Text
    arguments: object = "{}"


@dataclass(frozen=True, slots=True)
class Called:
    """An earlier call in the conversation."""

    function: CalledFunction
    id: Text = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: object = ""  # a string, or text parts
    name: Text = ""
    tool_calls: tuple[Called, ...] = ()
    tool_call_id: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody(CompletionBody):
    """The fields read here; ``constraints.py`` and ``tools.py`` read theirs."""

    messages: tuple[Turn, ...]
    max_completion_tokens: AtLeastOne | None = None
    reasoning_effort: Effort = "medium"
    logprobs: Flag = False


@dataclass(frozen=True)
class Chat(HttpQuestion):
    """A question in a conversation."""

    request: EditRequest
    body: ChatBody
    tools: Tools

    @property
    def is_indivisible(self) -> bool:
        """Return whether nothing may be sent before the answer is complete.

        It may be a call, or a grammar may take back tokens to complete it.
        """
        return bool(self.tools.functions) or self.request.grammar is not None

    def answers(self, prediction: Prediction | None) -> list[Reply]:
        """Return as many answers as were asked for, with repetitions if there are fewer."""
        assert prediction is not None, "a conversation always asks the engine"
        answers = []
        for candidate in prediction.candidates:
            text, calls = read_calls(candidate.text, self.tools.names)
            finish = "tool_calls" if calls else FINISH_REASONS[candidate.finish]
            answers.append(Reply(text, finish, calls=calls))
        nothing = Reply("", "stop", prediction.reason, "nothing")
        return [*islice(cycle(answers or [nothing]), self.body.n)]


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
        tools=dump_json(tools.functions, "tools") if tools.functions else "",
        think=body.reasoning_effort not in ("instant", "minimal"),
        begins=CALL_OPENS if tools.must else "",
    )
    request = replace(
        body.template(min(wanted, settings.max_tokens), body.n),
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
            value = load_json(value or "{}")
        except json.JSONDecodeError as error:
            raise InvalidRequest(f"'{where}' is not JSON: {error}. Send a JSON object.") from None
        except ValueError as error:
            raise InvalidRequest(f"'{where}' {error}. Send another object.") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"'{where}' must be a JSON object, as text. Send one.")
    return ToolCall(call.id, call.function.name, dump_json(value, where))


@routes.post("/v1/chat/completions")
async def chat(http: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    asked = await read_body(http, lambda data: read_chat(data, http.app[SETTINGS]))
    head = AnswerHead.new(await chat_model(http, asked.body.model), "chatcmpl-")
    return await respond(http, asked, OpenAIChat(head, asked), asked.body.stream)


async def chat_model(http: web.Request, name: str) -> str:
    """Return the name of the model that answers conversations.

    Args:
        name: of the model that is asked for.

    Raises:
        UnknownModel: it is another model of ours.
        NoChatTemplate: the loaded model cannot hold a conversation; names those that can.
    """
    status: ModelStatus = await http.app[ENGINE].status()
    if name != status.chat_model:
        check_model(name, status)
    if status.can_answer and not status.chat_model:
        names = ", ".join(names_with_template()) or "none of those pulled"
        raise NoChatTemplate(
            f"'model': {name_loaded(status)} came without a chat template. These have one: {names}."
            " Start Redraft with one of them by --model."
        )
    return status.chat_model or name_loaded(status)


class FinalText:
    """The part of a streamed answer that was sent.

    Args:
        stops: text that may begin one of these strings is held back.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.text = ""
        self._held = max(map(len, stops), default=0)

    def more(self, state: CanvasState) -> str:
        """Return the text that is new and final."""
        final = "".join(piece or "" for piece in state.pieces[: state.sure])
        end = max(len(final) - self._held, 0)
        new = final[len(self.text) : end] if final.startswith(self.text) else ""
        self.text += new
        return new


class OpenAIChat(Dialect):
    """OpenAI's chat completions."""

    def __init__(self, head: AnswerHead, asked: Chat) -> None:
        self.answer_id = head.id
        self._head = head
        self._asked = asked
        self._sent = FinalText(asked.request.stop)

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return one choice per answer."""
        choices = [_choice(index, one) for index, one in enumerate(answers)]
        return {**self._head.body(choices, "chat.completion"), "usage": _usage(prediction)}

    def state(self, state: CanvasState) -> Json | None:
        """Return the new final text; with ``diffusing``, the whole text so far."""
        if self._asked.body.diffusing:
            return self._chunk([_delta(0, {"role": "assistant", "content": state.show()})])
        if self._asked.is_indivisible or not (text := self._sent.more(state)):
            return None
        return self._chunk([_delta(0, {"role": "assistant", "content": text})])

    def last(self, answers: list[Reply], prediction: Prediction | None) -> Iterator[Json | str]:
        """Yield the rest of each choice, and its finish reason."""
        for index, one in enumerate(answers):
            is_whole = self._asked.body.diffusing or index > 0
            rest = one.text if is_whole else one.text.removeprefix(self._sent.text)
            delta: Json = {"role": "assistant", "content": rest}
            if one.calls:
                delta |= {"content": rest or None, "tool_calls": calls_to_deltas(one.calls)}
            yield self._chunk([_delta(index, delta)])
            yield self._chunk([_delta(index, {}, one.finish)])
        if self._asked.body.stream_options.include_usage:
            yield self._chunk([], _usage(prediction))
        yield "[DONE]"

    def _chunk(self, choices: list[Json], used: Json | None = None) -> Json:
        options = self._asked.body.stream_options
        return self._head.chunk(choices, "chat.completion.chunk", options, used)


def _usage(prediction: Prediction | None) -> Json:
    return {**usage(prediction), "completion_tokens_details": {"reasoning_tokens": 0}}


def _choice(index: int, answer: Reply) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [call_to_json(call) for call in answer.calls]
    return {"index": index, "message": message, "logprobs": None, "finish_reason": answer.finish}


def _delta(index: int, delta: Json, finish: str | None = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
