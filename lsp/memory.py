"""What a session remembers: answers by the text they are for, and what was turned down.

Pure: the clock's reading is an argument. Knows nothing of the protocol or of documents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from redraft.model.edits.edit import Edit
from redraft.model.records import EditRequest, Prediction, Task

from .documents import Splice
from .suggestion import Suggestion

#: Results kept, those without a suggestion included.
CACHED_RESULTS = 50
#: Rejected suggestions kept.
REJECTIONS = 20
#: Seconds after a rejection in which the model is not asked again about the same line.
COOL_DOWN_S = 5.0
#: Lines by which a rejected edit may have moved and still be the same one: where a line stands
#: between two alike, an insertion has several places that come to the same.
_SLACK_LINES = 2

Key = tuple[int, int, EditRequest, int, bool]


class Results:
    """The last answers of the model, by document text and by what was asked about it."""

    def __init__(self) -> None:
        self._known: dict[Key, Prediction] = {}  # the newest last

    def get(
        self, request: EditRequest, others: int = 0, unfinished: bool = False
    ) -> Prediction | None:
        """The answer, if it is known. ``others`` tells apart the states of the documents that are
        not asked about, where what was done in them matters, and ``unfinished`` questions that
        leave out the edit in progress from those that show it."""
        if not knows_length(self._known, request.text):
            return None
        return self._known.get(key_of(request, others, unfinished))

    def may_know(self, text: str) -> bool:
        """Could there be an answer about this very text?"""
        return knows_length(self._known, text)

    def put(
        self,
        request: EditRequest,
        prediction: Prediction,
        others: int = 0,
        unfinished: bool = False,
    ) -> None:
        key = key_of(request, others, unfinished)
        self._known.pop(key, None)
        self._known[key] = prediction
        while len(self._known) > CACHED_RESULTS:
            del self._known[next(iter(self._known))]


def key_of(request: EditRequest, others: int, unfinished: bool = False) -> Key:
    """What an answer belongs to: not the edits that led to the text, or each pause in typing would
    make it another question; nor, where a whole region is asked about, the cursor in it.

    The text goes in as its 64-bit hash, which is random per process: fifty texts would take too
    much memory and a cryptographic hash four times as long.
    """
    cursor = 0 if request.task == "next_edit" else request.cursor
    rest = replace(
        request, text="", cursor=cursor, edits=(), related=(), diagnostics=(), importable=()
    )
    return len(request.text), hash(request.text), rest, others, unfinished


def knows_length(keys: Iterable[tuple[int, ...] | Key], text: str) -> bool:
    """Is one of the keys, as :func:`key_of` and ``which_text`` make them, of a text that long?

    Of what is being typed none is, mostly: then nobody needs to hash a large file for each key.
    """
    return any(key[0] == len(text) for key in keys)


@dataclass(frozen=True, slots=True)
class _Rejected:
    uri: str
    line: int  # 0-based, in the document as it is now
    old: str  # what it would have replaced, white space evened out
    new: str


@dataclass(frozen=True, slots=True)
class _Hidden:
    """The user hid a suggestion for now."""

    task: Task
    uri: str  # of the document that the user was in
    revision: int  # of that document
    line: int  # the cursor's, 0-based


@dataclass(frozen=True, slots=True)
class _Cooling:
    at_s: float
    lines: frozenset[int]


class Rejections:
    """What the user turned down or hid, moved along with the documents it was for."""

    def __init__(self) -> None:
        self._kept: deque[_Rejected] = deque(maxlen=REJECTIONS)
        self._cooling: dict[str, _Cooling] = {}
        self._hidden: _Hidden | None = None
        self._hidden_once: deque[_Rejected] = deque(maxlen=REJECTIONS)

    def hide(self, suggestion: Suggestion, uri: str, revision: int, line: int) -> None:
        """Offer nothing of the suggestion's kind to the user, who is in a line of a document, until
        they leave that line or edit."""
        self._hidden = _Hidden(suggestion.task, uri, revision, line)
        self._hidden_once.append(_normal(suggestion.uri, suggestion.edit))

    def was_hidden(self, suggestion: Suggestion) -> bool:
        """Return whether the user hid this very edit before."""
        return _is_among(self._hidden_once, suggestion.uri, suggestion.edit)

    def hides(self, task: Task, uri: str, revision: int, line: int) -> bool:
        """Return whether the user hid a suggestion here; once they are elsewhere, that is over."""
        hidden = self._hidden
        if hidden is None:
            return False
        if (hidden.uri, hidden.revision, hidden.line) != (uri, revision, line):
            self._hidden = None
            return False
        return hidden.task == task

    def note(self, suggestion: Suggestion, now_s: float) -> None:
        rejected = _normal(suggestion.uri, suggestion.edit)
        if rejected not in self._kept:
            self._kept.append(rejected)
        cursor = suggestion.text.count("\n", 0, suggestion.cursor)
        lines = frozenset((cursor, *range(*suggestion.lines)))
        self._cooling[suggestion.uri] = _Cooling(now_s, lines)

    def cool(self, uri: str, line: int, now_s: float) -> None:
        """Something was turned down in ``line`` of a document, though it was about another."""
        self._cooling[uri] = _Cooling(now_s, frozenset((line,)))

    def changed(self, uri: str, splices: Sequence[Splice]) -> None:
        """A document was edited: what is remembered moves, and the cool-down is over."""
        if not splices:
            return
        self._cooling.pop(uri, None)
        for remembered in (self._kept, self._hidden_once):
            for at, kept in enumerate(remembered):
                if kept.uri == uri:
                    remembered[at] = replace(kept, line=_moved(kept.line, splices))

    def closed(self, uri: str) -> None:
        self._cooling.pop(uri, None)

    def know(self, uri: str, edit: Edit) -> bool:
        """Was this very edit of a document turned down before?"""
        return _is_among(self._kept, uri, edit)

    def cooling(self, uri: str, line: Callable[[], int], now_s: float) -> str:
        """Why nothing is offered in ``line`` by itself; "" where nothing speaks against it."""
        cooling = self._cooling.get(uri)
        if cooling is None or now_s - cooling.at_s >= COOL_DOWN_S or line() not in cooling.lines:
            return ""
        return f"you rejected a suggestion here {now_s - cooling.at_s:.0f} s ago"


def _is_among(remembered: Iterable[_Rejected], uri: str, edit: Edit) -> bool:
    one = _normal(uri, edit)
    return any(
        (one.uri, one.old, one.new) == (kept.uri, kept.old, kept.new)
        and abs(one.line - kept.line) <= _SLACK_LINES
        for kept in remembered
    )


def _normal(uri: str, edit: Edit) -> _Rejected:
    start, end, new = edit.whole_lines()
    old = edit.text[start:end]
    line = edit.text.count("\n", 0, start)
    return _Rejected(uri, line, " ".join(old.split()), " ".join(new.split()))


def _moved(line: int, splices: Sequence[Splice]) -> int:
    for splice in splices:
        if splice.first + len(splice.removed) <= line:
            line += len(splice.added) - len(splice.removed)
    return line
