"""From a recording's file to typed events.

Entries keep the order of the file: that is the order in which things happened, whatever their times
say (texts are dated by when the file was read, log entries by when they were written). Knows
nothing of replaying.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from redraft.lsp.recording.format import ACCEPTED_REASON, CHANGE_REASON, FETCH, FORMAT, ChangeSource
from redraft.model.errors import InvalidRequest

from .format import (
    Changed,
    Closed,
    Encountered,
    Event,
    FetchStarted,
    Focused,
    Header,
    Note,
    Opened,
    RestoreContent,
    SelectionChanged,
    SetContent,
    StoreContent,
    Stream,
    TextEdit,
)

Entry = dict[str, Any]

_LEVELS = 64  # of lists and objects in an entry; recorders write up to about ten

#: What editors say of a change, in our words. Theirs for what the user chose from a menu, or had
#: typed for them, are not in here: those changes are judged by what they look like.
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

#: Entries dated by something else than when they happened.
_LOOSELY_DATED = (Encountered, SetContent, StoreContent, RestoreContent, Note)


def parse(path: Path) -> Stream:
    """The events of a file. Where it does not state the source of a change, that is "user" for now:
    :mod:`.sources` looks at those again.

    Raises:
        InvalidRequest: the file is no recording, or an entry lacks what it needs.
    """
    entries, torn = _entries(path)
    header: Header | None = None
    events: list[Event] = []
    for number, entry in enumerate(entries, 1):
        try:
            if entry.get("kind") == "header":
                header = header or _header(entry)
            elif (event := _event(entry)) is not None:
                events.append(event)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRequest(
                f"{path}: entry {number} ({entry.get('kind')!r}) cannot be used: "
                f"{type(error).__name__} {error}"
            ) from error
    header = header or _header_of(events)
    return Stream(header, tuple(_in_time(header, _with_reasons(events))), str(path), torn)


# --- the file ------------------------------------------------------------------------------------


def _entries(path: Path) -> tuple[list[Entry], bool]:
    """The entries of a file, and whether the last one was torn."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InvalidRequest(f"cannot read the recording {path}: {error}") from error
    whole = _whole(data)
    if whole is not None:
        return [_entry(path, number, each) for number, each in enumerate(whole, 1)], False
    return _lines(path, data)


def _whole(data: bytes) -> list[Any] | None:
    """The entries of ``{"log": […]}``; None where the file is JSON Lines."""
    first = data.split(b"\n", 1)[0]
    try:
        if "kind" in json.loads(first):
            return None
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        log = json.loads(data)["log"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return log if isinstance(log, list) else None


def _lines(path: Path, data: bytes) -> tuple[list[Entry], bool]:
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
        entries.append(_entry(path, number, entry))
    if not entries:
        raise InvalidRequest(f"{path} holds no entry; a recording is JSON Lines of {FORMAT}")
    return entries, False


def _entry(path: Path, number: int, entry: Any) -> Entry:
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        raise InvalidRequest(f"{path}: entry {number} has no kind; is this a recording?")
    if not _is_shallow(entry):
        raise _too_deep(path, number)
    return entry


def _is_shallow(entry: Entry) -> bool:
    """Is nothing nested further than any recorder writes? What copies and prints entries calls
    itself for each level."""
    level: list[Any] = [entry]
    for _ in range(_LEVELS):
        level = [child for each in level for child in _children(each)]
        if not level:
            return True
    return False


def _children(value: Any) -> Iterable[Any]:
    """The lists and objects in one."""
    inside = value.values() if isinstance(value, dict) else value
    return (each for each in inside if isinstance(each, (dict, list)))


def _too_deep(path: Path, number: int) -> InvalidRequest:
    return InvalidRequest(
        f"{path}: entry {number} is nested more than {_LEVELS} levels deep; no recorder writes that"
    )


# --- entries -------------------------------------------------------------------------------------


def _header(entry: Entry) -> Header:
    kind = entry.get("documentType", FORMAT)
    if kind != FORMAT:
        raise ValueError(f"documentType is {kind!r}; only {FORMAT} can be read")
    return Header(
        time_ms=_int(entry, "time"),
        uuid=str(entry.get("uuid", "")),
        root=str(entry.get("repoRootUri", "")),
        simulated=bool(entry.get("simulated", False)),
        made_by=str(entry.get("madeBy", "")),
    )


def _header_of(events: list[Event]) -> Header:
    """For recordings cut out of a longer log: they say where in an entry of their own."""
    time_ms = min((e.time_ms for e in events if not isinstance(e, _LOOSELY_DATED)), default=0)
    meta = next((e.data for e in events if isinstance(e, Note) and e.kind == "meta"), {})
    return Header(time_ms, str(meta.get("uuid", "")), str(meta.get("repoRootUri", "")))


def _event(entry: Entry) -> Event | None:
    read = _READERS.get(entry["kind"])
    return read(entry) if read else Note(entry.get("time", 0), entry["kind"], data=entry)


def _int(entry: Entry, key: str) -> int:
    return int(entry[key])


def _version(entry: Entry) -> int | None:
    version = entry.get("v")
    return None if version is None else int(version)


def _encountered(entry: Entry) -> Event:
    path = str(entry["relativePath"])
    if "/" not in path:
        path = path.replace("\\", "/")
    return Encountered(_int(entry, "time"), _int(entry, "id"), path)


def _set_content(entry: Entry) -> Event:
    content = entry["content"]
    if not isinstance(content, str):
        raise TypeError("content is no text")
    return SetContent(_int(entry, "time"), _int(entry, "id"), _version(entry), content)


def _store_content(entry: Entry) -> Event:
    place = _int(entry, "time"), _int(entry, "id"), _version(entry)
    return StoreContent(*place, str(entry["contentId"]))


def _restore_content(entry: Entry) -> Event:
    place = _int(entry, "time"), _int(entry, "id"), _version(entry)
    return RestoreContent(*place, str(entry["contentId"]))


def _changed(entry: Entry) -> Event:
    edits = sorted(((int(s), int(e), str(t)) for s, e, t in entry["edit"]), key=lambda e: e[:2])
    source = entry.get("source")
    return Changed(
        time_ms=_int(entry, "time"),
        document=_int(entry, "id"),
        version=_version(entry),
        edits=tuple(TextEdit(*edit) for edit in edits),
        source=source or "user",
        stated=source is not None,
    )


def _selection_changed(entry: Entry) -> Event:
    selections = tuple((int(start), int(end)) for start, end in entry["selection"])
    return SelectionChanged(_int(entry, "time"), _int(entry, "id"), selections)


def _document_event(entry: Entry) -> Event:
    data, time_ms, document = entry["data"], _int(entry, "time"), _int(entry, "id")
    if data.get("sourceId") == FETCH and data.get("kind") == "start":
        return FetchStarted(time_ms, document, _int(data, "requestId"), _version(data))
    return Note(time_ms, entry["kind"], document, data)


def _free_event(entry: Entry) -> Event:
    return Note(_int(entry, "time"), entry["kind"], None, entry["data"])


def _meta(entry: Entry) -> Event:
    return Note(0, "meta", None, entry.get("data") or {})


_READERS: dict[str, Callable[[Entry], Event | None]] = {
    "applicationStart": lambda entry: None,
    "documentEncountered": _encountered,
    "setContent": _set_content,
    "storeContent": _store_content,
    "restoreContent": _restore_content,
    "opened": lambda entry: Opened(_int(entry, "time"), _int(entry, "id")),
    "closed": lambda entry: Closed(_int(entry, "time"), _int(entry, "id")),
    "focused": lambda entry: Focused(_int(entry, "time"), _int(entry, "id")),
    "changed": _changed,
    "selectionChanged": _selection_changed,
    "documentEvent": _document_event,
    "event": _free_event,
    "meta": _meta,
}


# --- sources and times ---------------------------------------------------------------------------


def _with_reasons(events: list[Event]) -> list[Event]:
    """Each change with what was said of it afterwards."""
    changes: dict[tuple[int | None, int | None], int] = {}  # by document and version: the last one
    found = list(events)
    for at, event in enumerate(events):
        if isinstance(event, Changed):
            changes[event.document, event.version] = at
        elif isinstance(event, Note) and event.source_id == CHANGE_REASON:
            about = changes.get((event.document, _version(event.data)))
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
    """The events with times that never go back: one that is dated loosely happens no later than the
    next that is not, none before the one it follows."""
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
