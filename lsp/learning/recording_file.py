"""Recordings of any maker, read from their files, with a source for each change.

Files are JSON Lines or ``{"log": […]}``. Entries keep the order of the file, in which things
happened, whatever their times are: texts are dated by when the file was read, log entries by when
they were written. Where a recording does not name the source of a change, the language server's
history decides, as it does while recording.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redraft.lsp.documents.history import History
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.learning.texts import Texts, lsp_changes
from redraft.lsp.recording import recording_events as ev
from redraft.lsp.recording.change_sources import source_of
from redraft.lsp.recording.recording_events import (
    ACCEPTED_REASON,
    CHANGE_REASON,
    FORMAT,
    Changed,
    ChangeSource,
    Entry,
    Event,
    Header,
    Note,
    decode,
)
from redraft.model.edits.edit import LineChange
from redraft.model.errors import InvalidRequest

_LEVELS = 64  # of lists and objects in an entry; recorders write up to about ten

#: Editors' reasons for a change. Those for what the user chose from a menu, or the editor typed for
#: them, are left out: such changes are judged by what they look like.
_SOURCES: dict[str, ChangeSource] = {
    ACCEPTED_REASON: "suggestion",
    "inlineSuggestion.acceptWord": "suggestion",
    "inlineSuggestion.acceptLine": "suggestion",
    "inlineCompletionAccept": "suggestion",
    "formatEditsCommand": "format",
    "formatEdits": "format",
    "paste": "paste",
    "undo": "undo",
    "redo": "undo",
    "chat.applyEdits": "agent",
    "Chat.applyEdits": "agent",
    "reloadFromDisk": "external",
    "git": "git",
}

#: Entries whose time may be another than when they happened.
_LOOSELY_DATED = (
    ev.Encountered, ev.SetContent, ev.StoreContent, ev.RestoreContent, Note, ev.AnswerEvent,
    ev.DecisionEvent, ev.DrawnEvent, ev.OutcomeEvent,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recording:
    """Events of one file, in order."""

    header: Header
    events: tuple[Event, ...]
    path: str = ""  # of the file it was read from
    torn: bool = False  # its last line was cut off, and dropped

    @property
    def changes(self) -> list[Changed]:
        """The changes of all documents."""
        return [event for event in self.events if isinstance(event, Changed)]


def read_recording(path: Path) -> Recording:
    """Read a recording, with a source for each change: as recorded, else inferred.

    Raises:
        InvalidRequest: the file is no recording, an entry lacks a field, or a change lies outside
            of its document.
    """
    entries, torn = _entries(path)
    header: Header | None = None
    events: list[Event] = []
    for number, entry in enumerate(entries, 1):
        try:
            event = decode(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidRequest(
                f"{path}: entry {number} ({_name(entry)}) cannot be used: "
                f"{type(error).__name__} {error}"
            ) from error
        if isinstance(event, Header):
            header = header or event
        elif not isinstance(event, Note) or event.kind != "applicationStart":
            events.append(event)
    header = header or _header_of(events)
    events = list(_in_time(header, _with_reasons(events)))
    if not all(event.stated for event in events if isinstance(event, Changed)):
        events = list(_with_sources(events))
    return Recording(header, tuple(events), str(path), torn)


def _name(entry: Entry) -> str:
    data = entry.get("data")
    source = data.get("sourceId") if isinstance(data, dict) else None
    return f"{source} at {entry.get('time')} ms" if source else repr(entry.get("kind"))


def _header_of(events: list[Event]) -> Header:
    """Return the header of a recording cut out of a longer log, whose ``meta`` entry names it."""
    time_ms = min((e.time_ms for e in events if not isinstance(e, _LOOSELY_DATED)), default=0)
    meta = next((e.data for e in events if isinstance(e, Note) and e.kind == "meta"), {})
    return Header(time_ms, str(meta.get("uuid", "")), str(meta.get("repoRootUri", "")))


# --- the file ------------------------------------------------------------------------------------


def _entries(path: Path) -> tuple[list[Entry], bool]:
    """Return the entries of a file, and whether the last one was torn."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InvalidRequest(f"cannot read the recording {path}: {error}") from error
    log = _log(data)
    if log is not None:
        return [_checked(path, number, each) for number, each in enumerate(log, 1)], False
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    entries: list[Entry] = []
    for number, line in lines:
        try:
            entry = json.loads(line)
        except RecursionError:
            raise _too_deep(path, number) from None
        except ValueError as error:
            if number == lines[-1][0] and entries:
                return entries, True
            raise InvalidRequest(
                f"{path}: line {number} is no JSON; a recording is JSON Lines of {FORMAT}, or one "
                'object {"log": […]}'
            ) from error
        entries.append(_checked(path, number, entry))
    if not entries:
        raise InvalidRequest(f"{path} holds no entry; a recording is JSON Lines of {FORMAT}")
    return entries, False


def _log(data: bytes) -> list[Any] | None:
    """Return the entries of ``{"log": […]}``; None if the file is JSON Lines."""
    try:
        if "kind" in json.loads(data.split(b"\n", 1)[0]):
            return None
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        log = json.loads(data)["log"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return log if isinstance(log, list) else None


def _checked(path: Path, number: int, entry: Any) -> Entry:
    """Refuse what is no entry, or nested deeper than any recorder writes: later code recurses."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        raise InvalidRequest(f"{path}: entry {number} has no kind; is this a recording?")
    level: list[Any] = [entry]
    for _ in range(_LEVELS):
        level = [child for each in level for child in _children(each)]
        if not level:
            return entry
    raise _too_deep(path, number)


def _children(value: Any) -> Iterable[Any]:
    inside = value.values() if isinstance(value, dict) else value
    return (each for each in inside if isinstance(each, (dict, list)))


def _too_deep(path: Path, number: int) -> InvalidRequest:
    return InvalidRequest(
        f"{path}: entry {number} is nested more than {_LEVELS} levels deep; no recorder writes that"
    )


# --- sources and times ---------------------------------------------------------------------------


def _with_reasons(events: list[Event]) -> list[Event]:
    """Return the events; each change has the reason that a later event names."""
    last: dict[tuple[int | None, int | None], int] = {}  # change by document and version
    found = list(events)
    for at, event in enumerate(events):
        if isinstance(event, Changed):
            last[event.document, event.version] = at
        elif isinstance(event, Note) and event.source_id == CHANGE_REASON:
            version = event.data.get("v")
            about = last.get((event.document, None if version is None else int(version)))
            if about is not None:
                found[about] = _explained(found[about], str(event.data.get("source", "")))
    return found


def _explained(change: Event, reason: str) -> Event:
    assert isinstance(change, Changed)
    source = _SOURCES.get(reason)
    if source is None:
        return replace(change, reason=reason)
    return replace(change, reason=reason, source=source, stated=True)


def _in_time(header: Header, events: list[Event]) -> Iterator[Event]:
    """Yield the events with times that never go back.

    One that is dated loosely happens no later than the next that is not.
    """
    latest: list[float] = []
    after = float("inf")
    for event in reversed(events):
        if not isinstance(event, _LOOSELY_DATED):
            after = min(after, event.time_ms)
        latest.append(after)
    now = header.time_ms if header.time_ms <= (latest[-1] if latest else 0) else 0
    for event, limit in zip(events, reversed(latest), strict=True):
        time_ms = event.time_ms
        if isinstance(event, _LOOSELY_DATED) and limit < float("inf"):
            time_ms = min(time_ms, int(limit))
        now = max(now, time_ms)
        yield event if event.time_ms == now else replace(event, time_ms=now)


def _with_sources(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events; changes without a source get the one that the history infers."""
    user = RecordedUser()
    for event in events:
        source = user.apply(event)
        if isinstance(event, Changed) and not event.stated and source is not None:
            event = replace(event, source=source)
        yield event


class RecordedUser:
    """The texts and the edit history of a recording's user, after the events applied so far."""

    def __init__(self) -> None:
        self.texts = Texts()
        self._now_ms = 0
        self._documents: dict[int, Document] = {}
        self._history = History(lambda: self._now_ms / 1000)

    def apply(self, event: Event) -> ChangeSource | None:
        """Apply an event; return the source of a change, as it is inferred while recording."""
        self._now_ms = event.time_ms
        if not isinstance(event, Changed):
            self.texts.apply(event)
            if isinstance(event, ev.SetContent | ev.RestoreContent):
                text = self.texts.text(event.document)
                document = self._documents[event.document] = Document(str(event.document), text)
                path = self.texts.path(event.document)
                self._history.on_open(document.uri, path, document.lines)
            return None
        changes = lsp_changes(self.texts.text(event.document), event.edits)
        self.texts.apply(event)
        document = self._documents[event.document]
        splices = document.apply(changes, None)
        is_accepted = event.source == "suggestion"
        happening = self._history.change(document.uri, splices, accepted=is_accepted)
        return source_of(happening, splices)

    @property
    def known(self) -> Collection[int]:
        """Numbers of the documents whose text is known."""
        return self._documents.keys()

    def last_changes(self, document: int) -> tuple[list[LineChange], int | None]:
        """Return the last changes of a document, and the 0-based line of the last edit."""
        uri = str(document)
        edits = self._history.view()
        last = edits.last_edit(uri)
        return edits.changes(uri), None if last is None else last[1]
