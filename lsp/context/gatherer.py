"""Context of a snapshot: the region that an edit may replace, and excerpts of other places.

:meth:`Gatherer.gather` never waits: it reads a generation of the index, which is filled elsewhere.
The prompt puts excerpts first, so a changed one makes the model compute everything again. While the
cursor stays in its region none is removed or moved, and new ones are only added behind the others,
when the cursor reaches another line.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from redraft.model.records import EditRequest, Importable, RecentEdit, RelatedFile
from redraft.model.rules.imports import names_to_look_up
from redraft.model.rules.modules import find_modules
from redraft.model.rules.rule_edits import lines_written
from redraft.model.text.imported_files import find_imported_modules
from redraft.model.text.syntax import Syntax

from ..documents.open_documents import Splice
from ..documents.uris import code_language, display_path, file_of, lies_within
from ..editor_settings import LspSettings
from ..policy.ignore_files import GIT_IGNORE, REDRAFT_IGNORE, IgnoreRules
from ..question import Question
from ..snapshot import Snapshot
from . import region as regions
from .indexer import Indexer
from .listing import no_project
from .pinned import match_pinned, read_pinned
from .ranked_places import RankedPlaces
from .region import Region
from .room import (
    cells_of,
    is_same_choice,
    lines_in_prompt,
    names_near,
    program_of,
    region_tokens,
    reports_of,
    room_for_excerpts,
)
from .scored_excerpts import (
    KINDS,
    ExcerptNeeds,
    PieceKind,
    ScoredExcerpt,
    Viewed,
    of_definitions,
    of_diagnostics,
    of_views,
    still_true,
)
from .selection import LeftOut, add_to, select
from .trees import Trees, tree_language
from .unopened_files import UnopenedFiles

logger = logging.getLogger(__name__)

BUDGET = 2_048  # tokens of a prompt if neither the settings nor the model name them

_PER_PIECE = 512  # tokens of budget for each excerpt: a small model reads few well
_STATES = 50  # documents whose choices are remembered
_VIEW_ENDS_S = 600.0


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

    snapshot: Snapshot
    gathered: Gathered
    region: Region | None  # moved along with the document since; None: its edge was changed
    is_complete: bool  # no text was missing in the index


class Gatherer:
    """Context for one client.

    Args:
        folders: returns the URIs of the workspace's folders as they are now.
        refuse: returns why the file at a path must not be read, "" if it may be.
        settings: returns them as they are now.
        clock: reads seconds and never goes back.
        background: index in a thread; else only where :meth:`catch_up` is called.
        kinds: of excerpts; evaluations leave some out.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        refuse: Callable[[str], str],
        settings: Callable[[], LspSettings],
        clock: Callable[[], float],
        background: bool = True,
        kinds: frozenset[PieceKind] = KINDS,
    ) -> None:
        self._folders, self.refuse, self._settings, self._clock = folders, refuse, settings, clock
        self.kinds = kinds
        self.indexer = Indexer(refuse, clock, background=background)
        self._trees = Trees(self.indexer.later)
        self.unopened = UnopenedFiles(self.indexer, refuse)
        later = self.indexer.later if background else None
        self.places = RankedPlaces(later, self.unopened.find)
        self._choices: OrderedDict[str, _Choice] = OrderedDict()  # by URI
        self._views: OrderedDict[str, Viewed] = OrderedDict()  # by path
        self._no_projects: dict[str, str] = {}  # URIs of folders that are not read, and why
        self._pinned: tuple[ScoredExcerpt, ...] = ()
        self._pinned_names: dict[Path, dict[str, list[str]]] = {}  # by folder and pattern
        self.read_opened: Callable[[IgnoreRules], None] = lambda _: None  # what documents obey
        self.indexer.listed, self.indexer.read_rules = self._names_listed, self._read_rules
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
        files = {uri: file_of(uri) for uri in self._folders()}
        named = {uri: Path(file) if file else None for uri, file in files.items()}
        self._no_projects = {uri: why for uri, each in named.items() if (why := no_project(each))}
        for uri, why in self._no_projects.items():
            logger.warning("nothing of %s is indexed: %s", uri, why)
        fit = (each for uri, each in named.items() if uri not in self._no_projects)
        self._roots = [each for each in fit if each is not None]
        self.indexer.watch(self._roots)

    def _names_listed(self, folder: Path, names: Sequence[str]) -> None:
        """Note which listed files are pinned; called by the index, in its thread."""
        self._pinned_names[folder] = match_pinned(self._settings().pinned_files, names)

    def _read_rules(self, rules: IgnoreRules) -> None:
        """Read what documents and pinned files obey; called by the index, in its thread."""
        self.read_opened(rules)
        self._read_pinned(rules)

    def _read_pinned(self, rules: IgnoreRules) -> None:
        """Read the pinned files; they are in the prompts after that."""
        settings = self._settings()
        found = read_pinned(
            self._roots,
            settings.pinned_files,
            settings.pinned_tokens,
            self.refuse,
            self._pinned_names,
            rules,
        )
        if found != self._pinned:
            self._pinned = found
            self._choices.clear()

    @property
    def rules(self) -> IgnoreRules:
        """The ``.redraftignore`` files, as the index read them last."""
        return self.indexer.rules

    @property
    def unread(self) -> dict[str, str]:
        """Folders of the workspace of which nothing is read, and why."""
        return self._no_projects | {str(each): why for each, why in self.indexer.unread.items()}

    @property
    def unreadable(self) -> dict[str, str]:
        """URIs of folders that cannot be read, and why; not those that are no project."""
        unread = self.indexer.unread
        found = {uri: unread.get(Path(file_of(uri))) for uri in self._folders() if file_of(uri)}
        missing = {uri: why for uri, why in self._no_projects.items() if not file_of(uri)}
        return missing | {uri: why for uri, why in found.items() if why}

    def exclusions_changed(self) -> None:
        """Choose and read anew: other files than before must not be read."""
        self._choices.clear()
        self.indexer.look_again()

    def files_changed(self) -> None:
        """Look for files that changed on the disk."""
        self.indexer.on_change()

    def on_save(self, uri: str) -> None:
        """Read a file that was saved, and no other. New rules are read at once."""
        path = display_path(uri, self._folders())
        name = path.rpartition("/")[2]
        if name == REDRAFT_IGNORE:
            self.indexer.look_again()
        elif name == GIT_IGNORE:
            self.indexer.on_change()
        else:
            self.indexer.on_save(path)
        if any(path == each.path for each in self._pinned):
            self.indexer.later(lambda _: self._read_pinned(IgnoreRules()))

    def on_change(self, uri: str, splices: Iterable[Splice]) -> None:
        """Move the region of a document along with its changes."""
        choice = self._choices.get(uri)
        for splice in splices:
            if choice is not None and choice.region is not None:
                choice.region = regions.follow(choice.region, splice)

    def on_close(self, uri: str) -> None:
        """Forget a document."""
        self._choices.pop(uri, None)
        self._trees.on_close(uri)
        self.places.on_close(uri)

    # --- region and excerpts -----------------------------------------------------------------

    def gather(self, snapshot: Snapshot) -> Gathered:
        """Return the region around the cursor, and excerpts of other places.

        1. The region moves along with the document, and is chosen anew only near its edge.
        2. A key within a line changes no excerpt.
        3. Another line of the same region may add excerpts behind the others.
        4. In a new region excerpts are chosen anew; those in use have a small advantage.
        """
        choice = self._choices.get(snapshot.uri)
        if choice is not None and is_same_choice(choice.snapshot, snapshot):
            return choice.gathered
        before = None if choice is None else choice.snapshot
        self._note(snapshot, is_typing=before is not None and before.text != snapshot.text)
        kept = None
        if choice is not None and choice.snapshot.budget == snapshot.budget:
            kept = choice.region
        region = self._region(snapshot, kept)
        is_same = before is not None and before.above is snapshot.above
        if choice is None or before is None or region is not kept or not is_same:
            pieces = () if choice is None else choice.gathered.pieces
            gathered = self._choose(snapshot, region, pieces, add=False)
        elif (snapshot.line, len(snapshot.lines)) == (before.line, len(before.lines)):
            cost = regions.cost_of(region, snapshot.lines)
            gathered = replace(choice.gathered, region=region, cost=cost)
        else:
            pieces = choice.gathered.pieces
            gathered = self._choose(snapshot, region, pieces, add=choice.is_complete)
        is_complete = not self.indexer.index.misses
        self.indexer.fetch_missed()
        self._choices[snapshot.uri] = _Choice(snapshot, gathered, region, is_complete)
        _shorten(self._choices, snapshot.uri)
        return gathered

    def look(self, snapshot: Snapshot) -> Gathered:
        """Return what :meth:`gather` would choose first where the user is not; remember nothing."""
        return self._choose(snapshot, self.region_at(snapshot), (), add=False)

    def region_at(self, snapshot: Snapshot) -> Region:
        """Return the region of a place where the user is not; remember nothing."""
        syntax = self._trees.look(snapshot)
        return regions.choose(snapshot.lines, snapshot.line, syntax, region_tokens(snapshot))

    def syntax(self, snapshot: Snapshot) -> Syntax | None:
        """Return the tree of a snapshot's text; see :meth:`.trees.Trees.look`."""
        return self._trees.look(snapshot)

    def _note(self, snapshot: Snapshot, *, is_typing: bool) -> None:
        """Pass the open documents to the index, and remember where the user is."""
        self.indexer.note_typing()
        readable = snapshot.opened.readable
        opened = {each.path: each for each in readable if not self.refuse(each.path)}
        for path in self.indexer.open_paths() - opened.keys():
            self.indexer.on_close(path)
            self._views.pop(path, None)
        for path, each in opened.items():
            # The user's document changes with every key and is in the prompt itself. Its new
            # definitions may be found a little late.
            if not (is_typing and path == snapshot.path):
                language = code_language(path) or each.language
                text = partial(getattr, each, "text")
                self.indexer.on_open(path, language, each.revision, text)
        self._views[snapshot.path] = Viewed(snapshot.path, snapshot.line, self._clock())
        _shorten(self._views, snapshot.path)

    def _region(self, snapshot: Snapshot, kept: Region | None) -> Region:
        """Return ``kept`` as long as it serves, else a fresh region."""
        tokens = region_tokens(snapshot)

        def fresh() -> Region:
            syntax = self._trees.get(snapshot)
            return regions.choose(snapshot.lines, snapshot.line, syntax, tokens)

        if kept is None:
            return fresh()
        return regions.keep(kept, snapshot.lines, snapshot.line, tokens, fresh)

    def _choose(
        self, snapshot: Snapshot, region: Region, used: Sequence[ScoredExcerpt], *, add: bool
    ) -> Gathered:
        """Return a region with excerpts; ``add``: keep those in use, and add others behind them."""
        now_s, language = self._clock(), tree_language(snapshot)
        pinned = tuple(
            each
            for each in self._pinned
            if each.path != snapshot.path and not self.refuse(each.path)
        )
        room = room_for_excerpts(snapshot, region, sum(piece.tokens for piece in pinned))
        needs = ExcerptNeeds(
            path=snapshot.path,
            language=language,
            lines=snapshot.lines,
            line=snapshot.line,
            region=region.lines,
            reach=lines_in_prompt(snapshot, region),
            names=names_near(snapshot, region),
            modules=find_imported_modules(program_of(snapshot), language, snapshot.path),
            room=room,
            index=snapshot.index,
            text_of=self._text_of,
        )
        views = [
            view
            for path, view in reversed(self._views.items())
            if path != snapshot.path and now_s - view.at_s < _VIEW_ENDS_S
        ]
        found = [*of_definitions(needs), *of_views(needs, views, now_s)]
        found += of_diagnostics(needs, reports_of(snapshot))
        fit = [each for each in found if each.kind in self.kinds and not self.refuse(each.path)]
        chosen_before = (
            piece
            for piece in used
            if piece.kind not in ("pinned", "cells") and not self.refuse(piece.path)
        )
        present = still_true(chosen_before, needs)
        adds = add and sum(piece.tokens for piece in present) <= room
        most = max(1, snapshot.budget // _PER_PIECE)
        chosen, left_out = (add_to if adds else select)(present, fit, room, most)
        cost = regions.cost_of(region, snapshot.lines)
        pieces = (*pinned, *chosen, *cells_of(snapshot))
        files = len(snapshot.index)
        return Gathered(region, cost, pieces, left_out, room, len(needs.names), files)

    def _text_of(self, path: str) -> str | None:
        """Return a text of the index, None if it may not be read now or was dropped."""
        return None if self.refuse(path) else self.indexer.index.text(path)

    # --- what else a session asks ------------------------------------------------------------

    def complete(self, question: Question) -> EditRequest:
        """Return the request of a question with what takes time to gather.

        In the user's own document the excerpts are those of the user's place, so that the prompts
        begin alike.
        """
        place, user = question.snapshot, question.snapshot.user
        if question.task == "infill":
            related, stop = self.gather(place).related, place.above.stop if place.above else ()
            return replace(question.request, edits=place.edits.finished, related=related, stop=stop)
        here = place.uri == user.uri
        related = self.gather(user).related if here else self.look(place).related
        return replace(
            question.request,
            edits=place.recent,
            related=related,
            diagnostics=(*place.reports, *([question.report] if question.report else ())),
            importable=self.importable(place, place.recent),
        )

    def importable(self, snapshot: Snapshot, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        """Return the imports of names that ``edits`` of the document wrote.

        There are none unless the document is a file below the only folder of the workspace: paths
        would not tell where files are.
        """
        folders = snapshot.opened.folders
        is_file = snapshot.uri.startswith("file:") and lies_within(snapshot.uri, folders)
        if len(folders) != 1 or not is_file:
            return ()
        language = code_language(snapshot.path) or snapshot.language
        written = lines_written([each for each in edits if each.path == snapshot.path])

        def is_defined(name: str) -> bool:
            others = snapshot.index.definers(name, language) - {snapshot.path}
            return any(not self.refuse(path) for path in others)

        names = names_to_look_up(snapshot.text, language, written, is_defined)
        workspace = self.indexer.index.workspace(self.refuse)
        return (
            find_modules(names, snapshot.path, language, snapshot.text, workspace) if names else ()
        )


def _shorten(known: OrderedDict[str, Any], newest: str) -> None:
    """Drop the oldest entries."""
    known.move_to_end(newest)
    while len(known) > _STATES:
        known.popitem(last=False)
