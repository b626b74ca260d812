"""Answers to requests: whole or as a stream, in the form of each API family.

A route reads its body into an ``HttpQuestion``, and calls ``respond`` with the ``Dialect`` of its
family.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Literal, NamedTuple

from aiohttp import web
from redraft.model.records import CanvasState, EditRequest, Prediction, ToolCall
from redraft.model.validation import Json

from ..http.access import ENGINE
from ..http.prometheus import METRICS
from ..http.responses import json_response
from ..http.streams import EVENT_STREAM, follow, only, send_stream
from .feedback import LEDGER

#: Why nothing is suggested, as metrics count it: the prompt cannot be read; the line at the cursor
#: is too long; the model wrote nothing; a filter refused it; its score is too low.
Abstention = Literal["unreadable", "long_line", "nothing", "refused", "below_threshold"]


class Reply(NamedTuple):
    """A choice of an answer."""

    text: str
    finish: str  # "stop" or "length"
    reason: str = ""  # why nothing is suggested, for people
    abstained: Abstention | None = None  # the same for machines; None: something is suggested
    calls: tuple[ToolCall, ...] = ()
    confidence: float | None = None  # 0 … 1; None: nothing is suggested, or it is not computed


class HttpQuestion:
    """The question of a body."""

    request: EditRequest | None  # to the engine; None: it need not be asked

    def answers(self, prediction: Prediction | None) -> list[Reply]:
        """Return the choices, best first. There is at least one."""
        raise NotImplementedError

    def preview(self, state: CanvasState) -> str | None:  # noqa: ARG002
        """Return the whole answer as it stands; None: it is given once it is whole."""
        return None


class Dialect:
    """Writes the answer to one request as one API family does."""

    media_type = EVENT_STREAM  # of a stream
    answer_id = ""  # by which feedback names the answer; "": it cannot

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return the body of an answer that is not streamed."""
        raise NotImplementedError

    def state(self, state: CanvasState) -> Json | None:  # noqa: ARG002
        """Return the piece of a stream that shows an intermediate state, or None."""
        return None

    def last(self, answers: list[Reply], prediction: Prediction | None) -> Iterable[Json | str]:
        """Return the last pieces of a stream."""
        yield self.whole(answers, prediction)

    def error(self, body: Json) -> Json:
        """Return the piece of a stream that reports an error. ``body`` is OpenAI's form."""
        return body


async def respond(
    http: web.Request, question: HttpQuestion, dialect: Dialect, streamed: bool
) -> web.StreamResponse:
    """Ask the engine, and answer whole or as a stream."""
    engine, request = http.app[ENGINE], question.request

    def choose_answers(prediction: Prediction | None) -> list[Reply]:
        answers = question.answers(prediction)
        if answers[0].abstained is not None:
            http.app[METRICS].count_abstention(answers[0].abstained)
        if dialect.answer_id:
            http.app[LEDGER].add(dialect.answer_id)
        return answers

    def pieces_of(event: CanvasState | Prediction | None) -> Iterable[Json | str]:
        if not isinstance(event, CanvasState):
            return dialect.last(choose_answers(event), event)
        piece = dialect.state(event)
        return () if piece is None else (piece,)

    if not streamed:
        prediction = await engine.predict(request) if request else None
        return json_response(dialect.whole(choose_answers(prediction), prediction))
    events: AsyncGenerator[CanvasState | Prediction | None, None]
    events = follow(engine, request) if request else only(None)
    return await send_stream(http, dialect.media_type, events, pieces_of, dialect.error)
