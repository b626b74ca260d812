"""Language server: one short handler for each message, and the server of one client.

Keeping documents in step is synchronous and quick. What waits is ``async``, a task of its own that
the client can cancel.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from redraft.model.errors import InvalidRequest, StaleDocument
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Predictor, Task
from redraft.model.release import RELEASE

from .documents import Document
from .positions import Range
from .protocol import messages, reports, results
from .protocol.client import NAME, Client
from .protocol.jsonrpc import RedraftServer, capabilities
from .protocol.messages import Asked, SelectedCompletion, at
from .recording.folder import Recordings
from .session import Session
from .settings import LspSettings
from .suggestion import Query, Show

logger = logging.getLogger(__name__)

_SETTINGS_S = 5.0  # for the client to say what must not be read, before any file is

# --- the connection ------------------------------------------------------------------


def _initialize(client: Client, params: Any) -> types.InitializeResult:
    fields = params if isinstance(params, dict) else {}
    folders = messages.folders(fields.get("workspaceFolders"))
    root = fields.get("rootUri")
    client.session.folders = list(folders) or ([root] if isinstance(root, str) else [])
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
        capabilities=capabilities(notebooks, client.session.settings.completion_items),
        server_info=types.ServerInfo(NAME, RELEASE),
    )


async def _initialized(client: Client, params: Any) -> None:
    client.watch.start()
    if client.registers_settings:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        wanted = {"id": method, "method": method, "registerOptions": {"section": "redraft"}}
        client.ask_later(types.CLIENT_REGISTER_CAPABILITY, {"registrations": [wanted]})
    pulling = asyncio.ensure_future(_pull_settings(client))
    await asyncio.wait({pulling}, timeout=_SETTINGS_S)
    client.session.context.start()
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
    client.session.folders = [
        folder for folder in client.session.folders if folder not in gone
    ] + list(came)
    client.session.context.folders_changed()


# --- documents -----------------------------------------------------------------------


def _opened(client: Client, params: Any) -> None:
    _open(client, messages.opened(params))


def _open(client: Client, item: messages.Opened) -> None:
    client.session.open(item.uri, item.text, item.version, item.language)


def _changed(client: Client, params: Any) -> None:
    try:
        message = messages.changed(params)
    except InvalidRequest as error:
        client.session.lose_track(messages.document_uri(params), str(error))
        raise
    _change(client, message)


def _change(client: Client, message: messages.Changed) -> None:
    client.session.change(message.uri, message.changes, message.version)


def _closed(client: Client, params: Any) -> None:
    client.session.close(messages.document_uri(params))


def _files_renamed(client: Client, params: Any) -> None:
    """Follow ``workspace/didRenameFiles``; the client reopens the documents itself."""
    for old, new in messages.renamed_files(params):
        client.session.rename(old, new)
    client.session.context.files_changed()


def _files_changed(client: Client, params: Any) -> None:
    """Let the index look for what was saved or changed on the disk."""
    client.session.context.files_changed()


def _notebook_opened(client: Client, params: Any) -> None:
    for cell in messages.notebook_opened(params):
        _open(client, cell)


def _notebook_changed(client: Client, params: Any) -> None:
    message = messages.notebook_changed(params)
    for uri in message.closed:
        client.session.close(uri)
    for cell in message.opened:
        _open(client, cell)
    for change in message.changed:
        _change(client, change)


def _notebook_closed(client: Client, params: Any) -> None:
    for uri in messages.notebook_closed(params):
        client.session.close(uri)


def _shutdown(client: Client, params: Any) -> None:
    client.session.context.stop()  # nothing more can be asked


# --- ghost text ----------------------------------------------------------------------


async def _inline_completion(client: Client, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/inlineCompletion``, with the reason where nothing is shown."""
    asked = messages.asked(params)
    document, decision = await _ghost_text(client, asked)
    if isinstance(decision, Show):
        return {"items": [results.inline_item(document, asked, decision)]}
    return {"items": [], **results.why("infill", decision)}


async def _get_completions(client: Client, params: Any) -> dict[str, Any]:
    """Answer copilot.el's ``getCompletions``."""
    asked = messages.get_completions(params)
    document, decision = await _ghost_text(client, asked)
    shown = [results.old_completion(document, asked, each) for each in _shown(decision)]
    return {"completions": shown}


async def _completion(client: Client, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/completion`` with ghost text, where the settings want it."""
    if not client.session.settings.completion_items:
        return {"isIncomplete": False, "items": []}
    # Its trigger kind 1 means typing as well as a gesture.
    asked = replace(messages.asked(params), invoked=False)
    document, decision = await _ghost_text(client, asked)
    items = [results.menu_item(document, asked, each) for each in _shown(decision)]
    return {"isIncomplete": True, "items": items}


async def _ghost_text(client: Client, asked: Asked) -> tuple[Document, Show | Abstain]:
    document = _document(client, asked)
    query = _query(client, document, asked)
    if asked.selected is not None:
        query = _as_if_chosen(query, document, asked.selected)
    decision = await client.session.ghost_text(query)
    return document, _tell(client, document, asked, "infill", decision)


def _as_if_chosen(query: Query, document: Document, selected: SelectedCompletion) -> Query:
    """Return the query as if the marked entry of the completion menu were in the text already."""
    start, end = map(document.index, selected.range.ends)
    chosen = selected.text.replace("\r\n", "\n").replace("\r", "\n")
    text = query.text[:start] + chosen + query.text[end:]
    return replace(query, text=text, cursor=start + len(chosen))


# --- next edits ----------------------------------------------------------------------


async def _copilot_inline_edit(client: Client, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/copilotInlineEdit``, whose clients show one document alone."""
    asked = replace(messages.asked(params), other_documents=False)
    document, decision = await _next_edit(client, asked)
    edits = [results.inline_edit(document, document, asked, each) for each in _shown(decision)]
    return {"edits": edits}


async def _own_next_edit(client: Client, params: Any) -> dict[str, Any]:
    """Answer ``redraft/nextEdit``, the same for our own clients."""
    asked = messages.asked(params)
    document, decision = await _next_edit(client, asked)
    if isinstance(decision, Abstain):
        return {"edits": [], **results.why("next_edit", decision)}
    target = client.session.documents.get(decision.suggestion.uri) or document
    return results.next_edit_result(target, document, asked, decision)


async def _code_action(client: Client, params: Any) -> list[dict[str, Any]]:
    """Answer ``textDocument/codeAction`` with the next edit.

    By a gesture the model is asked; a light bulb only gets what is shown already.
    """
    wanted = messages.code_action(params)
    asked, kind = wanted.asked, results.ACTION_KIND
    if not any(f"{kind}.".startswith(f"{each}.") for each in wanted.kinds or (kind,)):
        return []
    document, versioned = _document(client, asked), client.versions_edits
    if not asked.invoked:
        shown = client.session.outcomes.shown_edit(document.uri, document.text)
        return [results.action(document, shown, versioned=versioned)] if shown else []
    ends = map(document.index, asked.selection.ends) if asked.selection else (0, 0)
    start, end = ends
    if abs(end - start) <= 1:  # Helix's cursor is a selection of the character under it
        asked = replace(asked, selection=None)
    document, decision = await _next_edit(client, replace(asked, other_documents=False))
    if isinstance(decision, Show):
        return [results.action(document, decision.suggestion, versioned=versioned)]
    return [results.no_action(decision)] if client.shows_disabled and wanted.kinds else []


async def _next_edit(client: Client, asked: Asked) -> tuple[Document, Show | Abstain]:
    document = _document(client, asked)
    decision = await client.session.next_edit(_query(client, document, asked))
    return document, _tell(client, document, asked, "next_edit", decision)


# --- queries and decisions -------------------------------------------------------------


def _document(client: Client, asked: Asked) -> Document:
    """Return the document that a request is about, as it is now.

    Raises:
        InvalidRequest: it is not open.
        StaleDocument: the request names another version of it.
    """
    document = client.session.documents.get(asked.uri)
    if document is None:
        raise InvalidRequest(f"{asked.uri} is not open; send textDocument/didOpen first")
    if asked.version is not None and document.version not in (None, asked.version):
        raise StaleDocument(
            f"{asked.uri} is at version {document.version}, the request names {asked.version}"
        )
    return document


def _query(client: Client, document: Document, asked: Asked) -> Query:
    """Return a request in the session's terms."""
    session, selected = client.session, 0
    if asked.diagnostics is not None:
        session.context.diagnosed(asked.uri, asked.diagnostics)
    if asked.selection is not None:
        start, end = map(document.index, asked.selection.ends)
        selected = abs(end - start)
    session.recorder.cursor(document, asked.selection or Range(asked.position, asked.position))
    return replace(
        Query.at(document, session.path(document), document.index(asked.position)),
        invoked=asked.invoked,
        selected=selected,
        cursors=asked.cursors,
        in_snippet=asked.in_snippet,
        other_documents=asked.other_documents,
    )


def _tell(
    client: Client, document: Document, asked: Asked, task: Task, decision: Show | Abstain
) -> Show | Abstain:
    """Say in the status line what is shown, or why nothing is; return the decision.

    Raises:
        StaleDocument: the answer is for a text that is gone.
    """
    place = (document.uri, document.revision, asked.position)
    if isinstance(decision, Show):
        client.line.shown(task, place, decision.suggestion.unsure)
        return decision
    if decision.kind == "not_ready":
        client.watch.start()
        if client.watch.waiting is not None:
            decision = replace(decision, reason=client.watch.waiting[0])
    if not decision.is_stale:
        client.line.abstained(task, place, decision)
    # A document that was closed has no version that could be stale.
    if decision.is_stale and client.session.documents.get(document.uri) is document:
        client.line.idle()
        raise StaleDocument(decision.reason)
    return decision


def _shown(decision: Show | Abstain) -> list[Show]:
    return [decision] if isinstance(decision, Show) else []


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
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _inline_completion,
    types.TEXT_DOCUMENT_CODE_ACTION: _code_action,
    types.TEXT_DOCUMENT_COMPLETION: _completion,
    "textDocument/copilotInlineEdit": _copilot_inline_edit,
    "redraft/nextEdit": _own_next_edit,
    "getCompletions": _get_completions,
    "getCompletionsCycling": _get_completions,
    **reports.HANDLERS,
}


def create_server(
    predictor: Predictor,
    *,
    clock: Callable[[], float] = time.monotonic,
    settings: LspSettings | None = None,
    recordings: Recordings | None = None,
) -> RedraftServer:
    """Return the server of one client. It does not close the predictor, which may be shared.

    Args:
        recordings: where to record while the user has that turned on; None: never.
    """
    server = RedraftServer(NAME, RELEASE)
    notify, ask = server.protocol.notify, server.protocol.send_request_async
    session = Session(predictor, settings or LspSettings(), clock, recordings=recordings)
    server.client = Client(session, predictor, notify, ask)
    for method, handler in HANDLERS.items():
        server.feature(method)(partial(handler, server.client))
    return server
