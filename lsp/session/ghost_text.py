"""When ghost text is asked for, and which is shown.

The half of the session that predicts what is written at the cursor; next edits are the other. Pure
in the same way. Knows nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import decide, too_unsure
from redraft.model.gate.filters import CHEAP, NOTHING_TO_ADD, first_reason
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction
from redraft.model.rules.renames import renames_of
from redraft.model.text.cursor import is_free, line_after, line_before

from ..suggestion import Suggestion
from . import questions
from .decisions import Ask, Decision, SharedState, Show
from .empty_lines import is_empty_body_line
from .questions import Query

#: Suggestions of a document that typing may still confirm, shown or overtaken by a keystroke.
_RECENT = 4

_RENAMING = Abstain("renaming", "you are replacing a name here")
_NEXT_EDIT_SHOWN = Abstain("next_edit_shown", "a next edit is shown")


class GhostText:
    """Decides on the ghost text of one client."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._recent: dict[str, deque[Suggestion]] = {}  # by document

    def closed(self, uri: str) -> None:
        self._recent.pop(uri, None)

    def consider(self, query: Query) -> Decision:
        """What to do about a query.

        1. What is switched off, secret, too large or unreadable gets nothing.
        2. A next edit that is shown and still agrees with the document stays, but for the empty
           line of a body: there ghost text comes first.
        3. What is shown or was just computed still holds while the user types it.
        4. The same question again has the same answer.
        5. A paste, an undo, a rejection is no moment to ask, unless by gesture; nor is the line in
           which a suggestion was hidden; nor a name that the user is just replacing, where the next
           edit goes on with the rename.
        6. Otherwise the model is asked: at once by gesture, after the debounce when typing.
        """
        shared = self._shared
        refusal = shared.refusal(query)
        if refusal is not None:
            return refusal
        if self._gives_way(query):
            return _NEXT_EDIT_SHOWN
        hidden = shared.hidden(query, "infill")
        if hidden is not None:
            return hidden
        if not query.invoked and self._is_renaming(query):
            return _RENAMING
        kept = self._typed_through(query)
        if kept is not None:
            return self._show(kept)
        request = questions.infill(query, shared.settings)
        known = self._known(query, request)
        if known is not None:
            return self._show(self._decide(query, known, "same text and cursor as before"))
        wrong = shared.wrong_moment(query)
        if wrong is not None:
            return wrong
        delay_ms = shared.delay_ms(query, "infill")
        ask = Ask(query, request, delay_ms, "nothing known about this text yet")
        return shared.cooled(query, ask)

    def _known(self, query: Query, request: EditRequest) -> Prediction | None:
        """The answer to a question, where there is no need to ask it: what was not given up is the
        same whether a gesture asks for it or not."""
        results = self._shared.results
        if not results.may_know(query.text):
            return None
        other = replace(query, invoked=not query.invoked)
        otherwise = results.get(questions.infill(other, self._shared.settings))
        if otherwise is not None and query.invoked and not otherwise.candidates:
            otherwise = None  # it may have been given up
        return results.get(request) or otherwise

    def settle(self, ask: Ask, prediction: Prediction, revision: int | None) -> Show | Abstain:
        """What to do with the model's answer; see ``Session.settle``."""
        decision = self._decide(ask.query, prediction, "from the model")
        if revision is None:
            return Abstain("document_closed", "the file was closed")
        if revision != ask.query.revision:
            if isinstance(decision, Show):
                self._keep(decision.suggestion)
                self._shared.outcomes.cancelled(decision.suggestion)
            return Abstain("document_changed", "the text changed while the model was working")
        if self._gives_way(ask.query):
            return _NEXT_EDIT_SHOWN
        return self._show(decision)

    def _gives_way(self, query: Query) -> bool:
        """Return whether a next edit is shown that ghost text must not replace. A gesture replaces
        an unsure one."""
        showing = self._shared.shown_edit(query.uri, query.text)
        if showing is None or not self._shared.outcomes.is_in_view(query.uri):
            return False
        if query.invoked and showing.unsure:
            return False
        first, last = showing.lines
        writes_here = first <= query.line < last
        return writes_here or not is_empty_body_line(query.text, query.cursor)

    def _is_renaming(self, query: Query) -> bool:
        """Return whether the cursor stands behind a name that has just replaced another one, with
        code behind it on the line: ghost text could only make the name longer."""
        before, rest = line_before(query.text, query.cursor), line_after(query.text, query.cursor)
        if is_free(rest) or not before[-1:].isidentifier() or rest[:1].isidentifier():
            return False
        renames = renames_of(self._shared.history.edits(unfinished=True))
        return any(before.endswith(new) for _, new in renames)

    def _typed_through(self, query: Query) -> Show | None:
        shared = self._shared
        for suggestion in self._recent.get(query.uri, ()):
            sure = suggestion.unsure or suggestion.confidence >= shared.settings.threshold
            left = _left(suggestion, query) if sure else None
            if left is None:
                continue
            edit = Edit(query.text, query.cursor, query.cursor, left[1])
            refused = first_reason(CHEAP["infill"], edit, shared.situation("infill", query))
            if refused is None and not shared.rejections.know(suggestion.uri, suggestion.edit):
                return Show(*left, "typed so far as suggested")
        return None

    def _decide(self, query: Query, prediction: Prediction, reason: str) -> Show | Abstain:
        """Return the first candidate that may be shown, or why the best one may not."""
        shared = self._shared
        situation = shared.situation("infill", query)
        situation = replace(situation, nothing=prediction.reason or NOTHING_TO_ADD)
        if query.invoked:  # by a gesture, unsure text and deleted text may be shown as well
            situation = replace(situation, changes=(), threshold=0.0)
        found = decide(prediction.candidates, situation, shared.gate())
        if isinstance(found, Abstain):
            return self._marked(query, prediction, found)
        made = shared.named(shared.suggestion(query, "infill", found, prediction))
        doubt = too_unsure(made.confidence, shared.settings.threshold)
        made = replace(made, unsure=doubt.reason if doubt else "")
        return Show(made, made.replacement, reason)

    def _marked(self, query: Query, prediction: Prediction, found: Abstain) -> Abstain:
        """Return ``found``, marked if a gesture would show what is hidden."""
        if query.invoked:
            return found
        if prediction.is_given_up:  # the model finishes what a gesture asks for
            return replace(found, is_revealable=True)
        if found.kind not in ("below_threshold", "reversal"):
            return found
        best = self._decide(replace(query, invoked=True), prediction, "asked for")
        return replace(found, is_revealable=isinstance(best, Show))

    def _show(self, decision: Show | Abstain) -> Show | Abstain:
        if isinstance(decision, Show):
            self._keep(decision.suggestion)
            self._shared.outcomes.show(decision.suggestion, self._shared.clock())
        return decision

    def _keep(self, suggestion: Suggestion) -> None:
        """Remember a suggestion for as long as typing may still confirm it."""
        recent = self._recent.setdefault(suggestion.uri, deque(maxlen=_RECENT))
        if all(kept.id != suggestion.id for kept in recent):
            recent.appendleft(suggestion)


def _left(suggestion: Suggestion, query: Query) -> tuple[Suggestion, str] | None:
    """A suggestion of which some was typed, and what is left of it at the query's cursor; None
    where it no longer holds."""
    rest = suggestion.rest(query.text, query.cursor)
    typed = suggestion.replacement[: query.cursor - suggestion.cursor]
    if not rest or suggestion.inserted(query.text) == typed:
        return (suggestion, rest) if rest else None
    # The editor closed what was opened: what is left has to fit before that.
    made = fit(rest, query, replaces=True)
    if isinstance(made, Abstain):
        return None
    moved = replace(suggestion, text=query.text, cursor=query.cursor, start=made.start)
    return replace(moved, end=made.end, replacement=made.new), made.new
