"""What the server does on each message: the connection, settings, documents.

One function per message, and a table of all of them at the end: suggestions are in
:mod:`.protocol.results`, what clients report about them in :mod:`.protocol.reports`. Keeping
documents in step is synchronous and quick; everything that waits is ``async``, a task of its own
that the client can cancel.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from redraft.model.errors import InvalidRequest
from redraft.model.records import Predictor
from redraft.model.release import RELEASE

from .client import NAME, Client
from .documents import Document
from .paths import shown_path
from .protocol import messages, reports, results
from .protocol.jsonrpc import RedraftProtocol
from .protocol.messages import at
from .recording.folder import Recordings
from .settings import LspSettings

logger = logging.getLogger(__name__)

_SETTINGS_S = 5.0  # for the client to say what must not be read, before any file is

_ALL_FILES = types.FileOperationRegistrationOptions(
    filters=[
        types.FileOperationFilter(
            pattern=types.FileOperationPattern("**/*", matches=types.FileOperationPatternKind.File)
        )
    ]
)


# --- the connection ------------------------------------------------------------------


def _initialize(client: Client, params: Any) -> types.InitializeResult:
    fields = params if isinstance(params, dict) else {}
    folders = messages.folders(fields.get("workspaceFolders"))
    root = fields.get("rootUri")
    client.folders = list(folders) or ([root] if isinstance(root, str) else [])
    client.configure(fields.get("initializationOptions"))
    client.watch.shows_progress = bool(at(fields, "capabilities", "window", "workDoneProgress"))
    workspace = at(fields, "capabilities", "workspace")
    client.pulls_settings = bool(at(workspace, "configuration"))
    client.registers_settings = bool(at(workspace, "didChangeConfiguration", "dynamicRegistration"))
    client.versions_edits = bool(at(workspace, "workspaceEdit", "documentChanges"))
    actions = at(fields, "capabilities", "textDocument", "codeAction")
    client.shows_disabled = bool(at(actions, "disabledSupport"))
    notebooks = at(fields, "capabilities", "notebookDocument") is not None
    return types.InitializeResult(
        capabilities=_capabilities(notebooks, client.session.settings.completion_items),
        server_info=types.ServerInfo(NAME, RELEASE),
    )


def _capabilities(notebooks: bool, completion_items: bool) -> types.ServerCapabilities:
    all_notebooks = types.NotebookDocumentSyncOptions(
        notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
    )
    return types.ServerCapabilities(
        # Always this one: some clients offer another first and then count in this one.
        position_encoding=types.PositionEncodingKind.Utf16,
        text_document_sync=types.TextDocumentSyncOptions(
            open_close=True, change=types.TextDocumentSyncKind.Incremental, save=True
        ),
        notebook_document_sync=all_notebooks if notebooks else None,
        inline_completion_provider=types.InlineCompletionOptions(),
        code_action_provider=types.CodeActionOptions(code_action_kinds=[results.ACTION_KIND]),
        completion_provider=types.CompletionOptions() if completion_items else None,
        execute_command_provider=types.ExecuteCommandOptions(commands=list(reports.COMMANDS)),
        workspace=types.WorkspaceOptions(
            workspace_folders=types.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            ),
            file_operations=types.FileOperationOptions(did_rename=_ALL_FILES),
        ),
    )


async def _initialized(client: Client, params: Any) -> None:
    client.watch.start()
    if client.registers_settings:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        wanted = {"id": method, "method": method, "registerOptions": {"section": "redraft"}}
        client.ask_later(types.CLIENT_REGISTER_CAPABILITY, {"registrations": [wanted]})
    pulling = asyncio.ensure_future(_pull_settings(client))
    await asyncio.wait({pulling}, timeout=_SETTINGS_S)
    client.context.start()
    await pulling


async def _configuration_changed(client: Client, params: Any) -> None:
    sent = params.get("settings") if isinstance(params, dict) else None
    if sent is None:
        await _pull_settings(client)
    else:
        client.configure(sent)


async def _pull_settings(client: Client) -> None:
    """Fetch the settings from a client that can be asked for them."""
    if not client.pulls_settings:
        return
    query = {"items": [{"section": "redraft"}]}
    try:
        answer = await client.ask(types.WORKSPACE_CONFIGURATION, query)
    except JsonRpcException as error:
        logger.info("the client gives no settings: %s", error)
        return
    client.configure(answer[0] if isinstance(answer, list) and answer else None)


def _folders_changed(client: Client, params: Any) -> None:
    gone = set(messages.folders(at(params, "event", "removed")))
    came = messages.folders(at(params, "event", "added"))
    client.folders = [folder for folder in client.folders if folder not in gone] + list(came)
    client.context.folders_changed()


# --- documents -----------------------------------------------------------------------


def _opened(client: Client, params: Any) -> None:
    _open(client, messages.opened(params))


def _open(client: Client, item: messages.Opened) -> None:
    if client.documents.get(item.uri) is not None:
        client.close_document(item.uri)
        saved = None  # it was followed already
    else:
        saved = client.saved_text(item.uri)
    _begin(client, client.documents.open(item.uri, item.text, item.version, item.language))
    if saved is not None:
        client.session.missed(item.uri, saved.split("\n"))


def _begin(client: Client, document: Document) -> None:
    path = shown_path(document.uri, client.folders, document.language)
    client.session.opened(document.uri, path, document.lines)
    client.recorder.opened(document)


def _changed(client: Client, params: Any) -> None:
    try:
        message = messages.changed(params)
    except InvalidRequest as error:
        client.lose_track(messages.document_uri(params), str(error))
        raise
    _change(client, message)


def _change(client: Client, message: messages.Changed) -> None:
    known = client.documents.get(message.uri)
    trusted = known is not None and not known.out_of_step
    client.recorder.before_change()
    try:
        splices = client.documents.change(message.uri, message.changes, message.version)
    except InvalidRequest:
        client.session.lost(message.uri)
        raise
    document = client.documents.get(message.uri)
    assert document is not None  # else it would have been refused
    if trusted:
        client.session.changed(message.uri, splices, lambda: document.text)
        happened = client.session.history.happened(message.uri)
        client.recorder.changed(document, splices, happened)
    elif not document.out_of_step:
        _begin(client, document)


def _closed(client: Client, params: Any) -> None:
    client.close_document(messages.document_uri(params))


def _files_renamed(client: Client, params: Any) -> None:
    """``workspace/didRenameFiles``: the edits made in them are known by the new name from now on.

    The client closes and opens the documents themselves.
    """
    for old, new in messages.renamed_files(params):
        language = getattr(client.documents.get(old), "language", "")
        client.session.renamed(old, new, shown_path(new, client.folders, language))
    client.context.files_changed()


def _files_changed(client: Client, params: Any) -> None:
    """A document was saved, or something else changed files: the index looks for itself."""
    client.context.files_changed()


def _notebook_opened(client: Client, params: Any) -> None:
    for cell in messages.notebook_opened(params):
        _open(client, cell)


def _notebook_changed(client: Client, params: Any) -> None:
    message = messages.notebook_changed(params)
    for uri in message.closed:
        client.close_document(uri)
    for cell in message.opened:
        _open(client, cell)
    for change in message.changed:
        _change(client, change)


def _notebook_closed(client: Client, params: Any) -> None:
    for uri in messages.notebook_closed(params):
        client.close_document(uri)


def _shutdown(client: Client, params: Any) -> None:
    client.context.stop()  # nothing more can be asked


HANDLERS: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.SHUTDOWN: _shutdown,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: _folders_changed,
    types.WORKSPACE_DID_RENAME_FILES: _files_renamed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: _files_changed,
    types.TEXT_DOCUMENT_DID_OPEN: _opened,
    types.TEXT_DOCUMENT_DID_CHANGE: _changed,
    types.TEXT_DOCUMENT_DID_SAVE: _files_changed,
    types.TEXT_DOCUMENT_DID_CLOSE: _closed,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: _notebook_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: _notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: _notebook_closed,
    **results.HANDLERS,
    **reports.HANDLERS,
}


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

    def report_server_error(self, error: Exception, *_: Any) -> None:
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
