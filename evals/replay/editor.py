"""The editor of a replay: tells the language server what happens, as a client would.

Everything goes through the handlers that serve real clients. Knows nothing of moments or scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from redraft.lsp.client import Client
from redraft.lsp.documents import ContentChange
from redraft.lsp.positions import Range, units
from redraft.lsp.protocol.messages import Asked
from redraft.lsp.server import HANDLERS
from redraft.lsp.settings import LspSettings
from redraft.model.errors import InvalidRequest
from redraft.model.records import Predictor
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


def unconnected(predictor: Predictor, settings: LspSettings, clock: Callable[[], float]) -> Client:
    """A client of which the server hears only by its handlers, in a clock's time."""
    return Client(predictor, settings, clock, _unheard, _unanswered, background=False)


def _unheard(method: str, params: Any) -> None:
    """Notifications of the server: nobody reads the status line of a replay."""


async def _unanswered(method: str, params: Any) -> Any:
    """Requests of the server: the editor of a replay said that it answers none."""
    raise InvalidRequest(f"the editor of a replay does not know {method}")


class Editor:
    """One person's editor, with the documents of a stream as far as it was told."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._documents = StreamDocuments()
        self._selections: dict[int, tuple[tuple[int, int], ...]] = {}  # since the last change
        self._last: dict[int, int] = {}  # where the last change ended, in UTF-16 units
        self._open: dict[int, None] = {}  # in the order they were opened
        self.steps: dict[int, int] = {}  # changes of each document so far

    async def begin(self) -> None:
        """Connect."""
        folder = {"uri": ROOT, "name": "workspace"}
        HANDLERS["initialize"](self._client, {"workspaceFolders": [folder], "capabilities": {}})
        await HANDLERS["initialized"](self._client, {})

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
                self._send("textDocument/didFocus", event.document)
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
        changes = [_change(each) for each in content_changes(text, event.edits)]
        self._documents.apply(event)
        self._send("textDocument/didChange", document, contentChanges=changes)
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
        path = self._documents.path(document)
        item = {
            "languageId": language_of(path) or "plaintext",
            "text": self._documents.text(document),
            "version": None,
        }
        self._send("textDocument/didOpen", document, item)

    def _close(self, document: int) -> None:
        if document in self._open:
            del self._open[document]
            self._send("textDocument/didClose", document)

    def _send(
        self, method: str, document: int, item: dict[str, Any] | None = None, **params: Any
    ) -> None:
        described = {"uri": self.uri(document)} | (item or {})
        HANDLERS[method](self._client, {"textDocument": described, **params})

    # --- questions ---------------------------------------------------------------------------

    def question(self, document: int) -> Asked:
        """What the editor asks with where its cursor is now."""
        selections = self._selections.get(document)
        start, end = selections[0] if selections else (self._last.get(document, 0),) * 2
        place = self._place(document, start, end)
        return Asked(
            uri=self.uri(document),
            version=None,
            position=place.end,
            invoked=False,
            selection=place if start != end else None,
            cursors=len(selections or (0,)),
            other_documents=True,
        )

    def _place(self, document: int, start: int, end: int) -> Range:
        where = TextEdit(min(start, end), max(start, end), "")
        (change,) = content_changes(self._documents.text(document), (where,))
        assert change.range is not None
        return change.range


def _change(change: ContentChange) -> dict[str, Any]:
    assert change.range is not None
    return {"range": change.range.as_json(), "text": change.text}
