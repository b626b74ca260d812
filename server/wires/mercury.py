"""Mercury's completions: infill, ``POST /v1/fim/completions``, and next edits,
``POST /v1/edit/completions``.

Every infill choice has both ``text`` and ``message``, so that clients of Codestral's format, which
has the same route, are served as well. ``diffusing`` streams the whole answer after each denoise
step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.prompts.excerpt import Excerpt, Unreadable
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.mercury import NO_EDIT, read_mercury
from redraft.model.prompts.registry import Unknown
from redraft.model.records import CanvasState, Prediction
from redraft.model.validation import Json, Text, read

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_question
from ..http.service import Service
from .answers import Answer
from .completion import (
    CompletionAsk,
    CompletionRequest,
    Head,
    answered,
    ask_for,
    behind_gap,
    check_model,
    loaded,
    usage,
    why,
)
from .feedback import LEDGER
from .guided import guided

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True, kw_only=True)
class Infill(CompletionRequest):
    prompt: Text
    suffix: Text = ""


@dataclass(frozen=True, slots=True)
class Part:
    type: Literal["text"]
    text: Text


@dataclass(frozen=True, slots=True)
class Message:
    role: Text
    content: object = ""  # a string, or text parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(CompletionRequest):
    messages: tuple[Message, ...] = ()


@routes.post("/v1/fim/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    settings = http.app[SERVICE].settings

    def ask(data: Json) -> CompletionAsk:
        body = read(Infill, data)
        return guided(ask_for(body, Middle(body.prompt, behind_gap(body.suffix)), settings), data)

    return await _respond(http, ask, Form("text_completion", "text_completion"))


@routes.post("/v1/edit/completions")
async def edit(http: web.Request) -> web.StreamResponse:
    settings = http.app[SERVICE].settings

    def ask(data: Json) -> CompletionAsk:
        body = read(Edit, data)
        return guided(ask_for(body, _region(body.messages), settings), data)

    return await _respond(http, ask, Form("edit.completion", "chat.completion.chunk"))


def _region(messages: Sequence[Message]) -> Excerpt | Unknown:
    content, name = _content(messages)
    try:
        return read_mercury(content, name)
    except Unreadable as error:  # markers in the code: suggest nothing rather than at a wrong place
        return Unknown(str(error))


def _content(messages: Sequence[Message]) -> tuple[str, str]:
    """The last message of the user, and what to call it in errors."""
    if not messages:
        raise InvalidRequest("'messages' is missing or empty. Send one message of role 'user'.")
    texts = [_text(one, f"messages[{index}].content") for index, one in enumerate(messages)]
    for index in reversed(range(len(messages))):
        if messages[index].role == "user":
            return texts[index], f"messages[{index}].content"
    raise InvalidRequest("'messages' has no message of role 'user'. Send the prompt as one.")


def _text(message: Message, name: str) -> str:
    if not isinstance(message.content, list):
        return read(Text, message.content, name)
    return "".join(part.text for part in read(tuple[Part, ...], message.content, name))


class Form:
    """How the answers of a route look."""

    def __init__(self, whole: str, chunk: str) -> None:
        self.whole = whole
        self.chunk = chunk
        self._infill = whole == "text_completion"

    def text(self, answer: Answer) -> str:
        return answer.text if self._infill else answer.text or NO_EDIT

    def choice(self, index: int, text: str, finish: str | None) -> Json:
        choice: Json = {
            "index": index,
            "message": {"role": "assistant", "content": text},
            "finish_reason": finish,
        }
        return {**choice, "text": text} if self._infill else choice

    def piece(self, index: int, text: str, finish: str | None) -> Json:
        """A choice of a stream; clients of chat streams look for ``delta``."""
        delta = {"role": "assistant", "content": text}
        return {**self.choice(index, text, finish), "delta": delta}


async def _respond(
    http: web.Request, read_ask: Callable[[Json], CompletionAsk], form: Form
) -> web.StreamResponse:
    service = http.app[SERVICE]
    ask = await read_question(http, read_ask)
    status = await service.status()
    check_model(ask.body.model, status)
    head = Head.new(loaded(status))
    if ask.body.stream:
        return await _stream(http, service, ask, head, form)
    request = ask.question.request
    prediction = await service.predict(request) if request else None
    http.app[LEDGER].given(head.id)
    answers = answered(service, ask.question, prediction)
    choices = [form.choice(i, form.text(one), one.finish) for i, one in enumerate(answers)]
    body = {**head.body(choices, form.whole), "usage": usage(prediction)}
    return json_response({**body, **why(answers[0])})


async def _stream(
    http: web.Request, service: Service, ask: CompletionAsk, head: Head, form: Form
) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)

    async def finish(prediction: Prediction | None) -> None:
        http.app[LEDGER].given(head.id)
        answers = answered(service, ask.question, prediction)
        choices = [form.piece(i, form.text(one), one.finish) for i, one in enumerate(answers)]
        body = {**head.body(choices, form.chunk), "usage": usage(prediction)}
        await stream.send({**body, **why(answers[0])})
        await stream.send("[DONE]")

    async def on_state(state: CanvasState) -> None:
        if ask.body.diffusing and (text := ask.question.state(state)) is not None:
            await stream.send(head.body([form.piece(0, text, None)], form.chunk))

    return await stream.answer(service, ask.question.request, finish, on_state)
