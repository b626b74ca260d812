"""The client's messages, read with care: from plain JSON to typed values.

Read here and not by lsprotocol, which drops fields it does not know (a version, a selection) and
answers nothing at all where a value has the wrong type. Every reader raises
:class:`~redraft.model.errors.InvalidRequest` naming the field, the value and what it should be.
Knows the shapes of messages and nothing of what they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field
from pydantic.alias_generators import to_camel
from redraft.model.records import Diagnostic
from redraft.model.validation import AnyText, Exactly, objection, read

from ..documents import ContentChange
from ..positions import Offset, Position, Range

INVOKED = 1

#: Diagnostics read of one message; few of them are ever shown to the model.
_MOST_DIAGNOSTICS = 1_000

_CAMEL = {"alias_generator": to_camel}

T = TypeVar("T")
Version = Annotated[int, Exactly()]


def _read(kind: type[T], params: Any) -> T:
    return read(kind, params, whole="params")


def at(value: Any, *path: str) -> Any:
    """What lies at ``path`` in nested objects, None where it ends before."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# --- documents -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    uri: AnyText
    text: AnyText
    version: Version | None = None
    language: Annotated[AnyText, Field(alias="languageId")] = ""


@dataclass(frozen=True, slots=True)
class Changed:
    uri: str
    version: int | None
    changes: tuple[ContentChange, ...]


@dataclass(frozen=True, slots=True)
class _Identifier:
    uri: AnyText
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class _Open:
    text_document: Opened
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Change:
    text_document: _Identifier
    content_changes: tuple[ContentChange, ...]
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Renamed:
    old_uri: AnyText
    new_uri: AnyText
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Files:
    files: tuple[_Renamed, ...]


def opened(params: Any) -> Opened:
    return _read(_Open, params).text_document


def changed(params: Any) -> Changed:
    message = _read(_Change, params)
    document = message.text_document
    return Changed(document.uri, document.version, message.content_changes)


def document_uri(params: Any) -> str:
    """The URI a message speaks of; "" for the messages that may speak of none."""
    uri = at(params, "textDocument", "uri")
    return uri if isinstance(uri, str) else ""


def renamed_files(params: Any) -> tuple[tuple[str, str], ...]:
    """Old and new URI of each file of ``workspace/didRenameFiles``."""
    return tuple((file.old_uri, file.new_uri) for file in _read(_Files, params).files)


def folders(value: Any) -> tuple[str, ...]:
    """The URIs of a list of workspace folders; entries that make no sense are passed over."""
    uris = (at(entry, "uri") for entry in (value if isinstance(value, list) else []))
    return tuple(uri for uri in uris if isinstance(uri, str))


# --- notebooks -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CellsOpened:
    cell_text_documents: tuple[Opened, ...]
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _CellsClosed:
    cell_text_documents: tuple[_Identifier, ...]
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Structure:
    did_open: tuple[Opened, ...] = ()
    did_close: tuple[_Identifier, ...] = ()
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _CellText:
    document: _Identifier
    changes: tuple[ContentChange, ...]


@dataclass(frozen=True, slots=True)
class _Cells:
    structure: _Structure = _Structure()
    text_content: tuple[_CellText, ...] = ()
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _NotebookChange:
    cells: _Cells = _Cells()


@dataclass(frozen=True, slots=True)
class _Notebook:
    change: _NotebookChange


@dataclass(frozen=True, slots=True)
class NotebookChanged:
    opened: tuple[Opened, ...]
    closed: tuple[str, ...]
    changed: tuple[Changed, ...]


def notebook_opened(params: Any) -> tuple[Opened, ...]:
    """The cells of ``notebookDocument/didOpen``."""
    return _read(_CellsOpened, params).cell_text_documents


def notebook_changed(params: Any) -> NotebookChanged:
    """The part of ``notebookDocument/didChange`` that concerns the text of cells."""
    cells = _read(_Notebook, params).change.cells
    return NotebookChanged(
        opened=cells.structure.did_open,
        closed=tuple(cell.uri for cell in cells.structure.did_close),
        changed=tuple(
            Changed(cell.document.uri, cell.document.version, cell.changes)
            for cell in cells.text_content
        ),
    )


def notebook_closed(params: Any) -> tuple[str, ...]:
    return tuple(cell.uri for cell in _read(_CellsClosed, params).cell_text_documents)


# --- questions -----------------------------------------------------------------------------------


def _one_line(range_: Range) -> Range:
    if range_.start.line != range_.end.line or range_.end < range_.start:
        raise objection(
            f"must begin and end on one line, got {range_.start.line}:{range_.start.character} to "
            f"{range_.end.line}:{range_.end.character}"
        )
    return range_


@dataclass(frozen=True, slots=True)
class SelectedCompletion:
    """The entry marked in the client's completion menu: it would put ``text`` at ``range``."""

    range: Annotated[Range, AfterValidator(_one_line)]
    text: AnyText


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
    selected: SelectedCompletion | None = None


@dataclass(frozen=True, slots=True)
class CodeActionAsked:
    asked: Asked
    kinds: tuple[str, ...]  # the client wants these and what is below them; none: all


@dataclass(frozen=True, slots=True)
class _Context:
    """Some clients send none, or trigger kind 0: both mean that nobody asked by hand."""

    trigger_kind: object = 0
    selected_completion_info: SelectedCompletion | None = None
    only: tuple[AnyText, ...] = ()
    diagnostics: object = None
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Question:
    """``selection``, ``cursors``, ``inSnippet`` and ``otherDocuments`` are our own; clients that
    know them say more. Some send ``diagnostics`` along."""

    text_document: _Identifier
    position: Position
    context: _Context = _Context()
    selection: Range | None = None
    cursors: Offset = 1
    in_snippet: object = False
    other_documents: object = False
    diagnostics: object = None
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Actions:
    text_document: _Identifier
    range: Range
    context: _Context = _Context()
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _Place:
    uri: AnyText
    position: Position
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class _Completions:
    doc: _Place


def asked(params: Any) -> Asked:
    """What ``textDocument/inlineCompletion``, ``textDocument/copilotInlineEdit`` and
    ``redraft/nextEdit`` share."""
    question = _read(_Question, params)
    return Asked(
        uri=question.text_document.uri,
        version=question.text_document.version,
        position=question.position,
        invoked=question.context.trigger_kind == INVOKED,
        selection=question.selection,
        cursors=question.cursors,
        in_snippet=bool(question.in_snippet),
        other_documents=bool(question.other_documents),
        diagnostics=_diagnostics(question.diagnostics),
        selected=question.context.selected_completion_info,
    )


def code_action(params: Any) -> CodeActionAsked:
    wanted = _read(_Actions, params)
    asked = Asked(
        uri=wanted.text_document.uri,
        version=wanted.text_document.version,
        position=wanted.range.start,
        invoked=wanted.context.trigger_kind == INVOKED,
        selection=wanted.range,
        diagnostics=_diagnostics(wanted.context.diagnostics),
    )
    return CodeActionAsked(asked, wanted.context.only)


def get_completions(params: Any) -> Asked:
    """``getCompletions``, which one client sends in place of ``textDocument/inlineCompletion``."""
    doc = _read(_Completions, params).doc
    return Asked(doc.uri, doc.version, doc.position, invoked=False)


def _diagnostics(value: Any) -> tuple[Diagnostic, ...] | None:
    """A list of them; entries that make no sense are passed over, as they are of little weight."""
    if not isinstance(value, list):
        return None
    found = []
    for entry in value[:_MOST_DIAGNOSTICS]:
        line, message = at(entry, "range", "start", "line"), at(entry, "message")
        if type(line) is int and line >= 0 and isinstance(message, str):
            severity = at(entry, "severity")
            found.append(Diagnostic(line, message, severity if type(severity) is int else 1))
    return tuple(found)


# --- reports -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Command:
    command: AnyText
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class _Given:
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class _Item:
    command: _Given = _Given()


@dataclass(frozen=True, slots=True)
class _Shown:
    item: _Item


@dataclass(frozen=True, slots=True)
class _Accepted:
    accepted_length: Offset
    __pydantic_config__ = _CAMEL


@dataclass(frozen=True, slots=True)
class _One:
    uuid: AnyText


@dataclass(frozen=True, slots=True)
class _Several:
    uuids: tuple[AnyText, ...]


def suggestion_id(params: Any) -> str:
    """The id we put in ``item.command.arguments`` and the client gives back."""
    return _first(_read(_Shown, params).item.command.arguments)


def uuids(params: Any) -> tuple[str, ...]:
    """The ids that a legacy client reports on: ``uuid``, or ``uuids``."""
    if at(params, "uuids") is not None:
        return _read(_Several, params).uuids
    return (_read(_One, params).uuid,)


def accepted_length(params: Any) -> int:
    """UTF-16 units of ``insertText`` accepted so far."""
    return _read(_Accepted, params).accepted_length


def command(params: Any) -> tuple[str, str]:
    """The name and the first argument of ``workspace/executeCommand``."""
    wanted = _read(_Command, params)
    return wanted.command, _first(wanted.arguments)


def _first(arguments: Sequence[object]) -> str:
    return str(arguments[0]) if arguments else ""
