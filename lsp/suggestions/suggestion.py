"""Suggestion, an edit that is shown or may be, and the decision to offer it.

A suggestion stays valid while the user types it or edits elsewhere:
:meth:`Suggestion.what_remains` and :meth:`Suggestion.rebase` return what is left of it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from redraft.model.edits.edit import Edit
from redraft.model.records import Task
from redraft.model.text.brackets import closes
from redraft.model.text.code_queries import prose_rows
from redraft.model.text.common import common_ends, common_head
from redraft.model.text.syntax import language_of

from ..renames.whole_rename import WholeRename

#: Brackets and quotes that an editor closes by itself, at most.
_MOST_CLOSED = 4

#: Lines between the cursor and an edit that a key takes without going there first, as in clients.
NEAR_LINES = 2

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
    #: Why it would be hidden without a gesture; "" if its score is high enough.
    unsure: str = field(default="", compare=False)
    #: The document and the 0-based line where the user was, if that is another document.
    origin: tuple[str, int] | None = field(default=None, compare=False)
    #: The whole rename; then the edit marks its definition and changes nothing.
    rename: WholeRename | None = field(default=None, compare=False)
    why: str = field(default="", compare=False)  # it is at this place, in words; "" if not certain
    more: int = field(default=0, compare=False)  # other places that need an edit, as far as known

    @classmethod
    def of(
        cls, uri: str, task: Task, edit: Edit, cursor: int, score: float, model: str
    ) -> Suggestion:
        """Return an edit of a document as a suggestion that is not shown yet."""
        return cls(
            id="",
            uri=uri,
            task=task,
            text=edit.text,
            cursor=cursor,
            start=edit.start,
            end=edit.end,
            replacement=edit.new,
            confidence=score,
            model=model,
        )

    @property
    def edit(self) -> Edit:
        """The edit of its text."""
        return Edit(self.text, self.start, self.end, self.replacement)

    @property
    def result(self) -> str:
        """The document with the suggestion accepted."""
        return self.edit.result

    @property
    def landing(self) -> int:
        """The cursor's place after acceptance: an index into :attr:`result`."""
        least = self.least()
        return least.start + len(least.replacement)

    @property
    def lines(self) -> tuple[int, int]:
        """The 0-based lines [first, last) of the document that it touches."""
        return self.edit.lines

    @property
    def is_prose(self) -> bool:
        """Return whether it changes comments or docstrings alone, in lines that are there."""
        rows = prose_rows(self.text, language_of(self.uri) or "")
        return bool(self.edit.old) and rows.issuperset(range(*self.lines))

    def is_again(self, other: Suggestion) -> bool:
        """Return whether both do the same; for next edits the cursor does not matter."""
        cursor = self.cursor if self.task == "infill" else other.cursor
        return replace(self, id=other.id, cursor=cursor) == other

    def least(self) -> Suggestion:
        """Return the same without characters that stay at either end."""
        least = self.edit.least()
        return replace(self, start=least.start, end=least.end, replacement=least.new)

    # --- ghost text ------------------------------------------------------------------------

    def text_in_place(self, text: str) -> str | None:
        """Return what was put at its place to make ``text``; None if that differs elsewhere."""
        size = len(text) - len(self.text) + self.end - self.start
        if size < 0 or not text.startswith(self.text[: self.start]):
            return None
        if not text.endswith(self.text[self.end :]):
            return None
        return text[self.start : self.start + size]

    def text_before(self, text: str) -> str | None:
        """Return what was put before its place to make ``text``; None if it differs elsewhere."""
        return replace(self, end=self.start).text_in_place(text)

    def what_remains(self, text: str, cursor: int) -> str:
        """Return what is left of ghost text at ``cursor`` of ``text``, "" if it no longer holds.

        Brackets that the editor closed by itself may follow the cursor.
        """
        count = cursor - self.cursor
        if not 0 <= count <= len(self.replacement):
            return ""  # before anything is compared: most suggestions asked end here
        if (left := self.part_left(text, cursor)) is not None:
            return left.replacement
        inserted = self.text_before(text)
        if inserted is None or len(inserted) > count + _MOST_CLOSED:
            return ""
        typed, behind = inserted[:count], inserted[count:]
        on_the_way = typed == self.replacement[:count] and closes(typed, behind)
        return self.replacement[count:] if on_the_way else ""

    def part_left(self, text: str, cursor: int) -> Suggestion | None:
        """Return what is left of ghost text of which exactly a part is in ``text``.

        A part takes the place of the characters it holds of those that the whole replaces, as
        clients write it. None if the text differs otherwise.
        """
        count, old = cursor - self.cursor, self.edit.old
        if not 0 <= count <= len(self.replacement):
            return None
        written, behind = self.replacement[:count], len(text) - cursor
        gone = len(self.text) - self.start - behind
        if not 0 <= gone <= _held(written, old) or not text.endswith(self.text[self.end :]):
            return None
        part = text[self.start : len(text) - len(self.text) + self.end]
        if part != written + old[gone:] or not text.startswith(self.text[: self.start]):
            return None
        end, rest = cursor + len(old) - gone, self.replacement[count:]
        return replace(self, text=text, cursor=cursor, start=cursor, end=end, replacement=rest)

    def count_written(self, text: str) -> int | None:
        """Return how many characters of ghost text are in ``text``; None if it differs otherwise.

        See :meth:`part_left`.
        """
        growth, size = len(text) - len(self.text), self.end - self.start
        counts = range(growth + size, growth - 1, -1)
        return next((n for n in counts if self.part_left(text, self.cursor + n) is not None), None)

    def is_begun_by(self, inserted: str) -> bool:
        """Return whether ``inserted`` is a beginning of the ghost text, with closed brackets."""
        typed = common_head(inserted, self.replacement)
        if len(inserted) > typed + _MOST_CLOSED:
            return False
        least = max(0, len(inserted) - _MOST_CLOSED)
        return any(closes(inserted[:at], inserted[at:]) for at in range(typed, least - 1, -1))

    # --- next edits ------------------------------------------------------------------------

    def is_away(self, uri: str, line: int) -> bool:
        """Return whether a key first leads the user there from a 0-based line of a document."""
        first, last = self.lines
        is_near = uri == self.uri and first - NEAR_LINES <= line < last + NEAR_LINES
        return self.rename is None and not is_near

    def rebase(self, text: str) -> tuple[Suggestion, Way] | None:
        """Return the suggestion for ``text``, which its document became by one change.

        It is shorter if the change was part of it, and moved if the change was in other lines. None
        if it no longer holds. See also :meth:`is_outdated`.
        """
        least = replace(self.least(), more=0)  # counted for another text
        typed = least.text_in_place(text)
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
        """Return whether it builds on a word that was half typed, now that the text is ``text``.

        It would write a word that the user has typed on; or it only deletes words, and the user
        types a new one at the cursor.
        """
        start, end, lines = self.edit.whole_lines()
        old, new = _words(self.text[start:end]), _words(lines)
        head, tail = common_ends(self.text, text)
        if new < old:
            at_cursor = head == self.cursor == len(self.text) - tail
            return at_cursor and _WORD.match(text[head : len(text) - tail]) is not None
        before, after = (_lines_around(each, head, len(each) - tail) for each in (self.text, text))
        written, gone = new.keys() - old.keys(), _words(before).keys() - _words(after).keys()
        return not written.isdisjoint(gone)


@dataclass(frozen=True, slots=True)
class Offer:
    """Decision to show ``text``: at the cursor, or in place of the suggestion's range."""

    suggestion: Suggestion
    text: str  # the suggestion, or what is left of it
    reason: str
    is_at_cursor: bool = True  # found in the region around the cursor, not at another place


def _held(part: str, old: str) -> int:
    """Return how many characters of ``old`` a part holds, from the first on and in order."""
    count = 0
    for char in part:
        count += count < len(old) and old[count] == char
    return count


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def _lines_around(text: str, start: int, end: int) -> str:
    """Return the whole lines of a text that [start, end) touches."""
    last = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : len(text) if last < 0 else last]


def _on_the_way(now: str, old: str, new: str) -> bool:
    """Return whether typing leads from ``old`` over ``now`` to ``new``.

    Some of the new text is written then, and some of the old one deleted from either end.
    """
    if old.startswith(now):
        return True
    written = common_head(now, new)
    return any(old.endswith(now[at:]) for at in range(written, -1, -1))
