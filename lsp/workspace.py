"""Workspace of one client: its documents, folders, settings and history, as they are now."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from redraft.model.errors import InvalidRequest
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Diagnostic

from . import refusals
from .context.disk_thread import DiskThread
from .context.gatherer import BUDGET, Gatherer
from .context.listing import OTHERS_CODE, read_saved
from .documents.cells_above import CellsAbove, CellText, join_cells
from .documents.history import ChangeKind, History
from .documents.notebooks import Notebooks
from .documents.open_documents import ContentChange, Document, Documents, Splice
from .documents.uris import display_path, lies_within, path_below
from .editor_settings import LspSettings
from .policy.disabled_scopes import refuse_scope
from .policy.exclusions import Exclusions
from .policy.ignore_files import IgnoreRules
from .policy.machine_load import LoadWatch
from .policy.secret_files import secret_in
from .question import Question
from .snapshot import OpenTexts, RequestFlags, Snapshot

logger = logging.getLogger(__name__)

READ_S = 0.3  # that a question waits for the ignore files of a document
#: Seconds after the start: what differs from its file was typed before the server listened.
_EARLY_S = 30.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """A document that was just opened, with what is read from the disk for it."""

    revision: int  # of the document when it was opened
    opened_s: float  # by the clock
    result: Future[tuple[IgnoreRules, str | None]]  # what it obeys, and its saved text


class Workspace:
    """Everything that is known of one client's editor; nothing else owns facts that change.

    Args:
        clock: reads seconds and never goes back.
        reads: whether files of the workspace are read and indexed, in a thread.
    """

    def __init__(
        self, settings: LspSettings, clock: Callable[[], float], *, reads: bool = True
    ) -> None:
        self.clock, self.settings = clock, settings
        self.documents, self.notebooks = Documents(), Notebooks()
        self.folders: list[str] = []  # URIs
        self.exclusions = Exclusions(lambda: self.settings, lambda: self.folders, self.notebooks)
        self.history = History(clock, self.exclusions.why)
        self.load = LoadWatch(lambda: self.settings, clock)
        self.context = Gatherer(
            lambda: self.folders, self.exclusions.why, lambda: self.settings, clock, reads
        )
        self.context.read_opened = self.exclusions.read_opened
        self.context_tokens: int | None = None  # of a prompt, as the model said last
        self.reads_ahead = False  # whether the engine can, as it said last
        self.is_focused = True  # the editor's window
        self.snoozed_until_s = -math.inf  # by the clock
        self._reported: dict[str, tuple[Diagnostic, ...]] = {}  # replaced, never changed
        self._above: tuple[object, CellsAbove | None] = (), None  # for these cells
        self._reads, self._since_s = reads, clock()
        self._disk = DiskThread()
        self._reading: dict[str, _Reading] = {}  # by URI

    # --- events ----------------------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int | None, language: str) -> Document:
        """Follow a document, or follow it anew."""
        is_anew = self.documents.get(uri) is not None
        if is_anew:
            self.close(uri)
        document = self.documents.open(uri, text, version, language)
        if self._reads and self.exclusions.expect(uri):
            is_early = not is_anew and self.clock() - self._since_s < _EARLY_S
            reading = self._disk.run(partial(self._read, uri, is_early))
            self._reading[uri] = _Reading(document.revision, self.clock(), reading)
        self.begin(document)
        return document

    def _read(self, uri: str, is_early: bool) -> tuple[IgnoreRules, str | None]:
        """Return what a document obeys and, early on, its saved text; in the disk's thread."""
        return self.exclusions.read(uri), read_saved(uri) if is_early else None

    def is_reading(self, uri: str) -> bool:
        """Return whether the exclusions of a document are not read yet."""
        return uri in self._reading

    def readings(self, uri: str) -> list[Future[tuple[IgnoreRules, str | None]]]:
        """Return what a question waits for: its document, and others that were just opened."""
        since_s = self.clock() - READ_S
        return [
            each.result
            for other, each in self._reading.items()
            if other == uri or each.opened_s > since_s
        ]

    def take_read(self) -> list[Document]:
        """Take what was read since the last call, and return the documents that it was for."""
        done = [uri for uri, each in self._reading.items() if each.result.done()]
        return [document for uri in done if (document := self._take(uri)) is not None]

    def _take(self, uri: str) -> Document | None:
        reading = self._reading.pop(uri)  # of a closed document too: its edits may be in prompts
        document = self.documents.get(uri)
        if error := reading.result.exception():  # the document stays excluded
            logger.error("the ignore files of %s cannot be read", uri, exc_info=error)
            return None
        rules, saved = reading.result.result()
        self.exclusions.take(uri, rules)
        if document is None:
            return None
        path = document.path
        self.place(document)
        if document.path != path and not document.out_of_step:
            self.begin(document)
        if (
            saved is not None
            and not document.current().excluded
            and document.revision == reading.revision
        ):
            self.history.record_early_edit(uri, saved.split("\n"))
        return document

    def begin(self, document: Document) -> None:
        """Follow the edits of a document that was opened, or whose text is known again."""
        uri = document.uri
        self.place(document)
        if secret_in("\n".join(document.lines), document.path):
            self.history.on_close(uri)  # its edits reach no request
        else:
            self.history.on_open(uri, document.path, document.lines)
            self.context.places.on_open(document.current())

    def place(self, document: Document) -> None:
        """Set what the place of a document in the workspace decides."""
        uri = self.exclusions.in_workspace(self.notebooks.file_of(document.uri))
        path = display_path(uri, self.folders, document.language)
        excluded = self.exclusions.why(path, document.uri)
        is_ours = lies_within(uri, self.folders) and OTHERS_CODE.isdisjoint(path.split("/")[:-1])
        document.put(path, excluded, is_ours)

    def change(
        self, uri: str, changes: Sequence[ContentChange], version: int | None
    ) -> tuple[Splice, ...]:
        """Apply changes of a document; return the lines that each one altered.

        Raises:
            InvalidRequest: see :meth:`.open_documents.Documents.change`.
        """
        splices = self.documents.change(uri, changes, version)
        self.context.on_change(uri, splices)
        return splices

    def record(self, uri: str, splices: Sequence[Splice], *, accepted: bool) -> ChangeKind:
        """Record a change in the history; return what it was."""
        self.is_focused = True  # the user types here
        return self.history.change(uri, splices, accepted=accepted)

    def forget(self, uri: str) -> None:
        """Follow the edits of a document no longer."""
        self.history.on_close(uri)

    def close(self, uri: str) -> None:
        """Stop following a document."""
        self.history.on_close(uri)
        self.documents.close(uri)
        self.context.on_close(uri)
        self._reported = {known: found for known, found in self._reported.items() if known != uri}

    def on_diagnostics(self, uri: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Note what the client reports of a document now."""
        self._reported = {**self._reported, uri: tuple(diagnostics)}

    def adopt_rules(self) -> bool:
        """Take the exclusions that the index has read; return whether they are others."""
        is_new = self.exclusions.renew(self.context.rules)
        if is_new:
            self.place_all()
        return is_new

    def place_all(self) -> None:
        """Place all documents anew: folders, settings or exclusions are others."""
        for document in self.documents.all():
            self.place(document)

    def folder_problem(self, uri: str) -> str:
        """Return why the folder of a document on the disk is not read, "" if it is.

        A folder that cannot be found while its documents are there was named in another way.
        """
        unread = self.context.unreadable
        if not unread or not self.exclusions.is_on_disk(uri):
            return ""
        uri = self.exclusions.in_workspace(self.notebooks.file_of(uri))
        for folder, why in unread.items():
            if path_below(uri, folder) is not None or not lies_within(uri, self.folders):
                return f"Nothing of {folder} is read: {why}."
        return ""

    # --- snapshots -------------------------------------------------------------------------------

    def snapshot(self, uri: str, cursor: int, flags: RequestFlags) -> Snapshot:
        """Return the workspace as it is now, around a cursor.

        Raises:
            InvalidRequest: the document is not open.
        """
        document = self.documents.get(uri)
        if document is None:
            raise InvalidRequest(f"{uri} is not open; send textDocument/didOpen first")
        text, now_s = document.current(), self.clock()
        return Snapshot(
            document=text,
            cursor=cursor,
            line=document.line_of(cursor),
            flags=flags,
            settings=self.settings,
            at_s=now_s,
            edits=self.history.view(),
            reported=self._reported,
            above=self._cells_above(text.uri, text.language),
            opened=OpenTexts(
                tuple(each.current() for each in self.documents.all()),
                tuple(self.folders),
                self.exclusions,
            ),
            index=self.context.indexer.index.generation,
            budget=self.settings.context_tokens or self.context_tokens or BUDGET,
            is_focused=self.is_focused,
            snoozed_s=self.snooze_left_s(),
            load=self.load.now(),
        )

    def renew(self, snapshot: Snapshot) -> Snapshot | Abstain:
        """Return a snapshot of the same text as everything else is now, or why it is stale."""
        if (stale := self.why_stale(snapshot)) is not None:
            return stale
        now = self.snapshot(snapshot.uri, snapshot.cursor, snapshot.flags)
        is_same = now.text == snapshot.text  # else the client shows a text that it has not sent
        return now if is_same else now.with_text(snapshot.text, snapshot.cursor)

    def why_stale(self, snapshot: Snapshot) -> Abstain | None:
        """Return why an answer to a snapshot comes too late, None if its text is as it was."""
        if snapshot.accepted is not None:
            return None  # a text that does not exist yet
        document = self.documents.get(snapshot.uri)
        if document is None:
            return Abstain("document_closed", "the file was closed")
        if document.revision != snapshot.revision:
            return Abstain("document_changed", "the text changed while the model was working")
        return None

    def refuse(self, snapshot: Snapshot) -> Abstain | None:
        """Return why nothing is ever offered at a place, None if something may be."""
        return refusals.refuse(snapshot) or refuse_scope(snapshot, self.context.syntax)

    def complete(self, question: Question) -> Question:
        """Return a question with what takes time to gather: excerpts, edits and reports."""
        return replace(question, request=self.context.complete(question))

    def snooze_left_s(self) -> float:
        """Return the seconds until suggestions come by themselves again."""
        return max(0.0, self.snoozed_until_s - self.clock())

    def _cells_above(self, uri: str, language: str) -> CellsAbove | None:
        """Return the cells above a cell; the same object until one of them changes.

        Cells that are secrets, and those in disabled languages, are left out.
        """
        disabled = self.settings.disabled_languages
        cells = [
            (document.current(), cell.is_prose)
            for cell in self.notebooks.above(uri)
            if (document := self.documents.get(cell.uri)) is not None
        ]
        found = [
            (one, is_prose)
            for one, is_prose in cells
            if one.language not in disabled
            and not (one.excluded or one.out_of_step or "\0" in one.text or one.secret)
        ]
        if not cells:
            return None
        key = language, [(one.uri, one.revision, is_prose) for one, is_prose in found]
        if self._above[0] != key:
            texts = [CellText(one.text, one.language, is_prose) for one, is_prose in found]
            self._above = key, join_cells(texts, language)
        return self._above[1]
