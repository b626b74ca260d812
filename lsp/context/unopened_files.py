"""Files that are not open and use the names that the last edits changed.

The thread of the index looks for them and reads them. A question gets them as they were read last,
so that neither a key nor a question waits for the disk.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from redraft.model.rules.touched_names import Touched
from redraft.model.text.imported_files import family_of, find_imported_modules, is_meant

from ..documents.open_documents import OpenText
from ..documents.uris import code_language, uri_of
from ..snapshot import Snapshot
from .index import IndexGeneration
from .indexer import Indexer, Refuse
from .listing import read_code, stamp_of

MOST_UNOPENED = 3  # files for one question
_LOOKED_AT = 2 * MOST_UNOPENED  # files that are read to find those
_MOST_MENTIONS = 40  # files with a name; more than that says little of each
_MOST_KEPT = 20  # texts, one of which may be shown


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Description of the files that are looked for."""

    names: tuple[Touched, ...]
    edited: frozenset[str]  # paths of the files in which the last edits were
    opened: frozenset[str]  # paths of open documents, which are no files then
    language: str
    index: IndexGeneration


class UnopenedFiles:
    """Texts of a few files that are not open.

    Args:
        refuse: why the file at a path must not be read, "" if it may be.
    """

    def __init__(self, indexer: Indexer, refuse: Refuse) -> None:
        self._indexer, self._refuse = indexer, refuse
        self._wanted: _Wanted | None = None  # what was looked for last
        self._found: tuple[tuple[Touched, ...], tuple[OpenText, ...]] = (), ()  # for these names
        #: Of the index's thread, by path: the stamp of a file, and its text if it may be edited.
        self._read: dict[str, tuple[tuple[int, int], OpenText | None]] = {}
        self._kept: dict[str, OpenText] = {}  # by URI: as they were found, or read again, last

    def find(self, snapshot: Snapshot) -> Sequence[OpenText]:
        """Return the likeliest files that use the names which the last edits changed.

        None before they are read in the background.
        """
        wanted = _Wanted(
            snapshot.names,
            frozenset(edit.path for edit in snapshot.recent),
            frozenset(one.path for one in snapshot.opened.all),
            code_language(snapshot.path) or snapshot.language,
            snapshot.index,
        )
        if not wanted.names:
            return ()
        if wanted != self._wanted:
            self._wanted = wanted
            self._indexer.later(partial(self._look, wanted))
        names, found = self._found
        if names != wanted.names:
            return ()
        fit = [one for one in found if one.path not in wanted.opened and not self._refuse(one.path)]
        kept = {**self._kept, **{one.uri: one for one in fit}}
        self._kept = dict(list(kept.items())[-_MOST_KEPT:])
        return fit

    def get(self, uri: str) -> OpenText | None:
        """Return a file that :meth:`find` has returned, as it was read last; None if it is gone."""
        found = self._kept.get(uri)
        return None if found is None or self._refuse(found.path) else found

    async def read_again(self, uri: str) -> None:
        """Read such a file again; if it has changed, the next question reads all anew."""
        if (known := self._kept.get(uri)) is None:
            return
        now = await asyncio.to_thread(self._document, known.path)
        self._kept = {one: each for one, each in self._kept.items() if one != uri}
        self._kept |= {uri: now} if now is not None else {}
        if now != known:
            self._wanted = None

    # --- in the thread of the index --------------------------------------------------------------

    def _look(self, wanted: _Wanted, rest: Callable[[], None]) -> None:
        if wanted is not self._wanted:
            return  # a newer question took the place of this one
        read = {}
        for path in _likely(wanted, rest):
            read[path] = self._current(path)
            rest()
        self._read = read
        texts = [document for _, document in read.values() if document is not None]
        texts.sort(key=lambda one: not _imports(one, wanted.edited))
        self._found = wanted.names, tuple(texts[:MOST_UNOPENED])

    def _current(self, path: str) -> tuple[tuple[int, int], OpenText | None]:
        """Return a file as it is now; it is read only if it has changed."""
        found, known = self._indexer.file_at(path), self._read.get(path)
        stamp = stamp_of(found.file) if found is not None else None
        if stamp is None or self._refuse(path):
            return (0, 0), None
        is_same = known is not None and known[0] == stamp
        return known if known is not None and is_same else (stamp, self._document(path))

    def _document(self, path: str) -> OpenText | None:
        """Read a file; None if it must not be read or cannot be edited."""
        found = self._indexer.file_at(path)
        if found is None or self._refuse(path) or not os.access(found.file, os.W_OK):
            return None
        text = read_code(found.folder, path, for_edits=True)
        if text is None:
            return None
        place = (uri_of(found.file), path, "", True, found.language)
        return OpenText(*place, revision=0, version=None, out_of_step="", text=text)


def _likely(wanted: _Wanted, rest: Callable[[], None]) -> list[str]:
    """Return the paths of files of the same languages with most of the names, rare ones first."""
    weights: dict[str, float] = {}
    for name in wanted.names:
        paths = wanted.index.find_mentions(name.name)
        worth = name.weight * wanted.index.rarity(name.name)
        rest()
        for path in paths if len(paths) <= _MOST_MENTIONS else ():
            weights[path] = weights.get(path, 0.0) + worth
    family = family_of(wanted.language)
    fit = [
        path
        for path in weights
        if path not in wanted.opened
        and (entry := wanted.index.get(path)) is not None
        and family_of(entry.language) == family
    ]
    return sorted(fit, key=lambda path: -weights[path])[:_LOOKED_AT]


def _imports(document: OpenText, paths: Iterable[str]) -> bool:
    """Return whether a file imports one of some files."""
    modules = find_imported_modules(document.text, document.language, document.path)
    return any(is_meant(path, modules) for path in paths)
