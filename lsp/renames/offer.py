"""Whole renames as suggestions of a session: offered, kept while they hold, and accepted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from redraft.model.edits.edit import Edit
from redraft.model.errors import InvalidRequest, StaleDocument
from redraft.model.records import RecentEdit
from redraft.model.rules.renames import renames_of

from ..context.gather import Gatherer
from ..context.index import Snapshot
from ..context.workspace import read_code
from ..documents import Documents
from ..history import History
from ..memory import Rejections
from ..outcomes import Outcomes
from ..paths import code_language
from ..refusals import refuse_stale
from ..suggestion import Query, Show, Suggestion
from .code_file import CodeFile, Unclear
from .definition import RenamedDefinition, renamed_definitions
from .plan import Surroundings, WholeRename, plan

logger = logging.getLogger(__name__)

_MODEL = "rename"  # in place of the name of a model


class WholeRenames:
    """The whole renames of one session.

    They are computed in a thread, when the keys rest after an edit that renamed a definition.
    """

    def __init__(
        self,
        documents: Documents,
        history: History,
        context: Gatherer,
        outcomes: Outcomes,
        rejections: Rejections,
    ) -> None:
        self._documents, self._history, self._context = documents, history, context
        self._outcomes, self._rejections = outcomes, rejections
        self._known: tuple[Hashable, list[WholeRename]] = (), []  # for these texts
        self._snapshot = Snapshot()  # of the index when they were computed
        self._accepted = ("", "")  # old and new name; its files may change later

    async def offer(
        self,
        query: Query,
        rest: Callable[[], Awaitable[None]],
        named: Callable[[Suggestion], Suggestion],
    ) -> Show | None:
        """Return the rename of a definition that the last edits began, None if there is none.

        Args:
            rest: waits for the debounce.
            named: gives a suggestion its id.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        edits = self._history.edits(unfinished=True) if query.whole_renames else ()
        if not renames_of([each for each in edits if each.path == query.path]):
            return None
        around = surroundings(self._context)
        own = around.opened.get(query.path)
        if own is None or own.uri != query.uri or own.revision != query.revision:
            return None
        revisions = (each.revision for each in around.opened.values())
        key = (edits, around.snapshot, around.is_indexed, *revisions)
        if self._known[0] != key:
            await rest()
            self._snapshot = around.snapshot
            self._known = key, await asyncio.to_thread(_renames, edits, own, around)
        if refuse_stale(self._documents, query) is not None:
            return None
        made = (_suggestion(query, each) for each in self._known[1] if self._is_fit(each))
        is_rejected = self._rejections.has_rejected
        found = next((each for each in made if not is_rejected(query.uri, each.edit)), None)
        if found is None:
            return None
        shown = replace(named(found), rename=found.rename)
        return Show(shown, shown.replacement, "its definition was just renamed")

    def _is_fit(self, rename: WholeRename) -> bool:
        return self.holds(rename) and self._accepted != (rename.old, rename.new)

    def is_current(self, rename: WholeRename) -> bool:
        """Return whether nothing has changed since a rename was computed."""
        is_known = self._snapshot is self._context.indexer.index.snapshot
        return is_known and self.holds(rename)

    def holds(self, rename: WholeRename) -> bool:
        """Return whether the documents of a rename are as they were when it was computed."""
        for each in rename.files:
            document = self._documents.get(each.source.uri)
            if (document.revision if document is not None else None) != each.source.revision:
                return False
        return True

    async def accept(self, id_: str) -> WholeRename:
        """Return the rename that the user accepts, if its files are as they were.

        Raises:
            InvalidRequest: no rename of this id is shown.
            StaleDocument: one of its files has changed.
        """
        suggestion = self._outcomes.live(id_)
        rename = suggestion.rename if suggestion is not None else None
        if suggestion is None or rename is None:
            raise InvalidRequest(f"no rename {id_!r} is shown; ask for the next edit again")
        read = surroundings(self._context).read
        unopened = [each.source for each in rename.files if each.source.revision is None]
        now = await asyncio.to_thread(lambda: [read(each.path) for each in unopened])
        if now != unopened or not self.holds(rename):
            self._known = (), []
            self._outcomes.dismiss(suggestion.uri)
            raise StaleDocument("a file of this rename has changed; ask for the next edit again")
        self._accepted = rename.old, rename.new
        return rename


def _suggestion(query: Query, rename: WholeRename) -> Suggestion:
    mark = Edit(query.text, rename.at, rename.at + len(rename.new), rename.new)
    return replace(Suggestion.of(query, "next_edit", mark, 1.0, _MODEL), rename=rename)


def _renames(edits: Sequence[RecentEdit], own: CodeFile, around: Surroundings) -> list[WholeRename]:
    """Return the clear renames that are worth one suggestion, the newest first."""
    try:
        targets = list(renamed_definitions(edits, own))
    except Unclear:
        return []
    found = (_planned(target, around) for target in targets)
    return [each for each in found if each is not None and _is_worth_it(each)]


def _planned(target: RenamedDefinition, around: Surroundings) -> WholeRename | None:
    try:
        return plan(target, around)
    except Unclear as why:
        logger.debug("no whole rename of %s to %s: %s", target.old, target.new, why)
        return None


def _is_worth_it(rename: WholeRename) -> bool:
    """Return whether a rename has several places, or one in a file that is not open."""
    return rename.places > 1 or any(each.source.revision is None for each in rename.files)


def surroundings(context: Gatherer) -> Surroundings:
    """Return the files of the workspace as they are now."""
    indexer = context.indexer
    opened = {
        each.path: CodeFile(
            each.uri,
            each.path,
            code_language(each.path) or each.language,
            each.text(),
            each.revision,
            each.version,
        )
        for each in context.documents()
    }

    def read(path: str) -> CodeFile | None:
        found = indexer.found(path)
        if found is None or context.refuse(path):
            return None
        text = read_code(found.folder, path)
        return None if text is None else CodeFile(uri_of(found.file), path, found.language, text)

    is_indexed = indexer.is_complete and not context.unread
    return Surroundings(indexer.index.snapshot, opened, read, is_indexed)


def uri_of(file: str) -> str:
    """Return the URI of a file on the disk."""
    return Path(file).as_uri()
