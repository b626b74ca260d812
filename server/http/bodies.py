"""Request bodies, read within limits."""

from __future__ import annotations

import asyncio
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import zstandard
from aiohttp import web
from redraft.model.validation import Json, parse_json

from .access import SETTINGS
from .responses import HttpProblem, describe_bad_body

#: Bytes from which a body is parsed in a thread: 16 MB of markers take a second.
LARGE_BODY = 2**18

#: The encodings of bodies that are read. Brotli would need one more package.
CODINGS = ("gzip", "deflate", "zstd")
#: Bytes that are decoded at once: a millisecond, after which other requests have their turn.
DECODED_BYTES = 2**18
#: Largest window of a body in zstd, bytes, as RFC 9659 limits it; that is the memory it takes.
ZSTD_WINDOW_BYTES = 2**23
_NOT_IN_CODING = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)
_ZSTD_BYTES = 256  # sent bytes that are decoded at once; each four may become 128 KiB

T = TypeVar("T")


async def read_body(http: web.Request, read: Callable[[Json], T]) -> T:
    """Return ``read(body)``. Large bodies are parsed in a thread, so that others are not delayed.

    Raises:
        InvalidRequest: the body is not a JSON object in UTF-8, or ``read`` refuses it.
        HttpProblem: the body is too large, came too late, is encoded in none of :data:`CODINGS`, or
            is not in the encoding that its headers name.
    """
    body = await _body(http)
    if len(body) < LARGE_BODY:
        return read(parse_json(body))
    return await asyncio.to_thread(lambda: read(parse_json(body)))


async def _body(http: web.Request) -> bytes:
    settings = http.app[SETTINGS]
    limit, coding = settings.max_body_bytes, _coding(http)
    try:
        if (http.content_length or 0) > limit:
            raise _too_large(limit)
        async with asyncio.timeout(settings.body_timeout_s):
            body = await http.read()  # not decoded: aiohttp knows no limit of what comes out
            return await _decode(body, coding, limit) if coding else body
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(limit) from None
    except _NOT_IN_CODING as error:
        raise describe_bad_body(http, error) from error
    except TimeoutError:
        raise HttpProblem(
            408,
            "body_timeout",
            f"The body did not arrive within {settings.body_timeout_s:g} s. Send it at once.",
        ) from None


def _coding(http: web.Request) -> str:
    """Return the encoding of the body, one of :data:`CODINGS`; "" if it is not encoded.

    Raises:
        HttpProblem: it is another.
    """
    sent = ", ".join(http.headers.getall("Content-Encoding", ()))
    coding = sent.strip().lower().replace("x-gzip", "gzip")  # RFC 9110 8.4.1.3
    if coding in ("", "identity"):
        return ""
    if coding not in CODINGS:
        known = ", ".join(CODINGS)
        raise HttpProblem(
            415,
            "unsupported_encoding",
            f"'Content-Encoding' is {sent[:60]!r}, which is not read here. Send the body in "
            f"one of {known}, or as it is.",
            {"Accept-Encoding": known},  # RFC 9110 15.5.16
        )
    return coding


async def _decode(body: bytes, coding: str, most: int) -> bytes:
    """Return the decoded body, of so many bytes at most.

    Raises:
        HttpProblem: it is longer.
        EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError: it is not in this encoding.
    """
    parts, size = list[bytes](), 0
    for part in _decoded_parts(body, coding, most):
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        await asyncio.sleep(0)
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


def _too_large(limit: int) -> HttpProblem:
    return HttpProblem(
        413,
        "body_too_large",
        f"The body is larger than {limit} bytes, this server's limit. Send less text around "
        "the cursor, or raise 'max_body_bytes'.",
    )
