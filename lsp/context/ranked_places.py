"""Places that the ranker finds in documents and files, and the indexes of lines that it reads.

The index of a document follows its text when a question needs it, so a key costs nothing here. A
document that is opened is read in the background, in idle time: a line takes 40 µs the first time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from redraft.model.places.last_edits import LastEdits
from redraft.model.places.line_facts import facts_of, is_known
from redraft.model.places.line_index import LineIndex
from redraft.model.places.ranker import File, RankedPlace, load_shipped_ranker
from redraft.model.records import RecentEdit
from redraft.model.text.imported_files import family_of
from redraft.model.text.syntax import language_of

from ..documents.open_documents import OpenText
from ..snapshot import Snapshot

Job = Callable[[Callable[[], None]], None]  # is given what to call every few milliseconds

MOST_PLACES = 12  # that are ranked
_MOST_FILES = 9  # read for one question, the user's with them; about 3 ms each
_MOST_LINES = 20_000  # of them together
_MOST_INDEXES = 50  # that are kept
_AT_ONCE = 400  # unknown lines that are read at once; more are read in the background
_STRETCH = 50  # lines that are read between two rests
#: Times by which a place in a file that is not open must be likelier than others to come first.
CLEARLY = 2.0


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A ranked place with its document."""

    document: OpenText
    place: RankedPlace
    is_open: bool = True  # False: in a file that is read from the disk


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The last ranking, which is asked for again after the debounce."""

    documents: list[OpenText]
    edits: tuple[RecentEdit, ...]
    places: list[DocumentPlace]


class RankedPlaces:
    """Indexes of documents, and the ranking of their lines.

    Args:
        later: runs a job in the background; None: everything is read at once.
        unopened: returns files that are not open and may have places.
    """

    def __init__(
        self,
        later: Callable[[Job], None] | None = None,
        unopened: Callable[[Snapshot], Sequence[OpenText]] = lambda _: (),
    ) -> None:
        self._later, self._unopened = later, unopened
        self._indexes: OrderedDict[str, LineIndex] = OrderedDict()  # by URI, least recent first
        self._reading: set[str] = set()
        self._last: _Ranking | None = None

    def on_open(self, document: OpenText) -> None:
        """Read the lines of a document in the background."""
        if not document.excluded:
            self._read_later(document)

    def on_close(self, uri: str) -> None:
        """Forget a document."""
        self._indexes.pop(uri, None)

    def rank(self, snapshot: Snapshot) -> list[DocumentPlace]:
        """Return the likeliest places, the likeliest first; those in open documents before others.

        Documents that are not read yet are left out. The user's document is always among the
        candidates, others only if the client can show an edit there, and files that are not open
        only if it can open them.
        """
        edits = snapshot.recent
        if not edits:
            return []
        flags = snapshot.flags
        others = snapshot.opened.editable if flags.other_documents else ()
        can_open = flags.other_documents and flags.unopened_files
        unopened = self._unopened(snapshot) if can_open else ()
        read = [
            (document, index)
            for document in _candidates(snapshot.document, others, edits, unopened)
            if (index := self.index_of(document)) is not None
        ]
        documents = [document for document, _ in read]
        last = self._last
        is_same = last is not None and last.edits == edits and _are_same(last.documents, documents)
        if last is not None and is_same:
            return last.places
        files = [File(one.path, _language(one), index) for one, index in read]
        closed = {one.uri for one in unopened}
        apart = sum(one.uri in closed for one in documents)
        ranker, last_edits = load_shipped_ranker(), LastEdits(edits)
        places = ranker.rank(files, last_edits, MOST_PLACES, apart=apart) if files else []
        ranked = ((documents[place.file], place) for place in places)
        found = _open_first([DocumentPlace(one, at, one.uri not in closed) for one, at in ranked])
        self._last = _Ranking(documents, edits, found)
        return found

    def index_of(self, document: OpenText) -> LineIndex | None:
        """Return the index of a document's lines; None while they are read in the background."""
        known, lines = self._indexes.get(document.uri), document.lines
        if known is None and self._later is not None:
            unknown = islice((line for line in lines if not is_known(line)), _AT_ONCE + 1)
            if sum(1 for _ in unknown) > _AT_ONCE:
                self._read_later(document)
                return None
        index = LineIndex.of(lines) if known is None else known.follow(lines)
        self._keep(document.uri, index)
        return index

    def _read_later(self, document: OpenText) -> None:
        uri, lines = document.uri, document.lines
        if self._later is None or uri in self._reading or uri in self._indexes:
            return
        self._reading.add(uri)

        def job(rest: Callable[[], None]) -> None:
            try:
                for number, line in enumerate(lines):
                    facts_of(line)
                    if number % _STRETCH == 0:
                        rest()
            finally:
                self._reading.discard(uri)

        self._later(job)

    def _keep(self, uri: str, index: LineIndex) -> None:
        self._indexes[uri] = index
        self._indexes.move_to_end(uri)
        while len(self._indexes) > _MOST_INDEXES:
            self._indexes.popitem(last=False)


def _open_first(found: Iterable[DocumentPlace]) -> list[DocumentPlace]:
    """Return places in order, those of unopened files behind others of about the same chance."""
    ordered: list[DocumentPlace] = []
    for one in sorted(found, key=lambda one: not one.is_open):
        least = one.place.chance / CLEARLY
        behind = (
            n for n, other in enumerate(ordered) if other.is_open and other.place.chance < least
        )
        ordered.insert(len(ordered) if one.is_open else next(behind, len(ordered)), one)
    return ordered


def _candidates(
    here: OpenText,
    others: Iterable[OpenText],
    edits: Sequence[RecentEdit],
    unopened: Iterable[OpenText],
) -> list[OpenText]:
    """Return the documents that are ranked, within limits.

    The user's comes first, then those edited lately, then those of the same family of languages,
    then files that are not open.
    """
    edited = {edit.path for edit in edits}
    family = family_of(_language(here))

    def key(one: OpenText) -> tuple[bool, bool]:
        return one.path not in edited, family_of(_language(one)) != family

    rest = sorted((one for one in others if one.uri != here.uri), key=key)
    found, lines = [here], len(here.lines)
    for one in [*rest, *unopened][: _MOST_FILES - 1]:
        lines += len(one.lines)
        if lines > _MOST_LINES:
            break
        found.append(one)
    return found if len(here.lines) <= _MOST_LINES else []


def _language(document: OpenText) -> str:
    return document.language or language_of(document.path) or ""


def _are_same(some: Sequence[OpenText], others: Sequence[OpenText]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
