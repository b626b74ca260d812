"""The events of a recording, typed: what the file format ``workspaceRecording@1.0`` says, and what
our own recorder adds to it.

Frozen dataclasses only. Times are in ms since 1970 and never go back within a stream. Offsets count
UTF-16 code units of the document's text as the editor has it, line ends included. Knows nothing of
files, of replaying, or of the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from redraft.lsp.recording.format import ChangeSource


@dataclass(frozen=True, slots=True)
class TextEdit:
    """``text`` in place of [start, end), in UTF-16 code units of the text before the change."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    time_ms: int
    uuid: str = ""
    root: str = ""  # URI of the workspace folder
    simulated: bool = False  # made from commits: nobody sat at the keyboard
    made_by: str = ""  # "redraft 0.3.0"; "" for other recorders


@dataclass(frozen=True, slots=True)
class Encountered:
    """A document has a number from here on."""

    time_ms: int
    document: int
    path: str  # relative to the workspace, "/" separated


@dataclass(frozen=True, slots=True)
class SetContent:
    """The whole text, as it was first seen or after the recorder lost track of it."""

    time_ms: int
    document: int
    version: int | None
    text: str


@dataclass(frozen=True, slots=True)
class StoreContent:
    """The present text has a name."""

    time_ms: int
    document: int
    version: int | None
    content_id: str


@dataclass(frozen=True, slots=True)
class RestoreContent:
    """The text is again the one of that name."""

    time_ms: int
    document: int
    version: int | None
    content_id: str


@dataclass(frozen=True, slots=True)
class Opened:
    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Closed:
    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Focused:
    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Edits that were made together: each counts in the text as it was before all of them."""

    time_ms: int
    document: int
    version: int | None
    edits: tuple[TextEdit, ...]  # by place, none overlapping
    source: ChangeSource = "user"
    stated: bool = False  # the recording says so; else it was inferred
    reason: str = ""  # the editor's own word for it: "snippet"

    @property
    def is_typed(self) -> bool:
        return self.source == "user"


@dataclass(frozen=True, slots=True)
class SelectionChanged:
    time_ms: int
    document: int
    selections: tuple[tuple[int, int], ...]  # [start, end) each; the first is the main one


@dataclass(frozen=True, slots=True)
class FetchStarted:
    """The editor asked its own source of suggestions, whichever that was."""

    time_ms: int
    document: int
    request: int
    version: int | None


@dataclass(frozen=True, slots=True)
class Note:
    """Any other entry: an editor's event of another kind, or one of our own (``Redraft.…``)."""

    time_ms: int
    kind: str  # of the entry: "event", "documentEvent", "meta"
    document: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def source_id(self) -> str:
        return str(self.data.get("sourceId", ""))


Event = (
    Encountered
    | SetContent
    | StoreContent
    | RestoreContent
    | Opened
    | Closed
    | Focused
    | Changed
    | SelectionChanged
    | FetchStarted
    | Note
)


@dataclass(frozen=True, slots=True)
class Stream:
    """One recording, in order."""

    header: Header
    events: tuple[Event, ...]
    path: str = ""  # of the file it was read from
    torn: bool = False  # its last line was cut off, and dropped

    @property
    def changes(self) -> list[Changed]:
        return [event for event in self.events if isinstance(event, Changed)]
