"""Service over pipes: messages in, answers out, and a stdout that nothing else writes to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from pygls.io_ import StdoutWriter, run_async
from redraft.model.records import Predictor

from ..editor_settings import LspSettings
from ..recording.counts import StatisticsFolder
from ..recording.recordings_folder import Recordings
from ..server import create_server
from .jsonrpc import RedraftServer

if TYPE_CHECKING:
    from pygls.io_ import Writer

_CHUNK = 64 * 1024


class MessageReader:
    """Reader of pygls over a stream, which ends where the stream does."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        """Return the next line with its end, b"" at the end of the stream."""
        # A request's task must see the document as it was before the next message: some clients
        # send no version.
        await asyncio.sleep(0)
        with contextlib.suppress(OSError, ValueError):  # ValueError: no header is 64 KB long
            return await self._stream.readline()
        return b""

    async def readexactly(self, count: int) -> Any:
        """Return ``count`` bytes as text, "" where the stream ends before.

        An editor sends the bytes of a Latin-1 file as they are (``nvim -b``). Each invalid byte
        becomes a lone surrogate, one character as in the editor (``lsp/documents/positions.py``).
        """
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            body = await self._stream.readexactly(count)
            return body.decode("utf-8", "surrogateescape")
        return ""


async def converse(server: RedraftServer, reader: MessageReader, writer: Writer) -> int:
    """Serve one connection until it ends; return the exit code that the protocol asks for."""
    server.protocol.set_writer(writer)
    try:
        await run_async(
            stop_event=threading.Event(),
            reader=reader,
            protocol=server.protocol,
            error_handler=server.report_server_error,
        )
    except SystemExit as exited:  # pygls ends the process at ``exit``
        return int(exited.code or 0)
    finally:
        await server.leave()
    return 1


class _Stdout(StdoutWriter):
    """Output to a client, which may be gone."""

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            super().write(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()  # type: ignore[no-untyped-call]


def claim_stdio() -> tuple[int, int]:
    """Return descriptors of our own for what were stdin and stdout.

    From now on the standard ones read nothing and write to stderr, for child processes and native
    libraries as well: one stray byte would break the protocol.
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


def _stream(descriptor: int) -> asyncio.StreamReader:
    """Return a stream of what comes over a file descriptor."""
    # A daemon thread reads, because asyncio cannot wait for pipes on every platform. It reads the
    # bare descriptor: a thread inside ``sys.stdin`` would hold its lock when the process ends.
    loop, stream = asyncio.get_running_loop(), asyncio.StreamReader()

    def pump() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            with contextlib.suppress(OSError):
                while data := os.read(descriptor, _CHUNK):
                    loop.call_soon_threadsafe(stream.feed_data, data)
            loop.call_soon_threadsafe(stream.feed_eof)

    threading.Thread(target=pump, name="redraft-lsp-stdin", daemon=True).start()
    return stream


async def _serve(predictor: Predictor, settings: LspSettings | None) -> int:
    sys.stdout.flush()
    source, out = claim_stdio()
    writer = _Stdout(os.fdopen(out, "wb"))
    try:
        server = create_server(
            predictor,
            settings=settings,
            recordings=Recordings(),
            statistics=StatisticsFolder(),
        )
        return await converse(server, MessageReader(_stream(source)), writer)
    finally:
        await predictor.close()
        writer.close()


def run_stdio(predictor: Predictor, settings: LspSettings | None = None) -> int:
    """Serve one client over stdin and stdout, then close the predictor; return the exit code."""
    return asyncio.run(_serve(predictor, settings))
