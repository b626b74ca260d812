"""Service over a loopback port, for clients that know the token.

Any program of this machine can connect, and any web page can make a browser do so. So the first
message is read strictly. It has the token in the header ``Redraft-Token``, or as
``initializationOptions.token`` of ``initialize``. Until then no session exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import logging
import re
import secrets
from collections.abc import Callable
from typing import Any

from redraft.model.errors import SettingsError, Unauthorized
from redraft.model.records import Predictor
from redraft.model.validation import object_of

from ..editor_settings import TOKEN, LspSettings
from ..recording.counts import StatisticsFolder
from ..recording.recordings_folder import Recordings
from ..server import create_server
from .messages import at
from .stdio import MessageReader, converse

logger = logging.getLogger(__name__)

#: The first message comes right after connecting; a client silent for so long is no editor.
FIRST_MESSAGE_S = 10.0
#: Bytes of a message before its sender is known. ``initialize`` takes a few thousand.
FIRST_BODY = 1024 * 1024
HEADER_BYTES = 8 * 1024
_LEAVE_S = 1.0  # for a refused client to read the reason

HEADER = "Redraft-Token"

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e]?[\x20-\x7e\t]*)")
_HTTP = re.compile(rb"[A-Za-z]+ [^\r\n]* HTTP/|[A-Z]+ /")
_LENGTH = re.compile(rb"[0-9]{1,12}")
_CHOSEN = re.compile(r"[\x21-\x7e]{16,512}")

_INVALID_REQUEST, _PARSE_ERROR = -32600, -32700
_NO_HTTP = b"This is a language server. It does not speak HTTP.\n"
_HTTP_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(_NO_HTTP), _NO_HTTP)
)


class Refused(Unauthorized):
    """Refusal of a connection; ``answer`` is sent to its client."""

    def __init__(self, message: str, answer: bytes) -> None:
        super().__init__(message)
        self.answer = answer


def _refused(problem: str, code: int = _PARSE_ERROR, id_: Any = None) -> Refused:
    id_ = id_ if isinstance(id_, (int, str)) and not isinstance(id_, bool) else None
    answer = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": problem}}
    body = json.dumps(answer).encode("ascii")
    return Refused(problem, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def new_token() -> str:
    """Return a token that cannot be guessed: 256 bits."""
    return secrets.token_urlsafe(32)


def checked_token(text: str, origin: str) -> str:
    """Return a token that the user chose; ``origin`` says where.

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


async def first_message(reader: asyncio.StreamReader, token: str) -> bytes:
    """Return the first message, which has the token, with its header.

    Args:
        reader: with :data:`HEADER_BYTES` as its limit.

    Raises:
        Refused: what came is no message, or it has no token or a wrong one.
    """
    try:
        async with asyncio.timeout(FIRST_MESSAGE_S):
            headers = _headers(await _head(reader))
            body = await reader.readexactly(_length_of(headers))
    except TimeoutError:
        raise _refused(f"no message came within {FIRST_MESSAGE_S:g} s") from None
    except (OSError, asyncio.IncompleteReadError):
        raise Refused("it ended before its first message", b"") from None
    _check(headers.get(HEADER.lower().encode()), object_of(body), token)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return what comes before the first empty line; raise Refused if it is too long, or HTTP.

    HTTP is answered, so that a person who tries the port sees what it is; a page cannot read that.
    """
    is_whole = True
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        head, is_whole = await reader.read(error.consumed), False
    except asyncio.IncompleteReadError as error:
        head = error.partial
    if _HTTP.match(head):
        raise Refused("an HTTP request came, from a browser perhaps", _HTTP_ANSWER)
    if not is_whole:
        raise _refused(f"a message's headers are longer than {HEADER_BYTES} bytes")
    return head.removesuffix(b"\r\n\r\n").removesuffix(b"\r\n")


def _headers(head: bytes) -> dict[bytes, bytes]:
    """Return the headers by name in lower case; raise Refused for an invalid or repeated one."""
    headers: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n") if head else ():
        found = _LINE.fullmatch(line)
        if found is None:
            raise _refused(f"a message begins with {line[:40]!r}, which is no header")
        name = found[1].lower()
        if name in headers:
            raise _refused(f"the header {name.decode()} came twice in one message")
        headers[name] = found[2].rstrip()
    return headers


def _length_of(headers: dict[bytes, bytes]) -> int:
    sent = headers.get(b"content-length")
    if sent is None:
        raise _refused("a message came without a Content-Length header")
    if not _LENGTH.fullmatch(sent):
        raise _refused(f"Content-Length must be a whole number of bytes, got {sent[:40]!r}")
    if int(sent) > FIRST_BODY:
        raise _refused(f"Content-Length {int(sent)} is above the limit of {FIRST_BODY} bytes")
    return int(sent)


def _check(sent: bytes | None, message: dict[str, Any], token: str) -> None:
    """Raise Refused unless the header, or else ``initialize``, has our token."""
    if sent is None and message.get("method") == "initialize":
        option = at(message, "params", "initializationOptions", TOKEN)
        sent = option.encode("utf-8", "surrogatepass") if isinstance(option, str) else None
    if sent is not None and hmac.compare_digest(sent, token.encode("ascii")):
        return
    what = "needs its token" if sent is None else "has another token than the one it was given"
    raise _refused(
        f"the language server {what}: send the one it printed to stderr, as the header {HEADER} of "
        f"the first message or as initializationOptions.{TOKEN} of initialize",
        _INVALID_REQUEST,
        message.get("id"),
    )


async def serve_tcp(
    predictor: Predictor,
    host: str,
    port: int,
    token: str,
    settings: LspSettings | None = None,
    listening: Callable[[str, int], None] = lambda _host, _port: None,
) -> None:
    """Serve clients over TCP, each with its session, until cancelled; then close the predictor.

    Args:
        port: 0 takes a free one.
        listening: called with the address once it is open.

    Raises:
        SettingsError: the address cannot be used.
    """
    _check_loopback(host)
    connections: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        task.add_done_callback(connections.discard)
        try:
            first = await first_message(reader, token)
            server = create_server(
                predictor,
                settings=settings,
                recordings=Recordings(),
                statistics=StatisticsFolder(),
            )
            await converse(server, MessageReader(reader, first), writer)
        except Refused as refused:
            logger.warning("a connection was ended: %s", refused)
            await _send_away(reader, writer, refused.answer)
        finally:
            writer.close()

    try:
        listener = await asyncio.start_server(connected, host, port, limit=HEADER_BYTES)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"cannot listen on {host}:{port} ({error}); choose another port with --tcp HOST:PORT"
        ) from error
    try:
        listening(host, listener.sockets[0].getsockname()[1])
        await asyncio.Event().wait()  # serve_forever() would wait for every client to leave first
    finally:
        listener.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await predictor.close()


async def _send_away(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes
) -> None:
    """Send a client the reason, and wait shortly for it to go.

    A connection closed with bytes unread takes the answer back before it was read.
    """
    with contextlib.suppress(OSError, TimeoutError):
        writer.write(answer)
        writer.write_eof()
        async with asyncio.timeout(_LEAVE_S):
            while await reader.read(HEADER_BYTES):
                pass


def _check_loopback(host: str) -> None:
    """Raise SettingsError unless ``host`` is this machine: the connection is not encrypted."""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise SettingsError(
            f"the language server listens on this machine only, not on {host}; use 127.0.0.1 and "
            "tunnel to it, or share a model with 'redraft serve' and its API key"
        )
