"""The lines of a recording: ``workspaceRecording@1.0``, and our own entries within it.

Each function makes one entry, a dict ready for JSON. What that format lacks is put where its other
readers look past it: as further keys, or as an ``event`` with a ``sourceId`` beginning with
``Redraft.``. Offsets count UTF-16 code units, times are ms since 1970. Pure; knows nothing of files
or of who calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

FORMAT = "workspaceRecording@1.0"

#: Where a change came from. ``undo`` is a redo as well; ``external`` is anything but the user, and
#: no one knows what.
ChangeSource = Literal["user", "paste", "suggestion", "agent", "git", "format", "undo", "external"]

CHANGE_REASON = "TextModel.setChangeReason"
FETCH = "InlineCompletions.fetch"
ACCEPTED_REASON = "inlineSuggestion.accept"

Entry = dict[str, Any]
#: ``text`` in place of [start, end).
Replacement = tuple[int, int, str]


def line_of(entry: Entry) -> bytes:
    """An entry as its line. ASCII, so that a lone half of a surrogate pair survives."""
    return (json.dumps(entry, separators=(",", ":")) + "\n").encode("ascii")


def header(uuid: str, root: str, time_ms: int, made_by: str, simulated: bool = False) -> Entry:
    entry: Entry = {
        "kind": "header",
        "documentType": FORMAT,
        "repoRootUri": root,
        "time": time_ms,
        "uuid": uuid,
        "madeBy": made_by,
    }
    return {**entry, "simulated": True} if simulated else entry


def application_start(time_ms: int) -> Entry:
    return {"kind": "applicationStart", "time": time_ms}


def encountered(document: int, path: str, time_ms: int) -> Entry:
    return {"kind": "documentEncountered", "id": document, "time": time_ms, "relativePath": path}


def set_content(document: int, version: int | None, content: str, time_ms: int) -> Entry:
    return _versioned("setContent", document, version, time_ms) | {"content": content}


def opened(document: int, time_ms: int) -> Entry:
    return {"kind": "opened", "id": document, "time": time_ms}


def closed(document: int, time_ms: int) -> Entry:
    return {"kind": "closed", "id": document, "time": time_ms}


def focused(document: int, time_ms: int) -> Entry:
    return {"kind": "focused", "id": document, "time": time_ms}


def changed(
    document: int,
    version: int | None,
    edits: Iterable[Replacement],
    source: ChangeSource,
    time_ms: int,
) -> Entry:
    """Edits that apply together."""
    entry = _versioned("changed", document, version, time_ms)
    return entry | {"edit": [list(edit) for edit in edits], "source": source}


def change_reason(document: int, version: int | None, reason: str, time_ms: int) -> Entry:
    """Why the change to this version came about, as editors say it."""
    data = {"sourceId": CHANGE_REASON, "source": reason, "v": version}
    return document_event(document, data, time_ms)


def selection_changed(document: int, selections: Sequence[tuple[int, int]], time_ms: int) -> Entry:
    ranges = [list(selection) for selection in selections]
    return {"kind": "selectionChanged", "id": document, "time": time_ms, "selection": ranges}


def document_event(document: int, data: dict[str, Any], time_ms: int) -> Entry:
    return {"kind": "documentEvent", "id": document, "time": time_ms, "data": data}


def event(data: dict[str, Any], time_ms: int) -> Entry:
    return {"kind": "event", "time": time_ms, "data": data}


def _versioned(kind: str, document: int, version: int | None, time_ms: int) -> Entry:
    entry: Entry = {"kind": kind, "id": document, "time": time_ms}
    return entry if version is None else {**entry, "v": version}
