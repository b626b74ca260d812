"""Session of one client: it passes on what the editor does, and delivers what is decided.

The model and the clock are arguments, so a replay runs sessions in simulated time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from redraft.model.errors import InvalidRequest
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Diagnostic, Predictor, Task
from redraft.model.release import RELEASE

from . import precedence
from .documents.open_documents import ContentChange, Document, OpenText
from .documents.positions import Range
from .documents.uris import display_path
from .edit_search import NextEdit
from .editor_settings import LspSettings
from .ghost_text import GhostText
from .journal import (
    AcceptanceReported,
    ChangeComing,
    CursorMoved,
    DecisionMade,
    DocumentChanged,
    DocumentClosed,
    DocumentOpened,
    ExclusionsChanged,
    FocusMoved,
    Journal,
    SuggestionDisplayed,
)
from .predictions import Predictions
from .recording.counts import StatisticsFolder
from .recording.recorder import Recorder
from .recording.recordings_folder import Recordings
from .recording.statistics import SessionStatistics
from .schedule import Schedule, Superseded
from .snapshot import RequestFlags, Snapshot
from .suggestions.gates import Gates
from .suggestions.memory import Memory
from .suggestions.outcomes import SuggestionEnded
from .suggestions.suggestion import Offer
from .workspace import READ_S, Workspace

logger = logging.getLogger(__name__)

_STOP_S = 1.0  # for the index to end; a file takes it a few ms, git at worst longer
_SUPERSEDED = Abstain("superseded", "a newer request replaced this one")


class Session:
    """Session of one client.

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
        self.clock = clock
        self.journal = Journal()
        self.workspace = workspace = Workspace(settings, clock, reads=reads)
        self.gates = Gates(recordings, workspace)
        self.memory = memory = Memory(self.journal.write, self.gates)
        self.schedule = Schedule(clock)
        self.predictions = Predictions(predictor, workspace, self.schedule, self.journal)
        parts = workspace, self.predictions, self.schedule, memory, self.journal
        self.ghosts, self.edits = GhostText(*parts), NextEdit(*parts)
        self.statistics = SessionStatistics(statistics, workspace)
        self.recorder = Recorder(recordings, workspace, memory, made_by=f"redraft {RELEASE}")
        for hear in (self._learn, self.recorder.hear, self.statistics.hear, self.gates.hear):
            self.journal.subscribe(hear)

    def _learn(self, entry: object) -> None:
        if isinstance(entry, SuggestionEnded):
            logger.debug("suggestion %s was %s", entry.suggestion.id, entry.outcome)
            self.schedule.learn(entry)
            self.memory.learn(entry, self.clock())

    # --- the editor ------------------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int | None, language: str) -> Document:
        """Follow a document, or follow it anew."""
        if self.workspace.documents.get(uri) is not None:
            self.close(uri)
        document = self.workspace.open(uri, text, version, language)
        shown = self.memory.outcomes.find_shown(uri)
        if shown is not None and shown.text != document.text:  # it was for the file on the disk
            self.memory.outcomes.dismiss(uri)
        if not self.workspace.is_reading(uri):
            self.journal.write(DocumentOpened(document))
        return document

    def _take_read(self) -> None:
        """Go on with documents whose exclusions were read meanwhile."""
        for document in self.workspace.take_read():
            self.journal.write(DocumentOpened(document))

    async def _when_read(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot once the exclusions of its documents are read, within a moment."""
        readings = self.workspace.readings(snapshot.uri)
        if not readings:
            return snapshot
        await asyncio.wait({asyncio.wrap_future(each) for each in readings}, timeout=READ_S)
        self._take_read()
        now = self.workspace.renew(snapshot)
        return snapshot if isinstance(now, Abstain) else now

    def change(self, uri: str, changes: Sequence[ContentChange], version: int | None) -> None:
        """Apply changes of a document.

        Raises:
            InvalidRequest: see :meth:`.open_documents.Documents.change`.
        """
        self._take_read()
        known = self.workspace.documents.get(uri)
        was_trusted = known is not None and not known.out_of_step
        self.journal.write(ChangeComing(uri))
        try:
            splices = self.workspace.change(uri, changes, version)
        except InvalidRequest:
            self._forget(uri)
            raise
        document = self.workspace.documents.get(uri)
        assert document is not None, "else it would have been refused"
        if was_trusted:
            now_s, text = self.clock(), document.text
            accepted = self.memory.confirm(uri, text, splices, now_s)
            kind = self.workspace.record(uri, splices, accepted=accepted)
            self.memory.follow(uri, text, splices, kind, now_s)
            self.journal.write(DocumentChanged(document, splices, kind))
        elif not document.out_of_step:
            self.workspace.begin(document)
            self.journal.write(DocumentOpened(document))

    def lose_track(self, uri: str, reason: str) -> None:
        """Suggest nothing in a document, of which a change was lost, until its text comes again."""
        document = self.workspace.documents.get(uri)
        if document is not None:
            document.lose_track(f"{reason}; close and reopen the file")
            self._forget(uri)

    def _forget(self, uri: str) -> None:
        self.memory.forget(uri)
        self.schedule.latest.cancel(uri)
        self.edits.ahead.stop()
        self.workspace.forget(uri)

    def close(self, uri: str) -> None:
        """Stop following a document."""
        self._forget(uri)
        self.workspace.close(uri)
        self.journal.write(DocumentClosed(uri))

    def rename(self, uri: str, new_uri: str) -> None:
        """Know the edits made in a file by its new name; the client reopens the document itself."""
        workspace = self.workspace
        language = getattr(workspace.documents.get(uri), "language", "")
        path = display_path(new_uri, workspace.folders, language)
        workspace.history.on_rename(uri, new_uri, path)
        workspace.context.files_changed()

    def configure(self, settings: LspSettings) -> None:
        """Use other settings from now on."""
        before, self.workspace.settings = self.workspace.settings, settings
        if settings.secret_globs != before.secret_globs:
            self._exclusions_changed()
        elif settings.pinned_files != before.pinned_files:
            self.workspace.context.files_changed()

    def _exclusions_changed(self) -> None:
        self.workspace.place_all()
        self.workspace.context.exclusions_changed()
        self.journal.write(ExclusionsChanged())

    async def leave(self) -> None:
        """End everything: the connection is over."""
        self.edits.ahead.stop()
        self.workspace.context.stop()
        for document in self.workspace.documents.all():
            self.close(document.uri)
        self.recorder.close()
        await self.statistics.write()
        await asyncio.to_thread(self.workspace.context.stop, _STOP_S)

    # --- reports ---------------------------------------------------------------------------------

    def focus(self, uri: str) -> None:
        """Note that the user looks at a document, or "" for something else."""
        self.workspace.is_focused = bool(uri)
        self.journal.write(FocusMoved(uri))

    def snooze(self, seconds: float) -> None:
        """Offer nothing without a gesture for so long; 0 ends it."""
        self.workspace.snoozed_until_s = self.clock() + seconds

    def report_shown(self, id_: str) -> None:
        """Note that the client has drawn a suggestion."""
        self.memory.outcomes.report_shown(id_, self.clock())
        self.journal.write(SuggestionDisplayed(id_))

    def report_accepted(self, id_: str, *, part: int = 0) -> None:
        """Take a report of acceptance; the document may have changed before or after it.

        Args:
            part: UTF-16 code units accepted so far, while the rest stays offered; 0: all of it.
        """
        outcomes = self.memory.outcomes
        if part and outcomes.find(id_) is not None:
            outcomes.report_accepted_part(id_)
            return
        if uri := outcomes.report_accepted(id_, part):
            self.workspace.history.mark_accepted(uri)
        self.journal.write(AcceptanceReported(id_))

    def report_rejected(self, id_: str) -> None:
        """Take a report of rejection, and cancel what was predicted for after acceptance."""
        if uri := self.memory.outcomes.report_turned_down(id_, "rejected"):
            self.schedule.latest.cancel(uri, "prefetch")

    def report_dismissed(self, id_: str) -> bool:
        """Hide a suggestion for now; the second time the same edit is hidden, reject it.

        Return whether it is rejected.
        """
        uri, is_rejected = self.memory.dismiss(id_)
        if uri:
            self.schedule.latest.cancel(uri, "prefetch")
        return is_rejected

    def task_of(self, id_: str) -> Task | None:
        """Return the task of a suggestion that is shown, ``None`` if none of this id is."""
        suggestion = self.memory.outcomes.find(id_)
        return suggestion.task if suggestion is not None else None

    def report_ignored(self, id_: str) -> None:
        """Note that the user let a suggestion pass."""
        self.memory.outcomes.report_turned_down(id_, "ignored")

    # --- questions -------------------------------------------------------------------------------

    def snapshot(
        self,
        document: Document,
        cursor: int,
        flags: RequestFlags,
        *,
        selection: Range | None = None,
        reports: Sequence[Diagnostic] | None = None,
    ) -> Snapshot:
        """Note the reports and the selection of a request; return the snapshot it asks about."""
        uri, workspace = document.uri, self.workspace
        if reports is not None:
            workspace.on_diagnostics(uri, reports)
        if selection is not None:
            self.journal.write(CursorMoved(document, selection))
        return self.at(uri, cursor, flags)

    def at(self, uri: str, cursor: int, flags: RequestFlags) -> Snapshot:
        self._take_read()
        if self.workspace.adopt_rules():
            self._exclusions_changed()
        return self.workspace.snapshot(uri, cursor, flags)

    async def ghost_text(self, snapshot: Snapshot) -> Offer | Abstain:
        """Return the ghost text to show at the cursor, or why there is none."""
        found = await self._ghost_texts(snapshot, others=False)
        return found if isinstance(found, Abstain) else found[0]

    async def ghost_texts(self, snapshot: Snapshot) -> tuple[Offer, ...] | Abstain:
        """Return the ghost text to show, and other texts if a gesture asks again."""
        place = snapshot.uri, snapshot.text, snapshot.cursor
        is_again = snapshot.is_invoked and self.memory.outcomes.ghost_at(*place) is not None
        return await self._ghost_texts(snapshot, others=is_again)

    async def _ghost_texts(
        self, snapshot: Snapshot, *, others: bool
    ) -> tuple[Offer, ...] | Abstain:
        snapshot = await self._when_read(snapshot)
        self.memory.rejections.arrive(snapshot)
        behind: tuple[Offer, ...] = ()
        try:
            decision = await self.ghosts.answer(snapshot)
            if others and isinstance(decision, Offer):
                behind = await self.ghosts.find_alternatives(snapshot, decision)
        except Superseded:
            decision = _SUPERSEDED
        decision = self._deliver("infill", snapshot, decision, behind)
        return decision if isinstance(decision, Abstain) else (decision, *behind)

    async def next_edit(self, snapshot: Snapshot, *, another: bool = False) -> Offer | Abstain:
        """Return the next edit to show, or why there is none.

        Args:
            another: return another one than the one shown; the first comes after the last.
        """
        snapshot = await self._when_read(snapshot)
        self.memory.rejections.arrive(snapshot)
        flow = self.edits.answer_another if another else self.edits.answer
        try:
            decision = await flow(snapshot)
        except Superseded:
            decision = _SUPERSEDED
        if isinstance(decision, Offer) and self._unopened(decision.suggestion.uri) is not None:
            await self.workspace.context.unopened.read_again(decision.suggestion.uri)
        decision = self._deliver("next_edit", snapshot, decision)
        if isinstance(decision, Offer):
            self.edits.prefetch(
                self.at(snapshot.uri, snapshot.cursor, snapshot.flags), decision.suggestion
            )
        return decision

    def _deliver(
        self,
        task: Task,
        snapshot: Snapshot,
        decision: Offer | Abstain,
        others: Sequence[Offer] = (),
    ) -> Offer | Abstain:
        """Return what the client gets: nothing for another text, and one suggestion at a time."""
        is_stale = isinstance(decision, Abstain) and decision.is_stale
        refused = None if is_stale else self.workspace.why_stale(snapshot)
        if isinstance(decision, Offer):
            memory, made = self.memory, decision.suggestion
            refused = refused or self._stale_target(snapshot, decision) or self._excluded(made.uri)
            if refused is not None and refused.kind == "document_changed":
                document = self.workspace.documents.get(made.uri)
                undone = self.workspace.history.view().last_change(made.uri) == "undo"
                memory.keep_late(decision, document.text if document else None, undone=undone)
            refused = refused or precedence.refuse(
                task, snapshot, memory.outcomes, is_unsure=bool(made.unsure)
            )
            if refused is None:
                memory.show(snapshot, decision, others, self.clock())
        decision = refused or decision
        self.journal.write(DecisionMade(snapshot.uri, decision))
        return decision

    def _excluded(self, uri: str) -> Abstain | None:
        """Return why nothing of a document is shown by now, None if something may be."""
        document = self.workspace.documents.get(uri)
        if not self.workspace.settings.enabled:
            return Abstain("disabled", "Redraft is switched off (setting enabled)")
        why = document.current().excluded if document is not None else ""
        return Abstain("secret", why) if why else None

    def _stale_target(self, snapshot: Snapshot, offer: Offer) -> Abstain | None:
        """Return why an edit of another document comes too late, None if it does not."""
        made = offer.suggestion
        if made.uri == snapshot.uri:
            return None
        document = self.workspace.documents.get(made.uri) or self._unopened(made.uri)
        if document is not None and document.text == made.text:
            return None
        how = "was closed or deleted" if document is None else "changed"
        path = display_path(made.uri, self.workspace.folders)
        return Abstain("target_changed", f"{path} {how} while the model was working")

    def _unopened(self, uri: str) -> OpenText | None:
        """Return a file that is not open, as it was read last; None if it may not be edited."""
        is_open = self.workspace.documents.get(uri) is not None
        return None if is_open else self.workspace.context.unopened.get(uri)
