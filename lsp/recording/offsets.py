"""Changes of a document by offsets into its text, as recordings have them.

Offsets count UTF-16 code units from the beginning of the text, line ends included. Counting from
there at each keystroke would cost the length of the file, so the last place is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from redraft.model.text.common import find_changed_part

from ..documents.open_documents import ContentChange, Document
from ..documents.positions import Position, units
from .recording_events import TextEdit


class DocumentEdits:
    """Edits of one document, each read off before the document makes it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._edits: list[TextEdit] = []  # each in the text that the one before it left
        self._line = 0  # the last line that was counted to
        self._offset = 0  # of that line's beginning
        document.watcher = self._watch

    def stop(self) -> None:
        """Watch the document no longer."""
        self._document.watcher = None

    def take(self) -> list[tuple[TextEdit, ...]]:
        """Return the edits since the last call, as groups of edits that apply together."""
        edits, self._edits = self._edits, []
        return together(edits)

    def at(self, position: Position) -> int:
        """Return the offset of a place, clamped to the end of its line and of the text."""
        document = self._document
        if position.line >= document.line_count:
            last = document.line_count - 1
            return self._begin(last) + units(document.lines[last])
        line = document.lines[position.line]
        return self._begin(position.line) + min(position.character, units(line))

    def _watch(self, change: ContentChange) -> None:
        if not self._document.out_of_step:
            self._edits.append(self._edit(change))

    def _edit(self, change: ContentChange) -> TextEdit:
        if change.range is None:
            return self._difference(change.text)
        start, end = self.at(change.range.start), self.at(change.range.end)
        # One line higher than what changes: a "\r" that ends it may become a "\r\n".
        self._begin(max(0, min(change.range.start.line, self._document.line_count) - 1))
        return TextEdit(start, end, change.text)

    def _begin(self, line: int) -> int:
        """Return where a line begins; lines above the last one counted must be unchanged."""
        lengths = self._document.units_of
        while self._line < line:
            self._offset += lengths(self._line)
            self._line += 1
        while self._line > line:
            self._line -= 1
            self._offset -= lengths(self._line)
        return self._offset

    def _difference(self, text: str) -> TextEdit:
        """Return the edit that makes a whole new text of the present one."""
        self._line = self._offset = 0
        old = self._document.source
        head, removed, added = find_changed_part(old, text)
        start = units(old[:head])
        return TextEdit(start, start + units(removed), added)


def together(edits: Iterable[TextEdit]) -> list[tuple[TextEdit, ...]]:
    """Return successive edits as groups of edits that apply together.

    Offsets of a group count in the text before it. An edit that touches an earlier one of its
    group begins another.
    """
    groups: list[list[TextEdit]] = []
    for edit in edits:
        if not groups or not _joined(groups[-1], edit):
            groups.append([edit])
    return [tuple(group) for group in groups]


def _joined(group: list[TextEdit], edit: TextEdit) -> bool:
    """Put ``edit`` among those made at once, if it touches none of them."""
    start, end, text = edit
    shift = 0  # of the text behind the edits looked at so far
    for at, (first, last, put) in enumerate(group):
        begins, ends = first + shift, first + shift + units(put)
        if end < begins:
            group.insert(at, TextEdit(start - shift, end - shift, text))
            return True
        if start <= ends:
            return False
        shift += units(put) - (last - first)
    group.append(TextEdit(start - shift, end - shift, text))
    return True
