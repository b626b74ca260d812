"""The language server: translates in, asks the session and the predictor, translates out.

Run it with ``redraft lsp``, or embed it::

    asyncio.run(serve_stdio(predictor, LspSettings()))

Keeping documents in step is synchronous and takes microseconds; everything that waits is a task
of its own that ``$/cancelRequest`` really cancels. Knows pygls; decides nothing by itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from ..model.errors import (
    EngineGone,
    InvalidRequest,
    ModelNotReady,
    Overloaded,
    RedraftError,
    SettingsError,
    StaleDocument,
)
from ..model.records import Predictor
from . import messages
from .documents import Document, Documents
from .lanes import Lane, Superseded
from .messages import InlineCompletionAsked
from .outcomes import Settled
from .paths import shown_path
from .quirks import RedraftProtocol
from .session import Abstain, Ask, Query, Session, Show
from .settings import LspSettings, updated
from .status import Kind, ModelWatch, StatusLine
from .translate import Position
from .transport import (
    FileSink,
    Frames,
    Sink,
    StreamSink,
    read_descriptor,
    read_stream,
)

logger = logging.getLogger(__name__)

ACCEPT_COMMAND = "redraft.accept"
#: What clients written for another server send on acceptance. Understood, but not announced: where
#: that server runs too, two of a name would clash.
_ACCEPT_COMMANDS = frozenset({ACCEPT_COMMAND, "github.copilot.didAcceptCompletionItem"})

_NOTHING: dict[str, Any] = {"items": []}


class RedraftServer(LanguageServer):
    """One client's server."""

    protocol: RedraftProtocol

    def __init__(
        self, predictor: Predictor, settings: LspSettings, clock: Callable[[], float]
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
        self.session = Session(settings, clock, _log_outcome)
        self.line = StatusLine(self.protocol.notify)
        self.watch = ModelWatch(
            predictor, self.line, self.protocol.notify, self.protocol.send_request_async
        )
        self.folders: list[str] = []
        self.pulls_settings = False  # does the client answer workspace/configuration?
        self._lanes: dict[str, Lane] = {}

    def report_server_error(self, error: Exception, source: Any) -> None:
        """To the log: pygls would open a popup in the editor."""
        logger.error("%s: %s", type(error).__name__, error)

    def lane(self, uri: str) -> Lane:
        return self._lanes.setdefault(uri, Lane())

    def lose_track(self, uri: str, reason: str) -> None:
        """A change of this document was lost: suggest nothing until its whole text comes again."""
        document = self.documents.get(uri)
        if document is not None:
            document.lose_track(f"{reason}; close and reopen the file")

    def close_document(self, uri: str) -> None:
        self.documents.close(uri)
        self.session.closed(uri)
        lane = self._lanes.pop(uri, None)
        if lane is not None:
            lane.stop()

    def configure(self, sent: Any) -> None:
        """Take settings over and tell the log, never a popup, what is wrong with them."""
        self.session.settings, problems = updated(self.session.settings, sent)
        for problem in problems:
            message = {"type": types.MessageType.Warning.value, "message": f"Redraft: {problem}"}
            self.protocol.notify("window/logMessage", message)

    async def leave(self) -> None:
        """The connection is over: stop everything that was done for it."""
        for uri in list(self._lanes):
            self.close_document(uri)
        await self.watch.stop()


def create_server(
    predictor: Predictor,
    *,
    clock: Callable[[], float] = time.monotonic,
    settings: LspSettings | None = None,
) -> RedraftServer:
    """A server for one client. The predictor may be shared and is not closed by it."""
    server = RedraftServer(predictor, settings or LspSettings(), clock)
    for method, handler in _HANDLERS.items():
        server.feature(method)(handler)
    return server


# --- handlers: the connection ------------------------------------------------------------------


def _initialize(ls: RedraftServer, params: Any) -> types.InitializeResult:
    fields = params if isinstance(params, dict) else {}
    folders = messages.folders(fields.get("workspaceFolders"))
    root = fields.get("rootUri")
    ls.folders = list(folders) or ([root] if isinstance(root, str) else [])
    ls.configure(fields.get("initializationOptions"))
    ls.watch.shows_progress = bool(_at(fields, "capabilities", "window", "workDoneProgress"))
    ls.pulls_settings = bool(_at(fields, "capabilities", "workspace", "configuration"))
    notebooks = _at(fields, "capabilities", "notebookDocument") is not None
    return types.InitializeResult(
        capabilities=_capabilities(notebooks),
        server_info=types.ServerInfo(ls.name, ls.version),
    )


def _capabilities(notebooks: bool) -> types.ServerCapabilities:
    all_notebooks = types.NotebookDocumentSyncOptions(
        notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
    )
    return types.ServerCapabilities(
        # Always this one: some clients offer another first and then count in this one.
        position_encoding=types.PositionEncodingKind.Utf16,
        text_document_sync=types.TextDocumentSyncOptions(
            open_close=True, change=types.TextDocumentSyncKind.Incremental
        ),
        notebook_document_sync=all_notebooks if notebooks else None,
        inline_completion_provider=types.InlineCompletionOptions(),
        execute_command_provider=types.ExecuteCommandOptions(commands=[ACCEPT_COMMAND]),
        workspace=types.WorkspaceOptions(
            workspace_folders=types.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            )
        ),
    )


def _initialized(ls: RedraftServer, params: Any) -> None:
    ls.watch.start()


async def _configuration_changed(ls: RedraftServer, params: Any) -> None:
    sent = params.get("settings") if isinstance(params, dict) else None
    if sent is None and ls.pulls_settings:
        query = {"items": [{"section": "redraft"}]}
        answer = await ls.protocol.send_request_async("workspace/configuration", query)
        sent = answer[0] if isinstance(answer, list) and answer else None
    ls.configure(sent)


def _folders_changed(ls: RedraftServer, params: Any) -> None:
    gone = set(messages.folders(_at(params, "event", "removed")))
    came = messages.folders(_at(params, "event", "added"))
    ls.folders = [folder for folder in ls.folders if folder not in gone] + list(came)


# --- handlers: documents -----------------------------------------------------------------------


def _opened(ls: RedraftServer, params: Any) -> None:
    _open(ls, messages.opened(params))


def _open(ls: RedraftServer, item: messages.Opened) -> None:
    if ls.documents.get(item.uri) is not None:
        ls.close_document(item.uri)
    ls.documents.open(item.uri, item.text, item.version, item.language)


def _changed(ls: RedraftServer, params: Any) -> None:
    try:
        message = messages.changed(params)
    except InvalidRequest as error:
        ls.lose_track(messages.document_uri(params), str(error))
        raise
    _change(ls, message)


def _change(ls: RedraftServer, message: messages.Changed) -> None:
    extent = ls.documents.change(message.uri, message.changes, message.version)
    document = ls.documents.get(message.uri)
    if document is not None:
        ls.session.changed(message.uri, extent, lambda: document.text)


def _closed(ls: RedraftServer, params: Any) -> None:
    ls.close_document(messages.document_uri(params))


def _notebook_opened(ls: RedraftServer, params: Any) -> None:
    for cell in messages.notebook_opened(params):
        _open(ls, cell)


def _notebook_changed(ls: RedraftServer, params: Any) -> None:
    message = messages.notebook_changed(params)
    for uri in message.closed:
        ls.close_document(uri)
    for cell in message.opened:
        _open(ls, cell)
    for change in message.changed:
        _change(ls, change)


def _notebook_closed(ls: RedraftServer, params: Any) -> None:
    for uri in messages.notebook_closed(params):
        ls.close_document(uri)


# --- handlers: suggestions ---------------------------------------------------------------------


async def _inline_completion(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``textDocument/inlineCompletion``: what to show at the cursor, if anything."""
    asked = messages.inline_completion(params)
    document = ls.documents.get(asked.uri)
    if document is None:
        raise InvalidRequest(f"{asked.uri} is not open; send textDocument/didOpen first")
    if asked.version is not None and document.version not in (None, asked.version):
        raise StaleDocument(
            f"{asked.uri} is at version {document.version}, the request names {asked.version}"
        )
    query = _query(ls, document, asked)
    decision = ls.session.consider(query)
    if isinstance(decision, Ask):
        decision = await _ask(ls, decision)
    return _answer(ls, document, asked, decision)


async def _ask(ls: RedraftServer, ask: Ask) -> Show | Abstain:
    """Wait out the debounce, look again, then ask the model."""
    lane = ls.lane(ask.query.uri)
    try:
        await lane.turn(ask.delay_ms / 1000)
        again = ls.session.consider(ask.query)  # the answer before this one may serve
        if not isinstance(again, Ask):
            return again
        return await _predict(ls, lane, again)
    except Superseded:
        return Abstain("a newer request took its place", stale=True)


async def _predict(ls: RedraftServer, lane: Lane, ask: Ask) -> Show | Abstain:
    settings, started_s = ls.session.settings, ls.clock()
    try:
        with ls.line.thinking(silent=ls.watch.waiting is not None):
            prediction = await lane.run(
                lambda: ls.predictor.predict(ask.request), settings.timeout_ms / 1000
            )
    except (Superseded, asyncio.CancelledError):
        ls.line.idle()
        raise
    except TimeoutError:
        return _failed(ls, f"the model took longer than {settings.timeout_ms / 1000:g} s")
    except (ModelNotReady, EngineGone) as error:
        ls.watch.start()
        return _failed(ls, *(ls.watch.waiting or (str(error), "Warning")))
    except Overloaded as error:
        return _failed(ls, f"{error} (again in {error.retry_after_s:g} s)")
    except RedraftError as error:
        return _failed(ls, str(error), "Error")
    except Exception as error:
        logger.exception("the predictor failed")
        return _failed(ls, f"{type(error).__name__}: {error}", "Error")
    document = ls.documents.get(ask.query.uri)
    took_ms = 1000 * (ls.clock() - started_s)
    return ls.session.settle(ask, prediction, document.revision if document else None, took_ms)


def _failed(ls: RedraftServer, reason: str, kind: Kind = "Warning") -> Abstain:
    ls.line.tell(reason, kind)
    return Abstain("")  # told already


def _query(ls: RedraftServer, document: Document, asked: InlineCompletionAsked) -> Query:
    text, cursor = document.text, document.index(asked.position)
    if asked.selected is not None:
        # As if the marked entry of the completion menu were in the text already.
        start, end = (document.index(at) for at in _ends(asked.selected.range))
        chosen = _engine_text(asked.selected.text)
        text, cursor = text[:start] + chosen + text[end:], start + len(chosen)
    selected = 0
    if asked.selection is not None:
        start, end = (document.index(at) for at in _ends(asked.selection))
        selected = abs(end - start)
    return Query(
        uri=document.uri,
        path=shown_path(document.uri, ls.folders, document.language),
        language=document.language,
        text=text,
        cursor=cursor,
        revision=document.revision,
        invoked=asked.invoked,
        selected=selected,
        out_of_step=document.out_of_step,
    )


def _answer(
    ls: RedraftServer, document: Document, asked: InlineCompletionAsked, decision: Show | Abstain
) -> dict[str, Any]:
    if isinstance(decision, Abstain):
        if decision.reason and not decision.stale:
            ls.line.tell(decision.reason, "Inactive" if decision.off else "Normal")
        if decision.stale and ls.documents.get(document.uri) is not document:
            return _NOTHING  # closed: there is no document to have a version
        if decision.stale:
            ls.line.idle()
            raise StaleDocument(decision.reason)
        return _NOTHING
    ls.line.tell("suggestion shown")
    return {"items": [_item(document, asked, decision)]}


def _item(document: Document, asked: InlineCompletionAsked, show: Show) -> dict[str, Any]:
    text = show.text.replace("\n", document.line_end)
    at = document.position(document.index(asked.position))
    start, end = at, at
    item: dict[str, Any] = {}
    if asked.selected is not None:
        text = asked.selected.text + text
        start, end = _ends(asked.selected.range)
        item["filterText"] = asked.selected.text
    return item | {
        "insertText": text,
        "range": {"start": _wire(start), "end": _wire(end)},
        "command": {
            "title": "Accept suggestion",
            "command": ACCEPT_COMMAND,
            "arguments": [show.suggestion.id],
        },
    }


def _focused(ls: RedraftServer, params: Any) -> None:
    """``textDocument/didFocus``: a sign of life that needs no answer."""


def _shown(ls: RedraftServer, params: Any) -> None:
    ls.session.shown(messages.suggestion_id(params))


def _accepted_part(ls: RedraftServer, params: Any) -> None:
    if messages.accepted_length(params):
        ls.session.accepted_part(messages.suggestion_id(params))


def _execute_command(ls: RedraftServer, params: Any) -> None:
    """A request for most clients, a notification for one: both end here."""
    name, argument = messages.command(params)
    if name not in _ACCEPT_COMMANDS:
        raise InvalidRequest(f"unknown command {name!r}; the server has {ACCEPT_COMMAND!r}")
    ls.session.accepted(argument)


_HANDLERS: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: _folders_changed,
    types.TEXT_DOCUMENT_DID_OPEN: _opened,
    types.TEXT_DOCUMENT_DID_CHANGE: _changed,
    types.TEXT_DOCUMENT_DID_CLOSE: _closed,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: _notebook_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: _notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: _notebook_closed,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _inline_completion,
    types.WORKSPACE_EXECUTE_COMMAND: _execute_command,
    "textDocument/didFocus": _focused,
    "textDocument/didShowCompletion": _shown,
    "textDocument/didPartiallyAcceptCompletion": _accepted_part,
}


# --- running -----------------------------------------------------------------------------------


async def converse(server: RedraftServer, read: Callable[[], Awaitable[bytes]], sink: Sink) -> int:
    """Serve one connection until it ends; returns the exit code the protocol asks for."""
    protocol, frames = server.protocol, Frames()
    protocol.set_writer(sink)
    try:
        while not protocol.has_ended():
            data = await read()
            if not data:
                break
            for frame in frames.feed(data):
                protocol.receive(frame)
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
    out = os.dup(1)
    os.dup2(2, 1)
    sink = FileSink(out)
    try:
        server = create_server(predictor, settings=settings)
        return await converse(server, read_descriptor(0), sink)
    finally:
        await predictor.close()
        sink.close()


async def serve_tcp(
    predictor: Predictor,
    host: str,
    port: int,
    settings: LspSettings | None = None,
    listening: Callable[[str, int], None] = lambda host, port: None,
) -> None:
    """Serve clients over TCP, each with a session of its own, until cancelled.

    ``listening`` is told the address once it is open; port 0 takes a free one.

    Raises:
        SettingsError: the address cannot be used.
    """
    _check_loopback(host)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sink = StreamSink(writer)
        try:
            await converse(create_server(predictor, settings=settings), read_stream(reader), sink)
        finally:
            sink.close()

    try:
        listener = await asyncio.start_server(connected, host, port)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"cannot listen on {host}:{port} ({error}); choose another port with --tcp HOST:PORT"
        ) from error
    try:
        async with listener:
            listening(host, listener.sockets[0].getsockname()[1])
            await listener.serve_forever()
    finally:
        await predictor.close()


def run_stdio(predictor: Predictor, settings: LspSettings | None = None) -> int:
    """:func:`serve_stdio` in an event loop of its own; returns the process's exit code."""
    return asyncio.run(serve_stdio(predictor, settings))


def run_tcp(
    predictor: Predictor, host: str, port: int, settings: LspSettings | None = None
) -> None:
    """:func:`serve_tcp` in an event loop of its own."""
    asyncio.run(serve_tcp(predictor, host, port, settings))


def _check_loopback(host: str) -> None:
    """The protocol has no keys, so whoever reaches the port reads every open document."""
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


def _at(value: Any, *path: str) -> Any:
    """What lies at ``path`` in nested objects, None where it ends before."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _ends(range_: Any) -> tuple[Position, Position]:
    return range_.start, range_.end


def _wire(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


def _engine_text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _log_outcome(settled: Settled) -> None:
    logger.debug("suggestion %s was %s", settled.suggestion.id, settled.outcome)


def _version() -> str:
    try:
        return installed_version("redraft")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"
