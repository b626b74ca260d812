"""The body of a chat request, read into a question for the engine. Knows nothing of HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from redraft.model.errors import InvalidRequest
from redraft.model.reading import AtLeastOne, Exactly, Flag, Json, Text, between, brief, read
from redraft.model.records import (
    MAX_TEMPERATURE,
    Conversation,
    EditRequest,
    Message,
    Quality,
    Role,
    ToolCall,
)

from ..settings import Settings
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
class Part:
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


@dataclass(frozen=True, slots=True)
class StreamOptions:
    include_usage: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody:
    """The fields that are looked at here; ``guided.py`` and ``tools.py`` read theirs."""

    messages: tuple[Turn, ...]
    model: Text = ""
    n: Annotated[int, Exactly(1)] = 1
    max_completion_tokens: AtLeastOne | None = None
    max_tokens: AtLeastOne | None = None
    temperature: Annotated[float, Exactly(0, MAX_TEMPERATURE)] = 0.0
    top_p: Annotated[float, Exactly(0, 1)] = 1.0
    seed: Annotated[int, Exactly(-(2**63), 2**64 - 1)] | None = None
    stop: object = ()  # a string, or several
    stream: Flag = False
    stream_options: StreamOptions = StreamOptions()
    diffusing: Flag = False
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
    request = EditRequest(
        task="chat",
        path="",
        text="",
        cursor=0,
        max_tokens=min(wanted, settings.max_tokens),
        quality=QUALITIES[body.reasoning_effort],
        temperature=body.temperature,
        top_p=body.top_p,
        seed=None if body.seed is None else body.seed % 2**53,
        stop=_stops(body.stop, settings.max_stops),
        candidates=body.n,
        grammar=grammar_of_call(tools) if tools.must else grammar,
        conversation=conversation,
    )
    return Chat(request, body, tools)


def _stops(value: object, most: int) -> tuple[str, ...]:
    stops = read(tuple[Text, ...], [value] if isinstance(value, str) else value, "stop")
    if len(stops) > most:
        raise InvalidRequest(f"'stop' has {len(stops)} strings, at most {most} are allowed.")
    if "" in stops:
        raise InvalidRequest("'stop' holds an empty string. Leave it out.")
    return tuple(map(unix, stops))


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
    parts: Sequence[Part] = read(tuple[Part, ...], content, where)
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
