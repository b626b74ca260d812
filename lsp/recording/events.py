"""Events of a recording: what happens in the editor, and what becomes of suggestions.

Times are ms since 1970. Offsets count UTF-16 code units of the document's text as the editor has
it, line ends included. :mod:`.format` reads and writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from redraft.model.records import Confidence, Finish, Source

#: Source of a change. ``undo`` includes redo; ``external`` is not the user, and otherwise unknown.
ChangeSource = Literal["user", "paste", "suggestion", "agent", "git", "format", "undo", "external"]
LineAndColumn = tuple[int, int]  # 0-based line, character in UTF-16 code units


class TextEdit(NamedTuple):
    """``text`` in place of [start, end), in UTF-16 code units of the text before the change."""

    start: int
    end: int
    text: str


class PlacedText(NamedTuple):
    """``text`` in place of what stands from ``start`` to ``end``."""

    start: LineAndColumn
    end: LineAndColumn
    text: str


# --- documents -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Header:
    """Beginning of a recording."""

    time_ms: int
    uuid: str = ""  # of the session; its files share it
    root: str = ""  # URI of the workspace folder
    made_by: str = ""  # "redraft 0.3.0"; "" for other recorders
    simulated: bool = False  # made from commits, not typed by a person


@dataclass(frozen=True, slots=True)
class Encountered:
    """A document gets its number."""

    time_ms: int
    document: int
    path: str  # relative to the workspace, "/" separated


@dataclass(frozen=True, slots=True)
class SetContent:
    """The whole text, as first seen or after the recorder lost track of it."""

    time_ms: int
    document: int
    version: int | None
    text: str


@dataclass(frozen=True, slots=True)
class StoreContent:
    """The present text gets a name."""

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
    """A document is opened in the editor."""

    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A document is closed in the editor."""

    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Focused:
    """The user looks at a document."""

    time_ms: int
    document: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Edits made together: each counts in the text as it was before all of them."""

    time_ms: int
    document: int
    version: int | None
    edits: tuple[TextEdit, ...]  # by place, none overlapping
    source: ChangeSource = "user"
    stated: bool = True  # the recording names the source; else it is inferred
    reason: str = ""  # the editor's name for it, such as "snippet"; a later event has it

    @property
    def is_typed(self) -> bool:
        """True if the user typed it."""
        return self.source == "user"


@dataclass(frozen=True, slots=True)
class SelectionChanged:
    """The cursor moves, or the selection changes."""

    time_ms: int
    document: int
    selections: tuple[tuple[int, int], ...]  # [start, end) each; the first is the main one


@dataclass(frozen=True, slots=True)
class Note:
    """Any other entry, such as an editor's events of other kinds."""

    time_ms: int
    kind: str  # of the entry: "event", "documentEvent", "meta"
    document: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def source_id(self) -> str:
        """Subject of the event, as its maker names it."""
        return str(self.data.get("sourceId", ""))


# --- suggestions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchStarted:
    """The editor asks its source of suggestions."""

    time_ms: int
    document: int
    request: int  # number within the session
    version: int | None = None
    task: str = ""  # "infill" or "next_edit"; "" for other recorders
    invoked: bool = False  # by a gesture


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """A candidate of an answer, with the gate's verdict."""

    edit: PlacedText
    show_probability: float  # score, 0 … 1
    confidence: Confidence
    tokens: int
    steps: int
    finish: Finish
    source: Source
    chance: float | None = None  # that it is kept, 0 … 1
    passed: bool = False  # the threshold
    propensity: float | None = None  # probability of showing it, before the draw
    features: dict[str, float] = field(default_factory=dict)
    family: str = ""  # of the rules that proposed it


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """An answer of the model: every candidate, shown or not."""

    time_ms: int
    document: int
    request: int
    task: str
    cursor: LineAndColumn
    candidates: tuple[RecordedCandidate, ...]
    shown: str | None  # id of the suggestion
    reason: str = ""
    threshold: float | None = None  # score from which a candidate is shown
    explores: bool = False
    moment: dict[str, Any] = field(default_factory=dict)  # language, places, delays
    pace: dict[str, float] = field(default_factory=dict)  # features of the user's typing
    versions: dict[str, str] = field(default_factory=dict)  # model, weights, gate, quality
    latency: dict[str, float] = field(default_factory=dict)  # ms by stage
    counts: dict[str, int] = field(default_factory=dict)  # of tokens and steps
    after: str = ""  # id of the suggestion after whose acceptance it is needed; "": at once

    @property
    def weights(self) -> str:
        """The model with its weights, as far as the recording names them."""
        return f"{self.versions.get('model', '')} {self.versions.get('weights', '')}".strip()


@dataclass(frozen=True, slots=True)
class DecisionEvent:
    """The decision that the client gets, whether the model was asked for it or not."""

    time_ms: int
    document: int
    shown: str | None  # id of the suggestion; the fields below are its fields
    reason: str
    task: str = ""
    edit: PlacedText | None = None
    rest: str = ""  # what is left of it where some is typed already
    score: float = 0.0  # 0 … 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class DrawnEvent:
    """The client has drawn a suggestion on the screen."""

    time_ms: int
    suggestion: str


@dataclass(frozen=True, slots=True)
class OutcomeEvent:
    """The outcome of a suggestion. An acceptance comes before the change that it makes."""

    time_ms: int
    document: int
    suggestion: str
    task: str
    outcome: str  # "accepted", "rejected", "ignored", "replaced" or "cancelled"


Event = (
    Encountered | SetContent | StoreContent | RestoreContent | Opened | Closed | Focused | Changed
    | SelectionChanged | Note | FetchStarted | AnswerEvent | DecisionEvent | DrawnEvent
    | OutcomeEvent
)  # fmt: skip
