"""What every wire needs: bodies in, JSON and streams out. Knows no wire's fields."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TypeVar

from aiohttp import web
from redraft.model.errors import RedraftError
from redraft.model.records import CanvasState, EditRequest, Prediction
from redraft.model.validation import Json, parse_json
from redraft.model.wire import error_to_json

from .service import HELD, Service

log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
LINES = "application/x-ndjson"

#: Bytes from which a body is read beside the event loop: 16 MB of markers take a second.
LARGE_BODY = 2**18

T = TypeVar("T")

OnState = Callable[[CanvasState], Awaitable[None]]

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)


async def read_question(http: web.Request, read: Callable[[Json], T]) -> T:
    """As :func:`read_body`, for what the model for edits is to answer.

    Raises:
        Overloaded: it would not be in time. Nothing of it was looked at.
    """
    body = await _body(http)
    http.app[SERVICE].check_room()
    return await _as_json(body, read)


async def read_body(http: web.Request, read: Callable[[Json], T]) -> T:
    """What ``read`` makes of the request's JSON object; of a large one in a thread, so that the
    other requests are answered meanwhile.

    Raises:
        InvalidRequest: not UTF-8, not JSON or no object; or as ``read`` does.
        web.HTTPRequestEntityTooLarge: names the limit.
        web.HTTPRequestTimeout: the body did not come in time.
    """
    return await _as_json(await _body(http), read)


async def _as_json(body: bytes, read: Callable[[Json], T]) -> T:
    if len(body) < LARGE_BODY:
        return read(parse_json(body))
    return await asyncio.to_thread(lambda: read(parse_json(body)))


async def _body(http: web.Request) -> bytes:
    settings = http.app[SERVICE].settings
    try:
        if (http.content_length or 0) > settings.max_body_bytes:
            raise _too_large(settings.max_body_bytes, http.content_length or 0)
        async with asyncio.timeout(settings.body_timeout_s):
            return await _read(http, settings.max_body_bytes)
    except web.HTTPRequestEntityTooLarge as error:
        raise _too_large(settings.max_body_bytes, http.content_length or 0) from error
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text=f"The body did not arrive within {settings.body_timeout_s:g} s. Send it at once."
        ) from None


async def _read(http: web.Request, most: int) -> bytes:
    """The body. One that does not tell how long it is takes memory as it comes."""
    held = HELD.get()
    if held is None or held.size:
        return await http.read()
    parts, size = [], 0
    async for part in http.content.iter_any():
        size += len(part)
        if size > most:
            raise _too_large(most, size)
        held.grow(len(part))
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int, size: int) -> web.HTTPRequestEntityTooLarge:
    return web.HTTPRequestEntityTooLarge(
        max_size=limit,
        actual_size=size,
        text=f"The body is larger than {limit} bytes, this server's limit. Send less text around "
        "the cursor, or raise 'max_body_bytes'.",
    )


def as_json(body: object) -> str:
    """JSON as llama.cpp writes it, without spaces: llama.vim looks for ``"content":"`` in an answer
    and passes over any that has not that very text."""
    return json.dumps(body, separators=(",", ":"))


def json_response(
    body: Json, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    return web.json_response(body, status=status, headers=headers, dumps=as_json)


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> web.Response:
    """Return the same shape as ``wire.error_to_json``, for what HTTP itself refuses."""
    return json_response(_error_body(status, code, message), status=status, headers=headers)


def fault_body(http: web.Request, error: Exception) -> Json:
    """Log a fault of our own and return the body that tells the client of it."""
    log.error("a fault of ours while answering %s", http.path, exc_info=error)
    return _error_body(
        500,
        "internal_error",
        f"Redraft met a fault of its own ({type(error).__name__}); the details are in its "
        "log. Please report it with them.",
    )


def _error_body(status: int, code: str, message: str) -> Json:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


class Stream:
    """An answer in pieces: server-sent events, or lines of JSON.

    Its headers go out with the first piece, so that whatever fails before can still be answered
    with a status of its own.
    """

    def __init__(self, http: web.Request, content_type: str, *, plain_errors: bool = False) -> None:
        self._http = http
        self.plain_errors = plain_errors  # {"error": "message"}, as Ollama has it
        self._events = content_type == EVENT_STREAM
        self._response = web.StreamResponse(
            headers={
                "Content-Type": content_type,
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",  # proxies shall pass each piece on at once
            }
        )

    async def send(self, data: Json | str) -> None:
        if not self._response.prepared:
            await self._response.prepare(self._http)
        text = data if isinstance(data, str) else as_json(data)
        await self._response.write((f"data: {text}\n\n" if self._events else f"{text}\n").encode())

    async def end(self) -> web.StreamResponse:
        with suppress(ConnectionResetError):  # the client has all it wants, and left
            await self._response.write_eof()
        return self._response

    async def answer(
        self,
        service: Service,
        request: EditRequest | None,
        finish: Callable[[Prediction | None], Awaitable[None]],
        on_state: OnState | None = None,
    ) -> web.StreamResponse:
        """As :meth:`follow`, also where the model is not asked: ``finish`` gets None then."""
        if request is not None:
            return await self.follow(service, request, finish, on_state)
        await finish(None)
        return await self.end()

    async def follow(
        self,
        service: Service,
        request: EditRequest,
        finish: Callable[[Prediction], Awaitable[None]],
        on_state: OnState | None = None,
    ) -> web.StreamResponse:
        """Hand each canvas state to ``on_state``, which sends what it likes, and the prediction to
        ``finish``.

        A failure after the first piece becomes the stream's last piece: its status is sent already.
        """
        try:
            async with aclosing(service.follow(request)) as events:
                async for event in events:
                    if isinstance(event, Prediction):
                        await finish(event)
                    elif on_state is not None:
                        await on_state(event)
        except ConnectionResetError:
            raise  # the client went away: there is nobody to tell
        except Exception as error:
            if not self._response.prepared:
                raise
            await self.send(self._failure(error))
            self._response.force_close()
        return await self.end()

    def _failure(self, error: Exception) -> Json:
        """Return ``error`` as the last piece of a stream."""
        if isinstance(error, RedraftError):
            body = error_to_json(error)
        else:
            body = fault_body(self._http, error)
        return body if not self.plain_errors else {"error": body["error"]["message"]}
