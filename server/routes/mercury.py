"""Mercury's infills and next edits: ``POST /v1/fim/completions``, ``/v1/edit/completions``.

Every infill has both ``text`` and ``message``, because Codestral's clients use the same route.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.prompts.excerpt import Excerpt, Unreadable
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.mercury_edit import NO_EDIT, read_mercury
from redraft.model.prompts.registry import Unknown
from redraft.model.records import CanvasState, Prediction
from redraft.model.validation import Json, Text, read

from .base import (
    AnswerHead,
    CompletionBody,
    after_gap,
    confidence_and_times,
    read_completion,
    usage,
    why,
)
from .respond import Dialect, HttpQuestion, Reply, respond

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True, kw_only=True)
class Infill(CompletionBody):
    """The body of an infill."""

    prompt: Text
    suffix: Text = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A text part of a message."""

    type: Literal["text"]
    text: Text


@dataclass(frozen=True, slots=True)
class EditMessage:
    """A message that holds the prompt of an edit."""

    role: Text
    content: object = ""  # a string, or text parts


@dataclass(frozen=True, slots=True, kw_only=True)
class EditBody(CompletionBody):
    """The body of a next edit."""

    messages: tuple[EditMessage, ...] = ()


@routes.post("/v1/fim/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    """Fill a gap."""
    head, body, question = await read_completion(
        http, Infill, lambda body: Middle(body.prompt, after_gap(body.suffix))
    )
    return await respond(http, question, MercuryInfill(head, body, question), body.stream)


@routes.post("/v1/edit/completions")
async def edit(http: web.Request) -> web.StreamResponse:
    """Rewrite the region that the prompt marks."""
    head, body, question = await read_completion(
        http, EditBody, lambda body: _region(body.messages)
    )
    return await respond(http, question, MercuryEdit(head, body, question), body.stream)


def _region(messages: Sequence[EditMessage]) -> Excerpt | Unknown:
    content, name = _content(messages)
    try:
        return read_mercury(content, name)
    except Unreadable as error:  # markers in the code: no edit is better than one at a wrong place
        return Unknown(str(error))


def _content(messages: Sequence[EditMessage]) -> tuple[str, str]:
    """Return the user's last message, and its name in errors."""
    if not messages:
        raise InvalidRequest("'messages' is missing or empty. Send one message of role 'user'.")
    texts = [_text(one, f"messages[{index}].content") for index, one in enumerate(messages)]
    for index in reversed(range(len(messages))):
        if messages[index].role == "user":
            return texts[index], f"messages[{index}].content"
    raise InvalidRequest("'messages' has no message of role 'user'. Send the prompt as one.")


def _text(message: EditMessage, name: str) -> str:
    if not isinstance(message.content, list):
        return read(Text, message.content, name)
    return "".join(part.text for part in read(tuple[Part, ...], message.content, name))


class MercuryEdit(Dialect):
    """Mercury's next edits."""

    kind, chunk_kind = "edit.completion", "chat.completion.chunk"

    def __init__(self, head: AnswerHead, body: CompletionBody, question: HttpQuestion) -> None:
        self.answer_id = head.id
        self._head = head
        self._is_diffusing = body.diffusing
        self._question = question

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return one choice per answer."""
        choices = [self._choice(i, self._text(one), one.finish) for i, one in enumerate(answers)]
        body = self._head.body(choices, self.kind)
        return body | self._notes(answers, prediction)

    def state(self, state: CanvasState) -> Json | None:
        """Return the whole text so far, if the client asked to see it."""
        if not self._is_diffusing or (text := self._question.preview(state)) is None:
            return None
        return self._head.body([self._piece(0, text, None)], self.chunk_kind)

    def last(self, answers: list[Reply], prediction: Prediction | None) -> Iterator[Json | str]:
        """Yield all choices in one chunk."""
        choices = [self._piece(i, self._text(one), one.finish) for i, one in enumerate(answers)]
        body = self._head.body(choices, self.chunk_kind)
        yield body | self._notes(answers, prediction)
        yield "[DONE]"

    def _notes(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        best = answers[0]
        return {"usage": usage(prediction), **confidence_and_times(best, prediction), **why(best)}

    def _text(self, answer: Reply) -> str:
        return answer.text or NO_EDIT

    def _choice(self, index: int, text: str, finish: str | None) -> Json:
        message = {"role": "assistant", "content": text}
        return {"index": index, "message": message, "finish_reason": finish}

    def _piece(self, index: int, text: str, finish: str | None) -> Json:
        """Return a choice of a stream. Clients of chat streams look for ``delta``."""
        delta = {"role": "assistant", "content": text}
        return {**self._choice(index, text, finish), "delta": delta}


class MercuryInfill(MercuryEdit):
    """Mercury's and Codestral's infills."""

    kind = chunk_kind = "text_completion"

    def _text(self, answer: Reply) -> str:
        return answer.text

    def _choice(self, index: int, text: str, finish: str | None) -> Json:
        return {**super()._choice(index, text, finish), "text": text}
