"""A client's notebook: its messages to the language server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.editors.lsp import LspClient

MARKUP, CODE = 1, 2


class ClientNotebook:
    """An open notebook of a client; each cell is a text with its language.

    Args:
        cells: from top to bottom.
        uri: of the notebook.
        cell_uri: what the URIs of the cells begin with.
    """

    def __init__(
        self,
        client: LspClient,
        cells: Sequence[tuple[str, str]],
        uri: str = "file:///w/project/sales.ipynb",
        cell_uri: str = "vscode-notebook-cell:/w/project/sales.ipynb",
    ) -> None:
        self.client, self.uri, self._cell_uri = client, uri, cell_uri
        self.cells: list[str] = []  # URIs
        self._number, self._version = 0, 1
        made = [self._cell(*cell) for cell in cells]
        self.cells = [cell["document"] for cell, _ in made]
        self._send(
            "didOpen",
            {"cells": [cell for cell, _ in made], "notebookType": "jupyter-notebook"},
            cellTextDocuments=[document for _, document in made],
        )

    def _cell(self, language: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a cell, with an output that no server should read, and its document."""
        self._number += 1
        uri = f"{self._cell_uri}#{self._number}"
        kind = MARKUP if language == "markdown" else CODE
        outputs = [{"items": [{"mime": "text/plain", "data": f"printed by {self._number}"}]}]
        cell = {"kind": kind, "document": uri, "outputs": outputs, "metadata": {"id": "printed"}}
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        return cell, document

    def _send(self, method: str, notebook: dict[str, Any] | None = None, **fields: Any) -> None:
        book = {"uri": self.uri, "version": self._version, **(notebook or {})}
        self._version += 1
        self.client.notify(f"notebookDocument/{method}", {"notebookDocument": book, **fields})

    def change(self, **cells: Any) -> None:
        """Send a change of the cells as it is."""
        self._send("didChange", change={"cells": cells})

    def splice(self, start: int, count: int, *cells: tuple[str, str]) -> None:
        """Put new cells in place of ``count`` cells from ``start`` on."""
        made = [self._cell(*cell) for cell in cells]
        closed = self.cells[start : start + count]
        self.cells[start : start + count] = [cell["document"] for cell, _ in made]
        array = {"start": start, "deleteCount": count, "cells": [cell for cell, _ in made]}
        opened = [document for _, document in made]
        self.change(
            structure={
                "array": array,
                "didOpen": opened,
                "didClose": [{"uri": uri} for uri in closed],
            }
        )

    def move(self, start: int, to: int) -> None:
        """Move a cell, which stays open."""
        uri = self.cells.pop(start)
        self.change(structure={"array": {"start": start, "deleteCount": 1}})
        self.cells.insert(to, uri)
        moved = {"kind": CODE, "document": uri}
        self.change(structure={"array": {"start": to, "deleteCount": 0, "cells": [moved]}})

    def type(self, cell: int, line: int, character: int, text: str) -> None:
        """Type in a cell."""
        at = {"line": line, "character": character}
        document = {"uri": self.cells[cell], "version": self._version + 1}
        changes = [{"range": {"start": at, "end": at}, "text": text}]
        self.change(textContent=[{"document": document, "changes": changes}])

    def close(self) -> None:
        """Close the notebook."""
        self._send("didClose", cellTextDocuments=[{"uri": uri} for uri in self.cells])

    def above(self, cell: int, line: int = 0, character: int = 0) -> str:
        """Ask for ghost text in a cell; return what is sent of the cells above it."""
        self.client.complete(line, character, uri=self.cells[cell])
        related = dict(self.client.asked()[-1].get("related", ()))
        return "".join(text for path, text in related.items() if ".ipynb" in path)
