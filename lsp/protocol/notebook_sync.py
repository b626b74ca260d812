"""Notebooks of the client: their cells are documents, and their order is followed.

Outputs and metadata of cells are not part of these messages; what a client adds is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types
from redraft.model.errors import InvalidRequest
from redraft.model.validation import AnyText

from ..documents.notebooks import NotebookCell
from ..documents.open_documents import ContentChange
from ..documents.positions import Offset
from .jsonrpc import RedraftServer
from .messages import DocumentId, DocumentItem, Params, at

_MARKUP = types.NotebookCellKind.Markup.value


class CellItem(Params):
    """A cell; its text is in the document of that URI."""

    document: AnyText
    kind: object = None

    @property
    def cell(self) -> NotebookCell:
        """The cell as the session follows it."""
        return NotebookCell(self.document, is_prose=self.kind == _MARKUP)


class NotebookId(Params):
    """A notebook."""

    uri: AnyText


class NotebookItem(NotebookId):
    """A notebook with its cells in order."""

    cells: tuple[CellItem, ...]


class NotebookOpenParams(Params):
    """``notebookDocument/didOpen``."""

    notebook_document: NotebookItem
    cell_text_documents: tuple[DocumentItem, ...]


class NotebookCloseParams(Params):
    """``notebookDocument/didClose``."""

    notebook_document: NotebookId
    cell_text_documents: tuple[DocumentId, ...]


class CellArray(Params):
    """Cells in place of ``delete_count`` cells from ``start`` on."""

    start: Offset  # 0-based
    delete_count: Offset
    cells: tuple[CellItem, ...] = ()


class CellStructure(Params):
    """Changes of the order of cells, and the cells that were added and removed."""

    array: CellArray
    did_open: tuple[DocumentItem, ...] = ()
    did_close: tuple[DocumentId, ...] = ()


class CellChange(Params):
    """A change of one cell's text."""

    document: DocumentId
    changes: tuple[ContentChange, ...]


class Cells(Params):
    """Changes of the cells of a notebook."""

    structure: CellStructure | None = None
    data: tuple[CellItem, ...] = ()
    text_content: tuple[CellChange, ...] = ()


class NotebookChange(Params):
    """A change of a notebook."""

    cells: Cells = Cells()


class NotebookChangeParams(Params):
    """``notebookDocument/didChange``."""

    notebook_document: NotebookId
    change: NotebookChange


def open_document(server: RedraftServer, item: DocumentItem) -> None:
    """Follow a document, or a cell, that the client has opened."""
    server.session.open(item.uri, item.text, item.version, item.language_id)


def _opened(server: RedraftServer, params: Any) -> None:
    sent = NotebookOpenParams.of(params)
    notebook = sent.notebook_document
    server.session.workspace.notebooks.open(notebook.uri, [each.cell for each in notebook.cells])
    for cell in sent.cell_text_documents:
        open_document(server, cell)


def _changed(server: RedraftServer, params: Any) -> None:
    """Follow a change; a part that is wrong does not stop the others."""
    session = server.session
    try:
        sent = NotebookChangeParams.of(params)
    except InvalidRequest as error:
        for lost in session.workspace.notebooks.lose_track(
            str(at(params, "notebookDocument", "uri"))
        ):
            session.lose_track(lost, str(error))
        raise
    uri, cells, problems = sent.notebook_document.uri, sent.change.cells, list[InvalidRequest]()

    def attempt(change: Callable[..., object], *args: object) -> None:
        try:
            change(*args)
        except InvalidRequest as error:
            problems.append(error)

    if (structure := cells.structure) is not None:
        for closed in structure.did_close:
            session.close(closed.uri)
        array, added = structure.array, [each.cell for each in structure.array.cells]
        attempt(session.workspace.notebooks.splice, uri, array.start, array.delete_count, added)
        for opened in structure.did_open:
            open_document(server, opened)
    session.workspace.notebooks.update(uri, [each.cell for each in cells.data])
    for cell in cells.text_content:
        attempt(session.change, cell.document.uri, cell.changes, cell.document.version)
    if problems:
        raise problems[0]


def _closed(server: RedraftServer, params: Any) -> None:
    sent = NotebookCloseParams.of(params)
    for cell in sent.cell_text_documents:
        server.session.close(cell.uri)
    server.session.workspace.notebooks.close(sent.notebook_document.uri)


HANDLERS: dict[str, Callable[[RedraftServer, Any], Any]] = {
    types.NOTEBOOK_DOCUMENT_DID_OPEN: _opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: _changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: _closed,
}
