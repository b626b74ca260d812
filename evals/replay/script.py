"""A recording as a replay plays it: its moments, and what followed each of them in its document.

A moment is the end of a coalesced edit event, where the user paused or went on elsewhere. Texts
have the form the session sees: line feeds alone, ``str`` indices. Knows nothing of the session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.lsp.positions import index_at, without_surrogates
from redraft.model.text.common import common_ends
from redraft.model.text.syntax import language_of

from ..recordings.documents import StreamDocuments
from ..recordings.format import Changed, Event, RestoreContent, SetContent, Stream
from ..recordings.streams import EditEvent, coalesce, read_stream
from .matchers import DocumentChange, PlacedEdit

#: Within this time an editor has moved the cursor after a change, and asks.
ASKS_AFTER_S = 0.02
#: Of one recording, moments of so many seconds are resampled together: they depend on each other.
STRETCH_S = 300.0

_CHANGES = (Changed, SetContent, RestoreContent)
_OTHER_LINE_ENDS = re.compile("\r\n|\r")


@dataclass(frozen=True, slots=True)
class ReplayMoment:
    """The user made an edit. What now?"""

    id: str
    group: str  # the stretch of its session
    session: str
    document: int
    path: str
    language: str  # LSP id, "" when unknown
    last: int  # index of the edit's last change in the stream's events
    at_s: float  # since the stream began
    asks_s: float  # when the editor asks; nothing else has happened by then
    before: str  # the document before the edit
    text: str  # and after it
    done: int  # steps of the document until now
    typed: int  # characters the user typed in the edit


@dataclass(frozen=True, slots=True)
class Script:
    """One recording, ready to be played."""

    name: str
    stream: Stream
    moments: tuple[ReplayMoment, ...]
    steps: dict[int, tuple[DocumentChange, ...]]  # by document
    paths: dict[int, str]
    ends_s: float

    def seconds(self, event: Event) -> float:
        """Since the stream began."""
        return (event.time_ms - self.stream.events[0].time_ms) / 1000

    @property
    def simulated(self) -> bool:
        return self.stream.header.simulated

    def following(self, document: int, done: int) -> Sequence[DocumentChange]:
        """The steps of a document after its first ``done``."""
        return self.steps.get(document, ())[done:]


def plain(text: str) -> str:
    """A text as the session sees it."""
    return without_surrogates(_OTHER_LINE_ENDS.sub("\n", text) if "\r" in text else text)


def read_script(path: Path, name: str = "") -> Script:
    """Read a recording for playing.

    Raises:
        InvalidRequest: it is no recording.
    """
    return script_of(read_stream(path), name or path.name.partition(".")[0])


def script_of(stream: Stream, name: str) -> Script:
    """What a stream holds to be played."""
    reading = _Reading(name, stream)
    for at, event in enumerate(stream.events):
        reading.read(at, event)
    steps = {document: tuple(some) for document, some in reading.steps.items()}
    ends_s = reading.seconds(reading.ends_ms)
    return Script(name, stream, tuple(reading.moments), steps, reading.paths, ends_s)


class _Reading:
    """A stream on its way to a script."""

    def __init__(self, name: str, stream: Stream) -> None:
        self.steps: dict[int, list[DocumentChange]] = {}
        self.moments: list[ReplayMoment] = []
        self.paths: dict[int, str] = {}
        self.ends_ms = stream.events[-1].time_ms if stream.events else 0
        self._name = name
        self._starts_ms = stream.events[0].time_ms if stream.events else 0
        self._edits = {edit.last: edit for edit in coalesce(stream)}
        self._begins = {id(edit.changes[0]): edit.last for edit in self._edits.values()}
        self._before: dict[int, str] = {}  # an edit's document before it, by the edit's last index
        self._documents = StreamDocuments()
        self._raw: dict[int, str] = {}  # texts as the editor has them
        self._read = 0  # changes so far
        self._changed_ms = [each.time_ms for each in stream.events if isinstance(each, _CHANGES)]

    def seconds(self, time_ms: float) -> float:
        return (time_ms - self._starts_ms) / 1000

    def read(self, at: int, event: Event) -> None:
        if isinstance(event, _CHANGES):
            self._read += 1
            self._change(event)
        else:
            self._documents.apply(event)
        if at in self._edits:
            self._moment(at, self._edits[at])

    def _change(self, event: Changed | SetContent | RestoreContent) -> None:
        document, documents = event.document, self._documents
        known = document in self._raw  # it may have been introduced anew since
        raw = self._raw.get(document, "")
        if id(event) in self._begins:
            self._before[self._begins[id(event)]] = plain(raw)
        documents.apply(event)
        self._raw[document] = documents.text(document)
        self.paths[document] = documents.path(document)
        if not known and not isinstance(event, Changed):
            return
        text, typed, edits = plain(self._raw[document]), False, None
        if isinstance(event, Changed):
            typed, edits = event.is_typed, _edits(raw, event)
        before = plain(raw)
        step = DocumentChange(
            self.seconds(event.time_ms), edits or (_difference(before, text),), typed
        )
        if edits and step.apply(before) != text:  # a change that parts or joins a line end
            step = DocumentChange(step.at_s, (_difference(before, text),), typed)
        self.steps.setdefault(document, []).append(step)

    def _moment(self, at: int, edit: EditEvent) -> None:
        document, path = edit.document, self._documents.path(edit.document)
        steps, at_s = self.steps[document], self.seconds(edit.ended_ms)
        put = [each.text for change in edit.changes if change.is_typed for each in change.edits]
        stretch = int(at_s // STRETCH_S)
        self.moments.append(
            ReplayMoment(
                id=f"{self._name}:{len(self.moments)}",
                group=f"{self._name}:{stretch}",
                session=self._name,
                document=document,
                path=path,
                language=language_of(path) or "",
                last=at,
                at_s=at_s,
                asks_s=self._asks_s(edit.ended_ms),
                before=self._before.pop(at),
                text=plain(self._documents.text(document)),
                done=len(steps),
                typed=sum(map(len, put)),
            )
        )

    def _asks_s(self, time_ms: int) -> float:
        """When the editor asks: before anything else changes."""
        asks_s, at_s = self.seconds(time_ms) + ASKS_AFTER_S, self.seconds(time_ms)
        if self._read == len(self._changed_ms):
            return asks_s
        return min(asks_s, (at_s + self.seconds(self._changed_ms[self._read])) / 2)


def _edits(raw: str, change: Changed) -> tuple[PlacedEdit, ...]:
    """The edits of a change, as the session counts."""
    ascii_only = raw.isascii()

    def place(offset: int) -> int:
        index = offset if ascii_only else index_at(raw, offset)
        return index - raw.count("\r\n", 0, index)

    return tuple(PlacedEdit(place(e.start), place(e.end), plain(e.text)) for e in change.edits)


def _difference(before: str, after: str) -> PlacedEdit:
    head, tail = common_ends(before, after)
    return PlacedEdit(head, len(before) - tail, after[head : len(after) - tail])


def sample(scripts: Iterable[Script], limit: int | None, seed: int) -> set[str]:
    """The ids of the moments to ask at: all, or ``limit`` of them drawn by hash, so that a smaller
    sample is part of a larger and every moment is as likely."""
    ids = [moment.id for script in scripts for moment in script.moments]
    if limit is None or limit >= len(ids):
        return set(ids)
    return set(sorted(ids, key=lambda id_: _hash(f"{seed}:{id_}"))[:limit])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def fingerprint(scripts: Iterable[Script]) -> str:
    """Tells apart what is played."""
    whole = hashlib.sha256()
    for script in scripts:
        for moment in script.moments:
            whole.update(f"{moment.id} {moment.at_s} {len(moment.text)} {moment.text}".encode())
    return whole.hexdigest()[:16]
