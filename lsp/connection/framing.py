"""Bytes in, message bodies out: the framing of the base protocol, forgiving where a client errs.

pygls's own loop ends a session, or waits for ever, on a header it does not expect. This one finds
its way back to the next header instead: over stdio only whoever started the server speaks. Sockets
are read by :mod:`.access`, which forgives nothing. Knows nothing of what is in a message.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

#: The largest message accepted, in bytes: a 5 MB line may come as 30 MB of "\\u0000" escapes.
MAX_BODY = 128 * 1024 * 1024
_MAX_HEADER = 64 * 1024
_CHUNK = 64 * 1024
_LEAVE_S = 1.0  # that a client which is not served has to read why
_UNREAD = 16 * 1024 * 1024  # bytes it may still send meanwhile

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n")
# Searched for, not matched at a line's start: after a message cut short, the next header follows
# whatever was left of it.
_LENGTH = re.compile(rb"content-length:[ \t]*(\d+)[ \t]*(?=\r?\n|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that were no message, with what was wrong about them."""

    problem: str


class Frames:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._awaited: int | None = None  # bytes of the body that is coming in

    def feed(self, data: bytes) -> Iterator[bytes | BadFrame]:
        """Take ``data`` in and yield every message it completes."""
        self._buffer += data
        while True:
            frame = self._header() if self._awaited is None else self._body()
            if frame is None:
                return
            if frame != b"":
                yield frame

    def _header(self) -> bytes | BadFrame | None:
        """Read a header: b"" when there is one, None when more bytes are needed."""
        blank = _BLANK_LINE.search(self._buffer)
        if blank is None:
            if len(self._buffer) > _MAX_HEADER:
                del self._buffer[:-_MAX_HEADER]
            return None
        header = bytes(self._buffer[: blank.start()])
        del self._buffer[: blank.end()]
        lengths = _LENGTH.findall(header)
        if not lengths:
            return BadFrame("a message came without a Content-Length header") if header else b""
        length = lengths[-1]
        if len(length) > 12 or int(length) > MAX_BODY:
            shown = length[:20].decode()
            return BadFrame(f"Content-Length {shown} is above the limit of {MAX_BODY} bytes")
        self._awaited = int(length)
        return b""

    def _body(self) -> bytes | None:
        length = self._awaited or 0
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._awaited = None
        return body if body else b""


async def messages_of(read: Callable[[], Awaitable[bytes]]) -> AsyncIterator[bytes | BadFrame]:
    """Every message of a pipe, until it ends."""
    frames = Frames()
    while data := await read():
        for frame in frames.feed(data):
            yield frame


class Sink(Protocol):
    """Where answers go, as pygls expects it."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class FileSink:
    """Writes to a file descriptor; a reader that went away is no error of ours."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def claim_stdio() -> tuple[int, int]:
    """Descriptors of our own for what were stdin and stdout.

    Whatever reads or writes the standard ones from now on, child processes and native libraries
    included, reads nothing and writes to stderr: one stray byte would break the protocol.
    """
    source, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, out


def read_descriptor(descriptor: int) -> Callable[[], Awaitable[bytes]]:
    """A function that awaits the next bytes of a file descriptor, b"" at its end.

    A daemon thread reads, because asyncio cannot wait for pipes on every platform. It reads the
    bare descriptor: a thread inside ``sys.stdin`` would hold its lock when the process ends.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()

    def pump() -> None:
        data = b"more"
        while data:
            try:
                data = os.read(descriptor, _CHUNK)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, data)
            except RuntimeError:  # the loop has ended
                return

    threading.Thread(target=pump, name="redraft-lsp-stdin", daemon=True).start()
    return chunks.get


class StreamSink:
    """Writes to an asyncio stream."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


def read_stream(reader: asyncio.StreamReader) -> Callable[[], Awaitable[bytes]]:
    """A function that awaits the next bytes of a stream, b"" at its end or when it breaks."""

    async def read() -> bytes:
        try:
            return await reader.read(_CHUNK)
        except OSError:
            return b""

    return read


async def send_away(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes
) -> None:
    """Tell a client why it is not served, and wait shortly for it to go: a connection closed with
    bytes unread takes the answer back before it was read."""
    try:
        writer.write(answer)
        writer.write_eof()
        async with asyncio.timeout(_LEAVE_S):
            for _ in range(_UNREAD // _CHUNK):
                if not await reader.read(_CHUNK):
                    break
    except (OSError, TimeoutError):
        pass  # it is sent away all the same
