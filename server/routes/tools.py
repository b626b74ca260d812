"""Tools: functions that the model may call, the grammar of a call, and calls read from an answer.

A call is ``<tool_call>`` and a JSON object of ``name`` and ``arguments``, as Qwen's and Hermes'
models write it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from redraft.model.errors import InvalidRequest
from redraft.model.records import Grammar, ToolCall
from redraft.model.validation import Json, Text, brief, dump_json, load_json, read

from .constraints import schema_text

_MARKED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
#: Names that OpenAI accepts.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_TOOLS = 128


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called."""

    name: Text
    description: Text = ""
    parameters: object = None  # a JSON schema
    strict: object = None  # it always is


@dataclass(frozen=True, slots=True)
class Tool:
    """An entry of ``tools``."""

    function: Function
    type: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class FunctionName:
    """``tool_choice.function``."""

    name: Text


@dataclass(frozen=True, slots=True)
class Choice:
    """``tool_choice`` that names a function."""

    function: FunctionName
    type: Literal["function"] = "function"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFields:
    """The fields of a body that are about tools."""

    tools: tuple[Tool, ...] = ()
    tool_choice: object = None  # "auto", "none", "required", or a :class:`Choice`


@dataclass(frozen=True, slots=True)
class Tools:
    """The functions that may be called, and those of which one must be."""

    functions: tuple[Json, ...] = ()  # as the template takes them
    must: tuple[str, ...] = ()  # one of these must be called; (): the model decides

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all functions."""
        return frozenset(one["function"]["name"] for one in self.functions)


def read_tools(body: Json) -> Tools:
    """Read ``tools`` and ``tool_choice`` of a body.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    raw = body.get("tools") or []
    tools = read(ToolFields, {"tools": raw}).tools
    if len(tools) > MAX_TOOLS:
        raise InvalidRequest(f"'tools' has {len(tools)} entries, at most {MAX_TOOLS} are taken.")
    names: list[str] = []
    for index, tool in enumerate(tools):
        name, where = tool.function.name, f"tools[{index}].function"
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"'{where}.name' is {brief(name)}: letters, digits, _ and - only, 64 at most."
            )
        if name in names:
            raise InvalidRequest(f"'{where}.name' is {name!r} a second time. Name each once.")
        names.append(name)
        if tool.function.parameters is not None:
            schema_text(raw[index]["function"]["parameters"], f"{where}.parameters")
    choice = body.get("tool_choice")
    if choice == "none" or (choice is None and not names):
        return Tools()
    functions = tuple({"type": "function", "function": one["function"]} for one in raw)
    return Tools(functions, _must(choice, names))


def _must(choice: object, names: list[str]) -> tuple[str, ...]:
    if choice in (None, "auto"):
        return ()
    if choice == "required":
        if not names:
            raise InvalidRequest("'tool_choice' is 'required', but there are no 'tools'.")
        return tuple(names)
    if isinstance(choice, str):
        raise InvalidRequest(
            f"'tool_choice' must be 'auto', 'none', 'required' or name a function, not "
            f"{brief(choice)}."
        )
    name = read(Choice, choice, "tool_choice").function.name
    if name not in names:
        known = ", ".join(names) or "none"
        raise InvalidRequest(f"'tool_choice.function.name' is {brief(name)}; 'tools' has {known}.")
    return (name,)


def grammar_of_call(tools: Tools) -> Grammar:
    """Return the grammar of one call of a function that must be called.

    The schemas of all functions become definitions of one schema.
    """
    schemas: Json = {}
    calls: list[Json] = []
    for index, one in enumerate(tools.functions):
        function = one["function"]
        if function["name"] not in tools.must:
            continue
        schema = function.get("parameters") or {"type": "object", "additionalProperties": False}
        place = f"#/$defs/f{index}"
        schemas[f"f{index}"] = _moved(schema, place)
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": function["name"]}, "arguments": {"$ref": place}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    whole = {**(calls[0] if len(calls) == 1 else {"anyOf": calls}), "$defs": schemas}
    return Grammar("json_schema", dump_json(whole, "tools"), "tools")


def _moved(value: object, place: str) -> object:
    """Return a schema whose references to itself begin at ``place``."""
    if isinstance(value, list):
        return [_moved(one, place) for one in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(one, place) for key, one in value.items()}
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = place + reference[1:]
    return moved


def read_calls(text: str, names: frozenset[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """Split an answer into its text and its calls of functions in ``names``.

    Text that only looks like a call stays text.
    """
    calls: list[ToolCall] = []

    def take(match: re.Match[str]) -> str:
        call = _call(match[1], names)
        if call is None:
            return match[0]
        calls.append(call)
        return ""

    rest = _MARKED.sub(take, text)
    if not calls:
        fenced = _FENCED.match(text.strip())
        call = _call(fenced[1] if fenced else text.strip(), names)
        if call is not None:
            return "", (call,)
    return (rest.strip() if calls else text), tuple(calls)


def _call(text: str, names: frozenset[str]) -> ToolCall | None:
    try:
        value = load_json(text)
        if not isinstance(value, dict):
            return None
        name, arguments = value.get("name"), value.get("arguments", {})
        if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
            return None
        return ToolCall(f"call_{secrets.token_hex(12)}", name, dump_json(arguments, "arguments"))
    except (ValueError, InvalidRequest):  # not JSON, or a number that no client can read
        return None


def call_to_json(call: ToolCall) -> Json:
    """Return a call in OpenAI's form."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def calls_to_deltas(calls: Sequence[ToolCall]) -> list[Json]:
    """Return calls for a chunk of a stream."""
    return [{"index": index, **call_to_json(call)} for index, call in enumerate(calls)]
