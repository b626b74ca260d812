"""Ghost text: the text that is offered at the cursor."""

from __future__ import annotations

from dataclasses import replace

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import decide, too_unsure
from redraft.model.gate.filters import (
    CHEAP,
    NOTHING_TO_ADD,
    Situation,
    first_reason,
    why_inside_character,
)
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.rules.renames import renames_of
from redraft.model.text.cursor import is_free, line_after, line_before

from . import precedence
from .journal import AnswerDecided, Journal
from .predictions import Predictions
from .question import Answer, Question, infill
from .refusals import refuse_now
from .schedule import Schedule, seconds_deleting
from .snapshot import Snapshot
from .suggestions.memory import Memory
from .suggestions.situations import situation
from .suggestions.suggestion import Offer, Suggestion
from .workspace import Workspace

RENAMING = Abstain("renaming", "you are replacing a name here")
#: Other texts for the cursor that a gesture brings.
ALTERNATIVES = 3


class GhostText:
    """Ghost text of one session."""

    def __init__(
        self,
        workspace: Workspace,
        predictions: Predictions,
        schedule: Schedule,
        memory: Memory,
        journal: Journal,
    ) -> None:
        self._workspace, self._predictions, self._schedule = workspace, predictions, schedule
        self._memory, self._journal = memory, journal

    async def answer(self, snapshot: Snapshot) -> Offer | Abstain:
        """Return the ghost text to show, or why there is none.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        if (decision := self.decide_without_model(snapshot)) is not None:  # 1. what needs no model
            return decision
        # 2. Wait, then look again: the request before this one may have brought the answer.
        wait_s = await self._schedule.turn(snapshot, "infill")
        now = self._workspace.renew(snapshot)
        if isinstance(now, Abstain):
            return now
        if (decision := self.decide_without_model(now)) is not None:
            return decision
        # 3. Ask the model, and decide on its answer.
        return await self._ask(replace(infill(now), delay_ms=1000 * wait_s), "from the model")

    async def find_alternatives(self, snapshot: Snapshot, first: Offer) -> tuple[Offer, ...]:
        """Return other texts for the cursor than ``first``, the likeliest first.

        The model is asked for several answers that begin with different tokens.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        question = infill(snapshot, candidates=1 + ALTERNATIVES)
        if self._predictions.look_up(question) is None:
            await self._ask(question, "another answer")
        if (answer := self._predictions.look_up(question)) is None:
            return ()  # the model gave none
        found: dict[str, Offer] = {}
        for candidate in answer.prediction.candidates:
            alone = replace(answer, prediction=replace(answer.prediction, candidates=(candidate,)))
            made = self._decide(alone, "another answer")
            if isinstance(made, Offer) and made.text != first.text:
                found.setdefault(made.text, made)
        return tuple(found.values())[:ALTERNATIVES]

    def decide_without_model(self, snapshot: Snapshot) -> Offer | Abstain | None:
        """Decide without the model, or return None."""
        if (refusal := self._workspace.refuse(snapshot)) is not None:
            return refusal
        if (first := precedence.refuse("infill", snapshot, self._memory.outcomes)) is not None:
            return first
        if (inside := why_inside_character(snapshot.text, snapshot.cursor)) is not None:
            return inside
        if (hidden := self._memory.rejections.refuse("infill", snapshot)) is not None:
            return hidden
        if not snapshot.is_invoked and _is_renaming(snapshot):
            return RENAMING
        if (kept := self._typed_through(snapshot)) is not None:
            return kept
        if seconds_deleting(snapshot):
            return None  # the request waits, and looks again
        question = infill(snapshot)
        if (answer := self._look_up(question)) is not None:
            return self._decide(answer, "same text and cursor as before")
        return refuse_now(snapshot) or self._memory.rejections.refuse_cooling(snapshot)

    # --- decisions -----------------------------------------------------------------------------

    async def _ask(self, question: Question, reason: str) -> Offer | Abstain:
        answer = await self._predictions.ask("infill", self._workspace.complete(question))
        if isinstance(answer, Abstain):
            return answer
        decision = self._decide(answer, reason)
        self._journal.write(AnswerDecided(answer, decision))
        return decision

    def _decide(self, answer: Answer, reason: str) -> Offer | Abstain:
        """Return the first candidate that may be shown, or why the best one may not."""
        snapshot, prediction = answer.question.snapshot, answer.prediction
        here = self._situation(snapshot)
        here = replace(here, nothing=prediction.reason or NOTHING_TO_ADD)
        found = decide(prediction.candidates, here, self._memory.gates.gate())
        if isinstance(found, Abstain):
            return self._mark(answer, found)
        uri, cursor = snapshot.uri, snapshot.cursor
        made = Suggestion.of(uri, "infill", found.edit, cursor, found.score, prediction.model)
        usual = snapshot.settings.threshold_in(snapshot.language, "infill")
        doubt = too_unsure(found.score, usual, "infill")
        made = replace(self._memory.with_id(made), unsure=doubt.reason if doubt else "")
        return Offer(made, made.replacement, reason)

    def _situation(self, snapshot: Snapshot) -> Situation:
        threshold = self._memory.gates.threshold_at(snapshot, "infill").threshold
        return situation("infill", snapshot, self._memory, threshold, self._workspace.clock())

    def _mark(self, answer: Answer, found: Abstain) -> Abstain:
        """Return ``found``, marked if a gesture would show what is hidden."""
        if answer.question.snapshot.is_invoked:
            return found
        if answer.prediction.is_given_up:  # the model finishes what a gesture asks for
            return replace(found, is_revealable=True)
        if found.kind not in ("below_threshold", "reversal"):
            return found
        by_key = answer.question.snapshot.with_key(is_invoked=True)
        best = self._decide(Answer(infill(by_key), answer.prediction), "asked for")
        return replace(found, is_revealable=isinstance(best, Offer))

    # --- what holds from before ------------------------------------------------------------------

    def _look_up(self, question: Question) -> Answer | None:
        """Return the answer that is known for a text and cursor.

        With and without a gesture it is the same, unless the model gave up without a gesture.
        """
        if (found := self._predictions.look_up(question)) is not None:
            return found
        snapshot = question.snapshot
        other = self._predictions.look_up(
            infill(snapshot.with_key(is_invoked=not snapshot.is_invoked))
        )
        if other is None or (snapshot.is_invoked and not other.prediction.candidates):
            return None
        return Answer(question, other.prediction)

    def _typed_through(self, snapshot: Snapshot) -> Offer | None:
        """Return what is left of recent ghost text that the user has typed a part of."""
        memory = self._memory.of(snapshot.uri)
        memory.follow_above(snapshot.above_hash)
        for suggestion in memory.ghosts:
            threshold = snapshot.settings.threshold_in(snapshot.language, "infill")
            if not suggestion.unsure and suggestion.confidence < threshold:
                continue
            left = self._left(suggestion, snapshot)
            edit, by_key = suggestion.edit, snapshot.is_invoked
            has_rejected = self._memory.rejections.has_rejected
            if left is None or has_rejected(suggestion.uri, edit, is_invoked=by_key):
                continue
            return Offer(*left, "typed so far as suggested")
        return None

    def _left(self, suggestion: Suggestion, snapshot: Snapshot) -> tuple[Suggestion, str] | None:
        """Return ghost text of which some was written, and what is left of it at the cursor."""
        text, cursor = snapshot.text, snapshot.cursor
        rest = suggestion.what_remains(text, cursor)
        if not rest:
            return None
        left = suggestion.part_left(text, cursor)
        if left is not None:  # the pieces joined are the whole text, which was let pass
            is_as_offered = left.end - left.start == suggestion.end - suggestion.start
            return (suggestion if is_as_offered else left), rest
        # The editor closed what was opened: what is left has to fit before that.
        made = fit(rest, snapshot, replaces=True)
        if isinstance(made, Abstain):
            return None
        edit = Edit(text, cursor, cursor, made.new)
        if first_reason(CHEAP["infill"], edit, self._situation(snapshot)) is not None:
            return None
        moved = replace(suggestion, text=text, cursor=cursor, start=made.start)
        return replace(moved, end=made.end, replacement=made.new), made.new


def _is_renaming(snapshot: Snapshot) -> bool:
    """Return whether the cursor follows a new name that has replaced another one.

    With code behind it on the line, ghost text could only make the name longer.
    """
    text, cursor = snapshot.text, snapshot.cursor
    before, rest = line_before(text, cursor), line_after(text, cursor)
    if is_free(rest) or not before[-1:].isidentifier() or rest[:1].isidentifier():
        return False
    return any(before.endswith(new) for _, new in renames_of(snapshot.recent))
