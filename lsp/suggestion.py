"""A suggestion: some text of a document, and what to put in its place.

It stays true while the user types it or edits elsewhere; :meth:`Suggestion.followed` tells what is
left of it then. Pure; knows nothing of how it was made, of time, or of what becomes of it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from redraft.model.edits.edit import Edit
from redraft.model.records import Task
from redraft.model.text.brackets import closes
from redraft.model.text.common import common_ends, common_head

#: Brackets and quotes that an editor closes by itself, at most.
_MOST_CLOSED = 4

_WORD = re.compile(r"\d+(?:\.\d+)*|\w+")

#: How the document got to where a suggestion still holds.
Way = Literal["typed", "moved"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``replacement`` in place of ``text[start:end]``; ghost text goes in at ``start == end``."""

    id: str
    uri: str
    task: Task
    text: str  # the document
    cursor: int  # index into text, where the user was
    start: int  # index into text
    end: int  # index into text, behind what is replaced
    replacement: str
    confidence: float = field(compare=False)  # 0 … 1; the gate's, which the moment moves
    model: str
    chain: str = ""  # next edits that follow each other when accepted have it in common
    #: Why it would not be shown had nobody asked by hand; "" where it is sure enough.
    unsure: str = field(default="", compare=False)
    #: The document and the 0-based line where the user was, if that is another document.
    origin: tuple[str, int] | None = field(default=None, compare=False)

    @property
    def edit(self) -> Edit:
        """What it does, whoever asked and whoever made it."""
        return Edit(self.text, self.start, self.end, self.replacement)

    @property
    def result(self) -> str:
        """The document with the suggestion accepted."""
        return self.edit.result

    @property
    def landing(self) -> int:
        """Where the cursor belongs once it is accepted: index into :attr:`result`."""
        least = self.least()
        return least.start + len(least.replacement)

    @property
    def lines(self) -> tuple[int, int]:
        """The 0-based lines [first, last) of the document that it touches."""
        return self.edit.lines

    def is_again(self, other: Suggestion) -> bool:
        """Is it the same as another, asked for anew? A next edit is, wherever the cursor is."""
        cursor = self.cursor if self.task == "infill" else other.cursor
        named = replace(self, id=other.id, chain=other.chain, cursor=cursor)
        return named == other

    def least(self) -> Suggestion:
        """The same without characters that stay at either end."""
        least = self.edit.least()
        return replace(self, start=least.start, end=least.end, replacement=least.new)

    def whole_lines(self) -> tuple[int, int, str]:
        """See :meth:`Edit.whole_lines`."""
        return self.edit.whole_lines()

    def shape(self) -> tuple[int, int, str]:
        """See :meth:`Edit.shape`."""
        return self.edit.shape()

    # --- ghost text ------------------------------------------------------------------------

    def typed(self, text: str) -> str | None:
        """What was put at the suggestion's place to make ``text``; None: it differs elsewhere."""
        size = len(text) - len(self.text) + self.end - self.start
        if size < 0 or not text.startswith(self.text[: self.start]):
            return None
        if not text.endswith(self.text[self.end :]):
            return None
        return text[self.start : self.start + size]

    def inserted(self, text: str) -> str | None:
        """What was put before the suggestion's place to make ``text``; None: it differs
        elsewhere."""
        return replace(self, end=self.start).typed(text)

    def rest(self, text: str, cursor: int) -> str:
        """What is left of ghost text to offer at ``cursor`` of ``text``; "" when it no longer
        holds.

        What an editor closes by itself is not told apart here: it stands behind the cursor.
        """
        count = cursor - self.cursor
        if not 0 <= count <= len(self.replacement):
            return ""  # before anything is compared: most suggestions asked end here
        inserted = self.inserted(text)
        if inserted is None or len(inserted) > count + _MOST_CLOSED:
            return ""
        typed, behind = inserted[:count], inserted[count:]
        on_the_way = typed == self.replacement[:count] and closes(typed, behind)
        return self.replacement[count:] if on_the_way else ""

    def is_begun_by(self, inserted: str) -> bool:
        """Is what was put there some of the ghost text, and what an editor closes of it?"""
        typed = common_head(inserted, self.replacement)
        if len(inserted) > typed + _MOST_CLOSED:
            return False
        least = max(0, len(inserted) - _MOST_CLOSED)
        return any(closes(inserted[:at], inserted[at:]) for at in range(typed, least - 1, -1))

    # --- next edits ------------------------------------------------------------------------

    def followed(self, text: str) -> tuple[Suggestion, Way] | None:
        """The suggestion for ``text``, which its document has become by one change: less of it
        where the change was part of it, moved where the change was in other lines; None where it
        no longer holds. See also :meth:`is_outdated`."""
        least = self.least()
        typed = least.typed(text)
        if typed is not None and _on_the_way(
            typed, least.text[least.start : least.end], least.replacement
        ):
            rest = replace(least, text=text, end=least.start + len(typed))
            return rest.least(), "typed"
        head, tail = common_ends(self.text, text)
        behind = len(self.text) - tail
        if self.is_outdated(text):
            return None
        if "\n" in self.text[least.end : head]:
            return replace(least, text=text), "moved"
        if "\n" in self.text[behind : least.start]:
            by = len(text) - len(self.text)
            cursor = min(max(0, least.cursor + by), len(text))
            start, end = least.start + by, least.end + by
            return replace(least, text=text, cursor=cursor, start=start, end=end), "moved"
        return None

    def is_outdated(self, text: str) -> bool:
        """Does it follow from a word that was half typed, now that the document is ``text``?

        It would write a word that has become another one where the user typed it; or it only takes
        some away, as the user had done where they now type one.
        """
        start, end, lines = self.whole_lines()
        old, new = _words(self.text[start:end]), _words(lines)
        head, tail = common_ends(self.text, text)
        if new < old:
            at_cursor = head == self.cursor == len(self.text) - tail
            return at_cursor and _WORD.match(text[head : len(text) - tail]) is not None
        before, after = (_lines_around(each, head, len(each) - tail) for each in (self.text, text))
        written, gone = new.keys() - old.keys(), _words(before).keys() - _words(after).keys()
        return not written.isdisjoint(gone)


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def _lines_around(text: str, start: int, end: int) -> str:
    """The whole lines of a text that [start, end) touches."""
    last = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : len(text) if last < 0 else last]


def _on_the_way(now: str, old: str, new: str) -> bool:
    """Does ``now`` lie between ``old`` and ``new``, as typing goes: some of the new written, some
    of the old removed from either end?"""
    if old.startswith(now):
        return True
    written = common_head(now, new)
    return any(old.endswith(now[at:]) for at in range(written, -1, -1))
