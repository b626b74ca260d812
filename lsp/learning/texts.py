"""Documents of a recording, rebuilt event by event.

Texts are kept as UTF-16: the offsets of the format are exact in it, halves of surrogate pairs
included.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.lsp.documents.open_documents import ContentChange, split_lines
from redraft.lsp.documents.positions import Position, Range, index_at, units, without_surrogates
from redraft.lsp.recording.recording_events import (
    Changed,
    Closed,
    Encountered,
    Event,
    Opened,
    RestoreContent,
    SetContent,
    StoreContent,
    TextEdit,
)
from redraft.model.errors import InvalidRequest

_UTF16 = "utf-16-le"
_KEEP = "surrogatepass"
_LINE_END = "\r\n".encode(_UTF16)
_OTHER_LINE_ENDS = re.compile("\r\n|\r")


def plain(text: str) -> str:
    """Return a text as the session sees it: line feeds alone, and valid Unicode."""
    return without_surrogates(_OTHER_LINE_ENDS.sub("\n", text) if "\r" in text else text)


@dataclass(slots=True)
class _Document:
    path: str
    data: bytes = b""  # UTF-16
    text: str | None = ""  # the same decoded; None: not yet
    is_known: bool = False  # the recording holds its text


class Texts:
    """The documents of a recording as they are after the events applied so far."""

    def __init__(self) -> None:
        self._documents: dict[int, _Document] = {}
        self._stored: dict[str, bytes] = {}

    @property
    def ids(self) -> list[int]:
        """Numbers of the documents whose text is known."""
        return [id_ for id_, document in self._documents.items() if document.is_known]

    def text(self, document: int) -> str:
        """Return the text as the editor has it, with its line ends."""
        found = self._find(document)
        if found.text is None:
            found.text = found.data.decode(_UTF16, _KEEP)
        return found.text

    def path(self, document: int) -> str:
        """Return the path within the workspace."""
        return self._find(document).path

    def plain(self, document: int) -> str:
        """Return the text as the session sees it."""
        return plain(self.text(document))

    def index(self, document: int, offset: int) -> int:
        """Return the index into :meth:`plain` of an offset in UTF-16 code units."""
        index = index_at(self.text(document), offset)
        return index - self.text(document).count("\r\n", 0, index)

    def apply(self, event: Event) -> None:
        """Apply an event.

        Raises:
            InvalidRequest: it changes a document that was never introduced, or beyond its end.
        """
        match event:
            case Encountered():
                known = self._documents.setdefault(event.document, _Document(event.path))
                known.path = event.path
            case SetContent():
                self._set(event.document, event.text.encode(_UTF16, _KEEP))
            case StoreContent():
                self._stored[event.content_id] = self._find(event.document).data
            case RestoreContent():
                self._set(event.document, self._restored(event))
            case Opened() | Closed():
                self._find(event.document)
            case Changed():
                self._change(event)

    def _find(self, document: int) -> _Document:
        found = self._documents.get(document)
        if found is None:
            raise InvalidRequest(f"document {document} is used before the recording introduces it")
        return found

    def _set(self, document: int, data: bytes) -> None:
        found = self._find(document)
        found.data, found.text, found.is_known = data, None, True

    def _restored(self, event: RestoreContent) -> bytes:
        data = self._stored.get(event.content_id)
        if data is None:
            raise InvalidRequest(
                f"the text {event.content_id!r} of document {event.document} was never stored"
            )
        return data

    def _change(self, event: Changed) -> None:
        found = self._find(event.document)
        _check_edits(event, len(found.data) // 2)
        for edit in reversed(event.edits):
            put = edit.text.encode(_UTF16, _KEEP)
            found.data = found.data[: 2 * edit.start] + put + found.data[2 * edit.end :]
        found.text = None


def _check_edits(event: Changed, length: int) -> None:
    """Refuse edits that overlap or lie beyond a text of ``length`` code units."""
    end = 0
    for edit in event.edits:
        if not end <= edit.start <= edit.end <= length:
            raise InvalidRequest(
                f"the change at {event.time_ms} ms replaces [{edit.start}, {edit.end}) of document "
                f"{event.document}, which has {length} code units"
                + (f", and edits up to {end} came before" if end else "")
            )
        end = edit.end


def lsp_changes(text: str, edits: Sequence[TextEdit]) -> tuple[ContentChange, ...]:
    """Return edits of ``text`` as a language client sends them.

    The last place comes first, so that each is valid in the text that the one before it left.
    """
    data, starts = text.encode(_UTF16, _KEEP), _line_starts(text)

    def position(offset: int) -> Position:
        line = bisect_right(starts, offset) - 1
        return Position(line, offset - starts[line])

    return tuple(
        ContentChange(edit.text, Range(position(edit.start), position(edit.end)))
        for edit in reversed(_outside_line_ends(data, edits))
    )


def _outside_line_ends(data: bytes, edits: Sequence[TextEdit]) -> list[TextEdit]:
    """Return the edits widened so that none begins or ends between "\\r" and "\\n".

    A language server's positions do not reach there.
    """

    def is_within(offset: int) -> bool:
        return offset > 0 and data[2 * offset - 2 : 2 * offset + 2] == _LINE_END

    found: list[TextEdit] = []
    for edit in edits:
        if found and found[-1].end == edit.start and is_within(edit.start):
            edit = TextEdit(found[-1].start, edit.end, found.pop().text + edit.text)
        found.append(edit)
    return [
        TextEdit(
            edit.start - is_within(edit.start),
            edit.end + is_within(edit.end),
            "\r" * is_within(edit.start) + edit.text + "\n" * is_within(edit.end),
        )
        for edit in found
    ]


def _line_starts(text: str) -> list[int]:
    """Return where each line begins, in code units."""
    lines, ends = split_lines(text)
    starts, at = [], 0
    for line, line_end in zip(lines, ends, strict=True):
        starts.append(at)
        at += units(line) + len(line_end)
    return starts
