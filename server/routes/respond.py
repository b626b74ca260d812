"""Answers to requests: whole or as a stream, in the form of each API family.

A route reads its body into an ``Ask`` and calls ``respond`` with the ``Dialect`` of its family.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import Literal, NamedTuple, Protocol

from aiohttp import web
from redraft.model.errors import RedraftError
from redraft.model.records import CanvasState, EditRequest, Prediction, ToolCall
from redraft.model.validation import Json
from redraft.model.wire import error_to_json

from ..http.bodies import SERVICE, as_json, fault_body, json_response
from .feedback import LEDGER

EVENT_STREAM = "text/event-stream"
LINES = "application/x-ndjson"

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


class Ask(Protocol):
    """The question of a body."""

    @property
    def request(self) -> EditRequest | None:
        """The request to the engine; None if it need not be asked."""

    def answers(self, prediction: Prediction | None) -> list[Reply]:
        """Return the choices, best first. There is at least one."""


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
    http: web.Request, ask: Ask, dialect: Dialect, streamed: bool
) -> web.StreamResponse:
    """Ask the engine, and answer whole or as a stream.

    An error after the first piece of a stream becomes its last piece, because the status has been
    sent by then.
    """
    service = http.app[SERVICE]

    def chosen(prediction: Prediction | None) -> list[Reply]:
        answers = ask.answers(prediction)
        if answers[0].abstained is not None:
            service.metrics.abstained(answers[0].abstained)
        if dialect.answer_id:
            http.app[LEDGER].add(dialect.answer_id)
        return answers

    if not streamed:
        prediction = await service.predict(ask.request) if ask.request else None
        return json_response(dialect.whole(chosen(prediction), prediction))
    stream = Stream(http, dialect.media_type)
    try:
        if ask.request is None:
            await stream.send_all(dialect.last(chosen(None), None))
            return await stream.end()
        async with aclosing(service.follow(ask.request)) as events:
            async for event in events:
                if isinstance(event, Prediction):
                    await stream.send_all(dialect.last(chosen(event), event))
                elif (piece := dialect.state(event)) is not None:
                    await stream.send(piece)
    except ConnectionResetError:
        raise  # the client has left
    except Exception as error:
        if not stream.has_begun:
            raise
        body = error_to_json(error) if isinstance(error, RedraftError) else fault_body(http, error)
        await stream.send(dialect.error(body))
        stream.close_connection()
    return await stream.end()


class Stream:
    """An answer in pieces: server-sent events, or lines of JSON.

    The headers are sent with the first piece. An error before it still has a status.
    """

    def __init__(self, http: web.Request, media_type: str) -> None:
        self._http = http
        self._events = media_type == EVENT_STREAM
        self._response = web.StreamResponse(
            headers={
                "Content-Type": media_type,
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",  # proxies must pass each piece on at once
            }
        )

    @property
    def has_begun(self) -> bool:
        """Return whether the status has been sent."""
        return self._response.prepared

    async def send(self, piece: Json | str) -> None:
        """Send one piece; a string goes as it is."""
        if not self._response.prepared:
            await self._response.prepare(self._http)
        text = piece if isinstance(piece, str) else as_json(piece)
        await self._response.write((f"data: {text}\n\n" if self._events else f"{text}\n").encode())

    async def send_all(self, pieces: Iterable[Json | str]) -> None:
        """Send several pieces."""
        for piece in pieces:
            await self.send(piece)

    def close_connection(self) -> None:
        """Close the connection after this answer."""
        self._response.force_close()

    async def end(self) -> web.StreamResponse:
        """Finish the stream."""
        with suppress(ConnectionResetError):  # the client has everything, and has left
            await self._response.write_eof()
        return self._response
