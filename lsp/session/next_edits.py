"""When the next edit is asked for, which one is shown, and what is kept of it.

The half of the session that predicts edits; ghost text is the other. Pure in the same way. Knows
nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from redraft.model.edits.edit import Edit
from redraft.model.edits.origins import Rename, one_origin_each, swapped
from redraft.model.gate.decide import Show as Shown
from redraft.model.gate.decide import decide, least_score, refuse, too_unsure, verdict
from redraft.model.gate.filters import Situation as EditSituation
from redraft.model.gate.filters import is_import
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Prediction
from redraft.model.rules.propose import place_key
from redraft.model.rules.renames import renames_of
from redraft.model.text.code_queries import prose_rows
from redraft.model.text.syntax import language_of

from ..documents import Splice
from ..history import Happening
from ..memory import Key, key_of, knows_length
from ..places import follows, is_astray
from ..refusals import missing_word
from ..suggestion import Suggestion
from . import other_places, questions
from .decisions import Ask, Decision, SharedState, Show
from .edit_state import EditState, TextKey, rests_at_s, which_text
from .empty_lines import is_empty_body, is_empty_body_line, writes_body
from .other_places import Situation
from .questions import Query
from .touched_names import REPORTED, Touched, caused, grown, names_of

#: Seconds after the user's last edit, in any document, in which the next one is asked for.
AFTER_EDIT_S = 10.0
#: Seconds for which a shown edit is offered again while the user edits elsewhere.
LIFETIME_S = 10.0
#: Edits computed ahead while one is shown, each for the text that those before it make.
AHEAD = 2

UNRELATED = Abstain("unrelated", "the edit has nothing to do with your last edit")
_GHOST_TEXT_SHOWN = Abstain("ghost_text_shown", "ghost text is shown at the cursor")
#: Said while other places are asked about first.
_COMMENT_LAST = Abstain("comment_last", "the next edit is in a comment, and code comes first")


class NextEdits:
    """Decides on the edits of one client."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._states: dict[str, EditState] = {}

    # --- events ----------------------------------------------------------------------------

    def changed(self, uri: str, text: Callable[[], str], happened: Happening) -> None:
        """A document changed; ``text`` gives what it is now."""
        state = self._states.get(uri)
        if state is None:
            return
        if happened == "undo":
            self._undone(state, text())
        elif happened != "accepted":
            state.accepted = None
        if state.overtaken is not None:
            followed = state.overtaken.followed(text())
            state.overtaken = followed[0] if followed else None
        if state.away is not None:  # whoever goes on here has let it pass
            away, state.away = state.away, None
            showing = self._shared.outcomes.showing(away.uri)
            if showing is not None and showing.id == away.id:
                self._shared.outcomes.dismiss(away.uri)

    def followed(self, uri: str, splices: Sequence[Splice], happened: Happening) -> None:
        """Keep track of the lines that accepted suggestions changed."""
        state = self._states.get(uri)
        if state is None:
            return
        state.taken.changed(splices, happened)
        if happened == "accepted" and state.accepted is not None:
            state.taken.accepted(state.accepted)

    def _undone(self, state: EditState, text: str) -> None:
        """The user takes back what they did: what followed from it holds no longer, and a
        suggestion that they took back is one they turned down."""
        state.overtaken = None
        accepted = state.accepted
        if accepted is not None and accepted.text == text:
            self._shared.rejections.note(accepted, self._shared.clock())
            state.accepted = None

    def waits(self, uri: str) -> bool:
        """Does anything here depend on what the document changes into?"""
        state = self._states.get(uri)
        return state is not None and any((state.overtaken, state.away, state.accepted))

    def closed(self, uri: str) -> None:
        self._states.pop(uri, None)

    def accepted(self, suggestion: Suggestion) -> None:
        state = self._state(suggestion.uri)
        state.chain = (which_text(suggestion.result), suggestion.chain)
        state.accepted = suggestion
        if suggestion.origin is None:
            return
        origin = self._state(suggestion.origin[0])
        origin.away = None
        for document in self._shared.context.documents():  # whoever stays there goes on as well
            if document.uri == suggestion.origin[0]:
                origin.chain = (which_text(document.text()), suggestion.chain)

    def turned_down(self, suggestion: Suggestion) -> None:
        """What would have followed its acceptance is of no use."""
        self._state(suggestion.uri).prefetched.clear()
        if suggestion.origin is not None:
            uri, line = suggestion.origin
            self._shared.rejections.cool(uri, line, self._shared.clock())
            self._state(uri).away = None

    def hidden(self, suggestion: Suggestion) -> None:
        """The user hid a suggestion: it is no longer shown from another document either."""
        if suggestion.origin is not None:
            self._state(suggestion.origin[0]).away = None

    def _state(self, uri: str) -> EditState:
        state = self._states.get(uri)
        if state is None:
            state = self._states[uri] = EditState()
        return state

    # --- decisions -------------------------------------------------------------------------

    def consider(self, query: Query) -> Decision:
        """What to do about a query.

        1. What is switched off, secret, too large or unreadable gets nothing.
        2. Ghost text at the cursor comes first. A gesture gets a sure edit in place of unsure ghost
           text, but for the empty line of a body.
        3. Nothing is offered by itself while undoing, after a paste, or where one was just hidden.
           Where one was just rejected, what else is known is offered, or another place.
        4. What is shown, or came a keystroke too late, stays as long as it is true: however long
           its reader thinks before Tab goes there. Nothing else is offered long after an edit.
        5. Nothing new is offered where a name is yet to be typed in place of one that is gone.
        6. What was computed ahead, or is known of this text, needs no model.
        7. Otherwise the model is asked: about the region around the cursor, and where that has no
           edit about other places that the last edit bears on.
        """
        shared = self._shared
        last = shared.history.last_edit(query.uri)
        if last is not None:
            self._state(query.uri).rhythm.asked(query, last[0], shared.clock())
        refusal = shared.refusal(query)
        if refusal is not None:
            return refusal
        if not shared.settings.next_edits:
            return Abstain(
                "next_edits_disabled", "next edits are switched off (setting next_edits)"
            )
        if self._gives_way(query):
            return _GHOST_TEXT_SHOWN
        wrong = shared.wrong_moment(query) or shared.hidden(query, "next_edit")
        if wrong is not None:
            return wrong
        kept, late = self._kept(query), self._long_after(query)
        if kept is None and late is not None:
            kept = self._kept_elsewhere(query)
        if kept is not None:
            return self._show(kept, query)
        return shared.cooled(query, late or self._half_typed(query) or self.look(query))

    def look(self, query: Query) -> Decision:
        """What is known of the text around a query and of other places, or what to ask next."""
        shared = self._shared
        region, others = shared.context.region(query), other_places.others(shared, query.uri)
        request = questions.next_edit(query, shared.settings, region)
        delay_ms = shared.delay_ms(query, "next_edit")
        ask = Ask(query, request, delay_ms, "nothing known about this text yet", others=others)
        reported = self._look_where_reported(query, region)
        if reported is not None:
            return reported
        known, reason = self._known(ask)
        if known is None:
            return self._while_typing(ask) or ask
        decision = self._decide(ask, known, reason)
        if isinstance(decision, Abstain):
            found = self._look_elsewhere(self._situation(query), region, decision)
            return self._unsure(ask, known, found) if isinstance(found, Abstain) else found
        if self._is_prose(decision.suggestion):
            found = self._look_elsewhere(self._situation(query), region, _COMMENT_LAST)
            if not isinstance(found, Abstain):
                return found
        return self._show(decision, query)

    def _situation(self, query: Query) -> Situation:
        """The documents and the history as they are."""
        shared = self._shared
        shared.history.flush()
        told = shared.context.diagnostics(query)
        return Situation(query, shared.history.edits(), diagnostics=told)

    def _is_prose(self, suggestion: Suggestion) -> bool:
        """Does an edit change comments or docstrings alone, in lines that are there?"""
        first, last = suggestion.lines
        rows = prose_rows(suggestion.text, language_of(suggestion.uri) or "")
        return bool(suggestion.text[suggestion.start : suggestion.end]) and all(
            row in rows for row in range(first, last)
        )

    def _unsure(self, ask: Ask, known: Prediction, found: Abstain) -> Show | Abstain:
        """Return what a gesture shows of an edit here that is too unsure, or ``found``.

        Without a gesture the edit stays hidden, and the reason says that a gesture shows it.
        """
        best = self._decide(ask, known, "asked for", gated=False)
        if not isinstance(best, Show):
            return found
        if not ask.query.invoked:
            reason = best.suggestion.unsure or found.reason
            return Abstain("below_threshold", reason, is_revealable=True)
        return found if self._has_ghost(ask.query) else self._show(best, ask.query)

    def _while_typing(self, ask: Ask) -> Decision | None:
        """What is known, or to be asked, without the edit in progress; where that leads nowhere,
        ``ask`` itself once the keys rest. None: nobody is typing."""
        shared, query = self._shared, ask.query
        now_s, rhythm = shared.clock(), self._state(query.uri).rhythm
        until_s = rests_at_s(shared.history, rhythm, query, now_s)
        if until_s is None:
            return None
        typed = replace(ask, unfinished=True, request=questions.near_typed(ask.request, query.line))
        known, reason = self._known(typed)
        if known is None:
            return typed
        decision = self._decide(typed, known, reason)
        if isinstance(decision, Show):
            return self._show(decision, query)
        return replace(ask, not_before_s=until_s)

    def _look_elsewhere(
        self, situation: Situation, near: tuple[int, int], nearly: Abstain
    ) -> Decision:
        """Return what is known of the places that the last edit bears on, or which to ask about.

        The region around the cursor has no edit. Where nothing is shown, the reason is about the
        first edit that the model proposed, at the cursor or elsewhere.
        """
        reason_of_first = nearly if nearly.kind != "nothing_to_do" else None
        for ask in other_places.questions(self._shared, situation, near):
            known, reason = self._known(ask)
            if known is None:
                return ask
            decision = self._decide(ask, known, f"{reason} ({ask.reason})", situation.names)
            if isinstance(decision, Show):
                return self._show(decision, situation.query)
            if reason_of_first is None and decision.kind != "nothing_to_do":
                told = f"in {other_places.where(ask)}, {decision.reason}"
                reason_of_first = replace(decision, reason=told)
        return reason_of_first or nearly

    def _look_where_reported(self, query: Query, near: tuple[int, int]) -> Decision | None:
        """What is known of the places where the editor reports what the last edits caused, or which
        to ask about; None where nothing is reported outside of the region, or a line is typed."""
        shared = self._shared
        rhythm = self._state(query.uri).rhythm
        if not shared.context.diagnostics(query):
            return None
        if rests_at_s(shared.history, rhythm, query, shared.clock()) is not None:
            return None
        situation = self._situation(query)
        for ask in other_places.questions(shared, situation, near):
            if ask.about is None or ask.about.why != REPORTED:
                return None
            known, reason = self._known(ask)
            if known is None:
                return ask
            decision = self._decide(ask, known, f"{reason} ({ask.reason})", situation.names)
            if isinstance(decision, Show):
                return self._show(decision, query)
        return None

    def _known(self, ask: Ask) -> tuple[Prediction | None, str]:
        """The answer to a question, where there is no need to ask it."""
        shared, prefetched = self._shared, self._state(ask.asked_from.uri).prefetched
        known = None
        if not ask.unfinished and knows_length(prefetched, ask.request.text):
            known = prefetched.get(_key_ahead(ask))
        if known is not None:
            shared.results.put(ask.request, known, ask.others)
            return known, "computed beforehand"
        return shared.results.get(ask.request, ask.others, ask.unfinished), "same text as before"

    def settle(
        self,
        ask: Ask,
        prediction: Prediction,
        revision: int | None,
        text: Callable[[], str],
        target: int | None,
    ) -> Show | Abstain:
        """What to do with the model's answer; see ``Session.settle``."""
        if revision is None:
            return Abstain("document_closed", "the file was closed")
        stale = Abstain("document_changed", "the text changed while the model was working")
        if ask.origin is not None:
            if revision != ask.origin.revision:
                return stale
            if target != ask.query.revision:
                gone = "was closed" if target is None else "changed"
                return Abstain(
                    "target_changed", f"{ask.query.path} {gone} while the model was working"
                )
            reason = f"from the model ({ask.reason})"
            told = self._shared.context.diagnostics(ask.origin)
            decision = self._decide(ask, prediction, reason, names_of(ask.request.edits, told))
            return self._show(decision, ask.origin)
        decision = self._decide(ask, prediction, "from the model")
        if revision != ask.query.revision:
            if isinstance(decision, Show):
                self._overtaken(decision.suggestion, text())
                self._shared.outcomes.cancelled(decision.suggestion)
            return stale
        if (
            isinstance(decision, Show)
            and not ask.unfinished
            and self._is_prose(decision.suggestion)
        ):
            region = ask.request.region
            assert region is not None, "a next edit has one"
            places = other_places.questions(self._shared, self._situation(ask.query), region)
            if next(places, None) is not None:
                return _COMMENT_LAST
        return self._show(decision, ask.query)

    def _overtaken(self, suggestion: Suggestion, text: str) -> None:
        """Its answer came too late for its text. Whatever was typed meanwhile, it may still hold;
        not where the user takes back what it follows from."""
        followed = suggestion.followed(text)
        undone = self._shared.history.happened(suggestion.uri) == "undo"
        self._state(suggestion.uri).overtaken = followed[0] if followed and not undone else None

    def _has_ghost(self, query: Query) -> bool:
        showing = self._shared.outcomes.showing(query.uri)
        if showing is None or showing.task != "infill":
            return False
        return bool(showing.rest(query.text, query.cursor))

    def _gives_way(self, query: Query) -> bool:
        """Is ghost text shown at the cursor that an edit must not replace?"""
        if not self._has_ghost(query):
            return False
        showing = self._shared.outcomes.showing(query.uri)
        unsure = showing is not None and bool(showing.unsure)
        return not (query.invoked and unsure) or is_empty_body_line(query.text, query.cursor)

    def _long_after(self, query: Query) -> Abstain | None:
        if query.invoked:
            return None
        last_s = self._shared.history.last_edit_s()
        if last_s is None:
            return Abstain("nothing_edited", "you have not edited anything yet")
        ago = self._shared.clock() - last_s
        if ago > AFTER_EDIT_S:
            return Abstain("no_recent_edit", f"your last edit is more than {AFTER_EDIT_S:g} s ago")
        return None

    def _half_typed(self, query: Query) -> Abstain | None:
        if query.invoked:
            return None
        gone = missing_word(self._shared.history.just_done(query.uri), query)
        said = f"you have not typed yet what replaces '{gone}'"
        return Abstain("half_typed", said) if gone else None

    def _kept(self, query: Query) -> Show | None:
        """An earlier suggestion that is still true of the text."""
        shared, uri = self._shared, query.uri
        showing = shared.outcomes.showing(uri)
        if showing is not None and showing.task == "next_edit" and showing.text == query.text:
            old = shared.outcomes.shown_for_s(uri, shared.clock()) > LIFETIME_S
            if old and not shared.outcomes.is_in_view(uri):
                shared.outcomes.dismiss(uri)
            elif showing.unsure or showing.confidence >= shared.settings.threshold:
                return Show(showing, showing.replacement, "still holds")
        state = self._states.get(uri)
        overtaken = state.overtaken if state else None
        if state is None or overtaken is None or overtaken.text != query.text:
            return None
        state.overtaken = None
        situation = self._shared.situation("next_edit", query)
        situation = replace(situation, filters=self._filters(query))
        if refuse(overtaken.edit, overtaken.confidence, situation) is not None:
            return None
        return Show(overtaken, overtaken.replacement, "still holds")

    def _kept_elsewhere(self, query: Query) -> Show | None:
        """An edit of another document that is shown to who is here; who edits here lets it pass."""
        state = self._states.get(query.uri)
        away = state.away if state is not None else None
        showing = self._shared.outcomes.showing(away.uri) if away is not None else None
        if away is None or showing is None or showing.id != away.id or not query.other_documents:
            return None
        sure = showing.confidence >= self._shared.settings.threshold
        return Show(showing, showing.replacement, "still holds") if sure else None

    def _decide(
        self,
        ask: Ask,
        prediction: Prediction,
        reason: str,
        names: Sequence[Touched] | None = None,
        gated: bool = True,
    ) -> Show | Abstain:
        """Return the first candidate that may be shown, or why the best one may not.

        Args:
            names: about another place than the cursor's: the names that led there.
            gated: the gate's threshold counts.
        """
        shared, query = self._shared, ask.query
        reported = self._reported(query)
        parameters = grown(shared.history.edits(unfinished=True))
        about = None if names is None else [*names, *([ask.about] if ask.about else [])]

        def unrelated(edit: Edit) -> Abstain | None:
            is_related = about is None or follows(edit, about)
            return None if is_related and not is_astray(edit, parameters) else UNRELATED

        situation = shared.situation("next_edit", query)
        situation = replace(
            situation,
            threshold=situation.threshold if gated else 0.0,
            reported=reported,
            nothing=prediction.reason or "the model would change nothing here",
            filters=(unrelated, *self._filters(query)),
        )
        parts = list(self._parts(ask, prediction))
        if reported:  # what repairs an error of the last edits comes first
            parts.sort(key=lambda each: reported.isdisjoint(range(*_edit(query, each).lines)))
        found = decide(parts, situation, shared.gate())
        if isinstance(found, Abstain):
            return found
        found = self._first_in_order(ask, found, parts, situation)
        usual = replace(situation, threshold=shared.settings.threshold)
        doubt = too_unsure(found.score, least_score(found.edit, usual))
        made = replace(
            self._suggestion(ask, found, prediction), unsure=doubt.reason if doubt else ""
        )
        suggestion = self._named(ask, made)
        return Show(suggestion, suggestion.replacement, reason)

    def _filters(self, query: Query) -> tuple[Callable[[Edit], Abstain | None], ...]:
        """Return what refuses edits of the query's document besides the filters of all."""
        state = self._states.get(query.uri)
        reach = partial(self._shared.reaches_too_far, query)
        if state is None or query.invoked:
            return (reach,)
        return state.taken.refuse, partial(_beside_empty_body, query), reach

    def _parts(self, ask: Ask, prediction: Prediction) -> Iterator[Candidate]:
        """Yield the candidates of a prediction cut into parts of one origin, the best first."""
        renames = self._renames()
        for candidate in prediction.candidates:
            for part in one_origin_each(_edit(ask.query, candidate), renames, ask.query.line):
                least = part.least()
                yield replace(candidate, start=least.start, end=least.end, text=least.new)

    def _reported(self, query: Query) -> frozenset[int]:
        """Return the lines, 0-based, of which the editor reports what the last edits caused."""
        told = self._shared.context.diagnostics(query)
        if not told:
            return frozenset()
        edits = self._shared.history.edits(unfinished=True)
        return frozenset(line for line, _ in caused(edits, told, query.text.split("\n")))

    def _renames(self) -> frozenset[Rename]:
        return renames_of(self._shared.history.edits(unfinished=True))

    def _first_in_order(
        self, ask: Ask, best: Shown, parts: Sequence[Candidate], situation: EditSituation
    ) -> Shown:
        """Return the first in order of the edits that do the same as the best one elsewhere.

        Code comes before comments, and what is below the user before what is above.
        """
        query = ask.query
        line = ask.asked_from.line if query.uri == ask.asked_from.uri else 0
        lines = query.text.split("\n")
        prose = prose_rows(query.text, query.language)
        deed = _deed(best.edit)

        def key(edit: Edit) -> tuple[int, ...]:
            first = edit.lines[0]
            return first in prose, *place_key(lines[first], deed[0][0], first, line)

        edits = [(_edit(query, each), each) for each in parts if each is not best.candidate]
        rivals = [(key(edit), each) for edit, each in edits if _deed(edit) == deed] if deed else []
        for place, each in sorted(rivals, key=lambda rival: rival[0]):
            if place >= key(best.edit):
                break
            found = verdict(each, situation, self._shared.gate())
            if isinstance(found, Shown):
                return found
        return best

    def _suggestion(self, ask: Ask, shown: Shown, prediction: Prediction) -> Suggestion:
        query, origin = ask.query, ask.asked_from
        here = query.uri == origin.uri
        return replace(
            self._shared.suggestion(query, "next_edit", shown, prediction),
            cursor=origin.cursor if here else query.cursor,
            origin=None if here else (origin.uri, origin.line),
        )

    def _named(self, ask: Ask, made: Suggestion) -> Suggestion:
        """``made`` with its id and its place in a chain."""
        origin, found = ask.asked_from, self._shared.named(made)
        if found.chain:  # shown already
            return found
        chain = self._state(origin.uri).chain
        goes_on = chain is not None and chain[0] == which_text(origin.text)
        return replace(found, chain=chain[1] if chain and goes_on else found.id)

    def _show(self, decision: Show | Abstain, query: Query) -> Show | Abstain:
        """Remember what the user, who is where ``query`` says, gets to see."""
        if isinstance(decision, Show) and self._gives_way(query):
            return _GHOST_TEXT_SHOWN
        if isinstance(decision, Show):
            suggestion, state = decision.suggestion, self._state(query.uri)
            if state.away is not None and state.away.id != suggestion.id:
                self._shared.outcomes.give_way(state.away)
            state.away = suggestion if suggestion.uri != query.uri else None
            self._shared.outcomes.show(suggestion, self._shared.clock())
        return decision

    # --- prefetch --------------------------------------------------------------------------

    def follow_up(self, query: Query, shown: Suggestion) -> Ask | None:
        """The next question that acceptance of what is ``shown`` will raise, or acceptance of what
        is then known to follow; None: not wanted, or all of them are answered already."""
        shared = self._shared
        showing = shared.outcomes.showing(shown.uri)
        if not shared.settings.prefetch or showing is None or showing.id != shown.id:
            return None
        state = self._state(shown.uri)
        if state.prefetched_chain != shown.chain:
            state.prefetched, state.prefetched_chain = {}, shown.chain
        state.prefetched_for = shown.id
        situation = other_places.after(shared, query, shown)
        for _ in range(AHEAD):
            if situation is None or situation.query.uri != shown.uri:
                return None
            found = self._following(situation)
            if found is None:
                return None
            if isinstance(found, Ask):
                related = shared.context.related(_query_of_related(found), "next_edit")
                known = shared.context.importable(found.query, situation.edits)
                request = replace(
                    found.request, edits=situation.edits, related=related, importable=known
                )
                why = "in case the edit is accepted"
                return replace(found, request=request, delay_ms=0.0, reason=why)
            situation = other_places.after(shared, situation.query, found, situation)
        return None

    def _following(self, situation: Situation) -> Ask | Suggestion | None:
        """What is known to follow in a situation, or the question to be asked next; None where
        nothing follows."""
        shared, query = self._shared, situation.query
        region = shared.context.region(query)
        others = other_places.others(shared, query.uri, situation.accepted)
        request = questions.next_edit(query, shared.settings, region)
        prefetched = self._state(query.uri).prefetched
        here = Ask(query, request, 0.0, "", others=others)
        for ask in chain([here], other_places.questions(shared, situation, region)):
            known = prefetched.get(_key_ahead(ask))
            found = ask if known is None else self._promised(ask, known)
            if found is not None:
                return found
        return None

    def _promised(self, ask: Ask, prediction: Prediction) -> Suggestion | None:
        """Return what will most likely be shown of a prediction; None if all scores are too low."""
        shared = self._shared
        for each in self._parts(ask, prediction):
            score = shared.gate().score(each, "next_edit", shared.pace.features(shared.clock()))
            if score >= shared.settings.threshold:
                return self._suggestion(ask, Shown(_edit(ask.query, each), each, score), prediction)
        return None

    def prefetched(self, ask: Ask, prediction: Prediction) -> None:
        """The answer to a follow-up."""
        uri = ask.asked_from.uri
        state = self._state(uri)
        # Acceptance may be quicker than the answer; the question for what follows is yet to come.
        accepted = state.accepted is not None and state.accepted.id == state.prefetched_for
        if accepted or self._shared.outcomes.showing(uri) is not None:
            state.prefetched[_key_ahead(ask)] = prediction


def _beside_empty_body(query: Query, edit: Edit) -> Abstain | None:
    """Refuse new lines beside a body that is still empty: the user is about to write that body.

    Imports are allowed.
    """
    start, end, new = edit.shape()
    added = [line for line in new.split("\n") if line.strip()]
    if edit.text[start:end].strip() or is_import(added):
        return None
    if not is_empty_body(query.text, query.cursor) or writes_body(edit, query.cursor):
        return None
    return Abstain("body_first", "the body at the cursor is still empty and comes first")


def _edit(query: Query, candidate: Candidate) -> Edit:
    return Edit(query.text, candidate.start, candidate.end, candidate.text)


def _deed(edit: Edit) -> tuple[Rename, ...]:
    """Return what an edit does, wherever it is."""
    start, end, new = edit.whole_lines()
    return swapped(edit.text[start:end], new)


def _key_ahead(ask: Ask) -> TextKey | Key:
    """By what an answer is known that was computed beforehand."""
    return which_text(ask.query.text) if ask.origin is None else key_of(ask.request, ask.others)


def _query_of_related(ask: Ask) -> Query:
    """The query whose related files go with a question: in the same file the user's own, so that
    the prompts begin alike."""
    return ask.query if ask.query.uri != ask.asked_from.uri else ask.asked_from
