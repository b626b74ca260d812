"""Editor of a replay: it passes the events of a recording to a session, as a client would."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

from redraft.lsp.documents.positions import units
from redraft.lsp.learning.texts import Texts, lsp_changes
from redraft.lsp.recording import recording_events as ev
from redraft.lsp.recording.recording_events import Changed, Event, TextEdit
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.model.text.syntax import language_of

#: A folder that does not exist: nothing of this machine may get into a replay.
ROOT = "file:///redraft-replay"


class ReplayEditor:
    """Editor of one user, with the documents of a recording after the events so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts = Texts()
        #: Of each document, in UTF-16 code units; after a change the place where it ended.
        self._selections: dict[int, tuple[tuple[int, int], ...]] = {}
        self._open: dict[int, None] = {}  # in the order they were opened
        self.steps = Counter[int]()  # changes of each document so far
        session.workspace.folders = [ROOT]
        session.workspace.context.start()

    def uri(self, document: int) -> str:
        """Return the URI of a document."""
        return f"{ROOT}/{quote(self._texts.path(document))}"

    def document(self, uri: str) -> int | None:
        """Return the open document of a URI; if two have the same name, the one opened last."""
        return next((id_ for id_ in reversed([*self._open]) if self.uri(id_) == uri), None)

    def tell(self, event: Event) -> None:
        """Pass an event to the session."""
        match event:
            case Changed():
                self._change(event)
            case ev.SetContent() | ev.RestoreContent():
                self.steps[event.document] += event.document in self._texts.ids
                self._texts.apply(event)
                self._close(event.document)
                self._show(event.document)
            case ev.SelectionChanged():
                self._selections[event.document] = event.selections
            case ev.Focused():
                self._session.focus(self.uri(event.document))
            case ev.Closed():
                self._texts.apply(event)
                self._close(event.document)
            case _:
                self._texts.apply(event)
                if isinstance(event, ev.Opened) and event.document in self._texts.ids:
                    self._show(event.document)

    def _change(self, event: Changed) -> None:
        document = event.document
        self._show(document)
        changes = lsp_changes(self._texts.text(document), event.edits)
        self._texts.apply(event)
        self._session.change(self.uri(document), changes, None)
        self.steps[document] += 1
        last = event.edits[-1] if event.edits else TextEdit(0, 0, "")
        grown = sum(units(e.text) - e.end + e.start for e in event.edits[:-1])
        self._selections[document] = ((last.start + grown + units(last.text),) * 2,)

    def _show(self, document: int) -> None:
        if document in self._open:
            return
        self._open[document] = None
        text, language = self._texts.text(document), language_of(self._texts.path(document))
        self._session.open(self.uri(document), text, None, language or "plaintext")

    def _close(self, document: int) -> None:
        if document in self._open:
            del self._open[document]
            self._session.close(self.uri(document))

    def snapshot(self, document: int) -> Snapshot | None:
        """Return the snapshot of the editor where its cursor is now, None in a closed document."""
        followed = self._session.workspace.documents.get(self.uri(document))
        if followed is None:
            return None
        selections = self._selections.get(document) or ((0, 0),)
        first, last = sorted(self._texts.index(document, each) for each in selections[0])
        flags = RequestFlags(selected=last - first, cursors=len(selections), other_documents=True)
        return self._session.snapshot(followed, last, flags)
