"""Memory of a session: outcomes, suggestions that may still hold, rejections, pace and gates."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ..documents.history import ChangeKind
from ..documents.open_documents import Splice
from ..policy.pace import Pace
from ..snapshot import Snapshot
from .changed_lines import ChangedLines
from .gates import Gates
from .outcomes import Outcomes, SuggestionEnded
from .rejections import Rejections
from .suggestion import Offer, Suggestion

#: Suggestions of a document that typing may still confirm, shown or overtaken by a keystroke.
_RECENT = 4


@dataclass(slots=True)
class DocumentMemory:
    """The suggestions of one document that a session keeps."""

    ghosts: deque[Suggestion] = field(default_factory=lambda: deque(maxlen=_RECENT))
    late_edit: Suggestion | None = None  # next edit that came too late for its text, still valid
    accepted: Suggestion | None = None  # just now: an undo rejects it
    taken: ChangedLines = field(default_factory=ChangedLines)
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

    def on_change(self, splices: Sequence[Splice], kind: ChangeKind, text: str) -> None:
        """Follow a change of the document, which is now ``text``."""
        self.taken.on_change(splices, kind)
        accepted = self.accepted if kind == "accepted" else None
        if accepted is not None and accepted.task == "next_edit":
            self.taken.on_acceptance(accepted)
        if kind == "undo":
            self.late_edit = None
        elif kind != "accepted":
            self.accepted = None
        if self.late_edit is not None:
            followed = self.late_edit.rebase(text)
            self.late_edit = followed[0] if followed else None


class Memory:
    """Memory of a session: its suggestions, and what it learned of the user.

    Args:
        listener: receives each outcome.
    """

    def __init__(self, listener: Callable[[SuggestionEnded], None], gates: Gates) -> None:
        self.outcomes, self.rejections, self.pace = Outcomes(listener), Rejections(), Pace()
        self.gates = gates
        self._documents: dict[str, DocumentMemory] = {}
        self._ids = count(1)

    def of(self, uri: str) -> DocumentMemory:
        """Return what is remembered of a document."""
        known = self._documents.get(uri)
        return known or self._documents.setdefault(uri, DocumentMemory())

    def forget(self, uri: str) -> None:
        """Forget a document, and hide what is shown in it."""
        self.outcomes.dismiss(uri)
        self.rejections.forget(uri)
        self._documents.pop(uri, None)

    # --- suggestions -----------------------------------------------------------------------------

    def with_id(self, made: Suggestion) -> Suggestion:
        """Return ``made`` with an id, or the same suggestion that is shown already."""
        shown = self.outcomes.find_shown(made.uri)
        if shown is not None and shown.is_again(made):
            return replace(shown, why=made.why, more=made.more)
        return replace(made, id=f"redraft-{next(self._ids)}")

    def show(self, snapshot: Snapshot, offer: Offer, others: Sequence[Offer], now_s: float) -> None:
        """Note that the user is shown a suggestion, in place of the one before.

        Args:
            others: alternatives that the user may take instead.
        """
        shown, of_text = offer.suggestion, self.of(offer.suggestion.uri)
        if shown.task == "infill":
            of_text.keep(shown)
        else:
            away = self.outcomes.find_seen_from(snapshot.uri)
            if away is not None and away.id != shown.id:
                self.outcomes.replace_shown(away)
        self.outcomes.show(shown, now_s, snapshot.at_s, snapshot.uri)
        if others:
            suggestions = tuple(one.suggestion for one in others)
            of_text.keep_behind(shown, suggestions)
            self.outcomes.add_alternatives(shown, suggestions)

    def keep_late(self, offer: Offer, text: str | None, *, undone: bool) -> None:
        """Keep a suggestion that came too late for its text, if it may hold for the text now.

        Args:
            text: of its document now; None: it was closed.
            undone: the user has just undone something.
        """
        made = offer.suggestion
        if not offer.is_at_cursor:
            return
        self.outcomes.cancel(made)
        if made.task == "infill":
            self.of(made.uri).keep(made)  # typing on may confirm it
            return
        followed = made.rebase(text) if text is not None else None
        self.of(made.uri).late_edit = followed[0] if followed and not undone else None

    def pass_over(self, uri: str) -> None:
        """Skip the next edit that the user sees in a document until they edit."""
        shown = self.outcomes.find_shown(uri) or self.outcomes.find_seen_from(uri)
        if shown is not None and shown.task == "next_edit":
            self.outcomes.replace_shown(shown)
            self.rejections.pass_over(shown)

    # --- what happens ----------------------------------------------------------------------------

    def confirm(self, uri: str, text: str, splices: Sequence[Splice], now_s: float) -> bool:
        """Follow a change with what is shown; return whether it was the suggestion, accepted.

        A single key that ends a suggestion typed by hand belongs to the user's own edit.
        """
        confirmed = self.outcomes.on_change(uri, text, now_s)
        self.rejections.on_change(uri, splices)
        return confirmed and sum(splice.extent.characters for splice in splices) > 1

    def follow(
        self, uri: str, text: str, splices: Sequence[Splice], kind: ChangeKind, now_s: float
    ) -> None:
        """Follow a change whose kind is known; undoing an acceptance rejects the suggestion."""
        known = self.of(uri)
        if kind == "edit":
            self.pace.on_change(now_s)
        if kind == "undo":
            shown = self.outcomes.find_shown(uri)
            if shown is not None and (shown.task == "next_edit" or self.outcomes.is_begun(uri)):
                self.outcomes.dismiss(uri)
        if known.accepted is not None and kind in ("undo", "bulk"):  # bulk: of many lines
            self._reject_undone(known.accepted, text, now_s)
            known.accepted = None
        known.on_change(splices, kind, text)
        if (away := self.outcomes.find_seen_from(uri)) is not None:
            self.outcomes.dismiss(away.uri)  # typing here dismisses it

    def _reject_undone(self, accepted: Suggestion, text: str, now_s: float) -> None:
        """Reject a suggestion whose acceptance was undone, which made the document ``text``."""
        is_ghost = accepted.task == "infill"
        reached = accepted.count_written(text) if is_ghost else None
        if accepted.text != text and reached is None:
            return  # something else was undone
        if not is_ghost:
            return self.rejections.note(accepted, now_s)
        self.rejections.note_undone(accepted, now_s)
        left = accepted.part_left(text, accepted.cursor + reached) if reached else None
        if left is not None:  # the user typed its beginning: the rest is rejected as well
            self.rejections.note_undone(left, now_s)

    def learn(self, ended: SuggestionEnded, now_s: float) -> None:
        """Learn from an outcome."""
        suggestion, outcome = ended.suggestion, ended.outcome
        self.pace.learn(outcome)
        if outcome == "rejected":
            self.rejections.note(suggestion, now_s)
        if outcome == "accepted" and (suggestion.task == "next_edit" or ended.means != "typed"):
            self.of(suggestion.uri).accepted = suggestion

    def dismiss(self, id_: str) -> tuple[str, bool]:
        """Hide a suggestion for now; the second time the same edit is hidden, reject it.

        Return the document that the suggestion is of, "" if none of this id is shown, and whether
        it is rejected.
        """
        suggestion = self.outcomes.find(id_)
        if suggestion is None:
            return "", False
        if self.rejections.was_hidden(suggestion):
            return self.outcomes.report_turned_down(id_, "rejected"), True
        self.rejections.hide(suggestion)
        self.outcomes.report_turned_down(id_, "ignored")
        return suggestion.uri, False
