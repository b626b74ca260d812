"""Edits that the user rejected or hid, moved along with their documents."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from ..documents.open_documents import Splice
from ..snapshot import Snapshot
from .suggestion import Suggestion

#: Rejected suggestions kept.
_REJECTIONS = 20
#: Seconds after a rejection in which the model is not asked again about the same line.
COOL_DOWN_S = 5.0
#: Lines by which a rejected edit may have moved: between two equal lines, an insertion has several
#: places with the same result.
_SLACK_LINES = 2


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
        self._undone: deque[_PastEdit] = deque(maxlen=_REJECTIONS)  # accepted ghost text
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

    def arrive(self, snapshot: Snapshot) -> None:
        """Note where the user is; leaving a line ends that nothing is offered there."""
        self._place = snapshot.uri, snapshot.revision, snapshot.line
        if self._quiet is not None and self._quiet[1] != self._place:
            self._quiet = None

    def refuse(self, task: Task, snapshot: Snapshot) -> Abstain | None:
        """Return why nothing is offered where the user hid a suggestion, None if it may be."""
        if self._quiet is None or self._quiet[0] != task or snapshot.is_invoked:
            return None
        reason = "you hid a suggestion here; it may come back in another line or after an edit"
        return Abstain("dismissed", reason)

    def note(self, suggestion: Suggestion, now_s: float) -> None:
        """Remember a rejected suggestion, and begin the cool-down where the user was."""
        self._remember(suggestion, self._rejected, now_s)

    def note_undone(self, ghost: Suggestion, now_s: float) -> None:
        """Remember ghost text whose acceptance was undone; a gesture may bring it back."""
        self._remember(ghost, self._undone, now_s)

    def _remember(self, suggestion: Suggestion, edits: deque[_PastEdit], now_s: float) -> None:
        known = _PastEdit.of(suggestion.uri, suggestion.edit)
        if known not in edits:
            edits.append(known)
        cursor = suggestion.text.count("\n", 0, suggestion.cursor)
        self._cooling[suggestion.uri] = now_s, frozenset((cursor, *range(*suggestion.lines)))
        if suggestion.origin is not None:
            uri, line = suggestion.origin
            self._cooling[uri] = now_s, frozenset((line,))

    def on_change(self, uri: str, splices: Sequence[Splice]) -> None:
        """Move what is remembered with a changed document, and end its cool-down."""
        if splices:
            self._cooling.pop(uri, None)
            self._passed.clear()
        for remembered in (self._rejected, self._undone, self._hidden):
            for at, known in enumerate(remembered):
                if known.uri == uri:
                    remembered[at] = known._replace(line=_moved(known.line, splices))

    def forget(self, uri: str) -> None:
        """Forget the cool-down of a document that is closed."""
        self._cooling.pop(uri, None)

    def has_rejected(self, uri: str, edit: Edit, *, is_invoked: bool = False) -> bool:
        """Return whether this very edit of a document was rejected before, or is skipped.

        Args:
            is_invoked: a gesture asks, which may bring back ghost text that was undone.
        """
        known, undone = _PastEdit.of(uri, edit), () if is_invoked else self._undone
        return any(known.is_again(each) for each in (*self._rejected, *undone, *self._passed))

    def refuse_cooling(self, snapshot: Snapshot) -> Abstain | None:
        """Return why the model is not asked in the cursor's line, None if it may be."""
        now_s = snapshot.at_s
        since_s, lines = self._cooling.get(snapshot.uri, (0.0, frozenset[int]()))
        if snapshot.is_invoked or snapshot.line not in lines or now_s - since_s >= COOL_DOWN_S:
            return None
        ago = f"{now_s - since_s:.0f} s ago"
        return Abstain("cooling_down", f"you rejected a suggestion here {ago}")


def _moved(line: int, splices: Sequence[Splice]) -> int:
    for splice in splices:
        if splice.first + len(splice.removed) <= line:
            line += len(splice.added) - len(splice.removed)
    return line
