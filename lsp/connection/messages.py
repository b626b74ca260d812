"""The client's messages, read with care: from plain JSON to typed values.

Read here and not by lsprotocol, which drops fields it does not know (a version, a selection) and
answers nothing at all where a value has the wrong type. Every reader raises
:class:`~redraft.model.errors.InvalidRequest` naming the field, the value and what it should be.
Knows the shapes of messages and nothing of what they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from redraft.model.errors import InvalidRequest
from redraft.model.records import Diagnostic

from ..editor.documents import Change
from ..editor.positions import Position, Range

INVOKED = 1

#: Positions beyond this are clamped: "the end" is often sent as the largest integer there is.
_LARGEST = 2**31 - 1

#: Diagnostics read of one message; few of them are ever shown to the model.
_MOST_DIAGNOSTICS = 1_000


@dataclass(frozen=True, slots=True)
class Opened:
    uri: str
    text: str
    version: int | None
    language: str


@dataclass(frozen=True, slots=True)
class Changed:
    uri: str
    version: int | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SelectedCompletion:
    """The entry marked in the client's completion menu: it would put ``text`` at ``range``."""

    text: str
    range: Range


@dataclass(frozen=True, slots=True)
class Asked:
    """A suggestion is wanted at ``position``."""

    uri: str
    version: int | None
    position: Position
    invoked: bool  # by a gesture; otherwise by typing or moving about
    selection: Range | None = None  # the user's
    cursors: int = 1
    in_snippet: bool = False  # the user fills in the fields of a snippet
    other_documents: bool = False  # the client can show an edit of another document
    diagnostics: tuple[Diagnostic, ...] | None = None  # of the document; None: it does not say


@dataclass(frozen=True, slots=True)
class InlineCompletionAsked(Asked):
    selected: SelectedCompletion | None = None


def opened(params: Any) -> Opened:
    return _opened(_object(_field(params, "textDocument", ""), "textDocument"), "textDocument")


def _opened(item: dict[str, Any], where: str) -> Opened:
    return Opened(
        uri=_text(_field(item, "uri", where), f"{where}.uri"),
        text=_text(_field(item, "text", where), f"{where}.text"),
        version=_version(item, where),
        language=_text(item.get("languageId") or "", f"{where}.languageId"),
    )


def changed(params: Any) -> Changed:
    item = _object(_field(params, "textDocument", ""), "textDocument")
    changes = _list(_field(params, "contentChanges", ""), "contentChanges")
    return Changed(
        uri=_text(_field(item, "uri", "textDocument"), "textDocument.uri"),
        version=_version(item, "textDocument"),
        changes=tuple(_change(c, f"contentChanges[{i}]") for i, c in enumerate(changes)),
    )


def document_uri(params: Any) -> str:
    """The URI a message speaks of; "" for the messages that may speak of none."""
    item = params.get("textDocument") if isinstance(params, dict) else None
    uri = item.get("uri") if isinstance(item, dict) else None
    return uri if isinstance(uri, str) else ""


def inline_completion(params: Any) -> InlineCompletionAsked:
    asked = next_edit(params)
    chosen = _context(params).get("selectedCompletionInfo")
    return InlineCompletionAsked(
        **{name: getattr(asked, name) for name in Asked.__slots__},
        selected=None if chosen is None else _selected(chosen),
    )


def next_edit(params: Any) -> Asked:
    """``textDocument/copilotInlineEdit``, ``redraft/nextEdit``, and what all such questions share.

    ``selection``, ``cursors``, ``inSnippet`` and ``otherDocuments`` are our own; clients that know
    them say more. Some send ``diagnostics`` along.
    """
    item = _object(_field(params, "textDocument", ""), "textDocument")
    selection, cursors = params.get("selection"), params.get("cursors")
    return Asked(
        uri=_text(_field(item, "uri", "textDocument"), "textDocument.uri"),
        version=_version(item, "textDocument"),
        position=_position(_field(params, "position", ""), "position"),
        invoked=_context(params).get("triggerKind") == INVOKED,
        selection=None if selection is None else _range(selection, "selection"),
        cursors=1 if cursors is None else _whole_number(cursors, "cursors"),
        in_snippet=bool(params.get("inSnippet")),
        other_documents=bool(params.get("otherDocuments")),
        diagnostics=_diagnostics(params.get("diagnostics")),
    )


def _context(params: Any) -> dict[str, Any]:
    # Some clients send no context, or trigger kind 0: both mean that nobody asked by hand.
    return _object(params.get("context") or {}, "context")


def _diagnostics(value: Any) -> tuple[Diagnostic, ...] | None:
    """A list of them; entries that make no sense are passed over, as they are of little weight."""
    if not isinstance(value, list):
        return None
    found = []
    for entry in value[:_MOST_DIAGNOSTICS]:
        line, message = _integer(at(entry, "range", "start", "line")), at(entry, "message")
        if line is not None and line >= 0 and isinstance(message, str):
            found.append(Diagnostic(line, message, _integer(at(entry, "severity")) or 1))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CodeActionAsked:
    asked: Asked
    kinds: tuple[str, ...]  # the client wants these and what is below them; none: all


def code_action(params: Any) -> CodeActionAsked:
    range_ = _range(_field(params, "range", ""), "range")
    context = _context(params)
    told = context.get("diagnostics")
    start = params["range"]["start"]
    asked = next_edit({**params, "position": start, "selection": None, "diagnostics": told})
    only = context.get("only")
    kinds = () if only is None else tuple(str(k) for k in _list(only, "context.only"))
    return CodeActionAsked(replace(asked, selection=range_), kinds)


def get_completions(params: Any) -> Asked:
    """``getCompletions``, which one client sends in place of ``textDocument/inlineCompletion``."""
    doc = _object(_field(params, "doc", ""), "doc")
    return next_edit({"textDocument": doc, "position": _field(doc, "position", "doc")})


def _selected(value: Any) -> SelectedCompletion:
    where = "context.selectedCompletionInfo"
    range_ = _range(_field(value, "range", where), f"{where}.range")
    if range_.start.line != range_.end.line or range_.end < range_.start:
        raise InvalidRequest(
            f"{where}.range must begin and end on one line, got {range_.start.line}:"
            f"{range_.start.character} to {range_.end.line}:{range_.end.character}"
        )
    return SelectedCompletion(_text(_field(value, "text", where), f"{where}.text"), range_)


def notebook_opened(params: Any) -> tuple[Opened, ...]:
    """The cells of ``notebookDocument/didOpen``."""
    cells = _list(_field(params, "cellTextDocuments", ""), "cellTextDocuments")
    return tuple(
        _opened(_object(cell, f"cellTextDocuments[{i}]"), f"cellTextDocuments[{i}]")
        for i, cell in enumerate(cells)
    )


@dataclass(frozen=True, slots=True)
class NotebookChanged:
    opened: tuple[Opened, ...]
    closed: tuple[str, ...]
    changed: tuple[Changed, ...]


def notebook_changed(params: Any) -> NotebookChanged:
    """The part of ``notebookDocument/didChange`` that concerns the text of cells."""
    change = _object(_field(params, "change", ""), "change")
    cells = _object(change.get("cells") or {}, "change.cells")
    structure = _object(cells.get("structure") or {}, "change.cells.structure")
    return NotebookChanged(
        opened=notebook_opened({"cellTextDocuments": structure.get("didOpen") or []}),
        closed=_uris(structure.get("didClose") or [], "change.cells.structure.didClose"),
        changed=tuple(
            changed(
                {
                    "textDocument": _field(entry, "document", "change.cells.textContent"),
                    "contentChanges": _field(entry, "changes", "change.cells.textContent"),
                }
            )
            for entry in _list(cells.get("textContent") or [], "change.cells.textContent")
        ),
    )


def notebook_closed(params: Any) -> tuple[str, ...]:
    return _uris(_field(params, "cellTextDocuments", ""), "cellTextDocuments")


def _uris(value: Any, where: str) -> tuple[str, ...]:
    return tuple(
        _text(_field(entry, "uri", f"{where}[{i}]"), f"{where}[{i}].uri")
        for i, entry in enumerate(_list(value, where))
    )


def suggestion_id(params: Any) -> str:
    """The id we put in ``item.command.arguments`` and the client gives back."""
    item = _object(_field(params, "item", ""), "item")
    command = _object(item.get("command") or {}, "item.command")
    return first_argument(command, "item.command")


def uuids(params: Any) -> tuple[str, ...]:
    """The ids that a legacy client reports on: ``uuid``, or ``uuids``."""
    if isinstance(params, dict) and "uuids" in params:
        return tuple(map(str, _list(params["uuids"], "uuids")))
    return (_text(_field(params, "uuid", ""), "uuid"),)


def first_argument(command: dict[str, Any], where: str = "") -> str:
    arguments = _list(command.get("arguments") or [], f"{where}.arguments".lstrip("."))
    return str(arguments[0]) if arguments else ""


def accepted_length(params: Any) -> int:
    """UTF-16 units of ``insertText`` accepted so far."""
    return _whole_number(_field(params, "acceptedLength", ""), "acceptedLength")


def command(params: Any) -> tuple[str, str]:
    """The name and the first argument of ``workspace/executeCommand``."""
    return _text(_field(params, "command", ""), "command"), first_argument(params)


def renamed_files(params: Any) -> tuple[tuple[str, str], ...]:
    """Old and new URI of each file of ``workspace/didRenameFiles``."""
    return tuple(
        (
            _text(_field(entry, "oldUri", f"files[{i}]"), f"files[{i}].oldUri"),
            _text(_field(entry, "newUri", f"files[{i}]"), f"files[{i}].newUri"),
        )
        for i, entry in enumerate(_list(_field(params, "files", ""), "files"))
    )


def folders(value: Any) -> tuple[str, ...]:
    """The URIs of a list of workspace folders; entries that make no sense are passed over."""
    entries = value if isinstance(value, list) else []
    uris = (entry.get("uri") for entry in entries if isinstance(entry, dict))
    return tuple(uri for uri in uris if isinstance(uri, str))


# --- values ----------------------------------------------------------------------------------


def at(value: Any, *path: str) -> Any:
    """What lies at ``path`` in nested objects, None where it ends before."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{where} must be an object, got {_shown(value)}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequest(f"{where} must be a list, got {_shown(value)}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{where} must be a string, got {_shown(value)}")
    return value


def _field(value: Any, name: str, where: str) -> Any:
    fields = _object(value, where or "params")
    path = f"{where}.{name}" if where else name
    if name not in fields:
        raise InvalidRequest(f"{path} is missing; add it to the message")
    return fields[name]


def _integer(value: Any) -> int | None:
    """``value`` if it is one, 3.0 included: some clients know no other numbers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _whole_number(value: Any, where: str) -> int:
    number = _integer(value)
    if number is None or number < 0:
        raise InvalidRequest(f"{where} must be a whole number from 0, got {_shown(value)}")
    return min(number, _LARGEST)


def _version(item: dict[str, Any], where: str) -> int | None:
    value = item.get("version")
    number = _integer(value)
    if value is not None and number is None:
        raise InvalidRequest(f"{where}.version must be an integer or null, got {_shown(value)}")
    return number


def _position(value: Any, where: str) -> Position:
    return Position(
        _whole_number(_field(value, "line", where), f"{where}.line"),
        _whole_number(_field(value, "character", where), f"{where}.character"),
    )


def _range(value: Any, where: str) -> Range:
    return Range(
        _position(_field(value, "start", where), f"{where}.start"),
        _position(_field(value, "end", where), f"{where}.end"),
    )


def _change(value: Any, where: str) -> Change:
    text = _text(_field(value, "text", where), f"{where}.text")
    range_ = value.get("range")
    return Change(text, None if range_ is None else _range(range_, f"{where}.range"))
