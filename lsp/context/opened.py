"""Open documents that may be read, and their paths as the model is shown them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ..documents import Document
from ..notebooks.above import CellsAbove, CellText, join_cells
from ..paths import lies_within, shown_path
from ..policy.exclusions import Exclusions
from ..policy.secret_files import secret_in
from ..settings import LspSettings
from ..suggestion import Query
from .mentions import OpenText
from .workspace import OTHERS_CODE


class OpenDocuments:
    """Open documents of one client. The callables are called again with every query.

    Args:
        documents: all that are open.
        folders: URIs of the workspace.
        exclusions: with the settings; or the settings alone, where no workspace is read.
    """

    def __init__(
        self,
        documents: Callable[[], Iterable[Document]],
        folders: Callable[[], Sequence[str]],
        exclusions: Exclusions | Callable[[], LspSettings],
    ) -> None:
        if not isinstance(exclusions, Exclusions):
            exclusions = Exclusions(exclusions, list)
        self._documents, self.folders, self._exclusions = documents, folders, exclusions
        self.settings, self._notebooks = exclusions.settings, exclusions.notebooks
        self._above: tuple[Query | None, CellsAbove | None] = None, None  # for the last query
        self._joined: tuple[object, CellsAbove | None] = (), None  # for these cells
        self._paths: dict[str, str] = {}
        self._secrets: dict[str, tuple[int, bool]] = {}  # by URI: revision, and whether it is one

    def readable(self) -> Iterator[OpenText]:
        """Yield the documents that may be read."""
        for document in self._documents():
            # The cells of a notebook would all have the path of one file.
            is_file = document.uri.startswith(("file:", "untitled:"))
            if is_file and not document.out_of_step and not self._is_secret(document):
                path, revision = self._path(document), document.revision
                text = partial(getattr, document, "text")
                language, version = document.language, document.version
                yield OpenText(document.uri, path, language, revision, text, version)

    def above(self, query: Query) -> CellsAbove | None:
        """Return the cells above the query's cell; the same object until one of them changes.

        Cells that are secrets, and those in disabled languages, are left out. None for a document
        that is no cell. Checking 100 cells for changes takes 35 µs, once for each query.
        """
        if not self._notebooks.is_cell(query.uri):
            return None
        if self._above[0] is not query:
            self._above = query, self._find_above(query.uri, query.language)
        return self._above[1]

    def above_hash(self, query: Query) -> int:
        """Return a hash of the text of the cells above, 0 if there are none."""
        above = self.above(query)
        return 0 if above is None else hash(above.text)

    def _find_above(self, uri: str, language: str) -> CellsAbove | None:
        cells = self._notebooks.above(uri)
        if not cells:
            return None
        opened = {document.uri: document for document in self._documents()}
        found = [(opened[cell.uri], cell.is_prose) for cell in cells if cell.uri in opened]
        disabled = self.settings().disabled_languages
        made_of = language, disabled, [(one.uri, one.revision, prose) for one, prose in found]
        if self._joined[0] != made_of:
            texts = [
                CellText(document.text, document.language, is_prose)
                for document, is_prose in found
                if document.language not in disabled and self._is_text(document)
            ]
            self._joined = made_of, join_cells(texts, language)
        return self._joined[1]

    def _is_text(self, document: Document) -> bool:
        """Return whether the text of a document may be shown to the model."""
        is_trusted = not document.out_of_step and "\0" not in document.text
        return is_trusted and not self._is_secret(document)

    def editable(self) -> list[OpenText]:
        """Return the documents of the workspace, in which an edit may be offered.

        Documents elsewhere, and other people's code, were opened only to be read.
        """
        return [
            each
            for each in self.readable()
            if lies_within(each.uri, self.folders())
            and OTHERS_CODE.isdisjoint(each.path.split("/")[:-1])
        ]

    def refuse(self, path: str) -> str:
        """Return why the file at a path must not be read, or ""."""
        return self._exclusions.why(path, "")

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._paths.pop(uri, None)
        self._secrets.pop(uri, None)

    def folders_changed(self) -> None:
        """Forget the paths below the folders that the workspace had."""
        self._paths.clear()

    def _is_secret(self, document: Document) -> bool:
        """Return whether a document is a secret by its text, or by its whole path.

        The model may be shown only the last part of that path.
        """
        path = self._path(document)
        if self._exclusions.why(path, document.uri):
            return True
        known = self._secrets.get(document.uri)
        if known is None or known[0] != document.revision:
            known = document.revision, bool(secret_in(document.text, path))
            self._secrets[document.uri] = known
        return known[1]

    def _path(self, document: Document) -> str:
        path = self._paths.get(document.uri)
        if path is None:
            uri = self._notebooks.file_of(document.uri)
            path = shown_path(uri, self.folders(), document.language)
            self._paths[document.uri] = path
        return path
