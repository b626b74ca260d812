"""Recordings, ready to be replayed: read, rebuilt, and cut into edit events.

    stream = read_stream(path)
    documents = Documents()
    for event in stream.events:
        documents.apply(event)

Reads ``workspaceRecording@1.0`` as JSON Lines or as ``{"log": […]}``, ours and others'. Knows
nothing of the session: what it does with all this is the replay's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .documents import StreamDocuments
from .format import Changed, Event, Stream
from .parser import parse
from .sources import with_sources


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
