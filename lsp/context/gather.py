"""Context of a query: the region that an edit may replace, and excerpts of other places.

:meth:`Gatherer.gather` never waits: it reads a snapshot of the index, which is filled elsewhere.
The prompt puts excerpts first, so a changed one makes the model compute everything again. While the
cursor stays in its region none is removed or moved, and new ones are only added behind the others,
when the cursor reaches another line.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redraft.model.records import Diagnostic, Importable, RecentEdit, RelatedFile
from redraft.model.rules.example import written_lines
from redraft.model.rules.imports import names_to_look_up
from redraft.model.rules.modules import find_modules
from redraft.model.text.imported_files import imported
from redraft.model.text.syntax import Syntax

from ..documents import Splice
from ..paths import code_language, lies_within
from ..policy.ignore_files import IgnoreRules
from ..suggestion import Query
from . import region as regions
from .excerpts import (
    KINDS,
    PieceKind,
    Scene,
    ScoredExcerpt,
    Viewed,
    of_definitions,
    of_diagnostics,
    of_views,
    still_true,
)
from .indexer import Indexer
from .mentions import OpenText
from .moment import GatherMoment
from .opened import OpenDocuments
from .pinned import read_pinned
from .region import Region
from .selection import LeftOut, add_to, select
from .trees import Trees, tree_language
from .workspace import folder_of, no_project

logger = logging.getLogger(__name__)

BUDGET = 2_048  # tokens of a prompt if neither the settings nor the model name them

_PER_PIECE = 512  # tokens of budget for each excerpt: a small model reads few well
_STATES = 50  # documents whose choices are remembered
_VIEW_ENDS_S = 600.0
_REPORTS, _MESSAGE = 20, 300  # diagnostics of a document that are used, and characters of each


@dataclass(frozen=True, slots=True)
class Gathered:
    """The context of one place."""

    region: Region
    cost: float  # tokens of the region with its line numbers, estimated
    pieces: tuple[ScoredExcerpt, ...]  # in the order of the prompt: those in use longest first
    left_out: tuple[LeftOut, ...]  # best first; only of the last time that any were chosen
    room: int  # tokens available for excerpts, estimated
    names: int  # names near the cursor that were looked up
    files: int  # in the index

    @property
    def related(self) -> tuple[RelatedFile, ...]:
        """The excerpts as a request takes them."""
        return tuple(piece.related for piece in self.pieces)

    @property
    def spent(self) -> float:
        """Tokens of the excerpts, estimated."""
        return sum(piece.tokens for piece in self.pieces)


@dataclass(slots=True)
class _Choice:
    """Latest result for a document."""

    moment: GatherMoment
    gathered: Gathered
    region: Region | None  # moved along with the document since; None: its edge was changed
    is_complete: bool  # no text was missing in the index


class Gatherer:
    """Context for one client. The callables are called again with every query.

    Args:
        opened: the open documents, the folders of the workspace, and what must not be read.
        clock: reads seconds and never goes back.
        edits: the user's newest, oldest first.
        budget: tokens of a prompt; None until the model has answered.
        background: index in a thread; else only where :meth:`catch_up` is called.
        kinds: of excerpts; evaluations leave some out.
    """

    def __init__(
        self,
        opened: OpenDocuments,
        clock: Callable[[], float],
        edits: Callable[[], tuple[RecentEdit, ...]] = tuple,
        budget: Callable[[], int | None] = lambda: None,
        background: bool = True,
        kinds: frozenset[PieceKind] = KINDS,
    ) -> None:
        self._opened, self._clock = opened, clock
        self.above, self.above_hash = opened.above, opened.above_hash
        self._edits, self._budget, self._kinds = edits, budget, kinds
        self.indexer = Indexer(opened.refuse, clock, background=background)
        self._trees = Trees(self.indexer.later)
        self._choices: OrderedDict[str, _Choice] = OrderedDict()  # by URI
        self._views: OrderedDict[str, Viewed] = OrderedDict()  # by path
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._no_projects: dict[str, str] = {}  # URIs of folders that are not read, and why
        self._pinned: tuple[ScoredExcerpt, ...] = ()
        self._roots: list[Path] = []

    # --- events ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to index the workspace."""
        self.folders_changed()
        self.indexer.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """End the work in the background, for good; wait so long for its end."""
        self.indexer.stop(wait_s)

    def catch_up(self) -> None:
        """Index at once what is new."""
        self.indexer.catch_up()

    def folders_changed(self) -> None:
        """Index the folders that the workspace has now."""
        self._opened.folders_changed()
        named = {uri: folder_of(uri) for uri in self._opened.folders()}
        self._no_projects = {uri: why for uri, each in named.items() if (why := no_project(each))}
        for uri, why in self._no_projects.items():
            logger.warning("nothing of %s is indexed: %s", uri, why)
        fit = (each for uri, each in named.items() if uri not in self._no_projects)
        self._roots = [each for each in fit if each is not None]
        self.indexer.watch(self._roots)
        self._read_pinned()

    def _read_pinned(self) -> None:
        """Read the pinned files in the background; they are in the prompts after that."""
        settings = self._opened.settings()

        def read(_: Callable[[], None]) -> None:
            wanted = settings.pinned_files, settings.pinned_tokens
            found = read_pinned(self._roots, *wanted, self._opened.refuse)
            if found != self._pinned:
                self._pinned = found
                self._choices.clear()

        if settings.pinned_files or self._pinned:
            self.indexer.later(read)

    @property
    def rules(self) -> IgnoreRules:
        """The ``.redraftignore`` files, as the index read them last."""
        return self.indexer.rules

    @property
    def unread(self) -> dict[str, str]:
        """Folders of the workspace of which nothing is read, and why."""
        return self._no_projects | {str(each): why for each, why in self.indexer.unread.items()}

    def exclusions_changed(self) -> None:
        """Choose and read anew: other files than before must not be read."""
        self._choices.clear()
        self.files_changed()

    def files_changed(self) -> None:
        """Look for files that were saved, or changed on the disk."""
        self.indexer.look_again()
        self._read_pinned()

    def diagnosed(self, uri: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Note what the client reports of a document now."""
        self._diagnostics[uri] = tuple(diagnostics)

    def changed(self, uri: str, splices: Iterable[Splice]) -> None:
        """Move the region of a document along with its changes."""
        choice = self._choices.get(uri)
        for splice in splices:
            if choice is not None and choice.region is not None:
                choice.region = regions.follow(choice.region, splice)

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._diagnostics.pop(uri, None)
        self._choices.pop(uri, None)
        self._opened.closed(uri)
        self._trees.closed(uri)

    # --- region and excerpts -----------------------------------------------------------------

    def gather(self, query: Query) -> Gathered:
        """Return the region around the cursor, and excerpts of other places.

        1. The region moves along with the document, and is chosen anew only near its edge.
        2. A key within a line changes no excerpt.
        3. Another line of the same region may add excerpts behind the others.
        4. In a new region excerpts are chosen anew; those in use have a small advantage.
        """
        moment, choice = self._moment(query), self._choices.get(query.uri)
        if choice is not None and choice.moment == moment:
            return choice.gathered
        before = None if choice is None else choice.moment.query
        self._note(query, is_typing=before is not None and before.text != query.text)
        kept = None
        if choice is not None and choice.moment.budget == moment.budget:
            kept = choice.region
        region = self._region(moment, kept)
        is_same = choice is not None and choice.moment.above is moment.above
        if choice is None or before is None or region is not kept or not is_same:
            pieces = () if choice is None else choice.gathered.pieces
            gathered = self._choose(moment, region, pieces, add=False)
        elif (query.line, len(query.lines)) == (before.line, len(before.lines)):
            cost = regions.cost_of(region, query.lines)
            gathered = replace(choice.gathered, region=region, cost=cost)
        else:
            pieces = choice.gathered.pieces
            gathered = self._choose(moment, region, pieces, add=choice.is_complete)
        is_complete = not self.indexer.index.misses
        self.indexer.fetch_missed()
        self._choices[query.uri] = _Choice(moment, gathered, region, is_complete)
        _shorten(self._choices, query.uri)
        return gathered

    def look(self, query: Query) -> Gathered:
        """Return what :meth:`gather` would choose first where the user is not; remember nothing."""
        moment = self._moment(query)
        return self._choose(moment, self.region_at(query), (), add=False)

    def region_at(self, query: Query) -> Region:
        """Return the region of a place where the user is not; remember nothing."""
        moment = self._moment(query)
        return regions.choose(query.lines, query.line, self._trees.look(query), moment.tokens)

    def syntax(self, query: Query) -> Syntax | None:
        """Return the tree of a query's text; see :meth:`.trees.Trees.look`."""
        return self._trees.look(query)

    def _moment(self, query: Query) -> GatherMoment:
        budget = self._opened.settings().context_tokens or self._budget() or BUDGET
        reports, above = self._diagnostics.get(query.uri, ()), self.above(query)
        return GatherMoment(query, self._edits(), reports, budget, above)

    def _note(self, query: Query, *, is_typing: bool) -> None:
        """Tell the index which documents are open, and remember where the user is."""
        self.indexer.note_typing()
        opened = {
            each.path: each
            for each in self._opened.readable()
            if not self._opened.refuse(each.path)
        }
        for path in self.indexer.open_paths() - opened.keys():
            self.indexer.closed(path)
            self._views.pop(path, None)
        for path, each in opened.items():
            # The user's document changes with every key and is in the prompt itself. Its new
            # definitions may be found a little late.
            if not (is_typing and path == query.path):
                language = code_language(path) or each.language
                self.indexer.opened(path, language, each.revision, each.text)
        self._views[query.path] = Viewed(query.path, query.line, self._clock())
        _shorten(self._views, query.path)

    def _region(self, moment: GatherMoment, kept: Region | None) -> Region:
        """Return ``kept`` as long as it serves, else a fresh region."""
        query = moment.query

        def fresh() -> Region:
            syntax = self._trees.get(query)
            return regions.choose(query.lines, query.line, syntax, moment.tokens)

        if kept is None:
            return fresh()
        return regions.keep(kept, query.lines, query.line, moment.tokens, fresh)

    def _choose(
        self, moment: GatherMoment, region: Region, used: Sequence[ScoredExcerpt], *, add: bool
    ) -> Gathered:
        """Return a region with excerpts; ``add``: keep those in use, and add others behind them."""
        index, query, now_s = self.indexer.index, moment.query, self._clock()
        language = tree_language(query)
        pinned = tuple(each for each in self._pinned if each.path != query.path)
        room = moment.room(region, sum(piece.tokens for piece in pinned))
        scene = Scene(
            path=query.path,
            language=language,
            lines=query.lines,
            line=query.line,
            region=region.lines,
            reach=moment.reach(region),
            names=moment.names(region),
            modules=imported(moment.program, language, query.path),
            room=room,
            snapshot=index.snapshot,
            text_of=index.text,
        )
        views = [
            view
            for path, view in reversed(self._views.items())
            if path != query.path and now_s - view.at_s < _VIEW_ENDS_S
        ]
        found = [*of_definitions(scene), *of_views(scene, views, now_s)]
        found += of_diagnostics(scene, moment.diagnostics)
        fit = [
            each
            for each in found
            if each.kind in self._kinds and not self._opened.refuse(each.path)
        ]
        chosen_before = (piece for piece in used if piece.kind not in ("pinned", "cells"))
        present = still_true(chosen_before, scene)
        adds = add and sum(piece.tokens for piece in present) <= room
        most = max(1, moment.budget // _PER_PIECE)
        chosen, left_out = (add_to if adds else select)(present, fit, room, most)
        cost = regions.cost_of(region, query.lines)
        files = len(index.snapshot)
        pieces = (*pinned, *chosen, *moment.cells)
        return Gathered(region, cost, pieces, left_out, room, len(scene.names), files)

    # --- what else a session asks ------------------------------------------------------------

    def diagnostics(self, query: Query) -> tuple[Diagnostic, ...]:
        """Return what the editor last reported of the query's document, errors first."""
        reports = sorted(self._diagnostics.get(query.uri, ()), key=lambda each: each.severity)
        return tuple(
            Diagnostic(each.line, _clean(each.message[:_MESSAGE]), max(each.severity, 0))
            for each in reports[:_REPORTS]
        )

    def documents(self) -> Sequence[OpenText]:
        """Return the open documents in which an edit may be offered."""
        return self._opened.editable()

    def refuse(self, path: str) -> str:
        """Return why the file at a path must not be read, or ""."""
        return self._opened.refuse(path)

    def definers(self, name: str, language: str) -> set[str]:
        """Return the paths of the files that define ``name`` in a family of languages."""
        return {place.path for place in self.indexer.index.snapshot.places(name, language)}

    def importable(self, query: Query, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        """Return the imports of names that ``edits`` of the document wrote.

        There are none unless the document is a file below the only folder of the workspace: paths
        would not tell where files are.
        """
        folders = self._opened.folders()
        is_file = query.uri.startswith("file:") and lies_within(query.uri, folders)
        if len(folders) != 1 or not is_file:
            return ()
        language = code_language(query.path) or query.language
        written = written_lines([each for each in edits if each.path == query.path])

        def is_defined(name: str) -> bool:
            return bool(self.definers(name, language) - {query.path})

        names = names_to_look_up(query.text, language, written, is_defined)
        workspace = self.indexer.index.workspace()
        return find_modules(names, query.path, language, query.text, workspace) if names else ()


def _shorten(known: OrderedDict[str, Any], newest: str) -> None:
    """Drop the oldest entries."""
    known.move_to_end(newest)
    while len(known) > _STATES:
        known.popitem(last=False)


def _clean(message: str) -> str:
    """Return ``message`` without characters that no text holds."""
    return message.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
