"""Suggestions as clients ask for them: ghost text, next edits, code actions, completion items.

Each handler reads the message, has the session decide, and writes the answer in the client's terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest, StaleDocument
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from ..asking import ask, ghost_text_first, prefetch
from ..client import Client
from ..documents import Document
from ..paths import shown_path
from ..positions import Position, Range, units
from ..session.decisions import Ask, Show
from ..session.empty_lines import is_empty_body_line
from ..session.questions import Query
from ..suggestion import Suggestion
from . import messages
from .messages import Asked
from .reports import ACCEPT_COMMAND
from .status import sentence

ACTION_KIND = "refactor.rewrite.redraft"


# --- ghost text ----------------------------------------------------------------------


async def _inline_completion(client: Client, params: Any) -> dict[str, Any]:
    """``textDocument/inlineCompletion``: what to show at the cursor, if anything; else why not, for
    which the protocol has no field."""
    asked = messages.asked(params)
    document, decision = await ghost(client, asked, asked.selected)
    if show := _answer(client, document, asked, "infill", decision):
        return {"items": [_inline_item(document, asked, show)]}
    return {"items": [], **_why("infill", decision)}


async def _get_completions(client: Client, params: Any) -> dict[str, Any]:
    """``getCompletions``: the same for one client of old."""
    asked = messages.get_completions(params)
    document, decision = await ghost(client, asked)
    show = _answer(client, document, asked, "infill", decision)
    if show is None:
        return {"completions": []}
    at, text = document.clamped(asked.position), _client_text(document, show.text)
    start = Position(at.line, 0)
    line = document.text[document.index(start) : document.index(at)]
    completion = {
        "uuid": show.suggestion.id,
        "text": line + text,
        "displayText": text,
        "position": at.as_json(),
        "range": Range(start, _behind(document, at, show)).as_json(),
        "docVersion": document.version or 0,
    }
    return {"completions": [completion]}


async def ghost(
    client: Client, asked: Asked, selected: messages.SelectedCompletion | None = None
) -> tuple[Document, Show | Abstain]:
    """What to show at the cursor, however the client asked. Replays ask here, too."""
    document = _document(client, asked)
    query = query_for(client, document, asked)
    if selected is not None:
        query = _as_if_chosen(query, document, selected)
    decision = client.session.consider(query)
    if isinstance(decision, Ask):
        decision = await ask(client, decision)
    return document, decision


def _as_if_chosen(query: Query, document: Document, selected: messages.SelectedCompletion) -> Query:
    """As if the marked entry of the completion menu were in the text already."""
    start, end = (document.index(at) for at in _ends(selected.range))
    chosen = selected.text.replace("\r\n", "\n").replace("\r", "\n")
    text = query.text[:start] + chosen + query.text[end:]
    return replace(query, text=text, cursor=start + len(chosen))


def _inline_item(document: Document, asked: Asked, show: Show) -> dict[str, Any]:
    text = _client_text(document, show.text)
    at = document.clamped(asked.position)
    start, end = at, at
    item: dict[str, Any] = {}
    if asked.selected is not None:
        text = asked.selected.text + text
        start, end = (document.clamped(place) for place in _ends(asked.selected.range))
        item["filterText"] = asked.selected.text
    range_ = Range(start, _behind(document, end, show)).as_json()
    item |= _doubt(show)
    return item | {"insertText": text, "range": range_, "command": _accept(show.suggestion)}


def _doubt(show: Show) -> dict[str, str]:
    """For what is only shown because somebody asked by hand: why it would not be. The protocol has
    no field for it."""
    return {"unsure": show.suggestion.unsure} if show.suggestion.unsure else {}


def _behind(document: Document, at: Position, show: Show) -> Position:
    """Where what ghost text at ``at`` replaces ends; ``at`` itself where it only goes in."""
    over = show.suggestion.end - show.suggestion.start
    return document.position(document.index(at) + over) if over else at


# --- next edits ----------------------------------------------------------------------


async def _copilot_inline_edit(client: Client, params: Any) -> dict[str, Any]:
    """``textDocument/copilotInlineEdit``: the next edit for clients written for another server."""
    # Not one of its clients can show an edit of another document than the one it asked about.
    asked = replace(messages.asked(params), other_documents=False)
    document, decision = await next_edit(client, asked)
    show = _answer(client, document, asked, "next_edit", decision)
    return {"edits": [_inline_edit(document, document, asked, show)] if show else []}


async def _own_next_edit(client: Client, params: Any) -> dict[str, Any]:
    """``redraft/nextEdit``: the same for our own clients, with all that there is to say."""
    asked = messages.asked(params)
    document, decision = await next_edit(client, asked)
    show = _answer(client, document, asked, "next_edit", decision)
    if show is None:
        return {"edits": [], **_why("next_edit", decision)}
    made = show.suggestion
    target = client.documents.get(made.uri) or document
    edit = _inline_edit(target, document, asked, show)
    place = target.position(made.least().start).as_json()
    elsewhere = "targetLine" in edit
    return {
        "edits": [edit],
        "id": made.id,
        "chain": made.chain,
        "confidence": round(made.confidence, 4),
        "model": made.model,
        "reason": show.reason,
        **_doubt(show),
        "jump": {"uri": target.uri, "position": place} if elsewhere else None,
        "cursor": _landing(made),
    }


async def next_edit(client: Client, asked: Asked) -> tuple[Document, Show | Abstain]:
    """The next edit to show, however the client asked. Replays ask here, too."""
    document = _document(client, asked)
    query = query_for(client, document, asked)
    if asked.invoked and is_empty_body_line(query.text, query.cursor):
        await ghost_text_first(client, asked.uri)
        if client.documents.get(asked.uri) is not document or document.revision != query.revision:
            return document, Abstain("document_changed", "the document changed during the delay")
    decision = client.session.consider_edit(query)
    if isinstance(decision, Ask):
        decision = await ask(client, decision)
    if isinstance(decision, Show):
        prefetch(client, query, decision.suggestion)
    return document, decision


def _inline_edit(target: Document, document: Document, asked: Asked, show: Show) -> dict[str, Any]:
    """An edit of ``target`` for the user who is in ``document``."""
    range_, text = _replaced(target, show.suggestion)
    version = _version(document, asked) if target is document else target.version
    edit = {
        "text": text,
        "textDocument": {"uri": target.uri, "version": version},
        "range": range_,
        "command": _accept(show.suggestion),
    }
    first, last = show.suggestion.lines
    here = target is document and first <= document.clamped(asked.position).line < last
    return edit if here else {**edit, "targetLine": first}


def _landing(suggestion: Suggestion) -> dict[str, int]:
    """Where the cursor belongs once the edit is made."""
    result, at = suggestion.result, suggestion.landing
    start = result.rfind("\n", 0, at) + 1
    return Position(result.count("\n", 0, at), units(result[start:at])).as_json()


async def _code_action(client: Client, params: Any) -> list[dict[str, Any]]:
    """``textDocument/codeAction``: the next edit for editors that know no such thing.

    Asked for by a gesture, the model is asked; a light bulb only gets what is there.
    """
    wanted = messages.code_action(params)
    asked = wanted.asked
    kinds = wanted.kinds or (ACTION_KIND,)
    if not any(f"{ACTION_KIND}.".startswith(f"{kind}.") for kind in kinds):
        return []
    document = _document(client, asked)
    if not asked.invoked:
        shown = client.session.shown_edit(document.uri, document.text)
        return [_action(client, document, shown)] if shown else []
    chosen = [document.index(at) for at in _ends(asked.selection)] if asked.selection else [0, 0]
    if abs(chosen[1] - chosen[0]) <= 1:  # Helix's cursor is a selection of the character under it
        asked = replace(asked, selection=None)
    document, decision = await next_edit(client, replace(asked, other_documents=False))
    _answer(client, document, asked, "next_edit", decision)
    if isinstance(decision, Show):
        return [_action(client, document, decision.suggestion)]
    title, why = "No edit predicted", {"reason": sentence("next_edit", decision)}
    nothing = {"title": title, "kind": ACTION_KIND, "disabled": why}
    return [nothing] if client.shows_disabled and wanted.kinds else []


def _action(client: Client, document: Document, suggestion: Suggestion) -> dict[str, Any]:
    range_, text = _replaced(document, suggestion)
    changed = [{"range": range_, "newText": text}]
    doubt = ", unsure" if suggestion.unsure else ""
    edit: dict[str, Any] = {"changes": {document.uri: changed}}
    if client.versions_edits:
        identifier = {"uri": document.uri, "version": document.version}
        edit = {"documentChanges": [{"textDocument": identifier, "edits": changed}]}
    return {
        "title": f"Apply predicted edit (line {suggestion.lines[0] + 1}{doubt})",
        "kind": ACTION_KIND,
        "edit": edit,
        "command": _accept(suggestion),
    }


# --- completion items ----------------------------------------------------------------


async def _completion(client: Client, params: Any) -> dict[str, Any]:
    """``textDocument/completion``: ghost text as an entry of the menu, where settings want it."""
    if not client.session.settings.completion_items:
        return {"isIncomplete": False, "items": []}
    # Its trigger kind 1 means typing as well as a gesture.
    asked = replace(messages.asked(params), invoked=False)
    document, decision = await ghost(client, asked)
    show = _answer(client, document, asked, "infill", decision)
    items = [_menu_item(document, asked, show)] if show else []
    return {"isIncomplete": True, "items": items}


def _menu_item(document: Document, asked: Asked, show: Show) -> dict[str, Any]:
    at, text = document.clamped(asked.position), _client_text(document, show.text)
    first, *more = show.text.split("\n")
    range_ = Range(at, _behind(document, at, show)).as_json()
    return {
        "label": first.strip() + (" …" if more else ""),
        "kind": types.CompletionItemKind.Text.value,
        "detail": "Redraft",
        "documentation": {"kind": "plaintext", "value": show.text},
        "textEdit": {"range": range_, "newText": text},
        "filterText": text,
        "insertTextFormat": types.InsertTextFormat.PlainText.value,
        "command": _accept(show.suggestion),
    }


# --- questions and answers -------------------------------------------------------------


def _document(client: Client, asked: Asked) -> Document:
    """The document a question is about, as it is now.

    Raises:
        InvalidRequest: it is not open.
        StaleDocument: the question names another version of it.
    """
    document = client.documents.get(asked.uri)
    if document is None:
        raise InvalidRequest(f"{asked.uri} is not open; send textDocument/didOpen first")
    if asked.version is not None and document.version not in (None, asked.version):
        raise StaleDocument(
            f"{asked.uri} is at version {document.version}, the request names {asked.version}"
        )
    return document


def query_for(client: Client, document: Document, asked: Asked) -> Query:
    """What a client asks, in the session's terms."""
    if asked.diagnostics is not None:
        client.context.diagnosed(asked.uri, asked.diagnostics)
    selected = 0
    if asked.selection is not None:
        start, end = (document.index(at) for at in _ends(asked.selection))
        selected = abs(end - start)
    client.recorder.cursor(document, asked.selection or Range(asked.position, asked.position))
    return Query(
        uri=document.uri,
        path=shown_path(document.uri, client.folders, document.language),
        language=document.language,
        text=document.text,
        cursor=document.index(asked.position),
        revision=document.revision,
        invoked=asked.invoked,
        selected=selected,
        cursors=asked.cursors,
        in_snippet=asked.in_snippet,
        out_of_step=document.out_of_step,
        other_documents=asked.other_documents,
    )


def _why(task: Task, decision: Show | Abstain) -> dict[str, Any]:
    """Return why nothing is shown, and whether a gesture would show what is hidden.

    The protocol has no field for either.
    """
    if isinstance(decision, Show):
        return {}
    return {"reason": sentence(task, decision), "revealable": decision.is_revealable}


def _answer(
    client: Client, document: Document, asked: Asked, task: Task, decision: Show | Abstain
) -> Show | None:
    """Return what to show. The status line says what it is, or why there is nothing.

    Raises:
        StaleDocument: the answer is for a text that is gone.
    """
    client.recorder.decided(document, decision)
    place = (document.uri, document.revision, asked.position)
    if isinstance(decision, Show):
        client.line.shown(task, place, decision.suggestion.unsure)
        return decision
    if not decision.is_stale:
        client.line.abstained(task, place, decision)
    # A document that was closed has no version that could be stale.
    if decision.is_stale and client.documents.get(document.uri) is document:
        client.line.idle()
        raise StaleDocument(decision.reason)
    return None


def _replaced(document: Document, suggestion: Suggestion) -> tuple[dict[str, Any], str]:
    """The range of the document that an edit replaces, and what comes there."""
    start, end, text = suggestion.shape()
    range_ = Range(document.position(start), document.position(end)).as_json()
    return range_, _client_text(document, text)


def _version(document: Document, asked: Asked) -> int | None:
    return asked.version if document.version is None else document.version


def _accept(suggestion: Suggestion) -> dict[str, Any]:
    return {
        "title": "Accept suggestion",
        "command": ACCEPT_COMMAND,
        "arguments": [suggestion.id],
    }


def _client_text(document: Document, text: str) -> str:
    return text.replace("\n", document.line_end)


def _ends(range_: Range) -> tuple[Position, Position]:
    return range_.start, range_.end


HANDLERS: dict[str, Callable[..., Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _inline_completion,
    types.TEXT_DOCUMENT_CODE_ACTION: _code_action,
    types.TEXT_DOCUMENT_COMPLETION: _completion,
    "textDocument/copilotInlineEdit": _copilot_inline_edit,
    "redraft/nextEdit": _own_next_edit,
    "getCompletions": _get_completions,
    "getCompletionsCycling": _get_completions,
}
