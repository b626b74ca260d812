"""Lines of a recording, from and to its events.

A recording is a file of JSON Lines in the format ``workspaceRecording@1.0``, which other tools
write too. :func:`encode` makes the line of an event, :func:`decode` the event of an entry. Events
about suggestions are Redraft's additions: a ``documentEvent`` or an ``event`` whose ``sourceId``
begins with ``Redraft.``, which other readers of the format skip.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, NamedTuple

from redraft.model.records import Confidence

from .events import (
    AnswerEvent,
    Changed,
    Closed,
    DecisionEvent,
    DrawnEvent,
    Encountered,
    Event,
    FetchStarted,
    Focused,
    Header,
    Note,
    Opened,
    OutcomeEvent,
    PlacedText,
    RecordedCandidate,
    RestoreContent,
    SelectionChanged,
    SetContent,
    StoreContent,
    TextEdit,
)

FORMAT = "workspaceRecording@1.0"
CHANGE_REASON = "TextModel.setChangeReason"
FETCH = "InlineCompletions.fetch"
ACCEPTED_REASON = "inlineSuggestion.accept"

Entry = dict[str, Any]

_ENTRIES: dict[str, type[Any]] = {
    "header": Header,
    "documentEncountered": Encountered,
    "setContent": SetContent,
    "storeContent": StoreContent,
    "restoreContent": RestoreContent,
    "opened": Opened,
    "closed": Closed,
    "focused": Focused,
    "changed": Changed,
    "selectionChanged": SelectionChanged,
}
#: Events whose fields stand in ``data``, by ``sourceId``.
_IN_DATA: dict[str, type[Any]] = {
    FETCH: FetchStarted,
    "Redraft.answer": AnswerEvent,
    "Redraft.decision": DecisionEvent,
    "Redraft.drawn": DrawnEvent,
    "Redraft.outcome": OutcomeEvent,
}
_KINDS = {cls: kind for kind, cls in _ENTRIES.items()}
_SOURCE_IDS = {cls: name for name, cls in _IN_DATA.items()}


# --- fields --------------------------------------------------------------------------------------


def _path(value: Any) -> str:
    path = str(value)
    return path if "/" in path else path.replace("\\", "/")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("content is no text")
    return value


def _edits(value: Any) -> tuple[TextEdit, ...]:
    edits = (TextEdit(int(start), int(end), str(text)) for start, end, text in value)
    return tuple(sorted(edits, key=lambda edit: edit[:2]))


def _pair(value: Any) -> tuple[int, int]:
    first, second = value
    return int(first), int(second)


def _placed(value: Any) -> PlacedText:
    start, end, text = value
    return PlacedText(_pair(start), _pair(end), str(text))


def _confidence(value: Mapping[str, Any]) -> Confidence:
    """Return a confidence without parts that this version does not know."""
    known = {each.name: value[each.name] for each in fields(Confidence) if each.name in value}
    lists = {name: tuple(known.get(name, ())) for name in ("logs", "lines")}
    return Confidence(**known | lists)


def _rounded_parts(confidence: Confidence) -> dict[str, Any]:
    parts = asdict(confidence)
    logs = {name: [round(log, 3) for log in parts.pop(name)] for name in ("logs", "lines")}
    return {name: None if part is None else round(part, 5) for name, part in parts.items()} | logs


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _as_is(value: Any) -> Any:
    return value


class _Form(NamedTuple):
    """Key and conversions of a field."""

    key: str
    read: Callable[[Any], Any] = _as_is
    write: Callable[[Any], Any] = _as_is


_FORMS = {
    "time_ms": _Form("time", int),
    "document": _Form("id", int),
    "version": _Form("v", _number),
    "uuid": _Form("uuid", str),
    "root": _Form("repoRootUri", str),
    "made_by": _Form("madeBy", str),
    "simulated": _Form("simulated", bool),
    "path": _Form("relativePath", _path),
    "text": _Form("content", _text),
    "content_id": _Form("contentId", str),
    "edits": _Form("edit", _edits),
    "selections": _Form("selection", lambda value: tuple(map(_pair, value))),
    "request": _Form("requestId", int),
    "invoked": _Form(
        "context",
        lambda value: bool((value or {}).get("triggerKind")),
        lambda value: {"triggerKind": int(value)},
    ),
    "cursor": _Form("cursor", _pair),
    "edit": _Form("edit", lambda value: None if value is None else _placed(value)),
    "show_probability": _Form("showProbability", float),
    "confidence": _Form("confidence", _confidence, _rounded_parts),
    "candidates": _Form(
        "candidates",
        lambda value: tuple(_read(RecordedCandidate, each) for each in value),
        lambda value: [_written(each) for each in value],
    ),
    "tokens": _Form("tokens", int),
    "moment": _Form("features", dict),
    "counts": _Form("tokens", dict),
    "rest": _Form("text", str),
    "score": _Form("confidence", float),
    "suggestion": _Form("suggestion", str),
    "outcome": _Form("outcome", str),
}
_NOT_WRITTEN = frozenset(("stated", "reason"))  # of a change
#: Left out at their defaults.
_LEFT_OUT = frozenset(["version", "simulated", "after", "task", "edit", "rest", "score", "model"])


def _forms(cls: type[Any]) -> tuple[tuple[str, _Form, bool], ...]:
    """Return name and form of each field of a class, and whether an entry must have it."""
    names = [each for each in fields(cls) if cls is not Changed or each.name not in _NOT_WRITTEN]
    return tuple(
        (
            each.name,
            _FORMS.get(each.name, _Form(each.name)),
            each.default is MISSING and each.default_factory is MISSING and each.name != "version",
        )
        for each in names
    )


_FORMS_OF = {cls: _forms(cls) for cls in (*_KINDS, *_SOURCE_IDS, RecordedCandidate)}


def _read(cls: type[Any], entry: Mapping[str, Any]) -> Any:
    values: dict[str, Any] = {"version": None} if "version" in cls.__slots__ else {}
    for name, form, is_needed in _FORMS_OF[cls]:
        if is_needed or form.key in entry:
            values[name] = form.read(entry[form.key])
    return cls(**values)


def _written(event: Any) -> Entry:
    entry = {}
    for name, form, _ in _FORMS_OF[type(event)]:
        value = getattr(event, name)
        if value or name not in _LEFT_OUT:
            entry[form.key] = form.write(value)
    return entry


# --- the codec -----------------------------------------------------------------------------------

_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: lone surrogates survive


def encode(event: Header | Event) -> bytes:
    """Return the line of an event."""
    return (_TO_JSON(_entry_of(event)) + "\n").encode("ascii")


def encode_all(events: Iterable[Header | Event]) -> bytes:
    """Return the lines of some events."""
    return b"".join(map(encode, events))


def _entry_of(event: Header | Event) -> Entry:
    if isinstance(event, Note):
        entry: Entry = {"kind": event.kind, "time": event.time_ms}
        if event.document is not None:
            entry["id"] = event.document
        is_event = event.kind in ("event", "documentEvent")
        return entry | ({"data": event.data} if is_event else event.data)
    source_id, written = _SOURCE_IDS.get(type(event)), _written(event)
    if source_id is None:
        entry = {"kind": _KINDS[type(event)]} | written
        if isinstance(event, Header):
            entry["documentType"] = FORMAT
        elif isinstance(event, Changed) and not event.stated:
            del entry["source"]
        return entry
    outside: Entry = {key: written.pop(key) for key in ("id", "time") if key in written}
    kind = "documentEvent" if "id" in outside else "event"
    start = {"kind": "start"} if source_id == FETCH else {}
    return {"kind": kind, **outside, "data": {"sourceId": source_id, **start, **written}}


def decode(entry: Mapping[str, Any]) -> Header | Event:
    """Return the event of an entry. Unknown kinds become a :class:`Note`.

    Raises:
        KeyError: the entry lacks a field.
        TypeError: a field has another type.
        ValueError: a field has a wrong value.
    """
    kind = entry["kind"]
    if kind in ("event", "documentEvent"):
        return _decode_data(kind, entry)
    if kind == "header" and entry.get("documentType", FORMAT) != FORMAT:
        raise ValueError(f"documentType is {entry['documentType']!r}; only {FORMAT} can be read")
    cls = _ENTRIES.get(kind)
    if cls is None:
        data = (entry.get("data") or {}) if kind == "meta" else dict(entry)
        return Note(int(entry.get("time", 0)), kind, data=data)
    event: Header | Event = _read(cls, entry)
    if isinstance(event, Changed) and "source" not in entry:
        return Changed(event.time_ms, event.document, event.version, event.edits, stated=False)
    return event


def _decode_data(kind: str, entry: Mapping[str, Any]) -> Event:
    data = entry["data"]
    if not isinstance(data, dict):
        raise TypeError("data is no object")
    cls = _IN_DATA.get(str(data.get("sourceId")))
    if cls is None or (cls is FetchStarted and data.get("kind") != "start"):
        document = int(entry["id"]) if kind == "documentEvent" else None
        return Note(int(entry["time"]), kind, document, data)
    outside = {key: entry[key] for key in ("id", "time") if key in entry}
    event: Event = _read(cls, data | outside)
    return event
