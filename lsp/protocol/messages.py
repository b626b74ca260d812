"""Params of the client's messages, validated from plain JSON.

lsprotocol drops fields that it does not list (a version, a selection) and answers nothing at all
where a value has the wrong type, so these models take its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator
from pydantic.alias_generators import to_camel
from redraft.model.records import Diagnostic
from redraft.model.validation import AnyText, Exactly, objection, read

from ..documents.open_documents import ContentChange
from ..documents.positions import Offset, Position, Range

#: Trigger kind of a request that the user made by a gesture.
INVOKED = 1

#: Diagnostics read of one message; few of them are ever shown to the model.
_MOST_DIAGNOSTICS = 1_000

Version = Annotated[int, Exactly()]
_Truth = Annotated[bool, PlainValidator(bool)]


def at(value: Any, *path: str) -> Any:
    """Return the value at ``path`` in nested objects, None where the path ends before."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def document_uri(params: Any) -> str:
    """Return the URI of a message's document, "" for a message without one."""
    uri = at(params, "textDocument", "uri")
    return uri if isinstance(uri, str) else ""


def folders(value: Any) -> list[str]:
    """Return the URIs of a list of workspace folders, without entries that have none."""
    uris = (at(entry, "uri") for entry in (value if isinstance(value, list) else []))
    return [uri for uri in uris if isinstance(uri, str)]


class Params(BaseModel):
    """Params of a message, or a part of them; other fields are ignored."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    @classmethod
    def of(cls, params: Any) -> Self:
        """Return the params of a message.

        Raises:
            InvalidRequest: names the wrong field, its value and what it must be.
        """
        return read(cls, params, whole="params")


# --- documents -----------------------------------------------------------------------------------


class DocumentId(Params):
    """A document, and its version where the client gives one."""

    uri: AnyText
    version: Version | None = None


class DocumentItem(DocumentId):
    """A document with its text."""

    text: AnyText
    language_id: AnyText = ""


class OpenParams(Params):
    """``textDocument/didOpen``."""

    text_document: DocumentItem


class ChangeParams(Params):
    """``textDocument/didChange``."""

    text_document: DocumentId
    content_changes: tuple[ContentChange, ...]


class RenamedFile(Params):
    """File of :class:`RenameParams`, with its old and new URI."""

    old_uri: AnyText
    new_uri: AnyText


class RenameParams(Params):
    """``workspace/didRenameFiles``."""

    files: tuple[RenamedFile, ...]


# --- requests for suggestions --------------------------------------------------------------------


def _on_one_line(range_: Range) -> Range:
    start, end = range_.ends
    if start.line != end.line or end < start:
        places = f"{start.line}:{start.character} to {end.line}:{end.character}"
        raise objection(f"must begin and end on one line, got {places}")
    return range_


def _diagnostics(value: Any) -> tuple[Diagnostic, ...] | None:
    """Return a list of diagnostics without entries that make no sense, None for no list."""
    if not isinstance(value, list):
        return None
    found = []
    for entry in value[:_MOST_DIAGNOSTICS]:
        line, message = at(entry, "range", "start", "line"), at(entry, "message")
        if type(line) is int and line >= 0 and isinstance(message, str):
            severity = at(entry, "severity")
            found.append(Diagnostic(line, message, severity if type(severity) is int else 1))
    return tuple(found)


Diagnostics = Annotated[tuple[Diagnostic, ...] | None, PlainValidator(_diagnostics)]


class SelectedCompletion(Params):
    """The entry marked in the client's completion menu: it would put ``text`` at ``range``."""

    range: Annotated[Range, AfterValidator(_on_one_line)]
    text: AnyText


class RequestContext(Params):
    """Context of a request. Some clients send none, or trigger kind 0."""

    trigger_kind: object = 0
    selected_completion_info: SelectedCompletion | None = None
    only: tuple[AnyText, ...] = ()  # kinds of code actions wanted; none: all
    diagnostics: Diagnostics = None


class SuggestionParams(Params):
    """``textDocument/inlineCompletion``, ``copilotInlineEdit`` and ``redraft/nextEdit``.

    All from ``selection`` on are our own fields, for clients that know them.
    """

    text_document: DocumentId
    position: Position
    context: RequestContext = RequestContext()
    selection: Range | None = None
    cursors: Offset = 1
    in_snippet: _Truth = False
    other_documents: _Truth = False  # the client can show an edit of another document
    unopened_files: _Truth = False  # and can open a file for it
    another: _Truth = False  # another next edit than the one shown
    whole_renames: _Truth = False  # the client applies renames in several files
    diagnostics: Diagnostics = None  # of the document; None: the client does not say

    @property
    def uri(self) -> str:
        """The document's URI."""
        return self.text_document.uri

    @property
    def version(self) -> int | None:
        """The document's version, None where the client gives none."""
        return self.text_document.version

    @property
    def is_invoked(self) -> bool:
        """Return whether the user asked by a gesture, and not by typing or moving about."""
        return self.context.trigger_kind == INVOKED


class CodeActionParams(Params):
    """``textDocument/codeAction``."""

    text_document: DocumentId
    range: Range
    context: RequestContext = RequestContext()

    @property
    def suggestion(self) -> SuggestionParams:
        """The same as a request for a suggestion."""
        return SuggestionParams(
            text_document=self.text_document,
            position=self.range.start,
            context=self.context,
            selection=self.range,
            diagnostics=self.context.diagnostics,
        )


class CompletionsDocument(DocumentId):
    """The document of ``getCompletions``."""

    position: Position


class CompletionsParams(Params):
    """``getCompletions``, which copilot.el sends for ``textDocument/inlineCompletion``."""

    doc: CompletionsDocument

    @property
    def suggestion(self) -> SuggestionParams:
        """The same as a request for a suggestion."""
        return SuggestionParams(text_document=self.doc, position=self.doc.position)


# --- reports -------------------------------------------------------------------------------------


class CommandArguments(Params):
    """Arguments of a command; ours take one at most."""

    arguments: tuple[object, ...] = ()

    @property
    def argument(self) -> str:
        """The first argument, "" where there is none."""
        return str(self.arguments[0]) if self.arguments else ""


class CommandParams(CommandArguments):
    """``workspace/executeCommand``."""

    command: AnyText


class ReportedItem(Params):
    """A suggestion as the server sent it; its command holds the id."""

    command: CommandArguments = CommandArguments()


class ItemParams(Params):
    """Report that a suggestion was shown, or accepted in part."""

    item: ReportedItem
    accepted_length: Offset = 0  # UTF-16 code units of ``insertText`` accepted so far


class UuidParams(Params):
    """``notifyShown`` and ``notifyAccepted`` of copilot.el."""

    uuid: AnyText
    accepted_length: Offset | None = None  # None: all of it


class UuidsParams(Params):
    """``notifyRejected`` of copilot.el."""

    uuids: tuple[AnyText, ...]
