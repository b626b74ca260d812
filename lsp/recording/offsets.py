"""Changes as a language client sends them, as a recording wants them: by offsets into the text.

Offsets count UTF-16 code units from the beginning of the text, line ends included. Counting from
there at each keystroke would cost the length of the file, so each document remembers where it
counted last. Knows nothing of recordings.
"""

from __future__ import annotations

from collections.abc import Sequence

from redraft.model.text.common import common_ends

from ..documents import ContentChange, Document
from ..positions import Position, units
from .format import Replacement


class Offsets:
    """Offsets into one document, which tells of each change before it makes it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._line = 0  # where it was counted to last
        self._offset = 0  # of that line's beginning

    def at(self, position: Position) -> int:
        """The offset of a place; one behind the end of its line or of the text is taken for that
        end, as when a change is made there."""
        document = self._document
        if position.line >= document.line_count:
            last = document.line_count - 1
            return self._begin(last) + units(document.lines[last])
        line = document.lines[position.line]
        return self._begin(position.line) + min(position.character, units(line))

    def of(self, change: ContentChange) -> Replacement:
        """What a change, not made yet, replaces."""
        if change.range is None:
            return self._of_whole(change.text)
        start, end = self.at(change.range.start), self.at(change.range.end)
        # One line higher than what changes: a "\r" that ends it may become a "\r\n".
        self._begin(max(0, min(change.range.start.line, self._document.line_count) - 1))
        return start, end, change.text

    def _begin(self, line: int) -> int:
        """Where a line begins. Lines above the one counted to last must not have changed."""
        lengths = self._document.units_of
        while self._line < line:
            self._offset += lengths(self._line)
            self._line += 1
        while self._line > line:
            self._line -= 1
            self._offset -= lengths(self._line)
        return self._offset

    def _of_whole(self, text: str) -> Replacement:
        """A whole text that takes the place of another: what differs in it."""
        self._line = self._offset = 0
        old = self._document.source
        head, tail = common_ends(old, text)
        start = units(old[:head])
        return start, start + units(old[head : len(old) - tail]), text[head : len(text) - tail]


def together(edits: Sequence[Replacement]) -> list[list[Replacement]]:
    """Edits made one after the other, each in what the one before it left, as groups of edits made
    at once: offsets of a group all count in the text before it. Mostly that is one group; what
    touches an earlier edit begins another."""
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
