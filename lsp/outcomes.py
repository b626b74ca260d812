"""What became of each suggestion, and how that changes the pace of asking.

No client reports everything, so outcomes come from two sides: from its reports, and from watching
the document. Pure: the clock's reading is an argument. Knows nothing of the protocol.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["accepted", "rejected", "ignored", "replaced", "cancelled"]

#: A suggestion visible for this long was read: typing something else then turns it down. Faster
#: than that, the fingers were already on their way and say nothing about it.
READ_S = 0.75

#: How many of the last suggestions a late report can still name.
_REMEMBERED = 50


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text offered at a place in a document, as it was when offered."""

    id: str
    uri: str
    text: str  # the document
    cursor: int  # index into text
    completion: str  # offered there
    confidence: float  # 0 … 1
    model: str

    @property
    def result(self) -> str:
        """The document with the suggestion accepted."""
        return self.text[: self.cursor] + self.completion + self.text[self.cursor :]

    def typed(self, text: str) -> str | None:
        """What was put at the suggestion's place to make ``text``; None: it differs elsewhere."""
        size = len(text) - len(self.text)
        if size < 0 or not text.startswith(self.text[: self.cursor]):
            return None
        if not text.endswith(self.text[self.cursor :]):
            return None
        return text[self.cursor : self.cursor + size]

    def rest(self, text: str, cursor: int) -> str:
        """What of it is left to offer at ``cursor`` of ``text``; "" when it no longer holds."""
        size = len(text) - len(self.text)
        if size > len(self.completion) or cursor != self.cursor + size:
            return ""  # before anything is compared: most suggestions asked end here
        typed = self.typed(text)
        if typed is None:
            return ""
        return self.completion[len(typed) :] if self.completion.startswith(typed) else ""


@dataclass(frozen=True, slots=True)
class Settled:
    """A suggestion with its outcome."""

    suggestion: Suggestion
    outcome: Outcome


@dataclass(slots=True)
class _Live:
    suggestion: Suggestion
    shown_at_s: float
    taken: bool = False  # in part, by a gesture


@dataclass(slots=True)
class Outcomes:
    """The one suggestion shown in each document, and how the last ones ended.

    ``listener`` hears of each outcome once; a later report that says otherwise is heard too.
    """

    listener: Callable[[Settled], None]
    _live: dict[str, _Live] = field(default_factory=dict)
    _ended: OrderedDict[str, Settled] = field(default_factory=OrderedDict)

    def showing(self, uri: str) -> Suggestion | None:
        live = self._live.get(uri)
        return live.suggestion if live else None

    def show(self, suggestion: Suggestion, now_s: float) -> None:
        """A suggestion goes to the client, in place of the one shown before."""
        live = self._live.get(suggestion.uri)
        if live is not None and live.suggestion.id == suggestion.id:
            return
        self._end(suggestion.uri, "replaced")
        self._live[suggestion.uri] = _Live(suggestion, now_s)

    def document_is(self, uri: str, text: str, now_s: float) -> bool:
        """A document has changed into ``text``. Was that the suggestion, accepted?"""
        live = self._live.get(uri)
        if live is None:
            return False
        typed = live.suggestion.typed(text)
        if typed is None:
            self._end(uri, "ignored")
        elif typed == live.suggestion.completion:
            self._end(uri, "accepted")
            return True
        elif not live.suggestion.completion.startswith(typed):
            read = now_s - live.shown_at_s >= READ_S
            self._end(uri, "rejected" if read else "ignored")
        return False

    def closed(self, uri: str) -> None:
        self._end(uri, "ignored")

    def cancelled(self, suggestion: Suggestion) -> None:
        """An answer was ready that nobody waited for any more."""
        self._settle(Settled(suggestion, "cancelled"))

    # --- reports of the client -------------------------------------------------------------

    def report_shown(self, id_: str, now_s: float) -> None:
        """The client says when it really drew the suggestion."""
        live = self._find(id_)
        if live is not None:
            live.shown_at_s = now_s

    def report_accepted(self, id_: str) -> str:
        """The URI of the document for which this is news, "" for a report that is none."""
        live = self._find(id_)
        if live is not None:
            self._end(live.suggestion.uri, "accepted")
            return live.suggestion.uri
        ended = self._ended.get(id_)
        if ended is None or ended.outcome == "accepted":
            return ""
        # A formatter or bracket closer changed the text on its way: the report knows better.
        self._settle(Settled(ended.suggestion, "accepted"))
        return ended.suggestion.uri

    def report_accepted_part(self, id_: str) -> None:
        """The client took a word or a line of it. What is left stays offered."""
        live = self._find(id_)
        if live is None:
            self.report_accepted(id_)
        else:
            live.taken = True

    def _find(self, id_: str) -> _Live | None:
        return next((x for x in self._live.values() if x.suggestion.id == id_), None)

    def _end(self, uri: str, outcome: Outcome) -> None:
        live = self._live.pop(uri, None)
        if live is None:
            return
        self._settle(Settled(live.suggestion, "accepted" if live.taken else outcome))

    def _settle(self, settled: Settled) -> None:
        self._ended[settled.suggestion.id] = settled
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self.listener(settled)


# --- debounce ----------------------------------------------------------------------------------

_FACTOR: dict[Outcome, float] = {"rejected": 1.5, "accepted": 0.8, "ignored": 1.0}
_COUNTED = 10  # outcomes; the others say nothing about the user
_FADE_S = 600.0  # until an outcome no longer matters
SHORTEST_MS = 50.0
LONGEST_MS = 3000.0


class Debounce:
    """How long to wait after a keystroke: longer for who turns suggestions down, shorter for who
    takes them. An outcome's weight fades evenly to nothing over ten minutes.
    """

    def __init__(self) -> None:
        self._outcomes: deque[tuple[float, float]] = deque(maxlen=_COUNTED)  # (at s, factor)

    def note(self, outcome: Outcome, now_s: float) -> None:
        factor = _FACTOR.get(outcome)
        if factor is not None:
            self._outcomes.append((now_s, factor))

    def delay_ms(self, base_ms: float, latency_ms: float, now_s: float) -> float:
        """What is left to wait before asking a model that takes ``latency_ms`` to answer."""
        if base_ms == 0:  # the user asked for no delay at all
            return 0.0
        delay = base_ms
        for at_s, factor in self._outcomes:
            delay *= factor ** max(0.0, 1.0 - (now_s - at_s) / _FADE_S)
        return max(0.0, min(max(delay, SHORTEST_MS), LONGEST_MS) - latency_ms)
