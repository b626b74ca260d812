"""Mercury's completions: infill, ``POST /v1/fim/completions``, and next edits,
``POST /v1/edit/completions``.

Every infill choice has both ``text`` and ``message``, so that clients of Codestral's format, which
has the same route, are served as well. ``diffusing`` streams the whole answer after each denoise
step.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from redraft.model.engine.record_json import Fields, Json, check_text, json_type
from redraft.model.errors import InvalidRequest
from redraft.model.records import CanvasState, Prediction

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_body
from ..http.service import Service
from .answers import Answer
from .completion import Ask, Head, answered, check_model, loaded, read_ask, read_suffix, usage, why
from .feedback import LEDGER
from .guided import guided
from .prompts.markers import Middle, Rewrite, Unknown
from .prompts.mercury import NO_EDIT, read_mercury
from .prompts.zeta import Unreadable

routes = web.RouteTableDef()


@routes.post("/v1/fim/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    return await _respond(http, _middle, Form("text_completion", "text_completion"))


def _middle(fields: Fields) -> Middle:
    return Middle(fields.text("prompt"), read_suffix(fields, ""))


@routes.post("/v1/edit/completions")
async def edit(http: web.Request) -> web.StreamResponse:
    return await _respond(http, _edit, Form("edit.completion", "chat.completion.chunk"))


def _edit(fields: Fields) -> Rewrite | Unknown:
    content, name = _content(fields)
    try:
        return Rewrite(*read_mercury(content, name))
    except Unreadable as error:  # markers in the code: suggest nothing rather than at a wrong place
        return Unknown("", str(error))


def _content(fields: Fields) -> tuple[str, str]:
    """The last message of the user, and what to call it in errors."""

    def message(value: object, where: str) -> tuple[str, str, str]:
        one = Fields(value, where)
        return one.text("role"), _text(one), one.name("content")

    found = fields.array("messages", message, None)
    if not found:
        raise InvalidRequest("'messages' is missing or empty. Send one message of role 'user'.")
    for role, content, name in reversed(found):
        if role == "user":
            return content, name
    raise InvalidRequest("'messages' has no message of role 'user'. Send the prompt as one.")


def _text(message: Fields) -> str:
    """A message's content: a string, or an array of text parts."""

    def part(value: object, where: str) -> str:
        one = Fields(value, where)
        one.one_of("type", ("text",))
        text: str = one.text("text")
        return text

    if isinstance(message.raw("content"), list):
        return "".join(message.array("content", part))
    if "content" in message and not isinstance(message.raw("content"), str):
        kind = json_type(message.raw("content"))
        raise InvalidRequest(f"'{message.name('content')}' must be a string, not {kind}.")
    return check_text(message.text("content", ""), message.name("content"))


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
    http: web.Request, meant: Callable[[Fields], Middle | Rewrite | Unknown], form: Form
) -> web.StreamResponse:
    service = http.app[SERVICE]

    def read(body: Json) -> Ask:
        fields = Fields(body)
        return guided(read_ask(fields, meant(fields), service.settings), body)

    ask = await read_body(http, read)
    status = await service.status()
    check_model(ask.model, status)
    head = Head.new(loaded(status))
    if ask.stream:
        return await _stream(http, service, ask, head, form)
    request = ask.question.request
    prediction = await service.predict(request) if request else None
    http.app[LEDGER].given(head.id)
    answers = answered(service, ask.question, prediction)
    choices = [form.choice(i, form.text(one), one.finish) for i, one in enumerate(answers)]
    body = {**head.body(choices, form.whole), "usage": usage(prediction)}
    return json_response({**body, **why(answers[0])})


async def _stream(
    http: web.Request, service: Service, ask: Ask, head: Head, form: Form
) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)

    async def finish(prediction: Prediction | None) -> None:
        http.app[LEDGER].given(head.id)
        answers = answered(service, ask.question, prediction)
        choices = [form.piece(i, form.text(one), one.finish) for i, one in enumerate(answers)]
        body = {**head.body(choices, form.chunk), "usage": usage(prediction)}
        await stream.send({**body, **why(answers[0])})
        await stream.send("[DONE]")

    async def on_event(event: CanvasState | Prediction) -> None:
        if isinstance(event, Prediction):
            await finish(event)
        elif ask.diffusing and (text := ask.question.state(event)) is not None:
            await stream.send(head.body([form.piece(0, text, None)], form.chunk))

    if ask.question.request is None:
        await finish(None)
        return await stream.end()
    return await stream.follow(service, ask.question.request, on_event)
