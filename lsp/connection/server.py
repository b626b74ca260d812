"""The language server as a process: made, run over stdio or TCP, ended in good order.

Run it with ``redraft lsp``, or embed it::

    asyncio.run(serve_stdio(predictor, LspSettings()))

What it does on each message is in :mod:`.documents_sync`, how messages get here in :mod:`.framing`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from redraft.model.errors import SettingsError
from redraft.model.records import Predictor, Task

from ..editor.documents import Documents
from ..editor.paths import shown_path
from ..recording.folder import Recordings
from ..recording.recorder import Recorder, Workplace
from ..session.ghost_text import Session
from ..session.outcomes import Settled
from ..session.surroundings import Surroundings
from ..settings import LspSettings, updated
from .asking import Ahead, stop_ahead
from .documents_sync import HANDLERS
from .door import Refused, let_in
from .framing import (
    BadFrame,
    FileSink,
    Sink,
    StreamSink,
    claim_stdio,
    messages_of,
    read_descriptor,
    read_stream,
    send_away,
)
from .jsonrpc import RedraftProtocol
from .status import ModelWatch, StatusLine
from .turns import Lane

logger = logging.getLogger(__name__)

_STOP_S = 1.0  # for the index to end; a file takes it a few milliseconds, git at worst longer


class RedraftServer(LanguageServer):
    """One client's server."""

    protocol: RedraftProtocol

    def __init__(
        self,
        predictor: Predictor,
        settings: LspSettings,
        clock: Callable[[], float],
        background: bool = True,
        recordings: Recordings | None = None,
    ) -> None:
        super().__init__(
            "redraft",
            _version(),
            protocol_cls=RedraftProtocol,
            converter_factory=default_converter,
        )
        self.predictor = predictor
        self.clock = clock
        self.documents = Documents()
        self.folders: list[str] = []
        self.surroundings = Surroundings(
            self.documents.all,
            lambda: self.folders,
            lambda: self.session.settings,
            clock,
            edits=lambda: self.session.history.edits(),
            budget=lambda: self.watch.context_tokens,
            background=background,
        )
        self.session = Session(settings, clock, self._settled, self.surroundings)
        self.recorder = Recorder(
            recordings,
            Workplace(
                self.documents.all,
                lambda document: shown_path(document.uri, self.folders, document.language),
                lambda: next(iter(self.folders), ""),
                lambda: self.session.settings,
            ),
            made_by=f"redraft {_version()}",
        )
        self.line = StatusLine(self.protocol.notify)
        self.watch = ModelWatch(
            predictor, self.line, self.protocol.notify, self.protocol.send_request_async
        )
        self.ahead: dict[str, Ahead] = {}  # by document: what is asked before it is needed
        self.pulls_settings = False  # does the client answer workspace/configuration?
        self.registers_settings = False  # and tell of changes only if asked to?
        self.versions_edits = False  # does it check the version of a document it is to edit?
        self.waking: asyncio.TimerHandle | None = None  # the end of a pause the user asked for
        self._lanes: dict[tuple[str, Task], Lane] = {}
        self._requests: set[asyncio.Task[Any]] = set()  # to the client, answers of no interest

    def report_server_error(self, error: Exception, source: Any) -> None:
        """To the log: pygls would open a popup in the editor."""
        logger.error("%s: %s", type(error).__name__, error)

    def _settled(self, settled: Settled) -> None:
        logger.debug("suggestion %s was %s", settled.suggestion.id, settled.outcome)
        self.recorder.settled(settled)

    def lane(self, uri: str, task: Task) -> Lane:
        return self._lanes.setdefault((uri, task), Lane())

    def request_later(self, method: str, params: Any) -> None:
        """Ask the client for something without waiting for its answer."""
        sending = asyncio.ensure_future(self.protocol.send_request_async(method, params))
        self._requests.add(sending)
        sending.add_done_callback(self._answered)

    def _answered(self, sent: asyncio.Task[Any]) -> None:
        self._requests.discard(sent)
        if not sent.cancelled() and sent.exception() is not None:
            logger.info("the client refused: %s", sent.exception())

    def lose_track(self, uri: str, reason: str) -> None:
        """A change of this document was lost: suggest nothing until its whole text comes again."""
        document = self.documents.get(uri)
        if document is not None:
            document.lose_track(f"{reason}; close and reopen the file")
            self.session.lost(uri)

    def close_document(self, uri: str) -> None:
        self.documents.close(uri)
        self.session.closed(uri)
        self.recorder.closed(uri)
        self.surroundings.closed(uri)
        stop_ahead(self, uri)
        for key in [key for key in self._lanes if key[0] == uri]:
            self._lanes.pop(key).stop()

    def configure(self, sent: Any) -> None:
        """Take settings over and tell the log, never a popup, what is wrong with them."""
        secret = self.session.settings.secret_globs
        self.session.settings, problems = updated(self.session.settings, sent)
        if self.session.settings.secret_globs != secret:
            self.surroundings.exclusions_changed()
            self.recorder.exclusions_changed()
        for problem in problems:
            message = {"type": types.MessageType.Warning.value, "message": f"Redraft: {problem}"}
            self.protocol.notify("window/logMessage", message)

    async def leave(self) -> None:
        """The connection is over: stop everything that was done for it."""
        self.surroundings.stop()
        if self.waking is not None:
            self.waking.cancel()
        for uri in self.documents.uris():
            self.close_document(uri)
        self.recorder.stop()
        for sending in self._requests:
            sending.cancel()
        await self.watch.stop()
        await asyncio.to_thread(self.surroundings.stop, _STOP_S)


def create_server(
    predictor: Predictor,
    *,
    clock: Callable[[], float] = time.monotonic,
    settings: LspSettings | None = None,
    background: bool = True,
    recordings: Recordings | None = None,
) -> RedraftServer:
    """A server for one client. The predictor may be shared and is not closed by it.

    Args:
        background: index the workspace in a thread; a replay, which turns its own clock, does not.
        recordings: where to record while the user has that turned on; None: never.
    """
    server = RedraftServer(predictor, settings or LspSettings(), clock, background, recordings)
    for method, handler in HANDLERS.items():
        server.feature(method)(handler)
    return server


# --- running -----------------------------------------------------------------------------------


async def converse(
    server: RedraftServer, messages: AsyncIterator[bytes | BadFrame], sink: Sink
) -> int:
    """Serve one connection until it ends; returns the exit code the protocol asks for."""
    protocol = server.protocol
    protocol.set_writer(sink)
    try:
        async for message in messages:
            protocol.receive(message)
            # A request's task must see the document as it was before the next message.
            await asyncio.sleep(0)
            if protocol.has_ended():
                break
    finally:
        await server.leave()
    return 1 if protocol.exit_code is None else protocol.exit_code


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
        return await converse(server, messages_of(read_descriptor(source)), sink)
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
        token: what each client has to know, see :mod:`.door`.
        listening: is told the address once it is open; port 0 takes a free one.

    Raises:
        SettingsError: the address cannot be used.
    """
    _check_loopback(host)

    connections: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, sink = asyncio.current_task(), StreamSink(writer)
        assert task is not None
        connections.add(task)
        task.add_done_callback(connections.discard)
        try:
            messages = await let_in(read_stream(reader), token)
            server = create_server(predictor, settings=settings, recordings=Recordings())
            await converse(server, messages, sink)
        except Refused as refused:
            logger.warning("a connection was ended: %s", refused)
            await send_away(reader, writer, refused.answer)
        finally:
            sink.close()

    try:
        listener = await asyncio.start_server(connected, host, port)
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


# --- small parts ---------------------------------------------------------------------------------


def _version() -> str:
    try:
        return installed_version("redraft")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
