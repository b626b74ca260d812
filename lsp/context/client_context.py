"""What a session asks for the surroundings of a query: the region, and excerpts of other places.

Joins the open documents, the workspace's folders and what the client reports to one
:class:`~redraft.lsp.context.gather.Context` and its index. Implements ``questions.Context``. Knows
nothing of LSP messages or asyncio.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from redraft.model.records import Diagnostic, Importable, RecentEdit, RelatedFile
from redraft.model.rules.example import written_lines
from redraft.model.rules.imports import names_to_look_up
from redraft.model.rules.modules import find_modules

from .. import refusals
from ..documents import Document
from ..paths import code_language, lies_within, shown_path
from ..secret_files import secret_in
from ..settings import LspSettings
from ..suggestion import Query
from .excerpts import PieceKind
from .gather import BUDGET, KINDS, Context, Gathered, View
from .indexer import Indexer
from .mentions import OpenText
from .workspace import OTHERS_CODE, folder_of

logger = logging.getLogger(__name__)


#: Diagnostics of a document that are put to use, and characters of each.
_REPORTS, _MESSAGE = 20, 300


class ClientContext:
    """For one client. The callables are asked again with every query.

    Args:
        documents: all that are open.
        folders: URIs of the workspace's.
        settings: as they are now; what they exclude is never read.
        edits: the user's newest, oldest first.
        budget: tokens of a prompt; None while the model has not told.
        background: index in a thread of its own; else only where :meth:`catch_up` is called.
        kinds: of excerpts; evaluations leave some out.
    """

    def __init__(
        self,
        documents: Callable[[], Iterable[Document]],
        folders: Callable[[], Sequence[str]],
        settings: Callable[[], LspSettings],
        clock: Callable[[], float],
        edits: Callable[[], tuple[RecentEdit, ...]] = tuple,
        budget: Callable[[], int | None] = lambda: None,
        background: bool = True,
        kinds: frozenset[PieceKind] = KINDS,
    ) -> None:
        self._documents = documents
        self._folders = folders
        self._settings = settings
        self._clock = clock
        self._edits = edits
        self._budget = budget
        self._indexer = Indexer(self._refuse, clock, background=background)
        self._context = Context(self._indexer, self._refuse, kinds)
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._paths: dict[str, str] = {}
        self._secrets: dict[str, tuple[int, bool]] = {}  # by URI: revision, and does it hold one
        self._unnamed: dict[str, str] = {}  # URIs of folders that are none to read, and why
        self._last: tuple[View, Gathered] | None = None

    # --- the life of the connection ----------------------------------------------------------

    def start(self) -> None:
        """Begin to index the workspace."""
        self.folders_changed()
        self._indexer.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """End the work in the background, for good; wait so long for it to end."""
        self._indexer.stop(wait_s)

    def catch_up(self) -> None:
        """Let the index take in at once what is new."""
        self._indexer.catch_up()

    def folders_changed(self) -> None:
        self._paths.clear()
        named = {uri: folder_of(uri) for uri in self._folders()}
        self._unnamed = {uri: why for uri, each in named.items() if (why := _no_project(each))}
        for uri, why in self._unnamed.items():
            logger.warning("nothing of %s is indexed: %s", uri, why)
        fit = (each for uri, each in named.items() if uri not in self._unnamed)
        self._indexer.watch([each for each in fit if each is not None])

    @property
    def unread(self) -> dict[str, str]:
        """Folders of the workspace of which nothing is read, and why."""
        return self._unnamed | {str(each): why for each, why in self._indexer.unread.items()}

    def exclusions_changed(self) -> None:
        """Other files than before must not be read."""
        self._last = None
        self._context.forget()
        self._indexer.look_again()

    def files_changed(self) -> None:
        """Something was saved, or changed on the disk."""
        self._indexer.look_again()

    def diagnosed(self, uri: str, diagnostics: Sequence[Diagnostic]) -> None:
        """What is wrong with a document now, as far as the client tells."""
        self._diagnostics[uri] = tuple(diagnostics)

    def closed(self, uri: str) -> None:
        self._diagnostics.pop(uri, None)
        self._paths.pop(uri, None)
        self._secrets.pop(uri, None)
        self._context.closed(uri)

    # --- what a session asks -------------------------------------------------------------------

    def region(self, query: Query, *, visiting: bool = False) -> tuple[int, int]:
        """The 0-based lines [first, last) around the cursor that an edit may replace.

        Args:
            visiting: the user is elsewhere; nothing is remembered of this place.
        """
        if visiting:
            return self._context.region_at(self._view(query)).lines
        return self.gathered(query).region.lines

    def related(self, query: Query, *, visiting: bool = False) -> tuple[RelatedFile, ...]:
        """Excerpts of other places, in the order of the prompt; the same for both tasks, so that
        they share the beginning of their prompts."""
        if visiting:
            return self._context.look(self._view(query)).related
        return self.gathered(query).related

    def diagnostics(self, query: Query) -> tuple[Diagnostic, ...]:
        """What the editor last reported of the query's document, errors first, as much as is of
        use."""
        told = sorted(self._diagnostics.get(query.uri, ()), key=lambda each: each.severity)
        return tuple(
            Diagnostic(each.line, clean(each.message[:_MESSAGE]), max(each.severity, 0))
            for each in told[:_REPORTS]
        )

    def documents(self) -> Sequence[OpenText]:
        """All open documents of the workspace that may be read: where an edit may be offered. Cells
        of a notebook are no files one can go to; what lies elsewhere, or is other people's code,
        was opened to be looked at."""
        return [
            OpenText(
                document.uri,
                self._path(document),
                document.language,
                document.revision,
                _text_of(document),
            )
            for document in self._trusted()
            if lies_within(document.uri, self._folders())
            and OTHERS_CODE.isdisjoint(self._path(document).split("/")[:-1])
        ]

    def definers(self, name: str, language: str) -> Collection[str]:
        return self._context.definers(name, language)

    def importable(self, query: Query, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        """What the document would import names from that ``edits`` of it wrote. Nothing where it is
        no file below the one folder of the workspace: paths would not tell where files lie."""
        folders = self._folders()
        if len(folders) != 1 or not query.uri.startswith("file:"):
            return ()
        if not lies_within(query.uri, folders):
            return ()
        language = code_language(query.path) or query.language
        written = written_lines([each for each in edits if each.path == query.path])

        def is_defined(name: str) -> bool:
            return bool(self._context.definers(name, language) - {query.path})

        names = names_to_look_up(query.text, language, written, is_defined)
        workspace = self._indexer.index.workspace()
        return find_modules(names, query.path, language, query.text, workspace)

    def gathered(self, query: Query) -> Gathered:
        """Both, with the reason and the cost of each piece."""
        view = self._view(query)
        if self._last is not None and _same(self._last[0], view):
            return self._last[1]
        gathered = self._context.gather(replace(view, opened=tuple(self._opened())))
        self._last = view, gathered
        return gathered

    def _view(self, query: Query) -> View:
        return View(
            uri=query.uri,
            path=query.path,
            language=query.language,
            text=query.text,
            cursor=query.cursor,
            edits=self._edits(),
            budget=self._settings().context_tokens or self._budget() or BUDGET,
            now_s=self._clock(),
            diagnostics=self._diagnostics.get(query.uri, ()),
        )

    def _trusted(self) -> Iterable[Document]:
        for document in self._documents():
            # Cells of a notebook would all be files of the same path.
            is_file = document.uri.startswith(("file:", "untitled:"))
            if is_file and not document.out_of_step and not self._is_secret(document):
                yield document

    def _is_secret(self, document: Document) -> bool:
        """By its whole path, of which what the model is shown may be the last part, or its text."""
        path = self._path(document)
        if refusals.refuse_file(path, self._settings(), document.uri):
            return True
        known = self._secrets.get(document.uri)
        if known is None or known[0] != document.revision:
            known = document.revision, bool(secret_in(document.text, path))
            self._secrets[document.uri] = known
        return known[1]

    def _opened(self) -> Iterable[OpenText]:
        for document in self._trusted():
            path = self._path(document)
            language = code_language(path) or document.language
            yield OpenText(document.uri, path, language, document.revision, _text_of(document))

    def _path(self, document: Document) -> str:
        path = self._paths.get(document.uri)
        if path is None:
            path = shown_path(document.uri, self._folders(), document.language)
            self._paths[document.uri] = path
        return path

    def _refuse(self, path: str) -> str:
        return refusals.refuse_file(path, self._settings())


def clean(message: str) -> str:
    """``message`` without what no text holds."""
    return message.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _no_project(folder: Path | None) -> str:
    """Why a folder is not to be read, "" if it is. Some clients name the disk or the home folder
    where a file belongs to no project: reading all of that would help nobody."""
    if folder is None:
        return "it is no folder on this machine"
    try:
        home = Path.home()
    except RuntimeError:  # there is none
        home = None
    whole = folder in (folder.parent, home)
    return "it is a whole disk or the home folder; open a project in it" if whole else ""


def _same(one: View, other: View) -> bool:
    """Is it the same question again?"""
    return (
        (one.uri, one.cursor, one.budget) == (other.uri, other.cursor, other.budget)
        and one.text == other.text
        and one.diagnostics == other.diagnostics
        and one.edits == other.edits
    )


def _text_of(document: Document) -> Callable[[], str]:
    return lambda: document.text
