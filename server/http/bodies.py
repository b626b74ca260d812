"""Request bodies read within limits, and JSON responses."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import zstandard
from aiohttp import web
from redraft.model.validation import Json, parse_json

from .service import Service

log = logging.getLogger(__name__)

#: Bytes from which a body is parsed in a thread: 16 MB of markers take a second.
LARGE_BODY = 2**18

#: The encodings of bodies that are read. Brotli would need one more package.
CODINGS = ("gzip", "deflate", "zstd")
#: Bytes that are decoded at once: a millisecond, after which other requests have their turn.
DECODED_BYTES = 2**18
#: Largest window of a body in zstd, bytes, as RFC 9659 limits it; that is the memory it takes.
ZSTD_WINDOW_BYTES = 2**23
_ZSTD_BYTES = 256  # sent bytes that are decoded at once; each four may become 128 KiB

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
        BrokenBody: the body is not in the encoding that its headers name.
        web.HTTPUnsupportedMediaType: its encoding is none of :data:`CODINGS`.
        web.HTTPRequestEntityTooLarge: the body is too large; names the limit.
        web.HTTPRequestTimeout: the body did not arrive in time.
    """
    return await _as_json(await _body(http), read)


async def _as_json(body: bytes, read: Callable[[Json], T]) -> T:
    if len(body) < LARGE_BODY:
        return read(parse_json(body))
    return await asyncio.to_thread(lambda: read(parse_json(body)))


class BrokenBody(Exception):
    """The body is cut off, or not in the encoding that its headers name."""


async def _body(http: web.Request) -> bytes:
    settings = http.app[SERVICE].settings
    limit, coding = settings.max_body_bytes, _coding(http)
    try:
        if (http.content_length or 0) > limit:
            raise _too_large(limit, http.content_length or 0)
        async with asyncio.timeout(settings.body_timeout_s):
            body = await http.read()  # not decoded: aiohttp knows no limit of what comes out
            return await _decode(body, coding, limit) if coding else body
    except web.HTTPRequestEntityTooLarge as error:
        raise _too_large(limit, http.content_length or 0) from error
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text=f"The body did not arrive within {settings.body_timeout_s:g} s. Send it at once."
        ) from None


def _coding(http: web.Request) -> str:
    """Return the encoding of the body, one of :data:`CODINGS`; "" if it is not encoded.

    Raises:
        web.HTTPUnsupportedMediaType: it is another.
    """
    sent = ", ".join(http.headers.getall("Content-Encoding", ()))
    coding = sent.strip().lower().replace("x-gzip", "gzip")  # RFC 9110 8.4.1.3
    if coding in ("", "identity"):
        return ""
    if coding not in CODINGS:
        known = ", ".join(CODINGS)
        raise web.HTTPUnsupportedMediaType(
            text=f"'Content-Encoding' is {sent[:60]!r}, which is not read here. Send the body in "
            f"one of {known}, or as it is.",
            headers={"Accept-Encoding": known},  # RFC 9110 15.5.16
        )
    return coding


async def _decode(body: bytes, coding: str, most: int) -> bytes:
    """Return the decoded body, of so many bytes at most.

    Raises:
        BrokenBody: it is not in this encoding.
        web.HTTPRequestEntityTooLarge: it is longer.
    """
    parts, size = list[bytes](), 0
    try:
        for part in _decoded_parts(body, coding, most):
            size += len(part)
            if size > most:
                raise _too_large(most, size)
            parts.append(part)
            await asyncio.sleep(0)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise BrokenBody(str(error)) from error
    return b"".join(parts)


def _decoded_parts(body: bytes, coding: str, most: int) -> Iterator[bytes]:
    if coding == "zstd":
        yield from _zstd_parts(body, most)
    elif coding == "gzip":
        unzipped = gzip.GzipFile(fileobj=io.BytesIO(body))
        yield from iter(partial(unzipped.read, DECODED_BYTES), b"")
    else:
        # RFC 9110 8.4.1.2: some clients send deflate without the header of zlib, RFC 1950.
        has_header = body[:1] == b"\x78" and int.from_bytes(body[:2]) % 31 == 0
        inflater = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        while not inflater.eof:
            part = inflater.decompress(body, DECODED_BYTES)
            body = inflater.unconsumed_tail
            if not part and not body and not inflater.eof:
                raise EOFError("the body ends before its last block")
            yield part


def _zstd_parts(body: bytes, most: int) -> Iterator[bytes]:
    """Yield the frames of a body in small pieces: a few bytes can become megabytes."""
    decoder = zstandard.ZstdDecompressor(max_window_size=max(ZSTD_WINDOW_BYTES, most))
    frame = decoder.decompressobj()
    for at in range(0, len(body), _ZSTD_BYTES):
        rest = body[at : at + _ZSTD_BYTES]
        while rest:
            frame = decoder.decompressobj() if frame.eof else frame
            if part := frame.decompress(rest):
                yield part
            rest = frame.unused_data
    if body and not frame.eof:
        raise EOFError("the body ends before its last block")


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
