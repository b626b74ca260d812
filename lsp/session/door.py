"""The one door to what is decided for a client: events in, decisions out.

One session per client, with a little state per document. Pure: it is told of events, reads the
injected clock, and answers with a decision that carries its reason. It never awaits, sends or
computes anything itself, so recordings replay through it. Ghost text is decided in
:mod:`.ghost_text`, the next edit in :mod:`.next_edits`. Knows nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from redraft.model.gate.explore import ExplorationDraw
from redraft.model.gate.features import Features
from redraft.model.gate.gate import Gate, shipped
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Prediction

from .. import refusals
from ..documents import Splice
from ..history import History
from ..outcomes import Outcomes, Settled
from ..secret_files import secret_in
from ..settings import LspSettings
from ..suggestion import Suggestion
from .decisions import Ask, Decision, SharedState, Show
from .ghost_text import GhostText
from .next_edits import NextEdits
from .other_places import MOST_PLACES
from .questions import Context, PlainContext, Query

#: Questions about the next edit for one query: without the line that is being typed, with it, and
#: about other places.
_MOST_QUESTIONS = 2 + max(MOST_PLACES.values())


class Session:
    """Decides for one client. ``clock`` reads seconds and never goes back."""

    def __init__(
        self,
        settings: LspSettings,
        clock: Callable[[], float],
        listener: Callable[[Settled], None] = lambda settled: None,
        context: Context | None = None,
        gate: Callable[[], Gate] = shipped,
        explores: Callable[[], bool] = lambda: False,
        seed: int = 0,
    ) -> None:
        self.history = History(clock, self._refuse)
        self._listener = listener
        self._outcomes = Outcomes(self._settled)
        self._shared = SharedState(
            settings,
            clock,
            context or PlainContext(),
            self.history,
            self._outcomes,
            gate=gate,
            explores=explores,
            seed=seed,
        )
        self._ghost = GhostText(self._shared)
        self._edits = NextEdits(self._shared)

    def _refuse(self, path: str, uri: str) -> str:
        return refusals.refuse_file(path, self.settings, uri)

    @property
    def settings(self) -> LspSettings:
        return self._shared.settings

    @settings.setter
    def settings(self, settings: LspSettings) -> None:
        self._shared.settings = settings

    # --- events ----------------------------------------------------------------------------

    def opened(self, uri: str, path: str, lines: Sequence[str]) -> None:
        """A document is there with these ``lines``, or can be trusted again."""
        if secret_in("\n".join(lines), path):
            self.history.closed(uri)  # what is done in it goes into no question about another
        else:
            self.history.opened(uri, path, lines)

    def missed(self, uri: str, saved: Sequence[str]) -> None:
        """An open document has edits made before anybody followed it; ``saved`` are the lines of
        its file."""
        self.history.missed(uri, saved)

    def changed(self, uri: str, splices: Sequence[Splice], text: Callable[[], str]) -> None:
        """A document was changed by ``splices``. ``text`` gives what it is now, if that is
        needed."""
        accepted = False
        if self._outcomes.watches(uri):
            accepted = self._outcomes.document_is(uri, text(), self._shared.clock())
        self._shared.rejections.changed(uri, splices)
        happened = self.history.changed(uri, splices, accepted=accepted)
        self._edits.followed(uri, splices, happened)
        if happened == "undo" and self._shows_any_edit(uri):
            self._outcomes.dismiss(uri)  # it followed from what is taken back
        if self._edits.waits(uri):
            self._edits.changed(uri, text, happened)
        self._shared.focused = True  # whoever types is there
        if happened == "edit":
            self._shared.pace.changed(self._shared.clock())

    def lost(self, uri: str) -> None:
        """A change of a document was lost: what is known of it holds no longer."""
        self._outcomes.dismiss(uri)
        self._edits.closed(uri)
        self.history.closed(uri)

    def renamed(self, uri: str, new_uri: str, new_path: str) -> None:
        self.history.renamed(uri, new_uri, new_path)

    def closed(self, uri: str) -> None:
        self.lost(uri)
        self._shared.rejections.closed(uri)
        self._ghost.closed(uri)

    def focus(self, focused: bool) -> None:
        """The user looks at a document, or at something else."""
        self._shared.focused = focused

    def snooze(self, seconds: float) -> None:
        """Offer nothing by itself for so long; 0: go on."""
        self._shared.snoozed_until_s = self._shared.clock() + seconds

    def snoozed_s(self) -> float:
        """Seconds until suggestions come by themselves again."""
        return self._shared.snoozed_s()

    def shown(self, id_: str) -> None:
        self._outcomes.report_shown(id_, self._shared.clock())

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

    def dismissed(self, id_: str) -> str:
        """Hide a suggestion for now; the second time the same edit is hidden, it is rejected.
        Return the URI of its document, "" where it is not shown."""
        suggestion = self._outcomes.live(id_)
        if suggestion is None:
            return ""
        if self._shared.rejections.was_hidden(suggestion):
            return self.rejected(id_)
        self._shared.rejections.hide(suggestion, *self._shared.place)
        self._edits.hidden(suggestion)
        return self._outcomes.report_turned_down(id_, "ignored")

    def ignored(self, id_: str) -> None:
        """The user let it pass."""
        self._outcomes.report_turned_down(id_, "ignored")

    def _settled(self, settled: Settled) -> None:
        now = self._shared.clock()
        self._shared.debounce.note(settled.outcome, now)
        self._shared.pace.settled(settled.outcome)
        if settled.outcome == "rejected":
            self._shared.rejections.note(settled.suggestion, now)
            self._edits.turned_down(settled.suggestion)
        if settled.outcome == "accepted" and settled.suggestion.task == "next_edit":
            self._edits.accepted(settled.suggestion)
        self._listener(settled)

    # --- decisions -------------------------------------------------------------------------

    def consider(self, query: Query) -> Decision:
        """What to do about a query for ghost text; see :meth:`GhostText.consider`."""
        return self._ghost.consider(query)

    def consider_edit(self, query: Query) -> Decision:
        """What to do about a query for the next edit; see :meth:`NextEdits.consider`."""
        return self._edits.consider(query)

    def complete(self, ask: Ask) -> Ask:
        """The question as the model gets it: it is really asked now."""
        task = ask.request.task
        if task == "next_edit" and not ask.unfinished:  # typing has paused, or the cursor moved
            self.history.flush()
        same = ask.query.uri == ask.asked_from.uri
        related = self._shared.context.related(ask.asked_from if same else ask.query, task)
        request = replace(ask.request, edits=self.history.edits(), related=related)
        if task == "next_edit":
            request = replace(
                request,
                diagnostics=self._shared.context.diagnostics(ask.query),
                importable=self._shared.context.importable(ask.query, request.edits),
            )
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
        self._shared.learn(ask, prediction, took_ms)
        if ask.request.task == "next_edit":
            return self._edits.settle(ask, prediction, revision, text, target)
        return self._ghost.settle(ask, prediction, revision)

    def go_on(self, asked: Ask, decision: Show | Abstain) -> Decision:
        """What comes of the ``decision`` on an answer about the next edit: where there is no edit,
        the next question of the search, as often as there is one.

        First about the region around the cursor without the line that is being typed, then with
        it, then about other places; see :meth:`NextEdits.look`.
        """
        if isinstance(decision, Show) or decision.is_stale or decision.kind == "failed":
            return decision
        following = self._edits.look(asked.asked_from)
        if not isinstance(following, Ask):
            return following
        if asked.earlier + 1 >= _MOST_QUESTIONS:
            return decision
        return replace(following, earlier=asked.earlier + 1)

    def pace(self) -> Features:
        """Return the features of how the user types and accepts."""
        return self._shared.pace.features(self._shared.clock())

    def drawn(self, query: Query) -> ExplorationDraw:
        """Return the threshold of a moment."""
        return self._shared.drawn(query)

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """The next edit that is shown, if it is for this ``text``."""
        return self._shared.shown_edit(uri, text)

    def follow_up(self, ask: Query, shown: Suggestion) -> Ask | None:
        """What to ask in case a next edit is accepted; see :meth:`NextEdits.follow_up`."""
        return self._edits.follow_up(ask, shown)

    def prefetched(self, ask: Ask, prediction: Prediction) -> None:
        """The answer to a follow-up, kept until the edit is accepted or turned down."""
        self._edits.prefetched(ask, prediction)

    def _shows_any_edit(self, uri: str) -> bool:
        showing = self._outcomes.showing(uri)
        return showing is not None and showing.task == "next_edit"
