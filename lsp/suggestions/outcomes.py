"""Outcomes of suggestions.

No client reports everything, so outcomes come from two sides: from its reports, and from the
changes of the document.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from redraft.model.text.brackets import closes
from redraft.model.text.common import common_head

from ..renames.whole_rename import WholeRename
from .suggestion import Suggestion, Way

Outcome = Literal["accepted", "rejected", "ignored", "replaced", "cancelled"]
#: How a suggestion was accepted: whole, a part of it, or by typing all of it.
AcceptedBy = Literal["whole", "part", "typed"]

#: A suggestion visible for this long was read: typing something else then rejects it. Faster than
#: that, the fingers were already on their way and say nothing about it.
READ_S = 0.75

#: Ended suggestions that a late report can still name.
_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class SuggestionEnded:
    """A suggestion with its outcome."""

    suggestion: Suggestion
    outcome: Outcome
    waited_ms: float = 0.0  # from the client's request to the suggestion
    saved: int = 0  # keys that the user did not have to press
    means: AcceptedBy = "whole"  # of an acceptance


@dataclass(slots=True)
class _Live:
    """A suggestion that is shown."""

    suggestion: Suggestion
    viewer: str  # document in which the user saw it last
    shown_at_s: float
    waited_ms: float
    others: tuple[Suggestion, ...] = ()  # the alternatives
    is_begun: bool = False  # a part was accepted by a gesture
    way: Way | None = None  # of a next edit: how the document changed since it was shown
    reached: int = 0  # characters of ghost text that are in the document
    gestures: int = 0  # that wrote more than one key does
    saved: int = 0  # keys that the user did not have to press

    @property
    def left(self) -> int:
        """The number of characters that are neither written nor deleted yet."""
        if self.suggestion.task == "infill":
            return len(self.suggestion.replacement) - self.reached
        return _size(self.suggestion)

    def take(self, count: int) -> None:
        """Count characters that one gesture wrote and deleted."""
        self.gestures += 1
        self.saved += max(0, count - 1)

    def reach(self, end: int) -> None:
        """Note that the document has ghost text up to ``end``."""
        written = self.suggestion.replacement[self.reached : end]
        self.reached = end
        if len(written) > 1 and not closes(written[0], written[1:]):  # not a key and what it closes
            self.take(len(written))

    def follow(self, suggestion: Suggestion, way: Way) -> None:
        """Take what is left of a next edit after a change of the document."""
        written = self.left - _size(suggestion)
        self.suggestion, self.way = suggestion, way
        if written > 1:
            self.take(written)


class Outcomes:
    """The one suggestion shown in each document, and how the last ones ended.

    Args:
        listener: called with each outcome once, and again if a later report corrects it.
    """

    def __init__(self, listener: Callable[[SuggestionEnded], None]) -> None:
        self.listener = listener
        self._live: dict[str, _Live] = {}
        self._ended: OrderedDict[str, SuggestionEnded] = OrderedDict()  # by id
        self._reported: dict[str, Suggestion] = {}  # as accepted, before the text changes
        self._renaming: WholeRename | None = None  # accepted; its documents change one by one

    def find_shown(self, uri: str) -> Suggestion | None:
        """Return the suggestion that is shown in a document."""
        live = self._live.get(uri)
        return live.suggestion if live else None

    def find_shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """Return the next edit that is shown, if it is for this ``text``."""
        shown = self.find_shown(uri)
        is_valid = shown is not None and shown.task == "next_edit" and shown.text == text
        return shown if is_valid else None

    def ghost_at(self, uri: str, text: str, cursor: int) -> Suggestion | None:
        """Return the ghost text that is shown at a cursor."""
        shown = self.find_shown(uri)
        is_here = shown is not None and shown.task == "infill" and shown.what_remains(text, cursor)
        return shown if is_here else None

    def find_seen_from(self, uri: str) -> Suggestion | None:
        """Return the edit of another document that is shown to the user in a document."""
        seen = (each for each in self._live.values() if each.viewer == uri)
        return next((one.suggestion for one in seen if one.suggestion.uri != uri), None)

    def is_in_view(self, uri: str) -> bool:
        """Return whether the user has not typed elsewhere since it was shown."""
        live = self._live.get(uri)
        return live is not None and live.way != "moved"

    def is_begun(self, uri: str) -> bool:
        """Return whether a part of what is shown in a document was accepted by a gesture."""
        live = self._live.get(uri)
        return live is not None and live.is_begun

    def seconds_shown(self, uri: str, now_s: float) -> float:
        """Return for how long a suggestion is shown in a document, 0 for none."""
        live = self._live.get(uri)
        return now_s - live.shown_at_s if live else 0.0

    def find(self, id_: str) -> Suggestion | None:
        """Return the suggestion of an id, if it is shown or one of its alternatives is."""
        for live in self._live.values():
            for each in (live.suggestion, *live.others):
                if each.id == id_:
                    return each
        return None

    def show(
        self,
        suggestion: Suggestion,
        now_s: float,
        asked_s: float | None = None,
        viewer: str | None = None,
    ) -> None:
        """Note that a suggestion goes to the client, in place of the one shown before.

        Args:
            viewer: the document in which the user sees it; None: the suggestion's.
            asked_s: when the client asked for it; None: now.
        """
        live = self._find(suggestion.id)
        if live is not None:
            if live.suggestion.text != suggestion.text:
                live.reached = 0  # it counts from the start of the suggestion
            live.suggestion, live.way, live.viewer = suggestion, None, viewer or suggestion.uri
            return
        self._end(suggestion.uri, "replaced")
        waited_ms = 0.0 if asked_s is None else 1000 * (now_s - asked_s)
        self._live[suggestion.uri] = _Live(suggestion, viewer or suggestion.uri, now_s, waited_ms)

    def add_alternatives(self, shown: Suggestion, others: tuple[Suggestion, ...]) -> None:
        """Note the alternatives to a shown suggestion."""
        live = self._find(shown.id)
        if live is not None:
            live.others = others

    def dismiss(self, uri: str) -> None:
        """Hide what is shown in a document and record it as ignored."""
        self._reported.pop(uri, None)
        self._end(uri, "ignored")

    def replace_shown(self, suggestion: Suggestion) -> None:
        """Record a suggestion as replaced by one in another document."""
        if self._find(suggestion.id) is not None:
            self._end(suggestion.uri, "replaced")

    def cancel(self, suggestion: Suggestion) -> None:
        """Record an answer that came too late."""
        self._settle(SuggestionEnded(suggestion, "cancelled"))

    # --- changes of the document -------------------------------------------------------------

    def on_change(self, uri: str, text: str, now_s: float) -> bool:
        """Settle or follow what is shown in a document that has become ``text``.

        Return whether the change was the suggestion, accepted.
        """
        if self._is_renamed(uri, text):
            return True
        live, reported = self._live.get(uri), self._reported.pop(uri, None)
        if reported is not None and reported.text_in_place(text) == reported.replacement:
            return True  # reported as accepted before
        if live is None:
            return False
        if live.others:
            self._take_other(live, text)
        suggestion = live.suggestion
        if suggestion.text_in_place(text) == suggestion.replacement:
            if suggestion.task == "infill":
                live.reach(len(suggestion.replacement))
            elif live.left > 1:
                live.take(live.left)
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
            inserted = each.text_before(text)
            if inserted is not None and each.is_begun_by(inserted):
                self._switch(live, each)
                return

    def _switch(self, live: _Live, suggestion: Suggestion) -> None:
        """Count ``suggestion`` as shown in place of another of the same request."""
        before = live.suggestion
        if suggestion.id != before.id:
            rest = (each for each in live.others if each.id != suggestion.id)
            if suggestion.text != before.text:
                live.reached = 0
            live.suggestion, live.others = suggestion, (before, *rest)

    def _is_renamed(self, uri: str, text: str) -> bool:
        """Return whether a whole rename led to a document's text; settle it if it was shown."""
        shown = next((each for each in self._live.values() if each.suggestion.rename), None)
        rename = shown.suggestion.rename if shown is not None else self._renaming
        file = rename.file(uri) if rename is not None else None
        if file is None or file.result != text:
            return False
        if shown is not None:
            shown.take(shown.left)
            self._end(shown.suggestion.uri, "accepted")
        return True

    def _follow_ghost_text(self, live: _Live, text: str, now_s: float) -> None:
        suggestion = live.suggestion
        inserted, reached = suggestion.text_before(text), suggestion.count_written(text)
        if reached is not None:
            live.reach(reached)
        elif inserted is None:
            self._end(suggestion.uri, "ignored")
        elif not suggestion.is_begun_by(inserted):
            own = inserted[common_head(inserted, suggestion.replacement) :]
            self._turn_down(live, own, now_s)
        else:
            live.reach(common_head(inserted, suggestion.replacement))

    def _follow_edit(self, live: _Live, text: str, now_s: float) -> None:
        suggestion = live.suggestion
        followed = suggestion.rebase(text)
        if followed is not None:
            live.follow(*followed)
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

    def report_accepted(self, id_: str, part: int = 0) -> str:
        """Take a report of acceptance.

        Return the document that the suggestion has changed unnoticed, "" for none.

        Args:
            part: UTF-16 code units that were accepted; 0: all of it.
        """
        live = self._find(id_)
        if live is not None:
            self._reported[live.suggestion.uri] = live.suggestion
            live.take(live.left)
            self._end(live.suggestion.uri, "accepted")
            return ""
        ended = self._ended.get(id_)
        if ended is None or ended.outcome == "accepted":
            return ""
        # A formatter or bracket closer changed the text on its way: the report is right.
        size = _size(ended.suggestion)
        is_part = 0 < part < size
        saved = max(0, (part if is_part else size) - 1)
        means: AcceptedBy = "part" if is_part else "whole"
        self._settle(replace(ended, outcome="accepted", saved=saved, means=means))
        return ended.suggestion.uri

    def report_accepted_part(self, id_: str) -> None:
        """Take a report that a word or a line of what is shown was accepted."""
        live = self._find(id_)
        if live is not None:
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
        self._settle(replace(ended, outcome="rejected"))
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
        if live is None:
            return
        if outcome == "accepted":
            self._renaming = live.suggestion.rename
        means: AcceptedBy = "whole" if live.gestures or live.is_begun else "typed"
        if live.is_begun and outcome != "accepted":
            outcome, means = "accepted", "part"
        self._settle(SuggestionEnded(live.suggestion, outcome, live.waited_ms, live.saved, means))

    def _settle(self, ended: SuggestionEnded) -> None:
        self._ended[ended.suggestion.id] = ended
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self.listener(ended)


def _size(suggestion: Suggestion) -> int:
    """Return how many characters a suggestion writes and deletes."""
    if suggestion.rename is not None:  # its edit changes nothing
        return suggestion.rename.size
    least = suggestion.least()
    return len(least.replacement) + least.end - least.start


def _inserted(before: str, now: str) -> str:
    """Return what was inserted into a text, "" where something was deleted."""
    head, by = common_head(before, now), len(now) - len(before)
    is_added = by > 0 and before[head:] == now[head + by :]
    return now[head : head + by] if is_added else ""
