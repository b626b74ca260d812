"""Conversations to tokens, as a model's own template lays them out.

The template is Jinja that came with the weights (``chat_template.jinja`` in the ready folder). It
is run in a sandbox, within a number of steps. What people and tools say cannot forge a mark: names
of special tokens in it are encoded letter by letter. Knows nothing of HTTP and of running models.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
#: Between these an assistant writes what it wants called.
CALL_MARKS = ("<tool_call>", "</tool_call>")
#: Stands in for what an assistant says, to see how its turn ends.
_SAID = "Sphinx of black quartz"
#: From here on are characters that nobody uses: they stand in for names of marks in texts.
_UNUSED = 0xF0000
_TEMPLATE = "<template>"


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    tokens: tuple[int, ...]
    end_token: int  # what ends the assistant's turn
    marks: Mapping[int, bytes]  # other marks that may be written, as text


class ChatTemplate:
    """One model's way to write conversations.

    Args:
        source: Jinja.
        clock: for templates that name the day.

    Raises:
        InvalidRequest: the template cannot be read, or shows no end of an assistant's turn.
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
        return "tools" in self.source

    @cached_property
    def end_token(self) -> int:
        """The mark that ends what an assistant says."""
        said = (Message("user", "?"), Message("assistant", _SAID))
        text = self._run(Conversation(said), generate=False)
        behind = text.rpartition(_SAID)[2]
        mark = self._split.search(behind)
        if mark is None:
            raise InvalidRequest(
                "The model's chat template shows no mark at the end of what an assistant says. "
                "Choose another model."
            )
        return self._marks[mark[0]]

    def render(self, conversation: Conversation, most: int) -> ChatPrompt:
        """
        Args:
            most: tokens that may be read.

        Raises:
            ContextOverflow: it takes more.
            InvalidRequest: the template refuses these messages, fails, or does not end.
        """
        stand_ins = self._stand_ins(conversation)
        text = self._run(_exchanged(conversation, stand_ins), generate=True) + conversation.begins
        if len(text) > CHARS_PER_TOKEN * most:
            raise _overflow(f"{len(text):,} characters", most)
        tokens = tuple(self._encode(text, stand_ins))
        if len(tokens) > most:
            raise _overflow(f"{len(tokens):,} tokens", most)
        calls = {}
        if conversation.tools and not conversation.begins:
            calls = {i: name.encode() for name, i in self._marks.items() if name in CALL_MARKS}
        return ChatPrompt(tokens, self.end_token, calls)

    # -- texts without marks ---------------------------------------------------------------------

    def _stand_ins(self, conversation: Conversation) -> dict[str, str]:
        """For each name of a mark that somebody's text holds, a character in no text."""
        texts = [conversation.tools]
        for message in conversation.messages:
            texts += [message.content, message.name]
            texts += [part for call in message.tool_calls for part in (call.name, call.arguments)]
        whole = "\n".join(texts)
        found = sorted({match[0] for match in self._split.finditer(whole)}, key=len)
        unused = (chr(i) for i in range(_UNUSED, _UNUSED + 0xFFFD) if chr(i) not in whole)
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

    # -- the template ----------------------------------------------------------------------------

    def _run(self, conversation: Conversation, generate: bool) -> str:
        variables = {
            "messages": [_plain(message) for message in conversation.messages],
            "tools": json.loads(conversation.tools) if conversation.tools else None,
            "add_generation_prompt": generate,
            "enable_thinking": conversation.think,
            "bos_token": "",
            "eos_token": "",
        }
        try:
            with _bounded():
                return self._template.render(variables)
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


def _plain(message: Message) -> dict[str, Any]:
    """A message as templates know it."""
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


def _exchanged(conversation: Conversation, stand_ins: dict[str, str]) -> Conversation:
    if not stand_ins:
        return conversation
    pattern = re.compile("|".join(map(re.escape, stand_ins)))

    def without(text: str) -> str:
        return pattern.sub(lambda mark: stand_ins[mark[0]], text)

    def of(message: Message) -> Message:
        calls = tuple(
            replace(call, name=without(call.name), arguments=without(call.arguments))
            for call in message.tool_calls
        )
        return replace(
            message,
            content=without(message.content),
            name=without(message.name),
            tool_calls=calls,
        )

    messages = tuple(map(of, conversation.messages))
    return replace(conversation, messages=messages, tools=without(conversation.tools))


# -- the sandbox ---------------------------------------------------------------------------------


class _TooLong(Exception):
    """The template ran for too long. No ``TemplateError``: templates cannot catch it anyway."""


#: Methods of texts that make as long a one as they are told.
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})


class _Sandbox(ImmutableSandboxedEnvironment):
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
    """As transformers sets it up, which templates are written for."""

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
    """Ends a template that goes on and on: Jinja makes Python of it, whose lines are counted."""
    left = MAX_STEPS

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooLong
        return count

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        return count if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
