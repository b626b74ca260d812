"""Next edits: the change that the user would make next, near the cursor or elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from redraft.model.gate.decide import least_score, refuse, too_unsure
from redraft.model.gate.filters import Situation
from redraft.model.gate.reasons import Abstain, AbstentionKind

from . import precedence
from .edit_choice import choose, edit_filters, fits_call, lines_reported, refuse_unrelated
from .edit_places import questions
from .journal import AnswerDecided, Journal
from .predictions import Predictions
from .question import Answer, Question
from .read_ahead import ReadAhead
from .refusals import refuse_half_typed, refuse_long_after_edit, refuse_now
from .renames.offer import WholeRenames
from .schedule import Kind, Schedule, Superseded
from .snapshot import Snapshot
from .suggestions.memory import Memory
from .suggestions.situations import situation
from .suggestions.suggestion import Offer, Suggestion
from .suggestions.why_here import why_here
from .workspace import Workspace

#: Edits predicted ahead while one is shown, each for the text that those before it lead to.
AHEAD = 2
#: Seconds for which a shown edit is offered again while the user edits elsewhere.
LIFETIME_S = 10.0

DISABLED = Abstain("next_edits_disabled", "next edits are switched off (setting next_edits)")
#: Kinds of refusal at which the user may begin to type.
RESTING = ("nothing_edited", "no_recent_edit")
NOTHING = "the model would change nothing here"
#: Refusals that follow a bulk change.
_AFTER_PASTE: frozenset[AbstentionKind] = frozenset(
    ("bulk_change", "nothing_edited", "no_recent_edit")
)


class NextEdit:
    """Next edits of one session."""

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
        self.renames = WholeRenames(workspace, memory)
        self.ahead = ReadAhead(workspace, predictions, schedule)
        self._ahead_of = ""  # id of the edit whose acceptance is predicted ahead
        self._tasks = set[asyncio.Task[None]]()

    async def answer(self, snapshot: Snapshot) -> Offer | Abstain:
        """Return the next edit to show, or why there is none.

        While the user types in a line, no edit is offered that the key would first jump to.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        decision = await self._find(snapshot)
        if isinstance(decision, Offer) and decision.suggestion.is_away(snapshot.uri, snapshot.line):
            await self._schedule.until_typed(snapshot)
        return decision

    async def _find(self, snapshot: Snapshot) -> Offer | Abstain:
        # 1. Ghost text that the same gesture asks for goes first.
        now: Snapshot | Abstain = snapshot
        if (head_start_s := precedence.head_start_s(snapshot)) > 0:
            await self._schedule.latest.turn(snapshot.uri, "next_edit", head_start_s)
            now = self._workspace.renew(snapshot)
        if isinstance(now, Abstain):
            return now
        # 2. What needs no model: refusals, what is shown, and answers that are known.
        decision = self.decide_without_model(now)
        if decision is not None and not self._may_give_way(decision, now):
            if isinstance(decision, Abstain) and decision.kind in RESTING:
                self.ahead.rest(now)
            return await self._move(now, decision) or decision
        if not self.renames.is_due(now):
            decision = self.renames.look_up(now) or await self._search(now)
            if decision is not None:
                return decision
        # 3. Wait, then look again: the request before this one may have brought the answer.
        self.ahead.wait(now, self._schedule.delay_s(now, "next_edit"))
        wait_s = await self._schedule.turn(now, "next_edit")
        await self.renames.until_applied()
        now = self._workspace.renew(now)
        if isinstance(now, Abstain):
            return now
        decision = self.decide_without_model(now)
        if decision is not None and not self._may_give_way(decision, now):
            return decision
        # 4. A whole rename, or a search that asks the model about each place.
        rename = await self.renames.find(now)
        if decision is not None:
            return rename or decision
        found = rename or await self._search(now, "next_edit", wait_s)
        assert found is not None, "a search that asks the model ends with a decision"
        if isinstance(found, Abstain) and now.typed_at_s is None:
            self.ahead.rest(now)
        return found

    def _may_give_way(self, decision: Offer | Abstain, snapshot: Snapshot) -> bool:
        """Return whether an edit elsewhere that is shown gives way to what the last edit began."""
        if not isinstance(decision, Offer) or decision.suggestion.rename is not None:
            return False
        is_away = decision.suggestion.is_away(snapshot.uri, snapshot.line)
        return is_away and self.renames.is_due(snapshot)

    async def _move(self, snapshot: Snapshot, decision: Offer | Abstain) -> Offer | None:
        """Return the imports that follow a definition just pasted into another file.

        Other edits are not offered after a paste, because nothing is known of its reason.
        """
        is_refused = isinstance(decision, Abstain) and decision.kind in _AFTER_PASTE
        return await self.renames.find_move(snapshot) if is_refused else None

    async def answer_another(self, snapshot: Snapshot) -> Offer | Abstain:
        """Return another edit than the one shown; the first comes after the last.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        self._memory.pass_over(snapshot.uri)
        decision = await self.answer(snapshot)
        if isinstance(decision, Abstain) and self._memory.rejections.start_over():
            decision = await self.answer(snapshot)
        return decision

    def decide_without_model(self, snapshot: Snapshot) -> Offer | Abstain | None:
        """Decide without a search, or return None."""
        if (refusal := self._workspace.refuse(snapshot)) is not None:
            return refusal
        if not snapshot.settings.next_edits:
            return DISABLED
        wrong = (
            precedence.refuse("next_edit", snapshot, self._memory.outcomes)
            or refuse_now(snapshot)
            or self._memory.rejections.refuse("next_edit", snapshot)
        )
        if wrong is not None:
            return wrong
        # What is shown stays however long its reader thinks. Nothing new is offered then.
        kept, late = self._still_valid(snapshot), refuse_long_after_edit(snapshot)
        if kept is None and late is not None:
            kept = self._valid_elsewhere(snapshot)
        return kept or late or refuse_half_typed(snapshot)

    def prefetch(self, snapshot: Snapshot, shown: Suggestion) -> None:
        """Predict what follows once ``shown`` is accepted, two edits deep; the cache keeps it."""
        is_ahead = self._ahead_of == shown.id or shown.rename is not None
        is_calm = self._workspace.load.now().effort == "calm"
        if is_ahead or is_calm or not snapshot.settings.prefetch:
            return
        self._schedule.latest.cancel(shown.uri, "prefetch")
        self._ahead_of = shown.id
        task = asyncio.ensure_future(self._predict_ahead(snapshot, shown))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _predict_ahead(self, snapshot: Snapshot, shown: Suggestion) -> None:
        first = shown.id
        with suppress(Superseded):
            for _ in range(AHEAD):
                following = snapshot.after(shown)
                if following is None or self._ahead_of != first:
                    return
                snapshot = following
                decision = await self._search(snapshot, "prefetch")
                if not isinstance(decision, Offer):
                    return
                shown = decision.suggestion
            return
        if self._ahead_of == first:
            self._ahead_of = ""  # it was cancelled, and may be tried again

    # --- the search ------------------------------------------------------------------------------

    async def _search(
        self, snapshot: Snapshot, kind: Kind | None = None, wait_s: float = 0.0
    ) -> Offer | Abstain | None:
        """Look at the cursor's region, then at other places, until an edit is worth showing.

        Args:
            kind: of questions to the model; None: ask none, and return None where one is needed.
            wait_s: debounce before them.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        is_unknown = kind is None and not self._predictions.may_know(snapshot)
        if is_unknown and self._memory.rejections.refuse_cooling(snapshot) is None:
            return None  # at nearly every key: no place has to be found for that
        own: Question | None = None
        comment: Offer | None = None
        objections: list[Abstain] = []
        unchanged: list[str] = []  # places elsewhere where nothing is to be changed
        for question in questions(snapshot, self._workspace.context, self._schedule):
            is_own, answer = question.about is None, self._predictions.look_up(question)
            own = question if is_own else own
            if answer is not None:  # 1. decide on what is known
                decision = self._decide(answer, "same text as before")
            elif kind is None:
                return self._memory.rejections.refuse_cooling(snapshot) if is_own else None
            else:  # 2. ask the model, and decide on its answer
                after = self._ahead_of if kind == "prefetch" else ""
                asked = replace(question, delay_ms=1000 * wait_s, after=after)
                decision = await self._ask(kind, asked)
                if isinstance(decision, Abstain) and (decision.is_stale or decision.is_failure):
                    return decision
            if isinstance(decision, Abstain):
                objection = question.with_place(decision)
                objections.insert(0 if is_own else len(objections), objection)
                if decision.kind == "nothing_to_do" and not is_own:
                    unchanged.append(question.where)
            elif is_own and decision.suggestion.is_prose:
                comment = decision  # code comes first
            else:
                return decision
        if comment is not None:
            return comment
        objection = next((one for one in objections if one.kind != "nothing_to_do"), objections[0])
        if own is not None and objection.kind == "nothing_to_do" and unchanged:
            reason = f"{objection.reason.rstrip('.')}, nor in {' or '.join(unchanged)}"
            objection = replace(objection, reason=reason)
        if own is None or snapshot.accepted is not None:
            return objection
        decision = self._reveal(own, objection)  # 3. what only a gesture shows
        if isinstance(decision, Offer):
            return decision
        return self._memory.rejections.refuse_cooling(snapshot) or decision

    async def _ask(self, kind: Kind, question: Question) -> Offer | Abstain:
        answer = await self._predictions.ask(kind, self._workspace.complete(question))
        if isinstance(answer, Abstain):
            return answer
        about = f" ({question.about.name}: {question.about.why})" if question.about else ""
        decision = self._decide(answer, f"from the model{about}")
        self._journal.write(AnswerDecided(answer, decision))
        return decision

    def _reveal(self, own: Question, objection: Abstain) -> Offer | Abstain:
        """Return what a gesture shows of an unsure edit at the cursor, or ``objection``.

        Without a gesture the edit stays hidden, and the reason says that a gesture shows it.
        """
        answer = self._predictions.look_up(own)
        best = objection if answer is None else self._decide(answer, "asked for", is_gated=False)
        if not isinstance(best, Offer):
            return objection
        if own.snapshot.is_invoked:
            return best
        reason = best.suggestion.unsure or objection.reason
        return Abstain("below_threshold", reason, is_revealable=True)

    # --- decisions -------------------------------------------------------------------------------

    def _decide(self, answer: Answer, reason: str, *, is_gated: bool = True) -> Offer | Abstain:
        """Return the first edit of an answer that may be shown, or why the best one may not."""
        question, prediction = answer.question, answer.prediction
        place, user = question.snapshot, question.snapshot.asked_from
        usual = replace(
            self.situation_of(question),
            nothing=prediction.reason or NOTHING,
            threshold=place.settings.threshold_in(place.language, "next_edit"),
        )
        drawn = self._memory.gates.threshold_at(place, "next_edit").threshold if is_gated else 0.0
        gate = self._memory.gates.gate()
        found = choose(question, prediction, replace(usual, threshold=drawn), gate)
        if isinstance(found, Abstain):
            return found
        doubt = too_unsure(found.score, least_score(found.edit, usual), "next_edit")
        is_same = place.uri == user.uri
        cursor = user.cursor if is_same else place.cursor
        made = Suggestion.of(
            place.uri, "next_edit", found.edit, cursor, found.score, prediction.model
        )
        origin = None if is_same else (user.uri, user.line)
        made = replace(
            made,
            origin=origin,
            unsure=doubt.reason if doubt else "",
            why=why_here(question, found.edit),
            more=question.count_others(found.edit),
        )
        if user.accepted is None:
            made = self._memory.with_id(made)
        return Offer(made, made.replacement, reason, is_at_cursor=question.about is None)

    def situation_of(self, question: Question) -> Situation:
        """Return what an answer is decided by, without a threshold."""
        place = question.snapshot
        taken = self._memory.of(place.uri).taken
        filters = edit_filters(place, self._workspace.context, taken)
        found = situation("next_edit", place, self._memory, 0.0, self._workspace.clock())
        reported = lines_reported(place)
        if question.report is not None:
            reported |= {question.report.line}
        own = refuse_unrelated(question), fits_call(question)
        return replace(found, reported=reported, filters=(*own, *filters))

    # --- what holds from before ------------------------------------------------------------------

    def _still_valid(self, snapshot: Snapshot) -> Offer | None:
        """Return an earlier suggestion that still holds."""
        uri, outcomes = snapshot.uri, self._memory.outcomes
        shown = outcomes.find_shown_edit(uri, snapshot.text)
        if shown is not None:
            is_old = outcomes.seconds_shown(uri, snapshot.at_s) > LIFETIME_S
            if is_old and not outcomes.is_in_view(uri):
                outcomes.dismiss(uri)
            elif shown.rename is not None and not (
                snapshot.flags.whole_renames and self.renames.is_current(shown.rename, snapshot)
            ):
                return None
            elif shown.unsure or shown.confidence >= snapshot.settings.threshold_in(
                snapshot.language, "next_edit"
            ):
                return Offer(shown, shown.replacement, "still holds")
        memory = self._memory.of(uri)
        overtaken = memory.late_edit
        if overtaken is None or overtaken.text != snapshot.text:
            return None
        memory.late_edit = None
        threshold = self._memory.gates.threshold_at(snapshot, "next_edit").threshold
        here = situation("next_edit", snapshot, self._memory, threshold, self._workspace.clock())
        filters = edit_filters(snapshot, self._workspace.context, memory.taken)
        if refuse(overtaken.edit, overtaken.confidence, replace(here, filters=filters)) is not None:
            return None
        return Offer(overtaken, overtaken.replacement, "still holds")

    def _valid_elsewhere(self, snapshot: Snapshot) -> Offer | None:
        """Return an edit of another document that is shown to the user here."""
        shown = self._memory.outcomes.find_seen_from(snapshot.uri)
        if shown is None or not snapshot.flags.other_documents:
            return None
        if shown.confidence < snapshot.settings.threshold_in(snapshot.language, "next_edit"):
            return None
        return Offer(shown, shown.replacement, "still holds")
