"""State of a document between two questions about its next edit; :mod:`.next_edits` decides.

While a line is being typed and the client asks at every key, the prompt leaves that line's own edit
out of the history, as training rows of lines being typed do: with it, each key would change the
middle of the prompt, and half of it would be computed again. Where that question finds nothing and
the keys pause, the edit is finished and the question asked again with it.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Prediction
from redraft.model.text.common import common_ends

from ..documents import Splice
from ..history import PAUSE_S, Happening, History
from ..memory import Key
from ..suggestion import Suggestion
from .questions import Query

#: Seconds without a key that end what is being typed, for a client that asks at every key: more
#: than there mostly are between two keys, and little beside the time that the model takes.
REST_S = 0.5


@dataclass(slots=True)
class Rhythm:
    """When next edits are requested for a document, relative to the keys typed in it."""

    by_key: bool = False  # a key came soon after a question, and each since then was asked about
    has_moved: bool = False  # the cursor did, since the last key and by itself
    _cursor: int = 0
    _revision: int = -1
    _asked_s: float = -math.inf

    def asked(self, query: Query, key_s: float, now_s: float) -> None:
        """Note that the next edit is wanted now; the last key was pressed at ``key_s``."""
        if query.revision != self._revision:
            soon = self._asked_s < key_s <= self._asked_s + PAUSE_S
            self.by_key = soon or (self.by_key and query.revision == self._revision + 1)
            self._revision, self._cursor, self.has_moved = query.revision, query.cursor, False
        self.has_moved = self.has_moved or query.cursor != self._cursor
        self._asked_s = now_s


def rests_at_s(history: History, rhythm: Rhythm, query: Query, now_s: float) -> float | None:
    """When, by the clock, a line that is being typed counts as finished; None: it does already.

    Finished are edits that a gesture asks about, that the cursor has left (as it does with the end
    of Vim's insert mode), that reach over several lines or came from a suggestion, and all where
    the client asks at pauses only.
    """
    last = history.last_edit(query.uri)
    if last is None or query.invoked or query.visiting:
        return None
    if rhythm.has_moved or not rhythm.by_key:
        return None
    key_s, line = last
    going_on = now_s < key_s + REST_S and query.line == line
    typed = history.happened(query.uri) == "edit" and history.is_within_line(query.uri)
    return key_s + REST_S if going_on and typed else None


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


class TakenLines:
    """The lines of one document that accepted suggestions have changed."""

    def __init__(self) -> None:
        self._kept: deque[_Change] = deque(maxlen=_MOST)

    def changed(self, splices: Sequence[Splice], happened: Happening) -> None:
        """Follow a change of the document: a line that the user edits is free again."""
        by_hand = happened != "accepted"
        kept = [replace(one, is_earlier=one.is_earlier or happened == "edit") for one in self._kept]
        for splice in splices:
            end, by = splice.first + len(splice.removed), len(splice.added) - len(splice.removed)
            kept = [
                replace(one, line=one.line + by) if one.line >= end else one
                for one in kept
                if not (by_hand and splice.first <= one.line < end)
            ]
        self._kept = deque(kept, maxlen=_MOST)

    def accepted(self, suggestion: Suggestion) -> None:
        """Remember the lines that a suggestion has changed, the document being its result."""
        self._kept.extend(_written(suggestion.edit))

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


def _is_free(taken: _Change, change: _Change) -> bool:
    end = taken.column + len(taken.come)
    apart = change.column > end or change.column + len(change.gone) < taken.column
    same = (change.gone.strip(), change.come.strip()) == (taken.gone.strip(), taken.come.strip())
    return (same and apart) or (taken.is_earlier and change.words.isdisjoint(taken.words))


def _changes(edit: Edit) -> Iterator[_Change]:
    """Return what an edit does to lines that are there, by their numbers before it."""
    for first, old, new in _runs(edit):
        for at, line in enumerate(old):
            yield _of_line(first + at, line, new[at] if len(new) == len(old) else "\n".join(new))


def _written(edit: Edit) -> Iterator[_Change]:
    """Return what an edit wrote, by the numbers of the lines after it."""
    by = 0
    for first, old, new in _runs(edit):
        for at, line in enumerate(new):
            was = old[at] if len(new) == len(old) else ""
            yield _of_line(first + by + at, was, line)
        by += len(new) - len(old)


def _runs(edit: Edit) -> Iterator[tuple[int, list[str], list[str]]]:
    start, end, made = edit.shape()
    old, new = edit.text[start:end].split("\n"), made.split("\n")
    top = edit.text.count("\n", 0, start)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield top + i1, old[i1:i2], new[j1:j2]


def _of_line(line: int, old: str, new: str) -> _Change:
    head, tail = common_ends(old, new)
    return _Change(line, head, old[head : len(old) - tail], new[head : len(new) - tail])


TextKey = tuple[int, int]  # length and hash: which text, without keeping it


@dataclass(slots=True)
class EditState:
    """What is remembered of one document."""

    overtaken: Suggestion | None = None  # its answer came too late for its text; it still holds
    away: Suggestion | None = None  # shown to the user who is here, though it is for another one
    #: What follows once edits of this chain are accepted, the one of this id first.
    prefetched: dict[TextKey | Key, Prediction] = field(default_factory=dict)
    prefetched_chain: str = ""
    prefetched_for: str = ""
    chain: tuple[TextKey, str] | None = None  # what acceptance made of the text, and its chain
    accepted: Suggestion | None = None  # just now: an undo takes it back
    taken: TakenLines = field(default_factory=TakenLines)
    rhythm: Rhythm = field(default_factory=Rhythm)


def which_text(text: str) -> TextKey:
    return len(text), hash(text)
