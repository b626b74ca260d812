"""The base protocol over pipes: messages in, answers out, and a stdout that nothing else writes to.

pygls's own reader ends a session on a header it does not expect. This one passes over lines that
are no header, which over stdio only the program that started the server can send.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import threading
from typing import TYPE_CHECKING

from redraft.model.records import Predictor

from ..recording.folder import Recordings
from ..server import create_server
from ..settings import LspSettings
from .jsonrpc import RedraftServer

if TYPE_CHECKING:
    from pygls.io_ import Writer

_CHUNK = 64 * 1024

# Searched for, not matched at a line's start: after a message cut short, the next header follows
# whatever was left of it.
_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,8})\s*$", re.IGNORECASE)


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """Return the body of the next message that has one, or None at the end of the stream."""
    length = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while line := await _read_line(reader):
            if found := _LENGTH.search(line):
                length = int(found[1])
            elif length and not line.strip():
                return await reader.readexactly(length)
    return None


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, or nothing at the end of the stream."""
    while True:
        with contextlib.suppress(ValueError):  # a line above the reader's limit, which is dropped
            return await reader.readline()


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
    """Return descriptors of our own for what were stdin and stdout.

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


def open_reader(descriptor: int) -> asyncio.StreamReader:
    """Return a stream of what comes over a file descriptor.

    A daemon thread reads, because asyncio cannot wait for pipes on every platform. It reads the
    bare descriptor: a thread inside ``sys.stdin`` would hold its lock when the process ends.
    """
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()

    def feed(data: bytes) -> None:
        if data:
            reader.feed_data(data)
        else:
            reader.feed_eof()

    def pump() -> None:
        data = b"more"
        while data:
            try:
                data = os.read(descriptor, _CHUNK)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(feed, data)
            except RuntimeError:  # the loop has ended
                return

    threading.Thread(target=pump, name="redraft-lsp-stdin", daemon=True).start()
    return reader


# --- running --------------------------------------------------------------------------


async def converse(
    server: RedraftServer, reader: asyncio.StreamReader, writer: Writer, first: bytes | None = None
) -> int:
    """Serve one connection until it ends; return the exit code that the protocol asks for.

    Args:
        first: body of a message that was read already.
    """
    protocol = server.protocol
    protocol.set_writer(writer)
    try:
        while protocol.exit_code is None:
            body = first or await read_message(reader)
            if body is None:
                return 1
            first = None
            protocol.receive(body)
            # A request's task must see the document as it was before the next message.
            await asyncio.sleep(0)
        return protocol.exit_code
    finally:
        await server.client.leave()


async def serve_stdio(predictor: Predictor, settings: LspSettings | None = None) -> int:
    """Serve one client over stdin and stdout, then close the predictor.

    Whatever else writes to stdout from now on, native libraries included, goes to stderr: one
    stray line would break the protocol.
    """
    sys.stdout.flush()
    source, out = claim_stdio()
    sink = FileSink(out)
    try:
        server = create_server(predictor, settings=settings, recordings=Recordings())
        return await converse(server, open_reader(source), sink)
    finally:
        await predictor.close()
        sink.close()


def run_stdio(predictor: Predictor, settings: LspSettings | None = None) -> int:
    """:func:`serve_stdio` in an event loop of its own; returns the process's exit code."""
    return asyncio.run(serve_stdio(predictor, settings))
