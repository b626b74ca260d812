"""Editor of a replay: it tells a session what happens, as a client would."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from redraft.lsp.positions import Range, units
from redraft.lsp.session import Session
from redraft.lsp.suggestion import Query
from redraft.model.text.syntax import language_of

from ..recordings.documents import StreamDocuments, content_changes
from ..recordings.format import (
    Changed,
    Closed,
    Event,
    Focused,
    Opened,
    RestoreContent,
    SelectionChanged,
    SetContent,
    TextEdit,
)

#: A folder that is not there: nothing of this machine is to get into a replay.
ROOT = "file:///redraft-replay"


class Editor:
    """One person's editor, with the documents of a stream as far as it was told."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._documents = StreamDocuments()
        self._selections: dict[int, tuple[tuple[int, int], ...]] = {}  # since the last change
        self._last: dict[int, int] = {}  # where the last change ended, in UTF-16 units
        self._open: dict[int, None] = {}  # in the order they were opened
        self.steps: dict[int, int] = {}  # changes of each document so far

    def begin(self) -> None:
        """Open the workspace."""
        self._session.folders = [ROOT]
        self._session.context.start()

    def uri(self, document: int) -> str:
        return f"{ROOT}/{quote(self._documents.path(document))}"

    def document(self, uri: str) -> int:
        """Which document that is; of two with one name the one that is open."""
        return next(id_ for id_ in reversed([*self._open]) if self.uri(id_) == uri)

    # --- events ----------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Something happened."""
        match event:
            case Changed():
                self._change(event)
            case SetContent() | RestoreContent():
                self._put(event)
            case SelectionChanged():
                self._selections[event.document] = event.selections
            case Focused():
                self._session.focus(self.uri(event.document))
            case Closed():
                self._documents.apply(event)
                self._close(event.document)
            case Opened():
                self._documents.apply(event)
                if event.document in self._documents.ids:
                    self._show(event.document)
            case _:
                self._documents.apply(event)

    def _change(self, event: Changed) -> None:
        document = event.document
        self._show(document)
        text = self._documents.text(document)
        changes = content_changes(text, event.edits)
        self._documents.apply(event)
        self._session.change(self.uri(document), changes, None)
        self._selections.pop(document, None)
        self.steps[document] = self.steps.get(document, 0) + 1
        last = event.edits[-1] if event.edits else TextEdit(0, 0, "")
        grown = sum(units(e.text) - e.end + e.start for e in event.edits[:-1])
        self._last[document] = last.start + grown + units(last.text)

    def _put(self, event: SetContent | RestoreContent) -> None:
        """The document as a whole, seen first or anew."""
        document = event.document
        self.steps[document] = self.steps.get(document, -1) + 1
        self._documents.apply(event)
        self._close(document)
        self._show(document)

    def _show(self, document: int) -> None:
        if document in self._open:
            return
        self._open[document] = None
        text, language = self._documents.text(document), language_of(self._documents.path(document))
        self._session.open(self.uri(document), text, None, language or "plaintext")

    def _close(self, document: int) -> None:
        if document in self._open:
            del self._open[document]
            self._session.close(self.uri(document))

    # --- questions ---------------------------------------------------------------------------

    def query(self, document: int) -> Query | None:
        """Return the query of the editor where its cursor is now, None in a closed document."""
        followed = self._session.documents.get(self.uri(document))
        if followed is None:
            return None
        selections = self._selections.get(document)
        start, end = selections[0] if selections else (self._last.get(document, 0),) * 2
        place = self._place(document, start, end)
        first, last = followed.index(place.start), followed.index(place.end)
        return replace(
            Query.at(followed, self._session.path(followed), last),
            selected=last - first,
            cursors=len(selections or (0,)),
            other_documents=True,
        )

    def _place(self, document: int, start: int, end: int) -> Range:
        where = TextEdit(min(start, end), max(start, end), "")
        (change,) = content_changes(self._documents.text(document), (where,))
        assert change.range is not None
        return change.range
