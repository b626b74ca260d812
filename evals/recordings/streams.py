"""Recordings, ready to be replayed: read, with a source for each change, and cut into edit events.

    stream = read_stream(path)
    documents = StreamDocuments()
    for event in stream.events:
        documents.apply(event)

Reads ``workspaceRecording@1.0`` as JSON Lines or as ``{"log": […]}``, ours and others'. Where a
recording does not say where a change came from, the language server's own history is run over the
stream and decides, as it does while recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from redraft.lsp.documents import Document
from redraft.lsp.history import History
from redraft.lsp.recording.sources import source_of

from .documents import StreamDocuments, content_changes
from .format import Changed, Event, RestoreContent, SetContent, Stream
from .parser import parse


def with_sources(stream: Stream) -> Stream:
    """The stream with a source for each of its changes.

    Raises:
        InvalidRequest: a change lies outside of its document.
    """
    if all(change.stated for change in stream.changes):
        return stream
    return replace(stream, events=tuple(_judged(stream.events)))


@dataclass(slots=True)
class _Judge:
    """The history of a user who does what the stream says, at the times it says."""

    now_ms: int = 0
    texts: StreamDocuments = field(default_factory=StreamDocuments)
    known: dict[int, Document] = field(default_factory=dict)
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(lambda: self.now_ms / 1000)

    def judge(self, event: Event) -> Event:
        self.now_ms = event.time_ms
        if isinstance(event, Changed):
            return self._changed(event)
        self.texts.apply(event)
        if isinstance(event, SetContent | RestoreContent):
            self._began(event.document)
        return event

    def _began(self, id_: int) -> None:
        document = self.known[id_] = Document(str(id_), self.texts.text(id_))
        self.history.opened(document.uri, self.texts.path(id_), document.lines)

    def _changed(self, event: Changed) -> Changed:
        changes = content_changes(self.texts.text(event.document), event.edits)
        self.texts.apply(event)
        document = self.known[event.document]
        splices = document.apply(changes, None)
        accepted = event.source == "suggestion"
        happening = self.history.changed(document.uri, splices, accepted=accepted)
        if event.stated:
            return event
        return replace(event, source=source_of(happening, splices))


def _judged(events: Iterable[Event]) -> Iterator[Event]:
    judge = _Judge()
    yield from map(judge.judge, events)


def read_stream(path: Path) -> Stream:
    """A recording, with a source for each change: as recorded, else as inferred.

    Raises:
        InvalidRequest: the file is no recording, or an entry lacks what it needs.
    """
    return with_sources(parse(path))


# --- edit events ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EditEvent:
    """Changes of one document in quick succession and near each other."""

    document: int
    changes: tuple[Changed, ...]
    last: int  # index of the last change in the stream's events

    @property
    def began_ms(self) -> int:
        return self.changes[0].time_ms

    @property
    def ended_ms(self) -> int:
        return self.changes[-1].time_ms

    @property
    def is_typed(self) -> bool:
        """Did the user type all of it?"""
        return all(change.is_typed for change in self.changes)


def coalesce(stream: Stream, gap_s: float = 1.0, lines: int = 8) -> list[EditEvent]:
    """Changes whose first lines lie at most ``lines`` apart, and which follow each other within
    ``gap_s``, are one edit event."""
    found: list[EditEvent] = []
    line = 0
    for at, change, first in _first_lines(stream.events):
        last = found[-1] if found else None
        if (
            last is not None
            and last.document == change.document
            and change.time_ms - last.ended_ms <= 1000 * gap_s
            and abs(first - line) <= lines
        ):
            found[-1] = EditEvent(last.document, (*last.changes, change), at)
        else:
            found.append(EditEvent(change.document, (change,), at))
        line = first
    return found


def _first_lines(events: Iterable[Event]) -> Iterable[tuple[int, Changed, int]]:
    """Each change with its index and the first line it touches, in the text before it."""
    documents = StreamDocuments()
    for at, event in enumerate(events):
        if isinstance(event, Changed) and event.edits:
            yield at, event, documents.line(event.document, event.edits[0].start)
        documents.apply(event)
