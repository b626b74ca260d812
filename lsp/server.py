"""Language server: one short handler for each message.

Keeping documents in step is synchronous and quick. What waits is ``async``, a task that the client
can cancel.
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

from .documents.open_documents import Document
from .documents.positions import Range
from .editor_settings import LspSettings
from .protocol import messages, reports, results, speech
from .protocol import notebook_sync as notebooks
from .protocol.jsonrpc import RedraftServer
from .protocol.messages import RequestContext, SuggestionParams, at
from .protocol.workspace_edits import workspace_edit
from .recording.counts import StatisticsFolder
from .recording.recordings_folder import Recordings
from .session import Session
from .snapshot import RequestFlags, Snapshot
from .suggestions.suggestion import Offer, Suggestion

logger = logging.getLogger(__name__)

_SETTINGS_S = 5.0  # for the client to say what must not be read, before any file is

# --- the connection ------------------------------------------------------------------


def _initialize(server: RedraftServer, params: Any) -> dict[str, Any]:
    fields = params if isinstance(params, dict) else {}
    root, workspace = fields.get("rootUri"), at(fields, "capabilities", "workspace")
    folders = messages.folders(fields.get("workspaceFolders"))
    server.session.workspace.folders = folders or ([root] if isinstance(root, str) else [])
    server.configure(fields.get("initializationOptions"))
    server.watch.shows_progress = bool(at(fields, "capabilities", "window", "workDoneProgress"))
    server.pulls_settings = bool(at(workspace, "configuration"))
    server.registers_settings = bool(at(workspace, "didChangeConfiguration", "dynamicRegistration"))
    server.versions_edits = bool(at(workspace, "workspaceEdit", "documentChanges"))
    actions = at(fields, "capabilities", "textDocument", "codeAction")
    server.shows_disabled = bool(at(actions, "disabledSupport"))
    late = at(actions, "resolveSupport", "properties")
    has_data = bool(at(actions, "dataSupport"))
    server.resolves_edits = has_data and isinstance(late, list) and "edit" in late
    return {
        "capabilities": results.capabilities(
            notebooks=at(fields, "capabilities", "notebookDocument") is not None,
            completion_items=server.session.workspace.settings.completion_items,
        ),
        "serverInfo": {"name": server.name, "version": RELEASE},
    }


async def _initialized(server: RedraftServer, _: Any) -> None:
    server.watch.start()
    if server.registers_settings:
        method, options = types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": "redraft"}
        wanted = types.Registration(method, method, options)
        server.client_register_capability(types.RegistrationParams([wanted]))
    pulling = asyncio.ensure_future(_pull_settings(server))
    await asyncio.wait({pulling}, timeout=_SETTINGS_S)
    server.session.workspace.context.start()
    await pulling


async def _configuration_changed(server: RedraftServer, params: Any) -> None:
    sent = at(params, "settings")
    if sent is None:
        await _pull_settings(server)
    else:
        server.configure(sent)


async def _pull_settings(server: RedraftServer) -> None:
    """Fetch the settings from a client that can be asked for them."""
    if not server.pulls_settings:
        return
    wanted = types.ConfigurationParams([types.ConfigurationItem(section="redraft")])
    try:
        answer: Any = await server.workspace_configuration_async(wanted)
    except JsonRpcException as error:
        logger.info("the client gives no settings: %s", error)
        return
    server.configure(answer[0] if isinstance(answer, list) and answer else None)


def _folders_changed(server: RedraftServer, params: Any) -> None:
    workspace, gone = server.session.workspace, messages.folders(at(params, "event", "removed"))
    kept = [folder for folder in workspace.folders if folder not in gone]
    workspace.folders = kept + messages.folders(at(params, "event", "added"))
    workspace.place_all()
    workspace.context.folders_changed()


def _shutdown(server: RedraftServer, _: Any) -> None:
    server.session.workspace.context.stop()  # nothing more can be asked


# --- documents -----------------------------------------------------------------------


def _opened(server: RedraftServer, params: Any) -> None:
    notebooks.open_document(server, messages.OpenParams.of(params).text_document)


def _changed(server: RedraftServer, params: Any) -> None:
    try:
        sent = messages.ChangeParams.of(params)
    except InvalidRequest as error:
        server.session.lose_track(messages.document_uri(params), str(error))
        raise
    document = sent.text_document
    server.session.change(document.uri, sent.content_changes, document.version)


def _closed(server: RedraftServer, params: Any) -> None:
    server.session.close(messages.document_uri(params))


def _files_renamed(server: RedraftServer, params: Any) -> None:
    """Follow ``workspace/didRenameFiles``; the client reopens the documents itself."""
    for file in messages.RenameParams.of(params).files:
        server.session.rename(file.old_uri, file.new_uri)
    server.session.workspace.context.files_changed()


def _saved(server: RedraftServer, params: Any) -> None:
    """Let the index read the file that was saved."""
    server.session.workspace.context.on_save(messages.document_uri(params))


def _files_changed(server: RedraftServer, _: Any) -> None:
    """Let the index look for what changed on the disk."""
    server.session.workspace.context.files_changed()


# --- ghost text ----------------------------------------------------------------------


async def _inline_completion(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/inlineCompletion``, with the reason where nothing is shown."""
    asked = SuggestionParams.of(params)
    document, decision = await _ghost_text(server, asked)
    if isinstance(decision, Abstain):
        return {"items": [], **results.why("infill", decision)}
    return {"items": [results.inline_item(document, asked, each) for each in decision]}


async def _get_completions(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer copilot.el's ``getCompletions``."""
    asked = messages.CompletionsParams.of(params).suggestion
    return await _old_completions(server, asked)


async def _get_completions_cycling(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer copilot.el's ``getCompletionsCycling``: it wants other texts too."""
    asked = messages.CompletionsParams.of(params).suggestion
    by_gesture = RequestContext(trigger_kind=messages.INVOKED)
    return await _old_completions(server, asked.model_copy(update={"context": by_gesture}))


async def _old_completions(server: RedraftServer, asked: SuggestionParams) -> dict[str, Any]:
    document, decision = await _ghost_text(server, asked)
    shown = [] if isinstance(decision, Abstain) else decision
    return {"completions": [results.old_completion(document, asked, each) for each in shown]}


async def _completion(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/completion`` with ghost text, where the settings want it."""
    if not server.session.workspace.settings.completion_items:
        return {"isIncomplete": False, "items": []}
    # Its trigger kind 1 means typing as well as a gesture.
    asked = SuggestionParams.of(params).model_copy(update={"context": RequestContext()})
    document, decision = await _ghost_text(server, asked)
    shown = [] if isinstance(decision, Abstain) else decision
    items = [results.menu_item(document, asked, each) for each in shown]
    return {"isIncomplete": True, "items": items}


async def _ghost_text(
    server: RedraftServer, asked: SuggestionParams
) -> tuple[Document, tuple[Offer, ...] | Abstain]:
    document = _document(server, asked)
    snapshot = _snapshot(server, document, asked)
    if (chosen := asked.context.selected_completion_info) is not None:
        # As if the marked entry of the completion menu were in the text already.
        start, end = map(document.index, chosen.range.ends)
        text = chosen.text.replace("\r\n", "\n").replace("\r", "\n")
        whole = snapshot.text[:start] + text + snapshot.text[end:]
        snapshot = snapshot.with_text(whole, start + len(text))
    decision = await server.session.ghost_texts(snapshot)
    first = decision if isinstance(decision, Abstain) else decision[0]
    reported = _report(server, document, asked, "infill", first)
    return document, reported if isinstance(reported, Abstain) else decision


# --- next edits ----------------------------------------------------------------------


async def _copilot_inline_edit(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``textDocument/copilotInlineEdit``, whose clients show one document alone."""
    one_document = {"other_documents": False, "whole_renames": False}
    asked = SuggestionParams.of(params).model_copy(update=one_document)
    document, decision = await _next_edit(server, asked)
    return {"edits": [results.inline_edit(document, asked, each) for each in _shown(decision)]}


async def _redraft_next_edit(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``redraft/nextEdit``, the same for our own clients."""
    asked = SuggestionParams.of(params)
    _, decision = await _next_edit(server, asked)
    if isinstance(decision, Abstain):
        return {"edits": [], **results.why("next_edit", decision)}
    made = decision.suggestion  # of a file that is not open: the client opens it, and asks again
    target = server.session.workspace.documents.get(made.uri) or Document(made.uri, made.text)
    return results.next_edit_result(target, asked, decision)


async def _code_action(server: RedraftServer, params: Any) -> list[dict[str, Any]]:
    """Answer ``textDocument/codeAction`` with the next edit.

    By a gesture the model is asked; a light bulb only gets what is shown already.
    """
    sent = messages.CodeActionParams.of(params)
    asked, kinds = sent.suggestion, sent.context.only
    kind = results.ACTION_KIND
    if not any(f"{kind}.".startswith(f"{each}.") for each in kinds or (kind,)):
        return []
    document, versioned = _document(server, asked), server.versions_edits
    if not asked.is_invoked:
        shown = server.session.memory.outcomes.find_shown_edit(document.uri, document.text)
        return await _actions(server, document, shown) if shown else []
    start, end = map(document.index, sent.range.ends)
    if abs(end - start) <= 1:  # Helix's cursor is a selection of the character under it
        asked = asked.model_copy(update={"selection": None})
    asked = asked.model_copy(update={"whole_renames": versioned})
    document, decision = await _next_edit(server, asked)
    if isinstance(decision, Offer):
        return await _actions(server, document, decision.suggestion)
    return [results.no_action(decision)] if server.shows_disabled and kinds else []


async def _actions(
    server: RedraftServer, document: Document, suggestion: Suggestion
) -> list[dict[str, Any]]:
    """Return a suggestion as a code action; no whole rename of which a file has changed."""
    if suggestion.rename is not None:
        try:
            await server.session.edits.renames.check(suggestion.id)
        except (InvalidRequest, StaleDocument):
            return []
    versioned, resolved = server.versions_edits, server.resolves_edits
    return [results.action(document, suggestion, versioned=versioned, resolved=resolved)]


async def _resolve_action(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``codeAction/resolve`` with the edit of a whole rename, if its files are the same."""
    sent: dict[str, Any] = params if isinstance(params, dict) else {}
    id_ = at(sent, "data", "rename")
    if not isinstance(id_, str):
        return sent
    rename = await server.session.edits.renames.check(id_)
    return {**sent, "edit": workspace_edit(rename)}


async def _next_edit(
    server: RedraftServer, asked: SuggestionParams
) -> tuple[Document, Offer | Abstain]:
    document = _document(server, asked)
    snapshot = _snapshot(server, document, asked)
    decision = await server.session.next_edit(snapshot, another=asked.another)
    return document, _report(server, document, asked, "next_edit", decision)


def _describe(server: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``redraft/describe``: what is shown, as a sentence for screen readers."""
    asked = SuggestionParams.of(params)
    document = _document(server, asked)
    return speech.describe(server, document, document.index(asked.position))


# --- queries and decisions -------------------------------------------------------------


def _document(server: RedraftServer, asked: SuggestionParams) -> Document:
    """Return the document of a request.

    Raise InvalidRequest if it is not open, StaleDocument if the request names another version.
    """
    document = server.session.workspace.documents.get(asked.uri)
    if document is None:
        raise InvalidRequest(f"{asked.uri} is not open; send textDocument/didOpen first")
    if asked.version is not None and document.version not in (None, asked.version):
        raise StaleDocument(
            f"{asked.uri} is at version {document.version}, the request names {asked.version}"
        )
    return document


def _snapshot(server: RedraftServer, document: Document, asked: SuggestionParams) -> Snapshot:
    """Return what a request asks about, in the session's terms."""
    session, selection = server.session, asked.selection or Range(asked.position, asked.position)
    document.compare(asked.position, *selection.ends)
    start, end = map(document.index, selection.ends)
    flags = RequestFlags(
        is_invoked=asked.is_invoked,
        selected=abs(end - start),
        cursors=asked.cursors,
        in_snippet=asked.in_snippet,
        other_documents=asked.other_documents,
        unopened_files=asked.unopened_files,
        whole_renames=asked.whole_renames and session.workspace.settings.whole_renames,
    )
    at, reports = document.index(asked.position), asked.diagnostics
    return session.snapshot(document, at, flags, selection=selection, reports=reports)


def _report(
    server: RedraftServer,
    document: Document,
    asked: SuggestionParams,
    task: Task,
    decision: Offer | Abstain,
) -> Offer | Abstain:
    """Say in the status line what is shown, or why nothing is; return the decision.

    Raise StaleDocument if the text has changed meanwhile.
    """
    place = (document.uri, document.revision, asked.position)
    server.line.problem = server.session.workspace.folder_problem(document.uri)
    if isinstance(decision, Offer):
        server.line.show(task, place, decision.suggestion.unsure)
        return decision
    if decision.kind == "not_ready":
        server.watch.start()
    is_passing = not decision.is_stale and not decision.is_lasting
    if server.watch.waiting and is_passing:  # the progress bar says so too
        decision = replace(decision, kind="not_ready", reason=server.watch.waiting)
    if not decision.is_stale:
        server.line.abstain(task, place, decision)
    # A document that was closed has no version that could be stale.
    elif server.session.workspace.documents.get(document.uri) is document:
        server.line.idle()
        raise StaleDocument(decision.reason)
    return decision


def _shown(decision: Offer | Abstain) -> list[Offer]:
    return [decision] if isinstance(decision, Offer) else []


HANDLERS: dict[str, Callable[[RedraftServer, Any], Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.SHUTDOWN: _shutdown,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: _folders_changed,
    types.WORKSPACE_DID_RENAME_FILES: _files_renamed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: _files_changed,
    types.TEXT_DOCUMENT_DID_OPEN: _opened,
    types.TEXT_DOCUMENT_DID_CHANGE: _changed,
    types.TEXT_DOCUMENT_DID_SAVE: _saved,
    types.TEXT_DOCUMENT_DID_CLOSE: _closed,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _inline_completion,
    types.TEXT_DOCUMENT_CODE_ACTION: _code_action,
    types.CODE_ACTION_RESOLVE: _resolve_action,
    types.TEXT_DOCUMENT_COMPLETION: _completion,
    "textDocument/copilotInlineEdit": _copilot_inline_edit,
    "redraft/nextEdit": _redraft_next_edit,
    "redraft/describe": _describe,
    "getCompletions": _get_completions,
    "getCompletionsCycling": _get_completions_cycling,
    **notebooks.HANDLERS,
    **reports.HANDLERS,
}


def create_server(
    predictor: Predictor,
    *,
    clock: Callable[[], float] = time.monotonic,
    settings: LspSettings | None = None,
    recordings: Recordings | None = None,
    statistics: StatisticsFolder | None = None,
) -> RedraftServer:
    """Return the server of one client. It does not close the predictor, which may be shared.

    Args:
        recordings: where to record while the user has that turned on; None: never.
        statistics: where suggestions are counted; None: nowhere.
    """
    session = Session(
        *(predictor, settings or LspSettings(), clock),
        recordings=recordings,
        statistics=statistics,
    )
    server = RedraftServer(session, predictor)
    for method, handler in HANDLERS.items():
        server.feature(method)(partial(handler, server))
    return server
