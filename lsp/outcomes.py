"""Outcomes of suggestions, and what they say about the user's pace.

No client reports everything, so outcomes come from two sides: from its reports, and from the
changes of the document.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from redraft.model.gate.features import Features
from redraft.model.text.common import common_head

from .suggestion import Suggestion, Way

if TYPE_CHECKING:
    from .renames.plan import WholeRename

Outcome = Literal["accepted", "rejected", "ignored", "replaced", "cancelled"]

#: A suggestion visible for this long was read: typing something else then rejects it. Faster than
#: that, the fingers were already on their way and say nothing about it.
READ_S = 0.75

#: Ended suggestions that a late report can still name.
_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class Settled:
    """A suggestion with its outcome."""

    suggestion: Suggestion
    outcome: Outcome


@dataclass(slots=True)
class _Live:
    """A suggestion that is shown."""

    suggestion: Suggestion
    shown_at_s: float
    others: tuple[Suggestion, ...] = ()  # that the user can go to by a gesture
    is_begun: bool = False  # a part was accepted by a gesture
    way: Way | None = None  # of a next edit: how the document changed since it was shown


class Outcomes:
    """The one suggestion shown in each document, and how the last ones ended.

    Args:
        listener: called with each outcome once, and again if a later report corrects it.
    """

    def __init__(self, listener: Callable[[Settled], None]) -> None:
        self.listener = listener
        self._live: dict[str, _Live] = {}
        self._ended: OrderedDict[str, Settled] = OrderedDict()  # by id
        self._reported: dict[str, Suggestion] = {}  # as accepted, before the text changes
        self._renaming: WholeRename | None = None  # accepted; its documents change one by one

    def showing(self, uri: str) -> Suggestion | None:
        """Return the suggestion that is shown in a document."""
        live = self._live.get(uri)
        return live.suggestion if live else None

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """Return the next edit that is shown, if it is for this ``text``."""
        shown = self.showing(uri)
        is_valid = shown is not None and shown.task == "next_edit" and shown.text == text
        return shown if is_valid else None

    def is_in_view(self, uri: str) -> bool:
        """Return whether the user has not typed elsewhere since it was shown."""
        live = self._live.get(uri)
        return live is not None and live.way != "moved"

    def shown_for_s(self, uri: str, now_s: float) -> float:
        """Return for how long a suggestion is shown in a document, 0 for none."""
        live = self._live.get(uri)
        return now_s - live.shown_at_s if live else 0.0

    def live(self, id_: str) -> Suggestion | None:
        """Return the suggestion of an id, if it is shown."""
        live = self._find(id_)
        return live.suggestion if live else None

    def show(self, suggestion: Suggestion, now_s: float) -> None:
        """Note that a suggestion goes to the client, in place of the one shown before."""
        live = self._find(suggestion.id)
        if live is not None:
            live.suggestion, live.way = suggestion, None
            return
        self._end(suggestion.uri, "replaced")
        self._live[suggestion.uri] = _Live(suggestion, now_s)

    def offer_too(self, shown: Suggestion, others: tuple[Suggestion, ...]) -> None:
        """Note that the user can go from a shown suggestion to ``others``, in its place."""
        live = self._find(shown.id)
        if live is not None:
            live.others = others

    def dismiss(self, uri: str) -> None:
        """Hide what is shown in a document and record it as ignored."""
        self._reported.pop(uri, None)
        self._end(uri, "ignored")

    def give_way(self, suggestion: Suggestion) -> None:
        """Record a suggestion as replaced by one in another document."""
        if self._find(suggestion.id) is not None:
            self._end(suggestion.uri, "replaced")

    def cancelled(self, suggestion: Suggestion) -> None:
        """Record an answer that came too late."""
        self._settle(Settled(suggestion, "cancelled"))

    # --- changes of the document -------------------------------------------------------------

    def changed(self, uri: str, text: str, now_s: float) -> bool:
        """Settle or follow what is shown in a document that has become ``text``.

        Return whether the change was the suggestion, accepted.
        """
        if self._is_renamed(uri, text):
            return True
        live, reported = self._live.get(uri), self._reported.pop(uri, None)
        if reported is not None and reported.typed(text) == reported.replacement:
            return True  # reported as accepted before
        if live is None:
            return False
        if live.others:
            self._take_other(live, text)
        suggestion = live.suggestion
        if suggestion.typed(text) == suggestion.replacement:
            self._end(uri, "accepted")
            return True
        if suggestion.task == "infill":
            self._follow_ghost_text(live, text, now_s)
        else:
            self._follow_edit(live, text, now_s)
        return False

    def _take_other(self, live: _Live, text: str) -> None:
        """Count another suggestion as shown if it leads to ``text``, and the shown one does not."""
        for each in (live.suggestion, *live.others):
            inserted = each.inserted(text)
            if inserted is not None and each.is_begun_by(inserted):
                self._switch(live, each)
                return

    def _switch(self, live: _Live, suggestion: Suggestion) -> None:
        """Count ``suggestion`` as shown in place of another of the same request."""
        before = live.suggestion
        if suggestion.id != before.id:
            rest = (each for each in live.others if each.id != suggestion.id)
            live.suggestion, live.others = suggestion, (before, *rest)

    def _is_renamed(self, uri: str, text: str) -> bool:
        """Return whether a whole rename led to a document's text; settle it if it was shown."""
        shown = next((each for each in self._live.values() if each.suggestion.rename), None)
        rename = shown.suggestion.rename if shown is not None else self._renaming
        file = rename.file(uri) if rename is not None else None
        if file is None or file.result != text:
            return False
        if shown is not None:
            self._end(shown.suggestion.uri, "accepted")
        return True

    def _follow_ghost_text(self, live: _Live, text: str, now_s: float) -> None:
        suggestion = live.suggestion
        inserted = suggestion.inserted(text)
        if inserted is None:
            self._end(suggestion.uri, "ignored")
        elif not suggestion.is_begun_by(inserted):
            own = inserted[common_head(inserted, suggestion.replacement) :]
            self._turn_down(live, own, now_s)

    def _follow_edit(self, live: _Live, text: str, now_s: float) -> None:
        suggestion = live.suggestion
        followed = suggestion.followed(text)
        if followed is not None:
            live.suggestion, live.way = followed
        elif suggestion.rename is not None or suggestion.is_outdated(text):
            self._end(suggestion.uri, "ignored")  # the word that it builds on was typed on
        else:
            self._turn_down(live, _inserted(suggestion.text, text), now_s)

    def _turn_down(self, live: _Live, own: str, now_s: float) -> None:
        """Settle a suggestion in whose place the user put ``own``.

        White space, such as an empty line, says nothing about what was offered.
        """
        is_read = now_s - live.shown_at_s >= READ_S and not own.isspace()
        self._end(live.suggestion.uri, "rejected" if is_read else "ignored")

    # --- reports of the client -------------------------------------------------------------

    def report_shown(self, id_: str, now_s: float) -> None:
        """Take the time when the client really drew a suggestion."""
        live = self._find(id_)
        if live is not None:
            live.shown_at_s = now_s

    def report_accepted(self, id_: str) -> str:
        """Take a report of acceptance.

        Return the document that the suggestion has changed unnoticed, "" for none.
        """
        live = self._find(id_)
        if live is not None:
            self._reported[live.suggestion.uri] = live.suggestion
            self._end(live.suggestion.uri, "accepted")
            return ""
        ended = self._ended.get(id_)
        if ended is None or ended.outcome == "accepted":
            return ""
        # A formatter or bracket closer changed the text on its way: the report is right.
        self._settle(Settled(ended.suggestion, "accepted"))
        return ended.suggestion.uri

    def report_accepted_part(self, id_: str) -> None:
        """Take a report that a word or a line was accepted; the rest stays offered."""
        live = self._find(id_)
        if live is None:
            self.report_accepted(id_)
        else:
            live.is_begun = True

    def report_turned_down(self, id_: str, outcome: Literal["rejected", "ignored"]) -> str:
        """Take a report that the user rejected a suggestion or let it pass.

        Return the document that this settles or corrects, "" for none.
        """
        live = self._find(id_)
        if live is not None:
            self._end(live.suggestion.uri, outcome)
            return live.suggestion.uri
        ended = self._ended.get(id_)
        is_late = ended is not None and ended.outcome in ("ignored", "replaced")
        if ended is None or outcome != "rejected" or not is_late:
            return ""
        self._settle(Settled(ended.suggestion, "rejected"))
        return ended.suggestion.uri

    def _find(self, id_: str) -> _Live | None:
        for live in self._live.values():
            other = next((each for each in live.others if each.id == id_), None)
            if other is not None:
                self._switch(live, other)
            if live.suggestion.id == id_:
                return live
        return None

    def _end(self, uri: str, outcome: Outcome) -> None:
        live = self._live.pop(uri, None)
        if live is not None:
            if outcome == "accepted":
                self._renaming = live.suggestion.rename
            self._settle(Settled(live.suggestion, "accepted" if live.is_begun else outcome))

    def _settle(self, settled: Settled) -> None:
        self._ended[settled.suggestion.id] = settled
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self.listener(settled)


def _inserted(before: str, now: str) -> str:
    """Return what was inserted into a text, "" where something was deleted."""
    head, by = common_head(before, now), len(now) - len(before)
    is_added = by > 0 and before[head:] == now[head + by :]
    return now[head : head + by] if is_added else ""


# --- the user's pace ---------------------------------------------------------------------------

_SPAN_S = 5.0  # of typing that tell its speed
_CHANGES = 256  # kept of them
_COUNTED = 10  # outcomes kept; those that are no decision of the user do not count
_VALUES: dict[Outcome, float] = {"accepted": 1.0, "ignored": 0.0, "rejected": -1.0}


class Pace:
    """Rate of recent changes and last outcomes, as features of the gate."""

    def __init__(self) -> None:
        self._changes: deque[float] = deque(maxlen=_CHANGES)  # at s
        self._outcomes: deque[float] = deque(maxlen=_COUNTED)

    def changed(self, now_s: float) -> None:
        """Count a change of a document by the user."""
        self._changes.append(now_s)

    def settled(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome in _VALUES:
            self._outcomes.append(_VALUES[outcome])

    def features(self, now_s: float) -> Features:
        """Return the time since the last edit, the typing speed and the last outcomes."""
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


_FACTORS: dict[Outcome, float] = {"rejected": 1.5, "accepted": 0.8, "ignored": 1.0}
_FADE_S = 600.0  # until an outcome no longer matters
SHORTEST_MS = 50.0
LONGEST_MS = 3000.0


class Debounce:
    """Wait after a key: longer after rejections, shorter after acceptances.

    An outcome's weight fades evenly to nothing over ten minutes.
    """

    def __init__(self) -> None:
        self._outcomes: deque[tuple[float, float]] = deque(maxlen=_COUNTED)  # (at s, factor)

    def note(self, outcome: Outcome, now_s: float) -> None:
        """Count an outcome."""
        if outcome in _FACTORS:
            self._outcomes.append((now_s, _FACTORS[outcome]))

    def delay_ms(self, base_ms: float, latency_ms: float, now_s: float) -> float:
        """Return the wait before asking a model that takes ``latency_ms`` to answer."""
        if base_ms == 0:  # the user asked for no delay at all
            return 0.0
        delay = base_ms
        for at_s, factor in self._outcomes:
            delay *= factor ** max(0.0, 1.0 - (now_s - at_s) / _FADE_S)
        return max(0.0, min(max(delay, SHORTEST_MS), LONGEST_MS) - latency_ms)
