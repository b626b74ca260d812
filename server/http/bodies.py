"""Request bodies read within limits, and JSON responses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TypeVar

from aiohttp import web
from redraft.model.validation import Json, parse_json

from .service import HELD, Service

log = logging.getLogger(__name__)

#: Bytes from which a body is parsed in a thread: 16 MB of markers take a second.
LARGE_BODY = 2**18

T = TypeVar("T")

SERVICE: web.AppKey[Service] = web.AppKey("service", Service)


async def read_question(http: web.Request, read: Callable[[Json], T]) -> T:
    """Read a question to the completion model; see :func:`read_body`.

    Raises:
        Overloaded: the queue is full. The body was not parsed.
    """
    body = await _body(http)
    http.app[SERVICE].check_room()
    return await _as_json(body, read)


async def read_body(http: web.Request, read: Callable[[Json], T]) -> T:
    """Return ``read(body)``. Large bodies are parsed in a thread, so that others are not delayed.

    Raises:
        InvalidRequest: the body is not a JSON object in UTF-8, or ``read`` refuses it.
        web.HTTPRequestEntityTooLarge: the body is too large; names the limit.
        web.HTTPRequestTimeout: the body did not arrive in time.
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
    """Return the body. Without a Content-Length, memory is reserved as it arrives."""
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
    """Return JSON without spaces, because llama.vim looks for the text ``"content":"``."""
    return json.dumps(body, separators=(",", ":"))


def json_response(
    body: Json, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return a response with a JSON body."""
    return web.json_response(body, status=status, headers=headers, dumps=as_json)


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> web.Response:
    """Return an error of HTTP itself, in the form of ``wire.error_to_json``."""
    return json_response(_error_body(status, code, message), status=status, headers=headers)


def fault_body(http: web.Request, error: Exception) -> Json:
    """Log an internal error, and return the body that reports it."""
    log.error("internal error while answering %s", http.path, exc_info=error)
    return _error_body(
        500,
        "internal_error",
        f"Redraft failed ({type(error).__name__}); the details are in its log. "
        "Please report it with them.",
    )


def _error_body(status: int, code: str, message: str) -> Json:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}
