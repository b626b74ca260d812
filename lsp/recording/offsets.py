"""Changes of documents by offsets into the text, as recordings have them.

Offsets count UTF-16 code units from the beginning of the text, line ends included. Counting from
there at each keystroke would cost the length of the file, so the place of the last count is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from redraft.model.text.common import common_ends

from ..documents import ContentChange, Document
from ..positions import Position, units
from .format import Replacement


class Offsets:
    """Offsets into one document, which must report each change before it is made."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._line = 0  # where it was counted to last
        self._offset = 0  # of that line's beginning

    def at(self, position: Position) -> int:
        """Return the offset of a place, clamped to the end of its line and of the text."""
        document = self._document
        if position.line >= document.line_count:
            last = document.line_count - 1
            return self._begin(last) + units(document.lines[last])
        line = document.lines[position.line]
        return self._begin(position.line) + min(position.character, units(line))

    def of(self, change: ContentChange) -> Replacement:
        """Return a change that is not made yet, by offsets."""
        if change.range is None:
            return self._of_whole(change.text)
        start, end = self.at(change.range.start), self.at(change.range.end)
        # One line higher than what changes: a "\r" that ends it may become a "\r\n".
        self._begin(max(0, min(change.range.start.line, self._document.line_count) - 1))
        return start, end, change.text

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

    def _of_whole(self, text: str) -> Replacement:
        """Return the difference between the present text and a whole new one."""
        self._line = self._offset = 0
        old = self._document.source
        head, tail = common_ends(old, text)
        start = units(old[:head])
        return start, start + units(old[head : len(old) - tail]), text[head : len(text) - tail]


def together(edits: Sequence[Replacement]) -> list[list[Replacement]]:
    """Return successive edits as groups of edits that apply together.

    Offsets of a group count in the text before it. An edit that touches an earlier one of its
    group begins another.
    """
    groups: list[list[Replacement]] = []
    for edit in edits:
        if not groups or not _joined(groups[-1], edit):
            groups.append([edit])
    return groups


def _joined(group: list[Replacement], edit: Replacement) -> bool:
    """Put ``edit`` among those made at once, if it touches none of them."""
    start, end, text = edit
    shift = 0  # of the text behind the edits looked at so far
    for at, (first, last, put) in enumerate(group):
        begins, ends = first + shift, first + shift + units(put)
        if end < begins:
            group.insert(at, (start - shift, end - shift, text))
            return True
        if start <= ends:
            return False
        shift += units(put) - (last - first)
    group.append((start - shift, end - shift, text))
    return True
