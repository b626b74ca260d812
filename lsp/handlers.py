"""What the server does on each message: read it, ask the session and the predictor, answer.

One function per message, and a table of them at the end. Keeping documents in step is synchronous
and quick; everything that waits is ``async``, a task of its own that the client can cancel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ..model.errors import (
    EngineGone,
    InvalidRequest,
    ModelNotReady,
    Overloaded,
    RedraftError,
    StaleDocument,
)
from . import messages
from .documents import Document
from .lanes import Lane, Superseded
from .messages import InlineCompletionAsked
from .paths import shown_path
from .session import Abstain, Ask, Query, Show
from .status import Kind
from .translate import Position, Range

if TYPE_CHECKING:
    from .app import RedraftServer

logger = logging.getLogger(__name__)

ACCEPT_COMMAND = "redraft.accept"
#: What clients written for another server send on acceptance. Understood, but not announced: where
#: that server runs too, two of a name would clash.
_ACCEPT_COMMANDS = frozenset({ACCEPT_COMMAND, "github.copilot.didAcceptCompletionItem"})

_ALL_FILES = types.FileOperationRegistrationOptions(
    filters=[
        types.FileOperationFilter(
            pattern=types.FileOperationPattern("**/*", matches=types.FileOperationPatternKind.File)
        )
    ]
)

_NOTHING: dict[str, Any] = {"items": []}


# --- the connection ------------------------------------------------------------------


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
            ),
            file_operations=types.FileOperationOptions(did_rename=_ALL_FILES),
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


# --- documents -----------------------------------------------------------------------


def _opened(ls: RedraftServer, params: Any) -> None:
    _open(ls, messages.opened(params))


def _open(ls: RedraftServer, item: messages.Opened) -> None:
    if ls.documents.get(item.uri) is not None:
        ls.close_document(item.uri)
    _begin(ls, ls.documents.open(item.uri, item.text, item.version, item.language))


def _begin(ls: RedraftServer, document: Document) -> None:
    path = shown_path(document.uri, ls.folders, document.language)
    ls.session.opened(document.uri, path, document.lines)


def _changed(ls: RedraftServer, params: Any) -> None:
    try:
        message = messages.changed(params)
    except InvalidRequest as error:
        ls.lose_track(messages.document_uri(params), str(error))
        raise
    _change(ls, message)


def _change(ls: RedraftServer, message: messages.Changed) -> None:
    known = ls.documents.get(message.uri)
    trusted = known is not None and not known.out_of_step
    try:
        splices = ls.documents.change(message.uri, message.changes, message.version)
    except InvalidRequest:
        ls.session.lost(message.uri)
        raise
    document = ls.documents.get(message.uri)
    assert document is not None  # else it would have been refused
    if trusted:
        ls.session.changed(message.uri, splices, lambda: document.text)
    elif not document.out_of_step:
        _begin(ls, document)


def _closed(ls: RedraftServer, params: Any) -> None:
    ls.close_document(messages.document_uri(params))


def _files_renamed(ls: RedraftServer, params: Any) -> None:
    """``workspace/didRenameFiles``: the edits made in them are known by the new name from now on.

    The client closes and opens the documents themselves.
    """
    for old, new in messages.renamed_files(params):
        language = getattr(ls.documents.get(old), "language", "")
        ls.session.renamed(old, new, shown_path(new, ls.folders, language))


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


# --- suggestions ---------------------------------------------------------------------


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
        document = ls.documents.get(ask.query.uri)
        if document is None or document.revision != ask.query.revision:
            return Abstain("the document changed during the delay", stale=True)
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
        return _failed(
            ls,
            f"the model took longer than {settings.timeout_ms / 1000:g} s: this machine is busy or "
            "slow ('redraft bench' measures it)",
        )
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
    at = document.clamped(asked.position)
    start, end = at, at
    item: dict[str, Any] = {}
    if asked.selected is not None:
        text = asked.selected.text + text
        start, end = (document.clamped(place) for place in _ends(asked.selected.range))
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


# --- small parts ---------------------------------------------------------------------------------


def _at(value: Any, *path: str) -> Any:
    """What lies at ``path`` in nested objects, None where it ends before."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _ends(range_: Range) -> tuple[Position, Position]:
    return range_.start, range_.end


def _wire(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


def _engine_text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


HANDLERS: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: _folders_changed,
    types.WORKSPACE_DID_RENAME_FILES: _files_renamed,
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
