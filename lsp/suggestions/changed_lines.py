"""Lines of a document that accepted suggestions have changed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.text.common import find_changed_part

from ..documents.history import ChangeKind
from ..documents.open_documents import Splice
from .suggestion import Suggestion

_MOST = 40  # lines remembered of a document
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Change:
    """A change within one line."""

    line: int  # 0-based, in the document as it is now
    column: int  # where the new text begins
    gone: str
    come: str
    is_earlier: bool = False  # the user has edited something by hand since

    @property
    def words(self) -> set[str]:
        return {*_WORD.findall(self.come)} - {*_WORD.findall(self.gone)}


class ChangedLines:
    """The lines of one document that accepted suggestions have changed."""

    def __init__(self) -> None:
        self._kept: deque[_Change] = deque(maxlen=_MOST)

    def on_change(self, splices: Sequence[Splice], kind: ChangeKind) -> None:
        """Follow a change of the document: a line that the user edits is free again."""
        by_hand = kind != "accepted"
        kept = [replace(one, is_earlier=one.is_earlier or kind == "edit") for one in self._kept]
        for splice in splices:
            end, by = splice.first + len(splice.removed), len(splice.added) - len(splice.removed)
            kept = [
                replace(one, line=one.line + by) if one.line >= end else one
                for one in kept
                if not (by_hand and splice.first <= one.line < end)
            ]
        self._kept = deque(kept, maxlen=_MOST)

    def on_acceptance(self, suggestion: Suggestion) -> None:
        """Remember the lines that a suggestion changed in a document that is now its result."""
        self._kept.extend(_changes(suggestion.edit, is_made=True))

    def refuse(self, edit: Edit) -> Abstain | None:
        """Return why an edit may not change a line again, or None where it may.

        The same may be done once more at another place of the line. After an edit by hand, other
        things may be done to it as well.
        """
        for change in _changes(edit):
            for one in self._kept:
                if one.line == change.line and not _is_free(one, change):
                    return Abstain("just_changed", "a suggestion has just changed this line")
        return None

    def refuse_deletion(self, edit: Edit) -> Abstain | None:
        """Return why an edit may not delete what a suggestion wrote, None where it may."""
        written = {one.line for one in self._kept if one.come.strip()}
        if any(one.line in written and not one.come.strip() for one in _changes(edit)):
            return Abstain("just_changed", "a suggestion has just written this line")
        return None


def _is_free(taken: _Change, change: _Change) -> bool:
    end = taken.column + len(taken.come)
    apart = change.column > end or change.column + len(change.gone) < taken.column
    same = (change.gone.strip(), change.come.strip()) == (taken.gone.strip(), taken.come.strip())
    return (same and apart) or (taken.is_earlier and change.words.isdisjoint(taken.words))


def _changes(edit: Edit, *, is_made: bool = False) -> Iterator[_Change]:
    """Yield what an edit does to each line; ``is_made``: lines are those after the edit."""
    start, end, made = edit.shape()
    old, new = edit.text[start:end].split("\n"), made.split("\n")
    top = edit.text.count("\n", 0, start)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, come = old[i1:i2], new[j1:j2]
        pairs = list(zip(gone, come, strict=False)) if len(gone) == len(come) else []
        if is_made:
            pairs = pairs or [("", line) for line in come]
        else:
            pairs = pairs or [(line, "\n".join(come)) for line in gone]
        for at, (before, after) in enumerate(pairs):
            yield _of_line(top + (j1 if is_made else i1) + at, before, after)


def _of_line(line: int, old: str, new: str) -> _Change:
    return _Change(line, *find_changed_part(old, new))
