"""The language server as a process: made, run over stdio or TCP, ended in good order.

Run it with ``redraft lsp``, or embed it::

    asyncio.run(serve_stdio(predictor, LspSettings()))

What it does on each message is in :mod:`.documents_sync`, how messages get here in :mod:`.stdio`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from redraft.model.errors import SettingsError
from redraft.model.records import Predictor
from redraft.model.release import RELEASE

from ..recording.folder import Recordings
from ..settings import LspSettings
from .access import HEADER_BYTES, Refused, first_message, send_away
from .client import NAME, Client
from .documents_sync import HANDLERS
from .jsonrpc import RedraftProtocol
from .stdio import FileSink, claim_stdio, open_reader, read_message

if TYPE_CHECKING:
    from pygls.io_ import Writer

logger = logging.getLogger(__name__)


class RedraftServer(LanguageServer):
    """One client's end of a connection: pygls, and the :class:`.Client` that its handlers get."""

    protocol: RedraftProtocol

    def __init__(
        self,
        predictor: Predictor,
        settings: LspSettings,
        clock: Callable[[], float],
        recordings: Recordings | None = None,
    ) -> None:
        super().__init__(
            NAME, RELEASE, protocol_cls=RedraftProtocol, converter_factory=default_converter
        )
        notify, ask = self.protocol.notify, self.protocol.send_request_async
        self.client = Client(predictor, settings, clock, notify, ask, recordings=recordings)
        for method, handler in HANDLERS.items():
            self.feature(method)(partial(handler, self.client))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """To the log: pygls would open a popup in the editor."""
        logger.error("%s: %s", type(error).__name__, error)


def create_server(
    predictor: Predictor,
    *,
    clock: Callable[[], float] = time.monotonic,
    settings: LspSettings | None = None,
    recordings: Recordings | None = None,
) -> RedraftServer:
    """A server for one client. The predictor may be shared and is not closed by it.

    Args:
        recordings: where to record while the user has that turned on; None: never.
    """
    return RedraftServer(predictor, settings or LspSettings(), clock, recordings)


# --- running -----------------------------------------------------------------------------------


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


async def serve_tcp(
    predictor: Predictor,
    host: str,
    port: int,
    token: str,
    settings: LspSettings | None = None,
    listening: Callable[[str, int], None] = lambda host, port: None,
) -> None:
    """Serve clients over TCP, each with a session of its own, until cancelled.

    Args:
        token: what each client has to know, see :mod:`.access`.
        listening: is told the address once it is open; port 0 takes a free one.

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
            server = create_server(predictor, settings=settings, recordings=Recordings())
            await converse(server, reader, writer, first)
        except Refused as refused:
            logger.warning("a connection was ended: %s", refused)
            await send_away(reader, writer, refused.answer)
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


def run_stdio(predictor: Predictor, settings: LspSettings | None = None) -> int:
    """:func:`serve_stdio` in an event loop of its own; returns the process's exit code."""
    return asyncio.run(serve_stdio(predictor, settings))


def run_tcp(
    predictor: Predictor, host: str, port: int, token: str, listening: Callable[[str, int], None]
) -> None:
    """:func:`serve_tcp` in an event loop of its own."""
    asyncio.run(serve_tcp(predictor, host, port, token, listening=listening))


def _check_loopback(host: str) -> None:
    """The token and every open document cross the connection in the clear."""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise SettingsError(
            f"the language server listens on this machine only, not on {host}; use 127.0.0.1 and "
            "tunnel to it, or share a model with 'redraft serve' and its API key"
        )
