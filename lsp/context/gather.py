"""What the model is shown besides the file itself: the region, and excerpts chosen to help there.

:meth:`Context.gather` is the one entry point. It never waits: it reads a snapshot of the index,
which is filled elsewhere. The prompt puts excerpts first, so a changed one makes the model compute
everything again: while the cursor stays in its region none is taken out or moved, and new ones are
only added behind the others, when the cursor reaches another line. Knows nothing of LSP, of models
or of disks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from redraft.model.records import Diagnostic, RecentEdit, RelatedFile
from redraft.model.text.imported_files import imported
from redraft.model.text.lines import estimate_text
from redraft.model.text.syntax import LANGUAGES, Syntax, language_of, parse

from . import region as regions
from .excerpts import (
    Piece,
    PieceKind,
    Scene,
    Viewed,
    near_names,
    of_definitions,
    of_diagnostics,
    of_views,
)
from .index import Snapshot
from .indexer import Indexer
from .mentions import OpenText
from .region import Lines, Page, Region
from .selection import QUANTUM, LeftOut, add_to, select

#: Everything that may go into the context; evaluations leave some out.
KINDS: frozenset[PieceKind] = frozenset(("definition", "import", "viewed", "diagnostic"))
BUDGET = 2_048  # tokens of a prompt where the model has not told

_FOR_RELATED = 0.3  # of what the region leaves: what the prompt gives excerpts in a long file
_FOR_EDITS = 0.3  # at most, in the prompt
_SURE = 0.85  # estimates of tokens are so much short of the truth at worst
_PER_PIECE = 512  # tokens of budget for each excerpt: a small model reads few well
_MOST_PIECES = 16
_REGION_SHARE = 0.45  # of the budget at most
_PARSED_AT_ONCE = 48_000  # characters; more takes over 10 ms and is parsed in the background
_TREES = 3  # documents whose trees are kept
_STATES = 50  # documents whose choices are remembered
_VIEWS = 3  # other documents considered as just looked at
_VIEW_ENDS_S = 600.0


@dataclass(frozen=True, slots=True)
class View:
    """What is asked about: a place in a document, and what is known around it."""

    uri: str
    path: str  # as shown to the model
    language: str  # LSP id, "" when unknown
    text: str  # "\n" line ends
    cursor: int  # index into text
    edits: tuple[RecentEdit, ...] = ()  # oldest first
    budget: int = BUDGET  # tokens of the whole prompt
    now_s: float = 0.0  # by a clock that never goes back
    diagnostics: tuple[Diagnostic, ...] = ()  # of this document
    opened: tuple[OpenText, ...] = ()  # all open documents; this one may be among them


@dataclass(frozen=True, slots=True)
class Gathered:
    """The context of one place. ``related`` and ``region`` go into the request."""

    region: Region
    cost: float  # tokens of the region with its line numbers, estimated
    related: tuple[RelatedFile, ...]  # in the prompt's order: what has been in use longest first
    pieces: tuple[Piece, ...]  # the same, with score, reason and cost of each
    left_out: tuple[LeftOut, ...]  # best first; only of the last time that any were chosen
    room: int  # tokens that were to be had for pieces, estimated
    names: int  # names near the cursor that were looked up then
    files: int  # in the index

    @property
    def spent(self) -> float:
        """Tokens of the pieces, estimated."""
        return sum(piece.tokens for piece in self.pieces)


@dataclass(slots=True)
class _State:
    """What was last gathered for a document."""

    page: Page
    budget: int
    gathered: Gathered
    complete: bool  # was every text at hand that was asked for?


class Context:
    """Gathers for one client, and remembers its choices per document.

    Args:
        indexer: of the workspace and the open documents.
        refuse: why a path must never be shown to the model, "" if it may be.
        kinds: what may be chosen.
    """

    def __init__(
        self,
        indexer: Indexer,
        refuse: Callable[[str], str] = lambda path: "",
        kinds: frozenset[PieceKind] = KINDS,
    ) -> None:
        self._indexer = indexer
        self._refuse = refuse
        self._kinds = kinds
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._trees: OrderedDict[str, Syntax] = OrderedDict()
        self._visited: OrderedDict[str, Syntax] = OrderedDict()  # where the user is not
        self._parsing: set[str] = set()
        self._views: OrderedDict[str, Viewed] = OrderedDict()  # by path

    # --- events ----------------------------------------------------------------------------

    def closed(self, uri: str) -> None:
        """A document was closed: its tree and what was chosen for it can go."""
        self._states.pop(uri, None)
        self._trees.pop(uri, None)
        self._visited.pop(uri, None)

    def forget(self) -> None:
        """Choose anew everywhere: what may be shown is no longer the same."""
        self._states.clear()

    # --- the one entry point -----------------------------------------------------------------

    def gather(self, view: View) -> Gathered:
        """The region around the cursor and what else to show the model.

        1. The region moves along with the document, and is chosen anew only near its edge.
        2. A keystroke within a line changes no piece.
        3. Another line of the same region may add pieces behind those there are.
        4. A new region chooses anew; what is in use already has a small advantage.
        """
        state = self._states.get(view.uri)
        if state is None:
            page, change = Page.of(view.text, view.cursor), None
        else:
            page, change = state.page.followed(view.text, view.cursor)
        self._note(view, page, typing=change is not None)
        kept = None
        if state is not None and state.budget == view.budget:
            kept = regions.follow(state.gathered.region, change)
        cost = 0.0 if kept is None else regions.cost_of(kept, page)
        region = self._region(view, page, kept, cost)
        if state is None or kept is None or region is not kept:
            gathered = self._choose(view, page, region, state, add=False)
        elif (page.line, page.total) == (state.page.line, state.page.total):
            gathered = replace(state.gathered, region=region, cost=cost)
        else:
            gathered = self._choose(view, page, region, state, add=state.complete)
        complete = not self._indexer.index.misses
        self._indexer.fetch_missed()
        self._states[view.uri] = _State(page, view.budget, gathered, complete)
        self._states.move_to_end(view.uri)
        while len(self._states) > _STATES:
            self._states.popitem(last=False)
        return gathered

    def _note(self, view: View, page: Page, *, typing: bool) -> None:
        """Tell the index what the editor has open, and remember where the user is."""
        self._indexer.typing()
        allowed = [each for each in view.opened if not self._refuse(each.path)]
        for path in self._indexer.open_paths() - {each.path for each in allowed}:
            self._indexer.closed(path)
            self._views.pop(path, None)
        for each in allowed:
            # The document in hand changes with every key and is in the prompt itself: what it
            # defines may be found a little late.
            if not (typing and each.path == view.path):
                self._indexer.opened(each.path, each.language, each.revision, each.text)
        self._views[view.path] = Viewed(view.path, page.line, view.now_s)
        self._views.move_to_end(view.path)
        while len(self._views) > _STATES:
            self._views.popitem(last=False)

    # --- the region ------------------------------------------------------------------------

    def _region(self, view: View, page: Page, kept: Region | None, cost: float) -> Region:
        """``kept``, which takes ``cost`` tokens, as long as it serves; else a fresh one."""
        tokens = min(regions.TOKENS, _REGION_SHARE * view.budget)

        def fresh() -> Region:
            return regions.choose(page.lines, page.line, self.syntax(view), tokens)

        return fresh() if kept is None else regions.keep(kept, page, fresh, tokens, cost)

    def region_at(self, view: View) -> Region:
        """The region of a place where the user is not: what is remembered of the document stays."""
        page = Page.of(view.text, view.cursor)
        tokens = min(regions.TOKENS, _REGION_SHARE * view.budget)
        return regions.choose(page.lines, page.line, self._syntax_there(view), tokens)

    def look(self, view: View) -> Gathered:
        """What :meth:`gather` would choose there at first; that, too, is not remembered."""
        page = Page.of(view.text, view.cursor)
        return self._choose(view, page, self.region_at(view), None, add=False)

    def definers(self, name: str, language: str) -> frozenset[str]:
        """Paths of the files that define ``name`` in a language, or one of its family."""
        return frozenset(
            place.path for place in self._indexer.index.snapshot.places(name, language)
        )

    def syntax(self, view: View) -> Syntax | None:
        """The document's tree, brought up to date in a few ms; None where there is no grammar, or
        not yet: a large file is parsed for the first time in the background."""
        language = _language(view)
        earlier = self._trees.get(view.uri)
        if earlier is not None and earlier.text == view.text and earlier.language == language:
            return earlier
        if earlier is None and len(view.text) > _PARSED_AT_ONCE:
            self._parse_later(view.uri, view.text, language)
            return None
        return self._keep_tree(view.uri, parse(view.text, language, earlier))

    def _syntax_there(self, view: View) -> Syntax | None:
        """The tree of a text where the user is not: no tree of theirs is given up for it, and a
        large file that has none is not waited for."""
        language, mine = _language(view), self._trees.get(view.uri)
        visited = self._visited.get(view.uri)
        for known in (mine, visited):
            if known is not None and known.text == view.text and known.language == language:
                return known
        earlier = mine or visited
        if earlier is None and len(view.text) > _PARSED_AT_ONCE:
            return None
        found = parse(view.text, language, earlier)
        if found is not None:
            self._visited[view.uri] = found
            self._visited.move_to_end(view.uri)
            while len(self._visited) > _TREES:
                self._visited.popitem(last=False)
        return found

    def _parse_later(self, uri: str, text: str, language: str) -> None:
        if uri in self._parsing:
            return
        self._parsing.add(uri)

        def job(rest: Callable[[], None]) -> None:
            try:
                self._keep_tree(uri, parse(text, language, rest=rest))
            finally:
                self._parsing.discard(uri)

        self._indexer.later(job)

    def _keep_tree(self, uri: str, syntax: Syntax | None) -> Syntax | None:
        if syntax is not None:
            self._trees[uri] = syntax
            self._trees.move_to_end(uri)
            while len(self._trees) > _TREES:
                self._trees.popitem(last=False)
        return syntax

    # --- the pieces --------------------------------------------------------------------------

    def _choose(
        self, view: View, page: Page, region: Region, state: _State | None, *, add: bool
    ) -> Gathered:
        snapshot = self._indexer.index.snapshot
        scene = self._scene(view, page, region, snapshot)
        room = _room(view, page, region)
        used = _present(state.gathered.pieces if state is not None else (), snapshot, scene)
        candidates = [*self._candidates(view, page, region, scene)]
        if add and sum(piece.tokens for piece in used) <= room:
            chosen, left_out = add_to(used, candidates, room, _most(view.budget))
        else:
            chosen, left_out = select(used, candidates, room, _most(view.budget))
        return Gathered(
            region=region,
            cost=regions.cost_of(region, page),
            related=tuple(piece.related for piece in chosen),
            pieces=chosen,
            left_out=left_out,
            room=room,
            names=len(scene.names),
            files=len(snapshot),
        )

    def _scene(self, view: View, page: Page, region: Region, snapshot: Snapshot) -> Scene:
        language = _language(view)
        return Scene(
            path=view.path,
            language=language,
            names=near_names(page.lines, region.lines, page.line, page.column, view.edits),
            reach=_reach(view, page.lines, region),
            modules=imported(view.text, language, view.path),
            snapshot=snapshot,
            text_of=self._indexer.index.text,
        )

    def _candidates(self, view: View, page: Page, region: Region, scene: Scene) -> Iterable[Piece]:
        found = of_definitions(scene)
        recent = [
            viewed
            for viewed in list(self._views.values())[::-1]
            if viewed.path != view.path and view.now_s - viewed.at_s < _VIEW_ENDS_S
        ]
        found += of_views(scene, recent[:_VIEWS], view.now_s)
        errors = view.diagnostics
        found += of_diagnostics(view.path, page.lines, errors, region.lines, page.line)
        return [p for p in found if p.kind in self._kinds and not self._refuse(p.path)]


# --- small parts ---------------------------------------------------------------------------------


def _language(view: View) -> str:
    if view.language in LANGUAGES:
        return view.language
    return language_of(view.path) or view.language


def _most(budget: int) -> int:
    """Pieces that a prompt of ``budget`` tokens takes at most."""
    return max(1, min(_MOST_PIECES, budget // _PER_PIECE))


def _room(view: View, page: Page, region: Region) -> int:
    """Tokens for pieces: what the prompt leaves them beside the region, the edits and the file."""
    free = view.budget - regions.cost_of(region, page) - 16
    edits = sum(estimate_text(edit.diff) for edit in view.edits)
    free -= min(edits, _FOR_EDITS * max(free, 0))
    outside = len(view.text) - sum(map(len, page.part(*region.lines)))
    far = outside / 3.2 + 1.5 * (page.total - region.last + region.first)
    room = _SURE * max(_FOR_RELATED * free, free - far)
    return max(0, int(room) // QUANTUM * QUANTUM)


def _reach(view: View, lines: Sequence[str], region: Region) -> Lines:
    """The lines that the prompt surely shows: the region, and half of what fits around it."""
    room = 0.5 * (1 - _FOR_RELATED) * max(0.0, view.budget - regions.TOKENS)
    first, last = region.lines
    above = below = 0.5 * room
    while first > 0 and (above := above - regions.tokens_of(lines[first - 1])) >= 0:
        first -= 1
    while last < len(lines) and (below := below - regions.tokens_of(lines[last])) >= 0:
        last += 1
    return first, last


def _present(pieces: Iterable[Piece], snapshot: Snapshot, scene: Scene) -> list[Piece]:
    """Pieces in use that still say the truth; none whose file has changed or gone since."""
    found = []
    for piece in pieces:
        entry = snapshot.get(piece.path)
        same = entry is not None and entry.stamp == piece.stamp
        if same or piece.kind in ("viewed", "diagnostic"):
            found.append(piece)
        elif entry is not None and _still_there(piece, scene.text_of(piece.path)):
            found.append(replace(piece, stamp=entry.stamp))
    return found


def _still_there(piece: Piece, text: str | None) -> bool:
    """Does a file that changed elsewhere still hold these lines?"""
    return text is not None and piece.kind == "definition" and f"\n{piece.text}" in f"\n{text}"
