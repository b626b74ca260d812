"""Editor of a replay: it passes the events of a recording to a session, as a client would."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from redraft.lsp.positions import units
from redraft.lsp.recording import events as ev
from redraft.lsp.recording.events import Changed, Event, TextEdit
from redraft.lsp.session import Session
from redraft.lsp.suggestion import Query
from redraft.model.text.syntax import language_of

from ..sources.documents import Texts, lsp_changes

#: A folder that does not exist: nothing of this machine is to get into a replay.
ROOT = "file:///redraft-replay"


class ReplayEditor:
    """One person's editor, with the documents of a recording after the events so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts = Texts()
        self._selections: dict[int, tuple[tuple[int, int], ...]] = {}  # since the last change
        self._last: dict[int, int] = {}  # where the last change ended, in UTF-16 code units
        self._open: dict[int, None] = {}  # in the order they were opened
        self.steps: dict[int, int] = {}  # changes of each document so far
        session.folders = [ROOT]
        session.context.start()

    def uri(self, document: int) -> str:
        """Return the URI of a document."""
        return f"{ROOT}/{quote(self._texts.path(document))}"

    def document(self, uri: str) -> int | None:
        """Return the open document of a URI; of two with one name the last one opened."""
        return next((id_ for id_ in reversed([*self._open]) if self.uri(id_) == uri), None)

    def tell(self, event: Event) -> None:
        """Pass an event to the session."""
        match event:
            case Changed():
                self._change(event)
            case ev.SetContent() | ev.RestoreContent():
                self.steps[event.document] = self.steps.get(event.document, -1) + 1
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
        self._selections.pop(document, None)
        self.steps[document] = self.steps.get(document, 0) + 1
        last = event.edits[-1] if event.edits else TextEdit(0, 0, "")
        grown = sum(units(e.text) - e.end + e.start for e in event.edits[:-1])
        self._last[document] = last.start + grown + units(last.text)

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

    def query(self, document: int) -> Query | None:
        """Return the query of the editor where its cursor is now, None in a closed document."""
        followed = self._session.documents.get(self.uri(document))
        if followed is None:
            return None
        selections = self._selections.get(document)
        start, end = selections[0] if selections else (self._last.get(document, 0),) * 2
        selected = TextEdit(min(start, end), max(start, end), "")
        (change,) = lsp_changes(self._texts.text(document), (selected,))
        assert change.range is not None
        first, last = followed.index(change.range.start), followed.index(change.range.end)
        return replace(
            Query.at(followed, self._session.path(followed), last),
            selected=last - first,
            cursors=len(selections or (0,)),
            other_documents=True,
        )
