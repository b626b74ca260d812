"""What became of each suggestion, and how that changes the pace of asking.

No client reports everything, so outcomes come from two sides: from its reports, and from watching
the document. Pure: the clock's reading is an argument. Knows nothing of the protocol.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from redraft.model.gate.features import Features
from redraft.model.text.common import common_head

from .suggestion import Suggestion, Way

#: Seconds of typing that tell its speed, and changes kept of them.
_SPAN_S = 5.0
_CHANGES = 256
#: Outcomes that tell the acceptance.
_OUTCOMES = 10
_TOLD: dict[Outcome, float] = {"accepted": 1.0, "ignored": 0.0, "rejected": -1.0}


class Pace:
    """The rate of recent changes and the last outcomes of suggestions."""

    def __init__(self) -> None:
        self._changes: deque[float] = deque(maxlen=_CHANGES)  # at s
        self._outcomes: deque[float] = deque(maxlen=_OUTCOMES)

    def changed(self, now_s: float) -> None:
        """The user changed a document."""
        self._changes.append(now_s)

    def settled(self, outcome: Outcome) -> None:
        """Count an outcome that the user decided, so neither replaced nor cancelled ones."""
        if outcome in _TOLD:
            self._outcomes.append(_TOLD[outcome])

    def features(self, now_s: float) -> Features:
        """Return what is known by now: time since the last edit, speed, and last outcomes."""
        found: Features = {}
        if self._changes:
            found["rested"] = math.log1p(1e3 * max(0.0, now_s - self._changes[-1]))
            keys = sum(now_s - _SPAN_S < at_s <= now_s for at_s in self._changes)
            found["speed"] = math.log1p(keys / _SPAN_S)
        if self._outcomes:
            found["previous"] = self._outcomes[-1]
            accepted = sum(outcome > 0 for outcome in self._outcomes)
            found["acceptance"] = accepted / len(self._outcomes)
        return found


Outcome = Literal["accepted", "rejected", "ignored", "replaced", "cancelled"]

#: A suggestion visible for this long was read: typing something else then turns it down. Faster
#: than that, the fingers were already on their way and say nothing about it.
READ_S = 0.75

#: How many of the last suggestions a late report can still name, and how many characters their
#: documents may have together.
_REMEMBERED = 50
_REMEMBERED_CHARACTERS = 5_000_000


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
    way: Way | None = None  # next edit: how the document got where it is since it was shown


@dataclass(slots=True)
class Outcomes:
    """The one suggestion shown in each document, and how the last ones ended.

    ``listener`` hears of each outcome once; a later report that says otherwise is heard too.
    """

    listener: Callable[[Settled], None]
    _live: dict[str, _Live] = field(default_factory=dict)
    _ended: OrderedDict[str, Settled] = field(default_factory=OrderedDict)
    _reported: dict[str, Suggestion] = field(default_factory=dict)  # accepted, text still to come

    def watches(self, uri: str) -> bool:
        """Is there a suggestion that a change of this document may bear on?"""
        return uri in self._live or uri in self._reported

    def showing(self, uri: str) -> Suggestion | None:
        live = self._live.get(uri)
        return live.suggestion if live else None

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """Return the next edit that is shown, if it is for this ``text``."""
        shown = self.showing(uri)
        is_valid = shown is not None and shown.task == "next_edit" and shown.text == text
        return shown if is_valid else None

    def is_in_view(self, uri: str) -> bool:
        """Does the user still look at what is shown? Not once they went on elsewhere."""
        live = self._live.get(uri)
        return live is not None and live.way != "moved"

    def shown_for_s(self, uri: str, now_s: float) -> float:
        live = self._live.get(uri)
        return now_s - live.shown_at_s if live else 0.0

    def show(self, suggestion: Suggestion, now_s: float) -> None:
        """A suggestion goes to the client, in place of the one shown before."""
        live = self._live.get(suggestion.uri)
        if live is not None and live.suggestion.id == suggestion.id:
            live.suggestion, live.way = suggestion, None
            return
        self._end(suggestion.uri, "replaced")
        self._live[suggestion.uri] = _Live(suggestion, now_s)

    def document_is(self, uri: str, text: str, now_s: float) -> bool:
        """A document has changed into ``text``. Was that the suggestion, accepted?"""
        live, reported = self._live.get(uri), self._reported.pop(uri, None)
        if reported is not None and reported.typed(text) == reported.replacement:
            return True  # said before already
        if live is None:
            return False
        if live.suggestion.task == "next_edit":
            return self._follow(live, text, now_s)
        suggestion = live.suggestion
        if suggestion.typed(text) == suggestion.replacement:
            self._end(uri, "accepted")
            return True
        inserted = suggestion.inserted(text)
        if inserted is None:
            self._end(uri, "ignored")
        elif not suggestion.is_begun_by(inserted):
            own = inserted[common_head(inserted, suggestion.replacement) :]
            self._turn_down(live, own, now_s)
        return False

    def _follow(self, live: _Live, text: str, now_s: float) -> bool:
        """A document with a next edit has changed into ``text``."""
        suggestion = live.suggestion
        if suggestion.typed(text) == suggestion.replacement:
            self._end(suggestion.uri, "accepted")
            return True
        followed = suggestion.followed(text)
        if followed is None and suggestion.is_outdated(text):
            self._end(suggestion.uri, "ignored")  # what it followed from is typed on: no "no"
        elif followed is None:
            self._turn_down(live, _put_in(suggestion.text, text), now_s)
        else:
            live.suggestion, live.way = followed
        return False

    def _turn_down(self, live: _Live, own: str, now_s: float) -> None:
        """The user did something else where the suggestion was. An empty line or a blank (``own``
        is what they put there) says nothing about what was offered: it is no "no"."""
        read = now_s - live.shown_at_s >= READ_S and not own.isspace()
        self._end(live.suggestion.uri, "rejected" if read else "ignored")

    def dismiss(self, uri: str) -> None:
        """What is shown is not shown any longer, and nobody said why."""
        self._reported.pop(uri, None)
        self._end(uri, "ignored")

    def give_way(self, suggestion: Suggestion) -> None:
        """Another one took the place of this one, though in another document."""
        if self._find(suggestion.id) is not None:
            self._end(suggestion.uri, "replaced")

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
        """The document that was changed by a suggestion unnoticed; "" where there is none."""
        live = self._find(id_)
        if live is not None:
            self._reported[live.suggestion.uri] = live.suggestion
            self._end(live.suggestion.uri, "accepted")
            return ""
        ended = self._ended.get(id_)
        if ended is None or ended.outcome == "accepted":
            return ""
        # A formatter or bracket closer changed the text on its way: the report knows better.
        self._settle(Settled(ended.suggestion, "accepted"))
        return ended.suggestion.uri

    def report_turned_down(self, id_: str, outcome: Literal["rejected", "ignored"]) -> str:
        """The client says that the user dismissed it, or let it pass. The document for which this
        is news, "" for a report that is none."""
        live = self._find(id_)
        if live is not None:
            self._end(live.suggestion.uri, outcome)
            return live.suggestion.uri
        ended = self._ended.get(id_)
        late = ended is not None and ended.outcome in ("ignored", "replaced")
        if ended is None or outcome != "rejected" or not late:
            return ""
        self._settle(Settled(ended.suggestion, "rejected"))
        return ended.suggestion.uri

    def live(self, id_: str) -> Suggestion | None:
        """Return the suggestion of an id, if it is shown."""
        live = self._find(id_)
        return None if live is None else live.suggestion

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
        total = sum(len(each.suggestion.text) for each in self._ended.values())
        while len(self._ended) > 1 and (
            len(self._ended) > _REMEMBERED or total > _REMEMBERED_CHARACTERS
        ):
            total -= len(self._ended.popitem(last=False)[1].suggestion.text)
        self.listener(settled)


def _put_in(before: str, now: str) -> str:
    """What was put into a text; "" where something was taken out."""
    head, by = common_head(before, now), len(now) - len(before)
    is_added = by > 0 and before[head:] == now[head + by :]
    return now[head : head + by] if is_added else ""


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
