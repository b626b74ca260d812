"""When to ask the model, what of earlier answers still holds, and what is shown.

One session per client, with a little state per document. Pure: it is told of events, reads the
injected clock, and answers with a decision that carries its reason. It never awaits, sends or
computes anything itself, so recordings replay through it. Ghost text is decided here, the next
edit in :mod:`.next_edits`. Knows nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from redraft.model.edits.gate import sureness, unsure
from redraft.model.edits.rules import undoes
from redraft.model.records import Candidate, Prediction

from ..context.secret_texts import secret_in
from ..editor.documents import Splice
from ..editor.history import History
from ..settings import LspSettings
from . import exclusions, questions
from .decisions import Abstain, Ask, Decision, Desk, Show
from .next_edits import NextEdits
from .outcomes import Outcomes, Settled
from .questions import Context, PlainContext, Query
from .suggestions import Suggestion

#: Suggestions of a document that typing may still confirm, shown or overtaken by a keystroke.
_RECENT = 4


class Session:
    """Decides for one client. ``clock`` reads seconds and never goes back."""

    def __init__(
        self,
        settings: LspSettings,
        clock: Callable[[], float],
        listener: Callable[[Settled], None] = lambda settled: None,
        context: Context | None = None,
    ) -> None:
        self.history = History(clock, self._refuse)
        self._listener = listener
        self._outcomes = Outcomes(self._settled)
        self._desk = Desk(settings, clock, context or PlainContext(), self.history, self._outcomes)
        self._edits = NextEdits(self._desk)
        self._recent: dict[str, deque[Suggestion]] = {}  # by document

    def _refuse(self, path: str, uri: str) -> str:
        return exclusions.refuse_file(path, self.settings, uri)

    @property
    def settings(self) -> LspSettings:
        return self._desk.settings

    @settings.setter
    def settings(self, settings: LspSettings) -> None:
        self._desk.settings = settings

    # --- events ----------------------------------------------------------------------------

    def opened(self, uri: str, path: str, lines: Sequence[str]) -> None:
        """A document is there with these ``lines``, or can be trusted again."""
        if secret_in("\n".join(lines), path):
            self.history.closed(uri)  # what is done in it goes into no question about another
        else:
            self.history.opened(uri, path, lines)

    def changed(self, uri: str, splices: Sequence[Splice], text: Callable[[], str]) -> None:
        """A document was changed by ``splices``. ``text`` gives what it is now, if that is
        needed."""
        accepted = False
        if self._outcomes.watches(uri):
            accepted = self._outcomes.document_is(uri, text(), self._desk.clock())
        self._desk.rejections.changed(uri, splices)
        happened = self.history.changed(uri, splices, accepted=accepted)
        if happened == "undo" and self._shows_any_edit(uri):
            self._outcomes.dismiss(uri)  # it followed from what is taken back
        if self._edits.waits(uri):
            self._edits.changed(uri, text, happened)
        self._desk.focused = True  # whoever types is there

    def lost(self, uri: str) -> None:
        """A change of a document was lost: what is known of it holds no longer."""
        self._outcomes.dismiss(uri)
        self._edits.closed(uri)
        self.history.closed(uri)

    def renamed(self, uri: str, new_uri: str, new_path: str) -> None:
        self.history.renamed(uri, new_uri, new_path)

    def closed(self, uri: str) -> None:
        self.lost(uri)
        self._desk.rejections.closed(uri)
        self._recent.pop(uri, None)

    def focus(self, focused: bool) -> None:
        """The user looks at a document, or at something else."""
        self._desk.focused = focused

    def snooze(self, seconds: float) -> None:
        """Offer nothing by itself for so long; 0: go on."""
        self._desk.snoozed_until_s = self._desk.clock() + seconds

    def snoozed_s(self) -> float:
        """Seconds until suggestions come by themselves again."""
        return self._desk.snoozed_s()

    def shown(self, id_: str) -> None:
        self._outcomes.report_shown(id_, self._desk.clock())

    def accepted(self, id_: str) -> None:
        """The client says so. The document may have told already, or been changed on the way."""
        uri = self._outcomes.report_accepted(id_)
        if uri:
            self.history.mark_accepted(uri)

    def accepted_part(self, id_: str) -> None:
        self._outcomes.report_accepted_part(id_)

    def rejected(self, id_: str) -> str:
        """The user dismissed it. The URI of its document, "" where that is no news."""
        return self._outcomes.report_turned_down(id_, "rejected")

    def ignored(self, id_: str) -> None:
        """The user let it pass."""
        self._outcomes.report_turned_down(id_, "ignored")

    def _settled(self, settled: Settled) -> None:
        now = self._desk.clock()
        self._desk.debounce.note(settled.outcome, now)
        if settled.outcome == "rejected":
            self._desk.rejections.note(settled.suggestion, now)
            self._edits.turned_down(settled.suggestion)
        if settled.outcome == "accepted" and settled.suggestion.task == "next_edit":
            self._edits.accepted(settled.suggestion)
        self._listener(settled)

    # --- decisions -------------------------------------------------------------------------

    def consider(self, query: Query) -> Decision:
        """What to do about a query for ghost text.

        1. What is switched off, secret, too large or unreadable gets nothing.
        2. A next edit that is shown and still agrees with the document stays.
        3. What is shown or was just computed still holds while the user types it.
        4. The same question again has the same answer.
        5. A paste, an undo, a rejection is no moment to suggest, unless asked to.
        6. Otherwise the model is asked: at once by gesture, after the debounce when typing.
        """
        refusal = self._desk.refusal(query)
        if refusal is not None:
            return refusal
        if not query.invoked and self._shows_edit(query):
            return Abstain("a next edit is shown")
        kept = self._typed_through(query)
        if kept is not None:
            return self._show(kept)
        request = questions.infill(query, self.settings)
        known = self._desk.results.get(request)
        if known is not None:
            return self._show(self._judge(query, known, "same text and cursor as before"))
        wrong = self._desk.wrong_moment(query)
        if wrong is not None:
            return wrong
        delay_ms = self._desk.delay_ms(query, "infill")
        return Ask(query, request, delay_ms, "nothing known about this text yet")

    def consider_edit(self, query: Query) -> Decision:
        """What to do about a query for the next edit; see :meth:`NextEdits.consider`."""
        return self._edits.consider(query)

    def look_on(self, query: Query) -> Decision:
        """What comes after an answer that held no next edit; see :meth:`NextEdits.look`."""
        return self._edits.look(query)

    def complete(self, ask: Ask) -> Ask:
        """The question as the model gets it: it is really asked now."""
        task = ask.request.task
        if task == "next_edit" and not ask.unfinished:  # typing has paused, or the cursor moved
            self.history.flush()
        same = ask.query.uri == ask.asked_from.uri
        related = self._desk.context.related(ask.asked_from if same else ask.query, task)
        request = replace(ask.request, edits=self.history.edits(), related=related)
        return replace(ask, request=request)

    def settle(
        self,
        ask: Ask,
        prediction: Prediction,
        revision: int | None,
        took_ms: float,
        text: Callable[[], str] = str,
        target: int | None = None,
    ) -> Show | Abstain:
        """What to do with the model's answer.

        ``revision`` is that of the user's document now, None when it was closed, and ``text`` gives
        what it is. ``took_ms`` is from the question to the answer. ``target`` is the revision of
        the document that the question is about, if that is another one or another place. The answer
        is kept in any case: the text may come back to it.
        """
        self._desk.learn(ask, prediction, took_ms)
        if ask.request.task == "next_edit":
            return self._edits.settle(ask, prediction, revision, text, target)
        decision = self._judge(ask.query, prediction, "from the model")
        if revision is None:
            return Abstain("the document was closed", stale=True)
        if revision != ask.query.revision:
            if isinstance(decision, Show):
                self._keep(decision.suggestion)
                self._outcomes.cancelled(decision.suggestion)
            return Abstain("the document changed while the model was thinking", stale=True)
        return self._show(decision)

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """The next edit that is shown, if it is for this ``text``."""
        showing = self._outcomes.showing(uri)
        right = showing is not None and showing.task == "next_edit" and showing.text == text
        return showing if right else None

    def follow_up(self, ask: Query, shown: Suggestion) -> Ask | None:
        """What to ask in case a next edit is accepted; see :meth:`NextEdits.follow_up`."""
        return self._edits.follow_up(ask, shown)

    def prefetched(self, ask: Ask, prediction: Prediction) -> None:
        """The answer to a follow-up, kept until the edit is accepted or turned down."""
        self._edits.prefetched(ask, prediction)

    # --- ghost text ------------------------------------------------------------------------

    def _shows_any_edit(self, uri: str) -> bool:
        showing = self._outcomes.showing(uri)
        return showing is not None and showing.task == "next_edit"

    def _shows_edit(self, query: Query) -> bool:
        showing = self.shown_edit(query.uri, query.text)
        return showing is not None and self._outcomes.is_in_view(query.uri)

    def _typed_through(self, query: Query) -> Show | None:
        for suggestion in self._recent.get(query.uri, ()):
            rest = suggestion.rest(query.text, query.cursor)
            wanted = suggestion.confidence >= self.settings.threshold
            wanted = wanted and not exclusions.refuse_completion(rest, query.text, query.cursor)
            if wanted and not self._desk.rejections.know(suggestion):
                return Show(suggestion, rest, "typed so far as suggested")
        return None

    def _judge(self, query: Query, prediction: Prediction, reason: str) -> Show | Abstain:
        """The first candidate worth showing, or what speaks against the best one."""
        objections = []
        for candidate in prediction.candidates:
            suggestion = self._suggestion(query, candidate, prediction)
            objection = self._objection(query, candidate, suggestion)
            if not objection:
                return Show(suggestion, suggestion.replacement, reason)
            objections.append(objection)
        nothing = prediction.reason or "the model had nothing to add here"
        return Abstain(objections[0] if objections else nothing)

    def _objection(self, query: Query, candidate: Candidate, suggestion: Suggestion) -> str:
        if (candidate.start, candidate.end) != (query.cursor, query.cursor):
            return "the answer was for another place than the cursor"
        refused = exclusions.refuse_completion(candidate.text, query.text, query.cursor)
        if refused:
            return refused
        too_unsure = unsure(sureness(candidate), self.settings.threshold)
        if too_unsure:
            return too_unsure
        if self._desk.rejections.know(suggestion):
            return "this text was rejected here before"
        just_done = [] if query.invoked else self.history.just_done(query.uri)
        if undoes(suggestion.edit, just_done):
            return "it would write what was just deleted"
        return ""

    def _suggestion(self, query: Query, candidate: Candidate, prediction: Prediction) -> Suggestion:
        made = replace(
            self._desk.suggestion(query, candidate, prediction),
            start=query.cursor,
            end=query.cursor,
            replacement=exclusions.tidied(candidate.text, query.text, query.cursor),
        )
        return self._desk.named(made)

    def _show(self, decision: Show | Abstain) -> Show | Abstain:
        if isinstance(decision, Show):
            self._keep(decision.suggestion)
            self._outcomes.show(decision.suggestion, self._desk.clock())
        return decision

    def _keep(self, suggestion: Suggestion) -> None:
        """Remember a suggestion for as long as typing may still confirm it."""
        recent = self._recent.setdefault(suggestion.uri, deque(maxlen=_RECENT))
        if all(kept.id != suggestion.id for kept in recent):
            recent.appendleft(suggestion)
