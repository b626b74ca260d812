"""Results as the client reads them: capabilities, inline items, edits, code actions, menu items."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from ..documents.line_ends import client_edit
from ..documents.open_documents import Document
from ..documents.positions import Position, Range, units
from ..suggestions.suggestion import Offer, Suggestion
from .messages import SuggestionParams
from .reports import ACCEPT_COMMAND, COMMANDS
from .status import sentence
from .workspace_edits import workspace_edit

ACTION_KIND = "refactor.rewrite.redraft"


def capabilities(*, notebooks: bool, completion_items: bool) -> dict[str, Any]:
    """Return what the server can do.

    Args:
        notebooks: the client has notebooks.
        completion_items: ghost text is offered in the completion menu too.
    """
    files = {"filters": [{"pattern": {"glob": "**/*", "matches": "file"}}]}
    found: dict[str, Any] = {
        # Always this one: some clients offer another first and then count in this one.
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": True, "change": 2, "save": True},
        "inlineCompletionProvider": {},
        "codeActionProvider": {"codeActionKinds": [ACTION_KIND], "resolveProvider": True},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "fileOperations": {"didRename": files},
        },
    }
    if notebooks:
        found["notebookDocumentSync"] = {"notebookSelector": [{"notebook": "*"}]}
    if completion_items:
        found["completionProvider"] = {}
    return found


# --- ghost text ----------------------------------------------------------------------


def inline_item(document: Document, asked: SuggestionParams, show: Offer) -> dict[str, Any]:
    """Return ghost text as ``textDocument/inlineCompletion`` has it."""
    at = document.clamp(asked.position)
    text = _client_text(document, at, show)
    start, end = at, at
    item: dict[str, Any] = {}
    selected = asked.context.selected_completion_info
    if selected is not None:
        text = selected.text + text
        start, end = map(document.clamp, selected.range.ends)
        item["filterText"] = selected.text
    range_ = Range(start, _behind(document, end, show)).as_json()
    item |= _doubt(show)
    return item | {"insertText": text, "range": range_, "command": _accept(show.suggestion)}


def old_completion(document: Document, asked: SuggestionParams, show: Offer) -> dict[str, Any]:
    """Return ghost text as ``getCompletions`` has it."""
    at = document.clamp(asked.position)
    text = _client_text(document, at, show)
    start = Position(at.line, 0)
    line = document.text[document.index(start) : document.index(at)]
    return {
        "uuid": show.suggestion.id,
        "text": line + text,
        "displayText": text,
        "position": at.as_json(),
        "range": Range(start, _behind(document, at, show)).as_json(),
        "docVersion": document.version or 0,
    }


def menu_item(document: Document, asked: SuggestionParams, show: Offer) -> dict[str, Any]:
    """Return ghost text as an entry of the completion menu."""
    at = document.clamp(asked.position)
    text = _client_text(document, at, show)
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


def _behind(document: Document, at: Position, show: Offer) -> Position:
    """Return the end of what ghost text at ``at`` replaces."""
    over = show.suggestion.end - show.suggestion.start
    return document.position(document.index(at) + over) if over else at


# --- next edits ----------------------------------------------------------------------


def next_edit_result(target: Document, asked: SuggestionParams, show: Offer) -> dict[str, Any]:
    """Return an edit of ``target`` as ``redraft/nextEdit`` has it."""
    result, at = show.suggestion.result, show.suggestion.landing
    start = result.rfind("\n", 0, at) + 1
    cursor = Position(result.count("\n", 0, at), units(result[start:at]))
    return {
        "edits": [inline_edit(target, asked, show)],
        "id": show.suggestion.id,
        "reason": show.reason,
        **_explanation(show.suggestion),
        **_doubt(show),
        "cursor": cursor.as_json(),
        **_rename(target, show.suggestion),
    }


def inline_edit(target: Document, asked: SuggestionParams, show: Offer) -> dict[str, Any]:
    """Return an edit of ``target`` for the user who is where the request says."""
    range_, text = _replaced(target, show.suggestion)
    is_here = target.uri == asked.uri
    version = asked.version if is_here and target.version is None else target.version
    edit = {
        "text": text,
        "textDocument": {"uri": target.uri, "version": version},
        "range": range_,
        "command": _accept(show.suggestion),
    }
    first, last = show.suggestion.lines
    if is_here and first <= target.clamp(asked.position).line < last:
        return edit
    return {**edit, "targetLine": first}


def action(
    document: Document, suggestion: Suggestion, *, versioned: bool, resolved: bool
) -> dict[str, Any]:
    """Return a next edit as a code action.

    Args:
        versioned: name the version of the document, for clients that check it.
        resolved: the client asks for the edit of a whole rename when the user takes it.
    """
    if (rename := suggestion.rename) is not None:
        found = {
            "title": rename.label[0].upper() + rename.label[1:],
            "kind": ACTION_KIND,
            "command": _accept(suggestion),
        }
        late = {"data": {"rename": suggestion.id}}
        return found | (late if resolved else {"edit": workspace_edit(rename)})
    range_, text = _replaced(document, suggestion)
    changed = [{"range": range_, "newText": text}]
    doubt = ", unsure" if suggestion.unsure else ""
    why = f": {suggestion.why}" if suggestion.why else ""
    edit: dict[str, Any] = {"changes": {document.uri: changed}}
    if versioned:
        identifier = {"uri": document.uri, "version": document.version}
        edit = {"documentChanges": [{"textDocument": identifier, "edits": changed}]}
    return {
        "title": f"Apply predicted edit (line {suggestion.lines[0] + 1}{doubt}{why})",
        "kind": ACTION_KIND,
        "edit": edit,
        "command": _accept(suggestion),
    }


def _rename(target: Document, suggestion: Suggestion) -> dict[str, Any]:
    """Return what a whole rename does; its edit comes when the user accepts it."""
    if (rename := suggestion.rename) is None:
        return {}
    definition = Range(target.position(suggestion.start), target.position(suggestion.end))
    about = {"old": rename.old, "new": rename.new, "label": rename.label}
    counts = {"places": rename.places, "files": len(rename.files)}
    return {"rename": {**about, **counts, "range": definition.as_json()}}


def no_action(decision: Abstain) -> dict[str, Any]:
    """Return a disabled code action that says why there is no edit."""
    disabled = {"reason": sentence("next_edit", decision)}
    return {"title": "No edit predicted", "kind": ACTION_KIND, "disabled": disabled}


# --- both --------------------------------------------------------------------------------


def why(task: Task, decision: Abstain) -> dict[str, Any]:
    """Return why nothing is shown, and whether a gesture would show what is hidden.

    The protocol has no field for either.
    """
    return {"reason": sentence(task, decision), "revealable": decision.is_revealable}


def _explanation(suggestion: Suggestion) -> dict[str, Any]:
    """Return why an edit is at its place and how many more places there are, where known."""
    why = {"why": suggestion.why} if suggestion.why else {}
    return why | ({"morePlaces": suggestion.more} if suggestion.more else {})


def _doubt(show: Offer) -> dict[str, str]:
    """Return why it would be hidden without a gesture; the protocol has no field for it."""
    return {"unsure": show.suggestion.unsure} if show.suggestion.unsure else {}


def _replaced(document: Document, suggestion: Suggestion) -> tuple[dict[str, Any], str]:
    """Return the range of the document that an edit replaces, and the new text."""
    start, end, text = client_edit(document, *suggestion.edit.shape())
    range_ = Range(document.position(start), document.position(end)).as_json()
    return range_, text


def _accept(suggestion: Suggestion) -> dict[str, Any]:
    return {"title": "Accept suggestion", "command": ACCEPT_COMMAND, "arguments": [suggestion.id]}


def _client_text(document: Document, at: Position, show: Offer) -> str:
    """Return ghost text at a place with the document's line ends."""
    start, over = document.index(at), show.suggestion.end - show.suggestion.start
    return client_edit(document, start, start + over, show.text)[2]
