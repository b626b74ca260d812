"""Suggestion session of one client: it follows the editor and decides what is shown.

The model, the clock and the status line are arguments, so a replay runs sessions in simulated time.
How a change is followed is in :mod:`.following`, what ghost text is decided by in
:mod:`.ghost_text`, and the search for next edits in :mod:`.search`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from redraft.model.errors import InvalidRequest
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Predictor
from redraft.model.release import RELEASE

from . import ghost_text
from .context.gather import Gatherer
from .context.opened import OpenDocuments
from .context.workspace import saved_text
from .documents import ContentChange, Document, Documents
from .following import begin, follow
from .history import History
from .memory import DocumentMemory, Rejections
from .notebooks.order import Notebooks
from .outcomes import Outcomes, Settled
from .paths import shown_path
from .places import EditScene
from .policy.exclusions import Exclusions
from .policy.load import LoadWatch
from .policy.pace import Debounce, Pace
from .policy.scopes import refuse_scope
from .recording.counts import StatisticsFolder
from .recording.folder import Recordings
from .recording.own_gate import OwnGate
from .recording.recorder import Recorder, Workplace
from .recording.statistics import SessionStatistics
from .refusals import is_empty_body_line, refuse, refuse_stale
from .renames.offer import WholeRenames
from .schedule import Requests, Superseded, delay_s, rest
from .search import GHOST_TEXT_SHOWN, known_edit, search, show_edit
from .settings import LspSettings
from .suggestion import Query, Show, Suggestion

logger = logging.getLogger(__name__)

#: Seconds between the questions about ghost text and about the next edit that one gesture sends.
_SAME_GESTURE_S = 0.05
#: Seconds after the start: what differs from its file was typed before the server listened.
_EARLY_S = 30.0
_STOP_S = 1.0  # for the index to end; a file takes it a few ms, git at worst longer
_SUPERSEDED = Abstain("superseded", "a newer request replaced this one")


class Session:
    """Follow one client's editor, and decide on its ghost text and next edits.

    Args:
        clock: reads seconds and never goes back.
        recordings: where to record while the user has that turned on; None: never.
        statistics: where suggestions are counted; None: nowhere.
        reads: whether files of the workspace are read and indexed, in a thread.
    """

    def __init__(
        self,
        predictor: Predictor,
        settings: LspSettings,
        clock: Callable[[], float],
        *,
        recordings: Recordings | None = None,
        statistics: StatisticsFolder | None = None,
        reads: bool = True,
    ) -> None:
        self.clock, self.settings = clock, settings
        self.documents, self.notebooks = Documents(), Notebooks()
        self.folders: list[str] = []  # URIs of the workspace
        self.context_tokens: Callable[[], int | None] = lambda: None  # of a prompt, once known
        self.exclusions = Exclusions(lambda: self.settings, lambda: self.folders, self.notebooks)
        self.history = History(clock, self.exclusions.why)
        self.outcomes = Outcomes(self._settled)
        self.statistics = SessionStatistics(
            statistics, self.documents, lambda: self.settings.statistics
        )
        self.debounce, self.pace = Debounce(), Pace()
        self.rejections = Rejections()
        self.load = LoadWatch(lambda: self.settings, clock)
        self.is_focused = True  # the editor's window
        self.snoozed_until_s = -math.inf  # by the clock
        self.ahead_of = ""  # id of the shown edit whose acceptance is predicted ahead
        self.seed = secrets.randbits(32)  # of what is drawn
        self.context = Gatherer(
            OpenDocuments(self.documents.all, lambda: self.folders, self.exclusions),
            clock,
            edits=self.history.edits,
            budget=lambda: self.context_tokens(),
            background=reads,
        )
        self.own_gate = OwnGate(
            recordings,
            lambda: self.settings.learn_gate,
            clock,
            eagerness=lambda: self.settings.eagerness,
        )
        self.gate = self.own_gate.gate
        workplace = Workplace(
            self.documents.all,
            self.path,
            lambda: next(iter(self.folders), ""),
            lambda: self.settings,
            self.exclusions.why,
            lambda query: (self.gate(), self.pace.features(clock()), ghost_text.drawn(self, query)),
        )
        self.recorder = Recorder(recordings, workplace, made_by=f"redraft {RELEASE}")
        self.requests = Requests(
            predictor, clock, lambda: self.settings, self.recorder, self.own_gate
        )
        self.renames = WholeRenames(
            self.documents, self.history, self.context, self.outcomes, self.rejections
        )
        self.recordings, self._reads, self._since_s = recordings, reads, clock()
        self._memories: dict[str, DocumentMemory] = {}
        self._ids, self.prefetches = count(1), set[asyncio.Task[None]]()

    # --- the editor ------------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int | None, language: str) -> Document:
        """Follow a document, or follow it anew."""
        saved = None
        if self.documents.get(uri) is not None:
            self.close(uri)
        elif self._reads and self.clock() - self._since_s < _EARLY_S:
            saved = saved_text(uri)
        document = self.documents.open(uri, text, version, language)
        if self._reads:
            self.exclusions.opened(uri)
        begin(self, document)
        if saved is not None:
            self.history.missed(uri, saved.split("\n"))
        return document

    def change(self, uri: str, changes: Sequence[ContentChange], version: int | None) -> None:
        """Apply changes of a document.

        Raises:
            InvalidRequest: see :meth:`.documents.Documents.change`.
        """
        known = self.documents.get(uri)
        trusted = known is not None and not known.out_of_step
        self.recorder.before_change()
        try:
            splices = self.documents.change(uri, changes, version)
        except InvalidRequest:
            self._forget(uri)
            raise
        self.context.changed(uri, splices)
        document = self.documents.get(uri)
        assert document is not None, "else it would have been refused"
        if trusted:
            kind = follow(self, document, splices)
            self.recorder.changed(document, splices, kind)
        elif not document.out_of_step:
            begin(self, document)

    def lose_track(self, uri: str, reason: str) -> None:
        """Suggest nothing in a document, of which a change was lost, until its text comes again."""
        document = self.documents.get(uri)
        if document is not None:
            document.lose_track(f"{reason}; close and reopen the file")
            self._forget(uri)

    def _forget(self, uri: str) -> None:
        self.outcomes.dismiss(uri)
        self.requests.latest.cancel(uri)
        self.history.closed(uri)
        self._memories.pop(uri, None)

    def close(self, uri: str) -> None:
        """Stop following a document."""
        self._forget(uri)
        self.statistics.closing(uri)
        self.documents.close(uri)
        self.recorder.closed(uri)
        self.context.closed(uri)

    def rename(self, uri: str, new_uri: str) -> None:
        """Know the edits made in a file by its new name; the client reopens the document itself."""
        language = getattr(self.documents.get(uri), "language", "")
        self.history.renamed(uri, new_uri, shown_path(new_uri, self.folders, language))
        self.context.files_changed()

    def configure(self, settings: LspSettings) -> None:
        """Use other settings from now on."""
        before, self.settings = self.settings, settings
        if settings.secret_globs != before.secret_globs:
            self._exclusions_changed()
        elif settings.pinned_files != before.pinned_files:
            self.context.files_changed()

    def _exclusions_changed(self) -> None:
        self.context.exclusions_changed()
        self.recorder.exclusions_changed()

    async def leave(self) -> None:
        """End everything: the connection is over."""
        self.context.stop()
        for document in self.documents.all():
            self.close(document.uri)
        self.recorder.close()
        await self.statistics.write()
        await asyncio.to_thread(self.context.stop, _STOP_S)

    # --- reports ---------------------------------------------------------------------------

    def focus(self, uri: str) -> None:
        """Note that the user looks at a document, or "" for something else."""
        self.is_focused = bool(uri)
        self.recorder.focused(uri)

    def snooze(self, seconds: float) -> None:
        """Offer nothing without a gesture for so long; 0 ends it."""
        self.snoozed_until_s = self.clock() + seconds

    def snoozed_s(self) -> float:
        """Return the seconds until suggestions come by themselves again."""
        return max(0.0, self.snoozed_until_s - self.clock())

    def shown(self, id_: str) -> None:
        """Note that the client has drawn a suggestion."""
        self.outcomes.report_shown(id_, self.clock())
        self.recorder.drawn(id_)

    def accepted(self, id_: str) -> None:
        """Take a report of acceptance; the document may have changed before or after it."""
        if uri := self.outcomes.report_accepted(id_):
            self.history.mark_accepted(uri)
        self.statistics.reported(id_)

    def rejected(self, id_: str) -> None:
        """Take a report of rejection, and cancel what was predicted for after acceptance."""
        if uri := self.outcomes.report_turned_down(id_, "rejected"):
            self.requests.latest.cancel(uri, "prefetch")

    def dismissed(self, id_: str) -> None:
        """Hide a suggestion for now; the second time the same edit is hidden, reject it."""
        suggestion = self.outcomes.live(id_)
        if suggestion is None:
            return
        if self.rejections.was_hidden(suggestion):
            self.rejected(id_)
            return
        self.rejections.hide(suggestion)
        if suggestion.origin is not None:
            self.memory(suggestion.origin[0]).away = None
        self.outcomes.report_turned_down(id_, "ignored")
        self.requests.latest.cancel(suggestion.uri, "prefetch")

    def _settled(self, settled: Settled) -> None:
        """Learn from the outcome of a suggestion."""
        now, suggestion, outcome = self.clock(), settled.suggestion, settled.outcome
        logger.debug("suggestion %s was %s", suggestion.id, outcome)
        self.debounce.note(outcome, now)
        self.pace.settled(outcome)
        if outcome == "rejected":
            self.rejections.note(suggestion, now)
        if outcome == "accepted" and suggestion.task == "next_edit":
            self.memory(suggestion.uri).accepted = suggestion
        if outcome in ("accepted", "rejected") and suggestion.origin is not None:
            self.memory(suggestion.origin[0]).away = None
        self.recorder.settled(settled)
        self.statistics.settled(settled)
        self.own_gate.settled(outcome)

    # --- decisions -------------------------------------------------------------------------

    async def ghost_text(self, query: Query) -> Show | Abstain:
        """Return the ghost text to show at the cursor, or why there is none."""
        asked_s = self.clock()
        decision = ghost_text.known(self, query)  # 1. what needs no model
        if decision is None:
            try:
                decision = await self._ask_ghost_text(query)
            except Superseded:
                decision = _SUPERSEDED
        if isinstance(decision, Show):  # 4. show
            self.memory(query.uri).keep(decision.suggestion)
            self.outcomes.show(decision.suggestion, self.clock(), asked_s)
        self.recorder.decided(query.uri, decision)
        return decision

    async def ghost_texts(self, query: Query) -> tuple[Show, ...] | Abstain:
        """Return the ghost text to show, and other texts if a gesture asks again."""
        is_again = query.invoked and ghost_text.shown_at(self, query) is not None
        decision = await self.ghost_text(query)
        if isinstance(decision, Abstain) or not is_again:
            return decision if isinstance(decision, Abstain) else (decision,)
        try:
            return (decision, *await ghost_text.alternatives(self, query, decision))
        except Superseded:
            return _SUPERSEDED

    async def _ask_ghost_text(self, query: Query) -> Show | Abstain:
        # 2. Debounce, then look again: the request before this one may have brought the answer.
        wait_s = delay_s(self, query, "infill")
        await self.requests.latest.turn(query.uri, "infill", wait_s)
        decision = refuse_stale(self.documents, query) or ghost_text.known(self, query)
        if decision is not None:
            return decision
        # 3. Gather, ask the model, and decide on its answer.
        question = ghost_text.question(self, query, wait_s)
        return await self.requests.ask(question, partial(ghost_text.settle, self, query))

    async def next_edit(self, query: Query, *, another: bool = False) -> Show | Abstain:
        """Return the next edit to show, or why there is none.

        Args:
            another: return another one than the one shown; the first comes after the last.
        """
        asked_s = self.clock()
        if another:
            self._pass_over(query.uri)
        try:
            decision = await self._find_edit(query)
            if another and isinstance(decision, Abstain) and self.rejections.start_over():
                decision = await self._find_edit(query)
        except Superseded:
            decision = _SUPERSEDED
        if isinstance(decision, Show) and ghost_text.comes_first(self, query):
            decision = GHOST_TEXT_SHOWN
        if isinstance(decision, Show):  # 3. show, and predict what follows
            show_edit(self, query, decision.suggestion, asked_s)
        self.recorder.decided(query.uri, decision)
        return decision

    def _pass_over(self, uri: str) -> None:
        shown = self.outcomes.showing(uri) or self.memory(uri).away
        if shown is not None and shown.task == "next_edit":
            self.memory(uri).away = None
            self.outcomes.give_way(shown)
            self.rejections.pass_over(shown)

    async def _find_edit(self, query: Query) -> Show | Abstain:
        if query.invoked and is_empty_body_line(query.text, query.cursor):
            # The same gesture asks for ghost text, which comes first.
            await self.requests.latest.turn(query.uri, "next_edit", _SAME_GESTURE_S)
            if (stale := refuse_stale(self.documents, query)) is not None:
                return stale
        if (known := known_edit(self, query)) is not None:  # 1. what needs no search
            return known
        turn = partial(rest, self, query)
        if (rename := await self.renames.offer(query, turn, self.named)) is not None:
            return rename
        decision = await search(self, self.scene(query), waits=True)  # 2. search
        if isinstance(decision, Show) or decision.is_stale:
            return decision
        return self.rejections.cooling(query, self.clock()) or decision

    # --- what decisions are made of ----------------------------------------------------------

    def since_edit_s(self) -> float | None:
        """Return the seconds since the user's last edit, None if there was none."""
        last_s = self.history.last_edit_s()
        return None if last_s is None else self.clock() - last_s

    def scene(self, query: Query) -> EditScene:
        """Return the documents and the history as they are."""
        edits = self.history.edits(unfinished=True)
        return EditScene(query, query, edits, self.context.diagnostics(query))

    def refusal(self, query: Query) -> Abstain | None:
        """Return why nothing is ever offered for a query."""
        if self.exclusions.renewed(self.context.rules, self.documents.all()):
            self._exclusions_changed()
        excluded = self.exclusions.why(query.path, query.uri)
        refusal = refuse(query, self.settings, self.snoozed_s(), excluded, self.load.now())
        return refusal or refuse_scope(query, self.settings, self.context.syntax)

    def path(self, document: Document) -> str:
        """Return a document's path as the model sees it."""
        uri = self.notebooks.file_of(document.uri)
        return shown_path(uri, self.folders, document.language)

    def memory(self, uri: str) -> DocumentMemory:
        """Return what is remembered of a document."""
        known = self._memories.get(uri)
        return known or self._memories.setdefault(uri, DocumentMemory())

    def named(self, made: Suggestion) -> Suggestion:
        """Return ``made`` with an id, or the same suggestion that is shown already."""
        shown = self.outcomes.showing(made.uri)
        if shown is not None and shown.is_again(made):
            return shown
        return replace(made, id=f"redraft-{next(self._ids)}")
