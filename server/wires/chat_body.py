"""The body of a chat request, read into a question for the engine. Knows nothing of HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from redraft.model.errors import InvalidRequest
from redraft.model.records import (
    Conversation,
    EditRequest,
    Message,
    Quality,
    Role,
    ToolCall,
)
from redraft.model.validation import AtLeastOne, Flag, Json, Text, between, brief, read

from ..settings import Settings
from .completion import CompletionRequest
from .guided import grammar_of
from .prompts.regions import unix
from .tools import Tools, grammar_of_call, read_tools

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
        """Whether nothing may be told before the answer stands: it may be a call, or go back a
        few tokens to be brought to its end."""
        return bool(self.tools.functions) or self.request.grammar is not None


def read_chat(data: Json, settings: Settings) -> Chat:
    """
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
