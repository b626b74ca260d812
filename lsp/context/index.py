"""Index of what the files of a workspace define and mention.

A file is an :class:`Entry`: hashes of the names it defines, their lines, hashes of the words it
mentions, and its compressed text. Readers get an immutable :class:`IndexGeneration`;
:mod:`.indexer` writes. 5,000 files of ordinary code (27 MB) take 14 MB.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from threading import Lock

import numpy as np
from redraft.model.rules.modules import WorkspaceModules
from redraft.model.text.definitions import DefinitionKind, definitions, definitions_by_keyword
from redraft.model.text.imported_files import family_of, is_meant
from redraft.model.text.syntax import parse

TEXT_BYTES = 12_000_000  # of compressed texts: about 50 MB of code
MOST_WORDS = 5_000  # of one file
_TABLE = 1 << 18  # slots in which words are counted by hash; collisions cost little
_FEW = 50  # files; in a smaller workspace a word is not common because most files have it
_KINDS: tuple[DefinitionKind, ...] = ("function", "method", "type", "value")
_WORD = re.compile(r"[^\W\d]\w{2,}")
_CHUNK = 8_192  # characters searched at a time
_STYLED = ("css", "typescriptreact", "javascriptreact", "html")  # may name what style sheets define


@dataclass(frozen=True, slots=True)
class Entry:
    """File in the index."""

    path: str  # as shown to the model
    language: str
    stamp: tuple[int, int]  # changes when the file does
    names: bytes  # int64 hash of each name defined, in the order of lines
    spans: bytes  # uint32 of each: first line, behind the last line, kind
    words: bytes  # uint32 hash of each word mentioned

    def definition(self, at: int) -> tuple[DefinitionKind, int, int]:
        """Return kind, first line and line behind the last of its definition number ``at``."""
        first, last, kind = np.frombuffer(self.spans, np.uint32, 3, 12 * at).tolist()
        return _KINDS[kind], first, last

    @property
    def definitions(self) -> int:
        """The number of definitions."""
        return len(self.names) // 8

    @property
    def size(self) -> int:
        """Bytes held, roughly."""
        return 400 + len(self.path) + len(self.names) + len(self.spans) + len(self.words)


@dataclass(frozen=True, slots=True)
class DefinitionPlace:
    """A place where a name is defined."""

    entry: Entry
    kind: DefinitionKind
    first: int  # 0-based line
    last: int  # behind the last line

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.entry.path


def make_entry(
    path: str,
    language: str,
    text: str,
    stamp: tuple[int, int],
    rest: Callable[[], None] | None = None,
) -> Entry:
    """Return the entry of a file; ``rest`` is called every few milliseconds of work."""
    syntax = parse(text, language, rest=rest)
    found = definitions(syntax) if syntax is not None else definitions_by_keyword(text)
    words: dict[str, None] = {}  # in order, so that a long file loses the same words every time
    for start in range(0, len(text), _CHUNK):
        if start and rest is not None:
            rest()
        words.update(dict.fromkeys(_WORD.findall(text, start, start + _CHUNK)))
    spans = [(each.first, each.last, _KINDS.index(each.kind)) for each in found]
    return Entry(
        path,
        language,
        stamp,
        np.array([_name_key(each.name) for each in found], np.int64).tobytes(),
        np.array(spans, np.uint32).tobytes(),
        np.array([_word_key(word) for word in islice(words, MOST_WORDS)], np.uint32).tobytes(),
    )


# Python's own hash, and what collides with it, differs from process to process. Then other excerpts
# of equal worth would be chosen in each.


def _name_key(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _word_key(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


class IndexGeneration:
    """The index at one moment. It is immutable, so any thread may read it."""

    def __init__(self, entries: tuple[Entry, ...] = ()) -> None:
        self.entries = entries
        counts = [entry.definitions for entry in entries]
        names = np.frombuffer(b"".join(entry.names for entry in entries), np.int64)
        order = np.argsort(names, kind="stable")
        self._names = names[order]
        self._owner = np.repeat(np.arange(len(entries), dtype=np.int32), counts)[order]
        numbers = [np.arange(count, dtype=np.int32) for count in counts]
        self._number = np.concatenate([np.zeros(0, np.int32), *numbers])[order]
        words = np.frombuffer(b"".join(entry.words for entry in entries), np.uint32)
        self._files = np.bincount(words & np.uint32(_TABLE - 1), minlength=_TABLE).astype(np.uint16)
        self._by_path = {entry.path: entry for entry in entries}
        self._by_ending: dict[str, list[Entry]] = {}  # by the file's name and by its folder's
        for entry in entries:
            parts = entry.path.rsplit("/", 2)
            for end in {parts[-1].split(".", 1)[0], *parts[-2:-1]}:
                self._by_ending.setdefault(end, []).append(entry)

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, path: str) -> Entry | None:
        """Return the entry of a file, or None."""
        return self._by_path.get(path)

    def places(self, name: str, language: str) -> list[DefinitionPlace]:
        """Return where files of a family of languages define ``name``, in order of files."""
        wanted = _name_key(name)
        low, high = (int(self._names.searchsorted(wanted, side)) for side in ("left", "right"))
        found = []
        for at in range(low, high):
            entry = self.entries[int(self._owner[at])]
            if _is_related(entry.language, language):
                found.append(DefinitionPlace(entry, *entry.definition(int(self._number[at]))))
        return found

    def definers(self, name: str, language: str) -> set[str]:
        """Return the paths of the files that define ``name`` in a family of languages."""
        return {place.path for place in self.places(name, language)}

    def find_mentions(self, word: str) -> list[str]:
        """Return the paths of the files that mention a word of three letters or more.

        A few may not. It takes 2 ms in 5,000 files.
        """
        key = np.uint32(_word_key(word)).tobytes()
        return [entry.path for entry in self.entries if key in entry.words]

    def rarity(self, word: str) -> float:
        """Return 1 for a word that no file mentions, towards 0 for one that all do."""
        files = max(len(self.entries), _FEW)
        seen = min(int(self._files[_word_key(word) & (_TABLE - 1)]), files)
        return 1.0 - math.log1p(seen) / math.log1p(files)

    def find_meant(self, modules: Iterable[tuple[str, ...]], language: str) -> dict[str, Entry]:
        """Return the files that modules may be, by path.

        Args:
            modules: see :func:`redraft.model.text.imported_files.imported`.
        """
        found = {}
        for parts in modules:
            entries = {e.path: e for end in parts[-2:] for e in self._by_ending.get(end, ())}
            for path, entry in entries.items():
                if _is_related(entry.language, language) and is_meant(path, (parts,)):
                    found[path] = entry
        return found

    @property
    def bytes_held(self) -> int:
        """Memory of the entries and the tables without texts, roughly."""
        tables = (self._names, self._owner, self._number, self._files)
        return sum(table.nbytes for table in tables) + sum(entry.size for entry in self.entries)


def _is_related(one: str, other: str) -> bool:
    return family_of(one) == family_of(other) or (one == "css" and other in _STYLED)


class Index:
    """Entries by path, with their texts. One thread writes; any may read :attr:`generation`."""

    def __init__(self, text_bytes: int = TEXT_BYTES) -> None:
        self.generation = IndexGeneration()
        self.is_stale = False  # entries differ from the generation
        self._entries: dict[str, Entry] = {}
        self._unfit: dict[str, tuple[int, int]] = {}  # stamps of files that are not code
        self._texts: OrderedDict[str, bytes] = OrderedDict()  # compressed, least recent first
        self._held = 0  # bytes of them
        self._text_bytes = text_bytes
        self._missed: set[str] = set()
        self._lock = Lock()  # of the texts and of what is missed

    def put(self, entry: Entry, text: str, *, keep: bool = True) -> None:
        """Add a file, or replace it.

        Args:
            keep: drop other texts if there is no room for this one; else leave this one out.
        """
        self._unfit.pop(entry.path, None)
        self._entries.pop(entry.path, None)  # the order of entries is that of reading
        self._entries[entry.path] = entry
        self.is_stale = True
        self.put_text(entry.path, text, keep=keep)

    def put_text(self, path: str, text: str, *, keep: bool = True) -> None:
        """Add the text of a file, or replace it; see :meth:`put`."""
        packed = zlib.compress(text.encode("utf-8", "replace"), 6)
        with self._lock:
            self._drop_text(path)
            if not keep and self._held + len(packed) > self._text_bytes:
                return  # the texts there were read earlier: they are closer to the user's files
            self._held += len(packed)
            self._texts[path] = packed
            while self._held > self._text_bytes and len(self._texts) > 1:
                self._held -= len(self._texts.popitem(last=False)[1])

    def put_unfit(self, path: str, stamp: tuple[int, int]) -> None:
        """Note that a file has nothing to index until it changes."""
        self.remove(path)
        self._unfit[path] = stamp

    def remove(self, path: str) -> None:
        """Forget a file."""
        self._unfit.pop(path, None)
        if self._entries.pop(path, None) is not None:
            self.is_stale = True
            with self._lock:
                self._drop_text(path)

    def _drop_text(self, path: str) -> None:
        self._held -= len(self._texts.pop(path, b""))
        self._missed.discard(path)

    def stamp(self, path: str) -> tuple[int, int] | None:
        """Return the stamp of a file when it was read, or None."""
        entry = self._entries.get(path)
        return self._unfit.get(path) if entry is None else entry.stamp

    def paths(self) -> list[str]:
        """Return the paths of all files, unfit ones included."""
        return [*self._entries, *self._unfit]

    def renew(self) -> None:
        """Make the changes since the last call visible to readers."""
        self.is_stale = False
        self.generation = IndexGeneration(tuple(self._entries.values()))

    def text(self, path: str) -> str | None:
        """Return a file's text, or None if it was dropped for memory.

        It is then read again in the background; see :meth:`take_missed`.
        """
        with self._lock:
            packed = self._texts.get(path)
            if packed is None:
                if path in self._entries:
                    self._missed.add(path)
                return None
            self._texts.move_to_end(path)
        return _unpacked(packed)

    def workspace(self, refuse: Callable[[str], str] = lambda _: "") -> WorkspaceModules:
        """Return access to the files as they are now, for :mod:`redraft.model.rules.modules`.

        Args:
            refuse: why the file at a path must not be read, "" if it may be.
        """
        generation = self.generation

        def places(name: str, language: str) -> list[tuple[str, int, int]]:
            found = generation.places(name, language)
            return [
                (each.path, each.first, each.last)
                for each in found
                if each.kind != "method" and not refuse(each.path)
            ]

        def find_mentions(word: str) -> list[str]:
            return [path for path in generation.find_mentions(word) if not refuse(path)]

        def text(path: str) -> str | None:
            return None if refuse(path) else self.text(path)

        return WorkspaceModules(places, find_mentions, text)

    @property
    def misses(self) -> bool:
        """True if a text was asked for that the index has dropped."""
        return bool(self._missed)

    def take_missed(self) -> set[str]:
        """Return the paths whose dropped text was asked for since the last call."""
        with self._lock:
            missed, self._missed = self._missed, set()
            return missed

    @property
    def bytes_held(self) -> int:
        """Memory of the texts, entries and tables, roughly."""
        return self._held + self.generation.bytes_held


@lru_cache(maxsize=8)  # texts around the cursor are asked for with every new line
def _unpacked(packed: bytes) -> str:
    return zlib.decompress(packed).decode("utf-8")
