"""Who may speak over a socket: a language client that knows the token, and nobody else.

Any program of this machine can connect to a port of it, and any web page can make a browser do so.
So what comes in is read strictly, unlike over stdio, where the one who started us speaks: a first
line as HTTP has it, a header that is none, or two lengths end the connection. The first message
tells the token, either in its header::

    Content-Length: 123
    Redraft-Token: 4b7…

or as ``initializationOptions.token`` of ``initialize``. Until then nothing else is read, and no
session exists. Knows nothing of what is in later messages.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redraft.model.errors import SettingsError, Unauthorized
from redraft.model.validation import object_of

from ..settings import TOKEN
from .framing import MAX_BODY
from .messages import at

#: The first message comes right after connecting; whoever is silent for so long is no editor.
FIRST_MESSAGE_S = 10.0
#: Bytes of a message before its sender is known. ``initialize`` takes a few thousand.
FIRST_BODY = 1024 * 1024
_MAX_HEADER = 8 * 1024

HEADER = "Redraft-Token"

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e]?[\x20-\x7e\t]*)")
_HTTP = re.compile(rb"[A-Za-z]+ [^\r\n]* HTTP/|[A-Z]+ /")
_LENGTH = re.compile(rb"[0-9]{1,12}")
_CHOSEN = re.compile(r"[\x21-\x7e]{16,512}")

_INVALID_REQUEST, _PARSE_ERROR = -32600, -32700


class Refused(Unauthorized):
    """This connection ends; ``answer`` is what may be told to whoever made it."""

    def __init__(self, message: str, answer: bytes) -> None:
        super().__init__(message)
        self.answer = answer


def new_token() -> str:
    """One that cannot be guessed: 256 bits."""
    return secrets.token_urlsafe(32)


def checked_token(text: str, origin: str) -> str:
    """A token that the user chose, ``origin`` tells where.

    Raises:
        SettingsError: it is too short, or has characters that a header cannot carry.
    """
    token = text.strip()
    if not _CHOSEN.fullmatch(token):
        raise SettingsError(
            f"the token of {origin} has {len(token)} characters: it takes 16 to 512 of ASCII, "
            "without spaces. Make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


async def let_in(read: Callable[[], Awaitable[bytes]], token: str) -> AsyncIterator[bytes]:
    """Wait for the token. Returns the messages, the one that told it included.

    Raises:
        Refused: at once, or while the messages are taken: what came is no message, or its sender
            does not know the token.
    """
    frames = _StrictFrames(read)
    try:
        first = await asyncio.wait_for(frames.next(FIRST_BODY), FIRST_MESSAGE_S)
    except TimeoutError:
        raise _refused(f"no message came within {FIRST_MESSAGE_S:g} s") from None
    if first is not None:
        _check(first, token)
    return _conversation(first, frames)


async def _conversation(first: _Frame | None, frames: _StrictFrames) -> AsyncIterator[bytes]:
    frame = first
    while frame is not None:
        if frame.body:
            yield frame.body
        frame = await frames.next(MAX_BODY)


def _check(first: _Frame, token: str) -> None:
    """
    Raises:
        Refused: the first message does not tell the token.
    """
    message = object_of(first.body)
    told = first.token
    if told is None and message.get("method") == "initialize":
        option = at(message, "params", "initializationOptions", TOKEN)
        told = option.encode("utf-8", "surrogatepass") if isinstance(option, str) else None
    if told is not None and hmac.compare_digest(told, token.encode("ascii")):
        return
    what = "needs its token" if told is None else "has another token than the one it was given"
    raise _refused(
        f"the language server {what}: send the one it printed to stderr, as the header {HEADER} of "
        f"the first message or as initializationOptions.{TOKEN} of initialize",
        _INVALID_REQUEST,
        message.get("id"),
    )


# --- frames ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    body: bytes
    token: bytes | None  # of its header


class _StrictFrames:
    """Cuts bytes into messages; the first byte out of place is the last one read."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read
        self._buffer = bytearray()

    async def next(self, most: int) -> _Frame | None:
        """The next message, of at most so many bytes; None where the connection has ended.

        Raises:
            Refused: what comes is no message.
        """
        headers: dict[bytes, bytes] = {}
        left = _MAX_HEADER
        while line := await self._line(left):
            left -= len(line)
            name, value = _header_of(line)
            if name in headers:
                raise _refused(f"the header {name.decode()} came twice in one message")
            headers[name] = value
        if line is None:
            return None
        body = await self._body(_length_of(headers, most))
        return None if body is None else _Frame(body, headers.get(HEADER.lower().encode()))

    async def _line(self, most: int) -> bytes | None:
        """Up to the next line's end, without it; None where the connection has ended."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > most or _HTTP.match(self._buffer):
                break  # nothing that follows can make a header of it
            if not await self._more():
                return None
        line = bytes(self._buffer[:end]) if end >= 0 else bytes(self._buffer)
        _refuse_http(line)
        if len(line) > most:
            raise _refused(f"a message's headers are longer than {_MAX_HEADER} bytes")
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r")

    async def _body(self, length: int) -> bytes | None:
        while len(self._buffer) < length:
            if not await self._more():
                return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    async def _more(self) -> bool:
        data = await self._read()
        self._buffer += data
        return bool(data)


def _header_of(line: bytes) -> tuple[bytes, bytes]:
    """Its name in lower case, and its value."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise _refused(f"a message begins with {line[:40]!r}, which is no header")
    return found[1].lower(), found[2].rstrip()


def _length_of(headers: dict[bytes, bytes], most: int) -> int:
    told = headers.get(b"content-length")
    if told is None:
        raise _refused("a message came without a Content-Length header")
    if not _LENGTH.fullmatch(told):
        raise _refused(f"Content-Length must be a whole number of bytes, got {told[:40]!r}")
    if int(told) > most:
        raise _refused(f"Content-Length {int(told)} is above the limit of {most} bytes")
    return int(told)


# --- what is answered --------------------------------------------------------------------------

_NO_HTTP = b"This is a language server. It does not speak HTTP.\n"


def _refuse_http(line: bytes) -> None:
    """
    Raises:
        Refused: the line begins a request of HTTP. It is answered, so that a person who tries the
            port sees what it is; a page's script cannot read it.
    """
    if _HTTP.match(line):
        head = (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(_NO_HTTP)
        )
        raise Refused("an HTTP request came, from a browser perhaps", head + _NO_HTTP)


def _refused(problem: str, code: int = _PARSE_ERROR, id_: Any = None) -> Refused:
    id_ = id_ if isinstance(id_, (int, str)) and not isinstance(id_, bool) else None
    told = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": problem}}
    body = json.dumps(told).encode("ascii")
    return Refused(problem, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
