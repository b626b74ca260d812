"""When the next edit is asked for, which one is shown, and what is kept of it.

The half of the session that predicts edits; ghost text is the other. Pure in the same way. Knows
nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..model.records import Candidate, Prediction
from . import edit_rules, requests
from .decisions import Abstain, Ask, Decision, Desk, Show
from .history import SHOWN_EDITS, if_accepted
from .requests import Query
from .spans import Span
from .suggestions import Suggestion

#: Seconds after the user's last edit, in any document, in which the next one is asked for.
AFTER_EDIT_S = 10.0
#: Seconds for which a shown edit is offered again while the user edits elsewhere.
LIFETIME_S = 10.0

_Text = tuple[int, int]  # length and hash: which text, without keeping it


@dataclass(slots=True)
class _State:
    """What is remembered of one document."""

    overtaken: Suggestion | None = None  # its answer came too late for its text; it still holds
    foreseen: tuple[_Text, Prediction] | None = None  # what follows the shown edit's acceptance
    chain: tuple[_Text, str] | None = None  # what acceptance made of the text, and its chain


class NextEdits:
    """Decides on the edits of one client."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._states: dict[str, _State] = {}

    # --- events ----------------------------------------------------------------------------

    def changed(self, uri: str, text: Callable[[], str]) -> None:
        """A document changed; ``text`` gives what it is now."""
        state = self._states.get(uri)
        if state is not None and state.overtaken is not None:
            followed = state.overtaken.followed(text())
            state.overtaken = followed[0] if followed else None

    def waits(self, uri: str) -> bool:
        """Does anything here depend on what the document changes into?"""
        state = self._states.get(uri)
        return state is not None and state.overtaken is not None

    def closed(self, uri: str) -> None:
        self._states.pop(uri, None)

    def accepted(self, suggestion: Suggestion) -> None:
        self._state(suggestion.uri).chain = (_which(suggestion.result), suggestion.chain)

    def turned_down(self, suggestion: Suggestion) -> None:
        """What would have followed its acceptance is of no use."""
        self._state(suggestion.uri).foreseen = None

    def _state(self, uri: str) -> _State:
        return self._states.setdefault(uri, _State())

    # --- decisions -------------------------------------------------------------------------

    def consider(self, query: Query) -> Decision:
        """What to do about a query.

        1. What is switched off, secret, too large or unreadable gets nothing.
        2. Ghost text at the cursor comes first.
        3. Nothing is offered by itself while undoing, after a paste, long after the last edit, or
           where one was just turned down.
        4. What is shown, or came a keystroke too late, stays as long as it is true.
        5. What was foreseen, or is known of this text, needs no model.
        6. Otherwise the model is asked.
        """
        desk = self._desk
        refusal = desk.refusal(query)
        if refusal is not None:
            return refusal
        if not desk.settings.next_edits:
            return Abstain("next edits are switched off by the setting next_edits", off=True)
        if not query.invoked and self._has_ghost(query):
            return Abstain("ghost text is shown at the cursor")
        wrong = desk.wrong_moment(query) or self._long_after(query)
        if wrong is not None:
            return wrong
        kept = self._kept(query)
        if kept is not None:
            return self._show(kept)
        request = requests.next_edit(query, desk.settings, desk.context.region(query))
        known, reason = self._foreseen(query.uri, query.text), "computed beforehand"
        if known is None:
            known, reason = desk.results.get(request), "same text as before"
        if known is not None:
            return self._show(self._judge(query, known, reason))
        delay_ms = desk.delay_ms(query, "next_edit")
        return Ask(query, request, delay_ms, "nothing known about this text yet")

    def settle(
        self, ask: Ask, prediction: Prediction, revision: int | None, text: Callable[[], str]
    ) -> Show | Abstain:
        """What to do with the model's answer; see ``Session.settle``."""
        decision = self._judge(ask.query, prediction, "from the model")
        if revision is None:
            return Abstain("the document was closed", stale=True)
        if revision != ask.query.revision:
            if isinstance(decision, Show):
                followed = decision.suggestion.followed(text())
                self._state(ask.query.uri).overtaken = followed[0] if followed else None
                self._desk.outcomes.cancelled(decision.suggestion)
            return Abstain("the document changed while the model was thinking", stale=True)
        return self._show(decision)

    def _has_ghost(self, query: Query) -> bool:
        showing = self._desk.outcomes.showing(query.uri)
        if showing is None or showing.task != "infill":
            return False
        return bool(showing.rest(query.text, query.cursor))

    def _long_after(self, query: Query) -> Abstain | None:
        if query.invoked:
            return None
        last_s = self._desk.history.last_edit_s()
        if last_s is None:
            return Abstain("nothing was edited yet")
        ago = self._desk.clock() - last_s
        if ago > AFTER_EDIT_S:
            return Abstain(f"no edit in the last {AFTER_EDIT_S:g} s")
        return None

    def _kept(self, query: Query) -> Show | None:
        """An earlier suggestion that is still true of the text."""
        desk, uri = self._desk, query.uri
        showing = desk.outcomes.showing(uri)
        if showing is not None and showing.task == "next_edit" and showing.text == query.text:
            old = desk.outcomes.shown_for_s(uri, desk.clock()) > LIFETIME_S
            if old and not desk.outcomes.is_in_view(uri):
                desk.outcomes.dismiss(uri)
            elif showing.confidence >= desk.settings.edit_threshold:
                return Show(showing, showing.replacement, "still holds")
        state = self._states.get(uri)
        overtaken = state.overtaken if state else None
        if state is None or overtaken is None or overtaken.text != query.text:
            return None
        state.overtaken = None
        objection = self._objection(query, overtaken)
        return None if objection else Show(overtaken, overtaken.replacement, "still holds")

    def _foreseen(self, uri: str, text: str) -> Prediction | None:
        state = self._states.get(uri)
        if state is None or state.foreseen is None:
            return None
        which, prediction = state.foreseen
        return prediction if which == _which(text) else None

    def _judge(self, query: Query, prediction: Prediction, reason: str) -> Show | Abstain:
        """The first candidate worth showing, or what speaks against the best one."""
        objections = []
        for candidate in prediction.candidates:
            suggestion = self._suggestion(query, candidate, prediction)
            objection = self._objection(query, suggestion)
            if not objection:
                return Show(suggestion, suggestion.replacement, reason)
            objections.append(objection)
        nothing = prediction.reason or "the model would change nothing here"
        return Abstain(objections[0] if objections else nothing)

    def _objection(self, query: Query, suggestion: Suggestion) -> str:
        desk = self._desk
        mean, threshold = suggestion.confidence, desk.settings.edit_threshold
        last = desk.history.last_edit(query.uri)
        refused = edit_rules.refuse_edit(
            suggestion, desk.history.just_done(query.uri), query.line, last[1] if last else None
        )
        if refused:
            return refused
        if mean < threshold:
            return f"below threshold {mean:.2f} < {threshold:.2f}"
        if desk.rejections.know(suggestion):
            return "this edit was rejected before"
        return edit_rules.refuse_syntax(suggestion, query.path, query.language)

    def _suggestion(self, query: Query, candidate: Candidate, prediction: Prediction) -> Suggestion:
        made = Suggestion(
            id="",
            uri=query.uri,
            task="next_edit",
            text=query.text,
            cursor=query.cursor,
            start=candidate.start,
            end=candidate.end,
            replacement=candidate.text,
            confidence=candidate.confidence.mean,
            model=prediction.model,
        ).least()
        showing = self._desk.outcomes.showing(query.uri)
        if showing and replace(showing, id="", chain="", cursor=query.cursor) == made:
            return showing  # asked for again: still the same one
        id_ = self._desk.new_id()
        chain = self._state(query.uri).chain
        follows = chain is not None and chain[0] == _which(query.text)
        return replace(made, id=id_, chain=chain[1] if chain and follows else id_)

    def _show(self, decision: Show | Abstain) -> Show | Abstain:
        if isinstance(decision, Show):
            self._desk.outcomes.show(decision.suggestion, self._desk.clock())
        return decision

    # --- prefetch --------------------------------------------------------------------------

    def follow_up(self, query: Query, shown: Suggestion) -> Ask | None:
        """The question that acceptance of what is ``shown`` will raise; None: not wanted, or
        answered already."""
        desk, result = self._desk, shown.result
        if not desk.settings.prefetch or self._foreseen(shown.uri, result) is not None:
            return None
        query = replace(query, text=result, cursor=shown.landing)
        request = requests.next_edit(query, desk.settings, desk.context.region(query))
        start, end, new = shown.whole_lines()
        old, first = shown.text[start:end], shown.text.count("\n", 0, start)
        span = Span(first, tuple(old.split("\n")), tuple(new.split("\n")))
        edits = desk.history.edits() + if_accepted(query.path, span, result.split("\n"))
        related = desk.context.related(query, "next_edit")
        request = replace(request, edits=edits[-SHOWN_EDITS:], related=related)
        return Ask(query, request, 0.0, "in case the edit is accepted")

    def foresee(self, ask: Ask, prediction: Prediction) -> None:
        """The answer to a follow-up."""
        if self._desk.outcomes.showing(ask.query.uri) is not None:
            state = self._state(ask.query.uri)
            state.foreseen = (_which(ask.query.text), prediction)


def _which(text: str) -> _Text:
    return len(text), hash(text)
