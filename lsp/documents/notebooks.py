"""Open notebooks of a client, and their cells in order.

Each cell is a document. A client says by splices how the cells of a notebook change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redraft.model.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """Cell of a notebook; its text is in the document of its URI."""

    uri: str
    is_prose: bool = False  # Markdown, not code


class Notebooks:
    """The cells of all open notebooks."""

    def __init__(self) -> None:
        self._cells: dict[str, list[NotebookCell]] = {}  # in order, by the URI of their notebook
        self._notebooks: dict[str, str] = {}  # URI of the notebook, by that of a cell

    def open(self, uri: str, cells: Iterable[NotebookCell]) -> None:
        """Follow a notebook, or follow it anew."""
        self.close(uri)
        self._cells[uri] = []
        self._put(uri, 0, 0, list(cells))

    def splice(self, uri: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        """Put ``cells`` in place of ``count`` cells from number ``start`` (0-based) on.

        Raises:
            InvalidRequest: the notebook has fewer cells, or its order is unknown. It stays
                unknown until the notebook is opened again.
        """
        known = self._cells.get(uri)
        if known is None:
            raise InvalidRequest(f"{uri}: the order of its cells is not known; {_REOPEN}")
        if start + count > len(known):
            self.lose_track(uri)
            raise InvalidRequest(
                f"{uri} has {len(known)} cells; the change replaces {count} from number {start} "
                f"on. The cells above are no longer read; {_REOPEN}"
            )
        self._put(uri, start, count, cells)

    def _put(self, uri: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        known = self._cells[uri]
        removed, known[start : start + count] = known[start : start + count], cells
        for cell in removed:
            self._notebooks.pop(cell.uri, None)
        self._notebooks.update((cell.uri, uri) for cell in known)  # a moved cell is still there

    def update(self, uri: str, cells: Iterable[NotebookCell]) -> None:
        """Update the kinds of some cells."""
        kinds = {cell.uri: cell for cell in cells}
        if uri in self._cells:
            self._cells[uri] = [kinds.get(cell.uri, cell) for cell in self._cells[uri]]

    def lose_track(self, uri: str) -> list[str]:
        """Forget the order of a notebook after a wrong change; return its cells' URIs."""
        self._cells.pop(uri, None)
        return [cell for cell, notebook in self._notebooks.items() if notebook == uri]

    def close(self, uri: str) -> None:
        """Forget a notebook."""
        for cell in self.lose_track(uri):
            del self._notebooks[cell]

    def file_of(self, uri: str) -> str:
        """Return the URI of a cell's notebook; of other documents, their URI."""
        return self._notebooks.get(uri, uri)

    def is_cell(self, uri: str) -> bool:
        """Return whether a document is a cell of an open notebook."""
        return uri in self._notebooks

    def above(self, uri: str) -> list[NotebookCell]:
        """Return the cells above a cell, in order; none for a document that is no cell."""
        cells = self._cells.get(self._notebooks.get(uri, ""), [])
        place = next((at for at, cell in enumerate(cells) if cell.uri == uri), 0)
        return cells[:place]


_REOPEN = "close and reopen the notebook"
