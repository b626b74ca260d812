"""Whole renames as suggestions of a session: offered, kept while they hold, and accepted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from threading import Event

from redraft.model.edits.edit import Edit
from redraft.model.errors import InvalidRequest, StaleDocument
from redraft.model.records import RecentEdit
from redraft.model.rules.alike.repeated_lines import find_changed_lines, find_repeated
from redraft.model.rules.renames import renames_of, short_renamed_by
from redraft.model.rules.series import argument_changes
from redraft.model.rules.siblings import new_names

from ..context.index import IndexGeneration
from ..context.listing import read_code
from ..documents.uris import code_language, uri_of
from ..snapshot import Snapshot
from ..suggestions.memory import Memory
from ..suggestions.suggestion import Offer, Suggestion
from ..workspace import Workspace
from .async_calls import find_async, find_made_async
from .call_series import find_series
from .code_file import CodeFile, UnclearUse
from .constants import find_constants, new_constants
from .definition import RenamedDefinition, find_renamed
from .literals import find_literals, opens_literals
from .members import find_members
from .moves import RemovedDefinitions, find_moves
from .removed_definitions import find_removed
from .repeated_changes import changes_keys, find_repeats
from .whole_rename import WholeRename, WorkspaceFiles, find_uses

logger = logging.getLogger(__name__)

#: Seconds in which a client applies a rename, and between two looks at whether it has.
_APPLIES_S, _LOOK_S = 0.5, 0.02
_MODEL = "rename"  # in place of the name of a model


class WholeRenames:
    """The whole renames of one session.

    They are computed in a thread, when the keys rest after an edit that renamed a definition.
    """

    def __init__(self, workspace: Workspace, memory: Memory) -> None:
        self._workspace, self._memory = workspace, memory
        self._known: tuple[Hashable, list[WholeRename]] = (), []  # for these texts
        self._index = IndexGeneration()  # when they were computed
        self._stop = Event()  # of the search that runs
        self._applied: dict[str, str] = {}  # documents of an accepted one, and their texts then
        self._accepted = ("", "", "")  # old name, new name, other change; files may change later

    def is_due(self, snapshot: Snapshot) -> bool:
        """Return whether the last edits may have renamed a definition, and it is not known how."""
        return _has_renamed(snapshot) and self._known[0] != self._key(snapshot)

    def look_up(self, snapshot: Snapshot) -> Offer | None:
        """Return the rename that is known for a snapshot, None if there is none."""
        if not _has_renamed(snapshot) or self._known[0] != self._key(snapshot):
            return None
        is_rejected = self._memory.rejections.has_rejected
        made = (_suggestion(snapshot, each) for each in self._known[1] if self._is_fit(each))
        found = next((each for each in made if not is_rejected(snapshot.uri, each.edit)), None)
        if found is None:
            return None
        shown = replace(self._memory.with_id(found), rename=found.rename)
        is_rename = found.rename is not None and not found.rename.what
        why = "its definition was just renamed" if is_rename else "the same change fits there"
        return Offer(shown, shown.replacement, why)

    async def find(self, snapshot: Snapshot) -> Offer | None:
        """Return the rename of a definition that the last edits began, None if there is none."""
        if self.is_due(snapshot):
            self._stop.set()  # of the search before, read between two files
            self._stop = stop = Event()
            key, files = self._key(snapshot), self._files(snapshot, stop)
            own = files.opened.get(snapshot.path)
            if own is None or own.uri != snapshot.uri:
                return None
            removed = _removed(snapshot)
            found = await asyncio.to_thread(_renames, snapshot.recent, removed, own, files)
            if not stop.is_set():
                self._known, self._index = (key, found), snapshot.index
        return self.look_up(snapshot)

    async def find_move(self, snapshot: Snapshot) -> Offer | None:
        """Return the imports that follow a definition moved to another file, None without one."""
        found = await self.find(snapshot) if _has_moved(snapshot) else None
        rename = found.suggestion.rename if found is not None else None
        return found if rename is not None and rename.basis else None

    def _key(self, snapshot: Snapshot) -> Hashable:
        revisions = (each.revision for each in snapshot.opened.editable)
        return (snapshot.recent, snapshot.index, self._is_indexed(), *revisions)

    def _is_indexed(self) -> bool:
        context = self._workspace.context
        return context.indexer.is_complete and not context.unread

    def _files(self, snapshot: Snapshot, stop: Event) -> WorkspaceFiles:
        opened = {
            each.path: CodeFile(
                each.uri,
                each.path,
                code_language(each.path) or each.language,
                each.text,
                each.revision,
                each.version,
            )
            for each in snapshot.opened.editable
        }

        def read(path: str) -> CodeFile | None:
            if stop.is_set():
                raise UnclearUse("a newer question took the place of this one")
            return self._read(path)

        return WorkspaceFiles(snapshot.index, opened, read, self._is_indexed())

    def _read(self, path: str) -> CodeFile | None:
        context = self._workspace.context
        found = context.indexer.file_at(path)
        if found is None or context.refuse(path):
            return None
        text = read_code(found.folder, path, for_edits=True)
        return None if text is None else CodeFile(uri_of(found.file), path, found.language, text)

    def _is_fit(self, rename: WholeRename) -> bool:
        return self.holds(rename) and self._accepted != (rename.old, rename.new, rename.what)

    def is_current(self, rename: WholeRename, snapshot: Snapshot) -> bool:
        """Return whether nothing has changed since a rename was computed."""
        return self._index is snapshot.index and self.holds(rename)

    def holds(self, rename: WholeRename) -> bool:
        """Return whether the documents of a rename are as they were when it was computed."""
        for source in (*rename.basis, *(each.source for each in rename.files)):
            document = self._workspace.documents.get(source.uri)
            if (document.revision if document is not None else None) != source.revision:
                return False
        return True

    async def accept(self, id_: str) -> WholeRename:
        """Return the rename that the user accepts, if its files are as they were.

        Raises:
            InvalidRequest: no rename of this id is shown.
            StaleDocument: one of its files has changed.
        """
        rename = await self.check(id_)
        self._accepted = rename.old, rename.new, rename.what
        files = (each for each in rename.files if each.source.revision is not None)
        self._applied = {each.source.uri: each.result for each in files}
        return rename

    async def until_applied(self) -> None:
        """Wait until the client has sent what an accepted rename changed, for a moment at most.

        A client may send the changes of a document one by one, and others later than the one that
        it asks about.
        """
        clock = asyncio.get_running_loop().time
        end_s, documents = clock() + _APPLIES_S, self._workspace.documents
        while self._applied and clock() < end_s:
            found = {uri: documents.get(uri) for uri in self._applied}
            if all(now is None or now.text == self._applied[uri] for uri, now in found.items()):
                break
            await asyncio.sleep(_LOOK_S)
        self._applied = {}

    async def check(self, id_: str) -> WholeRename:
        """Return the rename that is shown, if its files are as they were, also on the disk.

        Raises:
            InvalidRequest: no rename of this id is shown.
            StaleDocument: one of its files has changed.
        """
        suggestion = self._memory.outcomes.find(id_)
        rename = suggestion.rename if suggestion is not None else None
        if suggestion is None or rename is None:
            raise InvalidRequest(f"no rename {id_!r} is shown; ask for the next edit again")
        read = self._read
        sources = (*rename.basis, *(each.source for each in rename.files))
        unopened = [each for each in sources if each.revision is None]
        now = await asyncio.to_thread(lambda: [read(each.path) for each in unopened])
        if now != unopened or not self.holds(rename):
            self._known = (), []
            self._memory.outcomes.dismiss(suggestion.uri)
            raise StaleDocument("a file of this rename has changed; ask for the next edit again")
        return rename


def _has_moved(snapshot: Snapshot) -> bool:
    """Return whether a definition was removed from an open file, and may be in another one."""
    return snapshot.flags.whole_renames and any(_removed(snapshot).values())


def _removed(snapshot: Snapshot) -> dict[str, RemovedDefinitions]:
    """Return the definitions that were removed from open files, by path."""
    return {
        each.path: find_removed(
            snapshot.recent,
            each.path,
            code_language(each.path) or each.language,
            snapshot.edits.find_deleted_lines(each.uri),
        )
        for each in snapshot.opened.editable
    }


def _has_renamed(snapshot: Snapshot) -> bool:
    edits = snapshot.recent if snapshot.flags.whole_renames else ()
    here = [each for each in edits if each.path == snapshot.path]
    lines = find_changed_lines(here, snapshot.path)
    return bool(
        _has_moved(snapshot)
        or find_made_async(edits)
        or renames_of(here)
        or any(map(short_renamed_by, here))
        or argument_changes(here, snapshot.path, snapshot.language)
        or any(new_names(here, snapshot.path))
        or any(new_constants(here, snapshot.path))
        or opens_literals(lines, snapshot.language)
        or changes_keys(lines)
        or any(find_repeated(lines, snapshot.path))
    )


def _suggestion(snapshot: Snapshot, rename: WholeRename) -> Suggestion:
    mark = Edit(snapshot.text, rename.at, rename.at + len(rename.new), rename.new)
    made = Suggestion.of(snapshot.uri, "next_edit", mark, snapshot.cursor, 1.0, _MODEL)
    return replace(made, rename=rename)


def _renames(
    edits: Sequence[RecentEdit],
    removed: Mapping[str, RemovedDefinitions],
    own: CodeFile,
    files: WorkspaceFiles,
) -> list[WholeRename]:
    """Return the clear renames that are worth one suggestion, then other changes to carry on."""
    try:
        targets = list(find_renamed(edits, own))
    except UnclearUse:
        return []
    found = (_planned(target, files) for target in targets)
    renames = [each for each in found if each is not None and _is_worth_it(each)]
    moves = find_moves(removed, own, files)
    series = (
        find_series(edits, own, files),
        find_async(edits, own, files),
        find_members(edits, own),
        find_literals(edits, own, files),
        find_constants(edits, own),
        find_repeats(edits, own),
    )
    return [*renames, *moves, *chain.from_iterable(series)]


def _planned(target: RenamedDefinition, files: WorkspaceFiles) -> WholeRename | None:
    try:
        return find_uses(target, files)
    except UnclearUse as why:
        logger.debug("no whole rename of %s to %s: %s", target.old, target.new, why)
        return None


def _is_worth_it(rename: WholeRename) -> bool:
    """Return whether a rename has several places, or one in a file that is not open."""
    return rename.places > 1 or any(each.source.revision is None for each in rename.files)
