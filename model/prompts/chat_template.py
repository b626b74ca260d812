"""Conversations as tokens, by a model's own chat template.

The template is Jinja that came with the weights (``chat_template.jinja`` in the ready folder). It
runs in a sandbox, within a number of steps. Messages cannot forge a mark: names of special tokens
in them are encoded letter by letter.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import FrameType
from typing import Any

from jinja2 import Environment, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..errors import ContextOverflow, InvalidRequest
from ..records import Conversation, Message
from .tokenizer import Tokenizer

#: Lines of a template that are run at most: 10,000 messages take some 200,000.
MAX_STEPS = 2_000_000
#: Characters that a template may make out of one multiplication.
MAX_PRODUCT = 1 << 20
#: No token of ordinary text is longer: more characters are not even encoded.
CHARS_PER_TOKEN = 24
#: Around the tool calls of an assistant.
CALL_MARKS = ("<tool_call>", "</tool_call>")
#: A reply of an assistant, by which the end of its turn is found.
_REPLY = "Sphinx of black quartz"
#: The first private-use character of plane 15. Such characters replace names of marks in texts.
_UNUSED = 0xF0000
_TEMPLATE = "<template>"


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A rendered conversation."""

    tokens: tuple[int, ...]
    end_token: int  # ends the assistant's turn
    marks: Mapping[int, bytes]  # other marks that may be written, as text


class ChatTemplate:
    """Chat template of one model.

    Args:
        source: Jinja.
        clock: for templates that name the day.

    Raises:
        InvalidRequest: the template cannot be read.
    """

    def __init__(self, source: str, tokenizer: Tokenizer, clock: Callable[[], datetime]) -> None:
        self.tokenizer = tokenizer
        self.source = source
        special = sorted((name for name in tokenizer.special.values() if name), key=len)
        self._marks = {name: i for i, name in tokenizer.special.items()}
        self._split = re.compile("|".join(map(re.escape, reversed(special))) or r"(?!)")
        environment = _environment(clock)
        try:
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise InvalidRequest(
                f"The model's chat template cannot be read: {error}. Choose another model."
            ) from error

    @property
    def knows_tools(self) -> bool:
        """Return whether the template writes tools."""
        return "tools" in self.source

    @cached_property
    def end_token(self) -> int:
        """The mark that ends the turn of an assistant.

        Raises:
            InvalidRequest: the template writes none.
        """
        turns = Conversation((Message("user", "?"), Message("assistant", _REPLY)))
        text = self._run(turns.think, _variables(turns), generate=False)
        mark = self._split.search(text.rpartition(_REPLY)[2])
        if mark is None:
            raise InvalidRequest(
                "The model's chat template shows no mark at the end of an assistant's turn. "
                "Choose another model."
            )
        return self._marks[mark[0]]

    def render(self, conversation: Conversation, most: int) -> ChatPrompt:
        """Return the tokens of a conversation, up to the beginning of the answer.

        Args:
            most: tokens that may be read.

        Raises:
            ContextOverflow: it takes more.
            InvalidRequest: the template refuses these messages, fails, or does not end.
        """
        variables = _variables(conversation)
        stand_ins = self._stand_ins("\n".join(_texts(variables)))
        if stand_ins:
            pattern = re.compile("|".join(map(re.escape, stand_ins)))
            variables = _changed(
                variables, lambda text: pattern.sub(lambda m: stand_ins[m[0]], text)
            )
        text = self._run(conversation.think, variables, generate=True) + conversation.begins
        if len(text) > CHARS_PER_TOKEN * most:
            raise _overflow(f"{len(text):,} characters", most)
        tokens = tuple(self._encode(text, stand_ins))
        if len(tokens) > most:
            raise _overflow(f"{len(tokens):,} tokens", most)
        calls = {}
        if conversation.tools and not conversation.begins:
            calls = {i: name.encode() for name, i in self._marks.items() if name in CALL_MARKS}
        return ChatPrompt(tokens, self.end_token, calls)

    def _stand_ins(self, texts: str) -> dict[str, str]:
        """Return a character that is not in ``texts`` for each name of a mark in them."""
        found = sorted({match[0] for match in self._split.finditer(texts)}, key=len)
        unused = (chr(i) for i in range(_UNUSED, _UNUSED + 0xFFFD) if chr(i) not in texts)
        return dict(zip(reversed(found), unused, strict=False))

    def _encode(self, text: str, stand_ins: dict[str, str]) -> Iterator[int]:
        names = {stand_in: name for name, stand_in in stand_ins.items()}
        back = str.maketrans(names)
        at = 0
        for mark in self._split.finditer(text):
            yield from self.tokenizer.encode(text[at : mark.start()].translate(back))
            yield self._marks[mark[0]]
            at = mark.end()
        yield from self.tokenizer.encode(text[at:].translate(back))

    def _run(self, think: bool, variables: dict[str, Any], generate: bool) -> str:
        try:
            with _bounded():
                return self._template.render(
                    variables,
                    add_generation_prompt=generate,
                    enable_thinking=think,
                    bos_token="",
                    eos_token="",
                )
        except _TooLong:
            raise InvalidRequest(
                f"'messages': the model's chat template did not end within {MAX_STEPS:,} steps. "
                "Send fewer messages, or choose another model."
            ) from None
        except (TemplateError, SecurityError) as error:
            raise InvalidRequest(
                f"'messages' are refused by the model's chat template: {error}. Send them as it "
                "wants them."
            ) from error
        except Exception as error:  # a template may fail in any way that Python can
            raise InvalidRequest(
                f"'messages' make the model's chat template fail ({type(error).__name__}: {error})."
                " Send them as it wants them, or choose another model."
            ) from error


def _overflow(size: str, most: int) -> ContextOverflow:
    return ContextOverflow(
        f"'messages' take {size}; this model reads {most:,} tokens and writes its answer behind "
        "them. Send fewer or shorter messages, or ask for fewer 'max_tokens'."
    )


def _variables(conversation: Conversation) -> dict[str, Any]:
    """Return the messages and tools of a conversation as templates expect them."""
    tools = json.loads(conversation.tools) if conversation.tools else None
    return {"messages": [_plain(message) for message in conversation.messages], "tools": tools}


def _plain(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        found["name"] = message.name
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.loads(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return found


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(part)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each of its texts changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(part, change) for part in value]
    if isinstance(value, dict):
        return {change(key): _changed(part, change) for key, part in value.items()}
    return value


# -- the sandbox ---------------------------------------------------------------------------------


class _TooLong(Exception):
    """The template ran for too long. No ``TemplateError``: templates cannot catch it anyway."""


#: Methods that make a text of any length.
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})


class _Sandbox(ImmutableSandboxedEnvironment):
    """Environment without operations that make very long texts."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str) and attr in _PADDING:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is not None:
            raise SecurityError("texts cannot be formatted here")
        return None

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise SecurityError(f"the operator {operator} is not available here")
        if operator == "*" and _product_size(left, right) > MAX_PRODUCT:
            raise SecurityError("it makes too long a text")
        return super().call_binop(context, operator, left, right)


def _product_size(left: Any, right: Any) -> int:
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, list, tuple)) and isinstance(count, int):
            return len(text) * count
    return 0


class _Generation(Extension):
    """``{% generation %}`` marks what training learns from; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _environment(clock: Callable[[], datetime]) -> Environment:
    """Return the environment that transformers sets up, for which templates are written."""

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None, **_: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    extensions: list[type[Extension] | str] = ["jinja2.ext.loopcontrols", _Generation]
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    for name in ("center", "format", "indent", "wordwrap"):
        del environment.filters[name]
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: clock().strftime(form)
    return environment


@contextmanager
def _bounded() -> Iterator[None]:
    """Raise ``_TooLong`` after :data:`MAX_STEPS` lines of a template, which Jinja compiles."""
    left = MAX_STEPS

    def count(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooLong
        return count

    def watch(frame: FrameType, _event: str, _argument: Any) -> Any:
        return count if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
