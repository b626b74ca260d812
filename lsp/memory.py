"""Memory of a session: answers by their text, rejected edits, and lines changed by suggestions."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import NamedTuple

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction, Task
from redraft.model.text.common import changed_part

from .documents import Splice
from .history import ChangeKind
from .suggestion import Query, Suggestion

#: Answers kept, those without a candidate included.
_ANSWERS = 50
#: Rejected suggestions kept.
_REJECTIONS = 20
#: Seconds after a rejection in which the model is not asked again about the same line.
COOL_DOWN_S = 5.0
#: Lines by which a rejected edit may have moved: between two equal lines, an insertion has several
#: places with the same result.
_SLACK_LINES = 2


class _Answer(NamedTuple):
    key: tuple[Hashable, ...]  # see Answers.key; the length of the text first
    region: tuple[int, int] | None
    prediction: Prediction


class Answers:
    """The last predictions, by the text they are for."""

    def __init__(self) -> None:
        self._kept: deque[_Answer] = deque(maxlen=_ANSWERS)  # the newest last

    @staticmethod
    def key(request: EditRequest, others: int = 0) -> tuple[Hashable, ...]:
        """Return what an answer belongs to, its region left out.

        That is the text and the limits of the answer, but not the edits that led to the text: each
        pause in typing would make it another question. For next edits the cursor does not count
        either. The text goes in as its 64-bit hash, because fifty texts would take too much memory.

        Args:
            others: hash of the other documents that the user has edited.
        """
        cursor = 0 if request.task == "next_edit" else request.cursor
        rest = replace(
            request, text="", cursor=cursor, edits=(), related=(), diagnostics=(), importable=(),
            region=None, stop=(),
        )  # fmt: skip
        return len(request.text), hash(request.text), rest, others

    def put(self, request: EditRequest, prediction: Prediction, others: int = 0) -> None:
        """Keep an answer."""
        key = self.key(request, others)
        kept = (each for each in self._kept if each[:2] != (key, request.region))
        self._kept = deque(kept, maxlen=_ANSWERS)
        self._kept.append(_Answer(key, request.region, prediction))

    def get(self, request: EditRequest, others: int = 0) -> Prediction | None:
        """Return the answer to a request, None if it is not known.

        A next edit is also known from a request whose other region holds the cursor's line.
        """
        length = len(request.text)
        if all(each.key[0] != length for each in self._kept):
            return None  # hashing a large text at each key takes long
        key = self.key(request, others)
        same = [each for each in self._kept if each.key == key]
        exact = [each for each in same if each.region == request.region]
        if not same or exact:
            return exact[0].prediction if exact else None
        line = request.text.count("\n", 0, request.cursor)
        near = (each for each in reversed(same) if each.region and line in range(*each.region))
        return next((each.prediction for each in near), None)


class _PastEdit(NamedTuple):
    """An edit that the user rejected or hid, its white space evened out."""

    uri: str
    line: int  # 0-based, in the document as it is now
    old: str  # the lines that it would have replaced
    new: str

    @classmethod
    def of(cls, uri: str, edit: Edit) -> _PastEdit:
        start, end, new = edit.whole_lines()
        line, old = edit.text.count("\n", 0, start), edit.text[start:end]
        return cls(uri, line, " ".join(old.split()), " ".join(new.split()))

    def is_again(self, other: _PastEdit) -> bool:
        """Return whether both are the same edit; between equal lines it may stand at several."""
        is_near = abs(self.line - other.line) <= _SLACK_LINES
        return is_near and self._replace(line=other.line) == other


class Rejections:
    """Edits that the user rejected or hid, moved along with their documents."""

    def __init__(self) -> None:
        self._rejected: deque[_PastEdit] = deque(maxlen=_REJECTIONS)
        self._hidden: deque[_PastEdit] = deque(maxlen=_REJECTIONS)  # once
        self._passed: list[_PastEdit] = []  # skipped until the next edit
        self._cooling: dict[str, tuple[float, frozenset[int]]] = {}  # URI: since s, lines
        self._place = ("", 0, 0)  # document, its revision and the 0-based line of the user
        self._quiet: tuple[Task, tuple[str, int, int]] | None = None  # where one was hidden

    def hide(self, suggestion: Suggestion) -> None:
        """Offer nothing of its kind in the user's line until they leave it or edit."""
        self._quiet = suggestion.task, self._place
        self._hidden.append(_PastEdit.of(suggestion.uri, suggestion.edit))

    def pass_over(self, suggestion: Suggestion) -> None:
        """Skip an edit until the user edits or has seen all others."""
        self._passed.append(_PastEdit.of(suggestion.uri, suggestion.edit))

    def start_over(self) -> bool:
        """Offer skipped edits again; return whether there were any."""
        passed, self._passed = self._passed, []
        return bool(passed)

    def was_hidden(self, suggestion: Suggestion) -> bool:
        """Return whether the user hid this very edit before."""
        known = _PastEdit.of(suggestion.uri, suggestion.edit)
        return any(known.is_again(each) for each in self._hidden)

    def hidden(self, task: Task, query: Query) -> Abstain | None:
        """Return why nothing is offered where the user hid a suggestion; leaving ends that."""
        self._place = query.uri, query.revision, query.line
        if self._quiet is None or self._quiet[1] != self._place:
            self._quiet = None
            return None
        if self._quiet[0] != task or query.invoked:
            return None
        reason = "you hid a suggestion here; it may come back in another line or after an edit"
        return Abstain("dismissed", reason)

    def note(self, suggestion: Suggestion, now_s: float) -> None:
        """Remember a rejected suggestion, and begin the cool-down where the user was."""
        known = _PastEdit.of(suggestion.uri, suggestion.edit)
        if known not in self._rejected:
            self._rejected.append(known)
        cursor = suggestion.text.count("\n", 0, suggestion.cursor)
        self._cooling[suggestion.uri] = now_s, frozenset((cursor, *range(*suggestion.lines)))
        if suggestion.origin is not None:
            uri, line = suggestion.origin
            self._cooling[uri] = now_s, frozenset((line,))

    def changed(self, uri: str, splices: Sequence[Splice]) -> None:
        """Move what is remembered with a changed document, and end its cool-down."""
        if splices:
            self._cooling.pop(uri, None)
            self._passed.clear()
        for remembered in (self._rejected, self._hidden):
            for at, known in enumerate(remembered):
                if known.uri == uri:
                    remembered[at] = known._replace(line=_moved(known.line, splices))

    def has_rejected(self, uri: str, edit: Edit) -> bool:
        """Return whether this very edit of a document was rejected before, or is skipped."""
        known = _PastEdit.of(uri, edit)
        return any(known.is_again(each) for each in (*self._rejected, *self._passed))

    def cooling(self, query: Query, now_s: float) -> Abstain | None:
        """Return why the model is not asked in the line of a query, None if it may be."""
        since_s, lines = self._cooling.get(query.uri, (0.0, frozenset[int]()))
        if query.invoked or query.line not in lines or now_s - since_s >= COOL_DOWN_S:
            return None
        ago = f"{now_s - since_s:.0f} s ago"
        return Abstain("cooling_down", f"you rejected a suggestion here {ago}")


def _moved(line: int, splices: Sequence[Splice]) -> int:
    for splice in splices:
        if splice.first + len(splice.removed) <= line:
            line += len(splice.added) - len(splice.removed)
    return line


# --- lines changed by suggestions -----------------------------------------------------------------

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

    def changed(self, splices: Sequence[Splice], kind: ChangeKind) -> None:
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

    def accepted(self, suggestion: Suggestion) -> None:
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
    return _Change(line, *changed_part(old, new))


# --- one document --------------------------------------------------------------------------------

#: Suggestions of a document that typing may still confirm, shown or overtaken by a keystroke.
_RECENT = 4


@dataclass(slots=True)
class DocumentMemory:
    """The suggestions of one document that a session keeps."""

    ghosts: deque[Suggestion] = field(default_factory=lambda: deque(maxlen=_RECENT))
    overtaken: Suggestion | None = None  # next edit that came too late for its text, still valid
    away: Suggestion | None = None  # shown to the user here, though it edits another document
    accepted: Suggestion | None = None  # just now: an undo rejects it
    is_deleting: bool = False  # the last change only deleted, by hand
    taken: TakenLines = field(default_factory=TakenLines)
    above: int = 0  # hash of the cells above that the ghost text is for

    def follow_above(self, above: int) -> None:
        """Drop the ghost text if the cells above have changed; ``above`` is their hash now."""
        if above != self.above:
            self.ghosts.clear()
            self.above = above

    def keep(self, ghost: Suggestion) -> None:
        """Remember ghost text for as long as typing may still confirm it."""
        if all(kept.id != ghost.id for kept in self.ghosts):
            self.ghosts.appendleft(ghost)

    def keep_behind(self, first: Suggestion, others: Sequence[Suggestion]) -> None:
        """Remember ghost text and others that the user may type in its place."""
        self.ghosts = deque((first, *others), maxlen=_RECENT)

    def changed(self, splices: Sequence[Splice], kind: ChangeKind, text: str) -> None:
        """Follow a change of the document, which is now ``text``."""
        self.is_deleting = kind == "edit" and all(map(_only_deletes, splices))
        self.taken.changed(splices, kind)
        if kind == "accepted" and self.accepted is not None:
            self.taken.accepted(self.accepted)
        if kind == "undo":
            self.overtaken = None
        elif kind != "accepted":
            self.accepted = None
        if self.overtaken is not None:
            followed = self.overtaken.followed(text)
            self.overtaken = followed[0] if followed else None


def _only_deletes(splice: Splice) -> bool:
    old, new = "\n".join(splice.removed), "\n".join(splice.added)
    return len(new) < len(old) and not changed_part(old, new)[2]
