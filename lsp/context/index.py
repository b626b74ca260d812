"""What the files of a workspace define and mention, kept small enough to stay in memory.

A file is an :class:`Entry` of a few bytes strings: hashes of the names it defines, their lines,
hashes of the words it mentions, and its text, compressed. Readers get an immutable
:class:`Snapshot`; whoever fills the index makes a new one now and then. For 5,000 files of ordinary
code, 27 MB of it, it takes 14 MB. Knows nothing of disks and threads; :mod:`.indexer` fills it.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from redraft.model.text.definitions import (
    Definition,
    DefinitionKind,
    definitions,
    definitions_by_keyword,
)
from redraft.model.text.imported_files import family_of, is_meant
from redraft.model.text.syntax import parse

TEXT_BYTES = 12_000_000  # of compressed texts kept: about 50 MB of code
MOST_WORDS = 5_000  # of one file that are remembered
_UNPACKED = 8  # texts kept as they are: those around the cursor are asked for with every new line
_TABLE = 1 << 18  # slots in which words are counted by hash; collisions cost little
_FEW = 50  # files; in a smaller workspace a word is not common because most files have it
_KINDS: tuple[DefinitionKind, ...] = ("function", "method", "type", "value")
_WORD = re.compile(r"[^\W\d]\w{2,}")
_CHUNK = 8_192  # characters of text searched at a time


@dataclass(frozen=True, slots=True)
class Entry:
    """One file. ``stamp`` changes when the file does; see :func:`make_entry`."""

    path: str  # as shown to the model
    language: str
    stamp: tuple[int, int]
    names: bytes  # int64 hash of each name defined, in the order of lines
    spans: bytes  # uint32 of each: first line, behind the last line, kind
    words: bytes  # uint32 hash of each word mentioned

    def definition(self, at: int) -> tuple[DefinitionKind, int, int]:
        """Kind, first line and behind the last line of its definition number ``at``."""
        first, last, kind = np.frombuffer(self.spans, np.uint32, 3, 12 * at).tolist()
        return _KINDS[kind], first, last

    @property
    def definitions(self) -> int:
        """How many there are."""
        return len(self.names) // 8

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return 400 + len(self.path) + len(self.names) + len(self.spans) + len(self.words)


@dataclass(frozen=True, slots=True)
class DefinitionPlace:
    """Where a name is defined."""

    entry: Entry
    kind: DefinitionKind
    first: int  # 0-based line
    last: int  # behind the last line

    @property
    def path(self) -> str:
        return self.entry.path


def make_entry(
    path: str,
    language: str,
    text: str,
    stamp: tuple[int, int],
    rest: Callable[[], None] | None = None,
) -> Entry:
    """Read ``text``. ``rest`` is called every few milliseconds of work."""
    syntax = parse(text, language, rest=rest)
    found = definitions(syntax) if syntax is not None else definitions_by_keyword(text)
    return Entry(
        path,
        language,
        stamp,
        np.array([_name_key(each.name) for each in found], np.int64).tobytes(),
        np.array([_span(each) for each in found], np.uint32).tobytes(),
        _words(text, rest),
    )


def _span(definition: Definition) -> tuple[int, int, int]:
    return definition.first, definition.last, _KINDS.index(definition.kind)


def _words(text: str, rest: Callable[[], None] | None) -> bytes:
    """Hashes of the words in ``text``."""
    found: dict[str, None] = {}  # in order, so that a long file loses the same words every time
    for start in range(0, len(text), _CHUNK):
        if start and rest is not None:
            rest()
        found.update(dict.fromkeys(_WORD.findall(text, start, start + _CHUNK)))
    hashes = [_word_key(word) for word in islice(found, MOST_WORDS)]
    return np.array(hashes, np.uint32).tobytes()


# Python's own hash differs from process to process, and what collides with it: of excerpts of equal
# worth now this one would be chosen and now that.


def _name_key(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _word_key(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


class Snapshot:
    """The index at one moment. Immutable, so any thread may read it."""

    def __init__(
        self, entries: tuple[Entry, ...] = (), seen: NDArray[np.uint16] | None = None
    ) -> None:
        """``seen`` is what :func:`counted` makes of ``entries``."""
        self.entries = entries
        counts = [entry.definitions for entry in entries]
        names = np.frombuffer(b"".join(entry.names for entry in entries), np.int64)
        order = np.argsort(names, kind="stable")
        self._names: NDArray[np.int64] = names[order]
        self._owner = np.repeat(np.arange(len(entries), dtype=np.int32), counts)[order]
        begins = np.concatenate([[0], np.cumsum(counts)])[:-1] if counts else np.zeros(0)
        local = np.arange(len(names)) - np.repeat(begins, counts)
        self._number = local.astype(np.int32)[order]
        self._seen = counted(entries) if seen is None else seen
        self._by_path = {entry.path: entry for entry in entries}
        self._by_ending = _endings(entries)

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, path: str) -> Entry | None:
        return self._by_path.get(path)

    def places(self, name: str, language: str) -> list[DefinitionPlace]:
        """Where files of the same family of languages define ``name``, in order of files."""
        wanted = _name_key(name)
        low = int(self._names.searchsorted(wanted, "left"))
        high = int(self._names.searchsorted(wanted, "right"))
        found = []
        for at in range(low, high):
            entry = self.entries[int(self._owner[at])]
            if _related(entry.language, language):
                found.append(DefinitionPlace(entry, *entry.definition(int(self._number[at]))))
        return found

    def rarity(self, word: str) -> float:
        """1 for a word that no file mentions, towards 0 for one that all do."""
        files = max(len(self.entries), _FEW)
        seen = min(int(self._seen[_word_key(word) & (_TABLE - 1)]), files)
        return 1.0 - math.log1p(seen) / math.log1p(files)

    def meant(self, modules: Iterable[tuple[str, ...]], language: str) -> dict[str, Entry]:
        """Files that imports of these modules mean, by path; see :mod:`.imports`."""
        found = {}
        for parts in modules:
            ends = {*parts[-1:], *parts[-2:-1]}
            for at in sorted({at for end in ends for at in self._by_ending.get(end, ())}):
                entry = self.entries[at]
                if _related(entry.language, language) and is_meant(entry.path, (parts,)):
                    found[entry.path] = entry
        return found

    @property
    def bytes_held(self) -> int:
        """Memory of the entries and the tables, texts aside; roughly."""
        tables = self._names.nbytes + self._owner.nbytes + self._number.nbytes + self._seen.nbytes
        return int(tables) + sum(entry.size for entry in self.entries)


def _endings(entries: Sequence[Entry]) -> dict[str, list[int]]:
    """Numbers of entries by the name of the file without its suffix, and by that of its folder."""
    found: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        parts = entry.path.rsplit("/", 2)
        for end in {parts[-1].split(".", 1)[0], *parts[-2:-1]}:
            found.setdefault(end, []).append(at)
    return found


def _related(one: str, other: str) -> bool:
    styled = ("css", "typescriptreact", "javascriptreact", "html")
    return family_of(one) == family_of(other) or (one == "css" and other in styled)


def counted(entries: Iterable[Entry]) -> NDArray[np.uint16]:
    """In how many files words of each slot are mentioned."""
    seen = np.zeros(_TABLE, np.uint16)
    for entry in entries:
        _count(seen, entry, 1)
    return seen


def _count(seen: NDArray[np.uint16], entry: Entry, by: int) -> None:
    # Each word of a file is there once; two of one slot count once, both coming and going.
    slots = np.frombuffer(entry.words, np.uint32) & np.uint32(_TABLE - 1)
    seen[slots] = seen[slots] + np.uint16(1) if by > 0 else seen[slots] - np.uint16(1)


class Index:
    """Entries by path, with their texts. One thread writes; any may read :attr:`snapshot`."""

    def __init__(self, text_bytes: int = TEXT_BYTES) -> None:
        self.snapshot = Snapshot()
        self._entries: dict[str, Entry] = {}
        self._seen = counted(())
        self._unfit: dict[str, tuple[int, int]] = {}  # stamps of files that are no code
        self._texts: OrderedDict[str, bytes] = OrderedDict()  # compressed, least recent first
        self._held = 0  # bytes of them
        self._unpacked: OrderedDict[str, tuple[bytes, str]] = OrderedDict()  # asked for last
        self._text_bytes = text_bytes
        self._missed: set[str] = set()
        self._lock = Lock()  # of the texts and of what is missed
        self.is_stale = False  # do entries differ from the snapshot?

    def put(self, entry: Entry, text: str, *, keep: bool = True) -> None:
        """Remember a file, in place of what was known of it.

        Args:
            keep: the text itself even if others must go for it; else only while there is room.
        """
        self._discard(entry.path)
        self._entries[entry.path] = entry
        _count(self._seen, entry, 1)
        self._unfit.pop(entry.path, None)
        self.is_stale = True
        self.put_text(entry.path, text, keep=keep)

    def put_text(self, path: str, text: str, *, keep: bool = True) -> None:
        packed = zlib.compress(text.encode("utf-8", "replace"), 6)
        with self._lock:
            self._unpacked.pop(path, None)
            self._held -= len(self._texts.pop(path, b""))
            if not keep and self._held + len(packed) > self._text_bytes:
                return  # what is there was read earlier because it is closer to the user's files
            self._held += len(packed)
            self._texts[path] = packed
            self._missed.discard(path)
            while self._held > self._text_bytes and len(self._texts) > 1:
                self._held -= len(self._texts.popitem(last=False)[1])

    def put_unfit(self, path: str, stamp: tuple[int, int]) -> None:
        """There is nothing to remember of this file until it changes."""
        self.remove(path)
        self._unfit[path] = stamp

    def remove(self, path: str) -> None:
        self._unfit.pop(path, None)
        if not self._discard(path):
            return
        self.is_stale = True
        with self._lock:
            self._unpacked.pop(path, None)
            self._held -= len(self._texts.pop(path, b""))
            self._missed.discard(path)

    def _discard(self, path: str) -> bool:
        entry = self._entries.pop(path, None)
        if entry is not None:
            _count(self._seen, entry, -1)
        return entry is not None

    def stamp(self, path: str) -> tuple[int, int] | None:
        entry = self._entries.get(path)
        return self._unfit.get(path) if entry is None else entry.stamp

    def paths(self) -> list[str]:
        return [*self._entries, *self._unfit]

    def renew(self) -> None:
        """Show readers what was put and removed since."""
        self.is_stale = False
        self.snapshot = Snapshot(tuple(self._entries.values()), self._seen.copy())

    def text(self, path: str) -> str | None:
        """A file's text; None where it was given up for memory. It is then read again in the
        background, see :meth:`missed`."""
        with self._lock:
            packed = self._texts.get(path)
            if packed is None:
                self._missed.add(path)
                return None
            self._texts.move_to_end(path)
            known = self._unpacked.get(path)
            if known is not None and known[0] is packed:
                return known[1]
            text = zlib.decompress(packed).decode("utf-8")
            self._unpacked[path] = packed, text
            self._unpacked.move_to_end(path)
            if len(self._unpacked) > _UNPACKED:
                self._unpacked.popitem(last=False)
        return text

    @property
    def misses(self) -> bool:
        """Was a text asked for in vain?"""
        return bool(self._missed)

    def missed(self) -> set[str]:
        """Paths whose text was asked for in vain since the last call."""
        with self._lock:
            missed, self._missed = self._missed, set()
            return missed

    @property
    def bytes_held(self) -> int:
        return self._held + self.snapshot.bytes_held
