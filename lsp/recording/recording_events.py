"""Events of a recording, and the lines that hold them.

A recording is a file of JSON Lines in the format ``workspaceRecording@1.0``, which other tools
write too. :func:`encode` makes the line of an event, :func:`decode` the event of an entry. Events
about suggestions are Redraft's additions: a ``documentEvent`` or an ``event`` whose ``sourceId``
begins with ``Redraft.``, which other readers of the format skip.

Times are ms since 1970. Offsets count UTF-16 code units of the document's text as the editor has
it, line ends included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    SkipValidation,
    TypeAdapter,
    ValidationError,
)
from redraft.model.records import Confidence, Finish, Source

FORMAT = "workspaceRecording@1.0"
CHANGE_REASON = "TextModel.setChangeReason"
FETCH = "InlineCompletions.fetch"
ACCEPTED_REASON = "inlineSuggestion.accept"

Entry = dict[str, Any]

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


# --- fields --------------------------------------------------------------------------------------


def _with_slashes(path: str) -> str:
    return path if "/" in path else path.replace("\\", "/")


def _in_order(edits: tuple[TextEdit, ...]) -> tuple[TextEdit, ...]:
    return tuple(sorted(edits, key=itemgetter(0, 1)))


def _is_gesture(context: Mapping[str, Any] | None) -> bool:
    return bool((context or {}).get("triggerKind"))


def _confidence(value: Mapping[str, Any]) -> Confidence:
    """Return a confidence without parts that this version does not know."""
    known = {each.name: value[each.name] for each in fields(Confidence) if each.name in value}
    lists = {name: tuple(known.get(name, ())) for name in ("logs", "lines")}
    return Confidence(**known | lists)


def _rounded_parts(confidence: Confidence) -> dict[str, Any]:
    parts = asdict(confidence)
    logs = {name: [round(log, 3) for log in parts.pop(name)] for name in ("logs", "lines")}
    return {name: None if part is None else round(part, 5) for name, part in parts.items()} | logs


TimeMs = Annotated[int, Field(alias="time")]
Version = Annotated[int | None, Field(alias="v", default=None)]  # the client's; None: unknown
RequestId = Annotated[int, Field(alias="requestId")]  # number within the session
#: Objects are taken as they are, so that releases may differ in what they hold.
Numbers = SkipValidation[dict[str, float]]
#: A field of an event that its entry does not have.
_ELSEWHERE = Field(exclude=True, validation_alias="")


# --- documents -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Header:
    """Beginning of a recording."""

    time_ms: TimeMs
    uuid: str = ""  # of the session; its files share it
    root: Annotated[str, Field(alias="repoRootUri")] = ""  # of the workspace folder
    made_by: Annotated[str, Field(alias="madeBy")] = ""  # "redraft 0.3.0"; "" for other recorders
    simulated: bool = False  # made from commits, not typed by a person


@dataclass(frozen=True, slots=True)
class _DocumentEvent:
    """Event of one document."""

    time_ms: TimeMs
    document: Annotated[int, Field(alias="id")]  # number within the recording


@dataclass(frozen=True, slots=True)
class _TextEvent(_DocumentEvent):
    """Event of a document's text."""

    version: Version


@dataclass(frozen=True, slots=True)
class Encountered(_DocumentEvent):
    """A document gets its number."""

    #: Relative to the workspace, "/" separated.
    path: Annotated[str, AfterValidator(_with_slashes), Field(alias="relativePath")]


@dataclass(frozen=True, slots=True)
class SetContent(_TextEvent):
    """The whole text, as first seen or after the recorder lost track of it."""

    text: Annotated[str, Field(alias="content")]


@dataclass(frozen=True, slots=True)
class StoreContent(_TextEvent):
    """The present text gets a name."""

    content_id: Annotated[str, Field(alias="contentId")]


@dataclass(frozen=True, slots=True)
class RestoreContent(_TextEvent):
    """The text is again the one of that name."""

    content_id: Annotated[str, Field(alias="contentId")]


@dataclass(frozen=True, slots=True)
class Opened(_DocumentEvent):
    """A document is opened in the editor."""


@dataclass(frozen=True, slots=True)
class Closed(_DocumentEvent):
    """A document is closed in the editor."""


@dataclass(frozen=True, slots=True)
class Focused(_DocumentEvent):
    """The user looks at a document."""


@dataclass(frozen=True, slots=True)
class Changed(_TextEvent):
    """Edits made together: each counts in the text as it was before all of them."""

    #: By place, none overlapping.
    edits: Annotated[tuple[TextEdit, ...], AfterValidator(_in_order), Field(alias="edit")]
    source: SkipValidation[ChangeSource] = "user"
    #: The recording names the source; else it is inferred.
    stated: Annotated[bool, _ELSEWHERE] = True
    #: The editor's name for it, such as "snippet"; a later event has it.
    reason: Annotated[str, _ELSEWHERE] = ""

    @property
    def is_typed(self) -> bool:
        """True if the user typed it."""
        return self.source == "user"


@dataclass(frozen=True, slots=True)
class SelectionChanged(_DocumentEvent):
    """The cursor moves, or the selection changes."""

    #: [start, end) each; the first is the main one.
    selections: Annotated[tuple[tuple[int, int], ...], Field(alias="selection")]


@dataclass(frozen=True, slots=True)
class Note:
    """Any other entry, such as an editor's events of other kinds."""

    time_ms: TimeMs
    kind: str  # of the entry: "event", "documentEvent", "meta"
    document: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def source_id(self) -> str:
        """Subject of the event, as its maker names it."""
        return str(self.data.get("sourceId", ""))


# --- suggestions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchStarted(_DocumentEvent):
    """The editor asks its source of suggestions."""

    request: RequestId
    version: Version = None
    task: str = ""  # "infill" or "next_edit"; "" for other recorders
    invoked: Annotated[
        bool,
        BeforeValidator(_is_gesture),
        PlainSerializer(lambda invoked: {"triggerKind": int(invoked)}),
        Field(alias="context"),
    ] = False  # by a gesture


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """A candidate of an answer, with the gate's verdict."""

    edit: PlacedText
    show_probability: Annotated[float, Field(alias="showProbability")]  # score, 0 … 1
    confidence: Annotated[Confidence, PlainValidator(_confidence), PlainSerializer(_rounded_parts)]
    tokens: int
    steps: int
    finish: SkipValidation[Finish]
    source: SkipValidation[Source]
    chance: float | None = None  # that it is kept, 0 … 1
    passed: bool = False  # the threshold
    propensity: float | None = None  # probability of showing it, before the draw
    features: Numbers = field(default_factory=dict)
    family: str = ""  # of the rules that proposed it


@dataclass(frozen=True, slots=True)
class AnswerEvent(_DocumentEvent):
    """An answer of the model: every candidate, shown or not."""

    request: RequestId
    task: str
    cursor: LineAndColumn
    candidates: tuple[RecordedCandidate, ...]
    shown: str | None  # id of the suggestion
    reason: str = ""
    threshold: float | None = None  # score from which a candidate is shown
    explores: bool = False
    #: Language, places, delays.
    moment: Annotated[dict[str, Any], Field(alias="features")] = field(default_factory=dict)
    pace: Numbers = field(default_factory=dict)  # features of the user's typing
    #: Of model, weights, gate and quality.
    versions: SkipValidation[dict[str, str]] = field(default_factory=dict)
    latency: Numbers = field(default_factory=dict)  # ms by stage
    #: Of tokens and steps.
    counts: Annotated[SkipValidation[dict[str, int]], Field(alias="tokens")] = field(
        default_factory=dict
    )
    after: str = ""  # id of the suggestion after whose acceptance it is needed; "": at once

    @property
    def weights(self) -> str:
        """The model with its weights, as far as the recording names them."""
        return f"{self.versions.get('model', '')} {self.versions.get('weights', '')}".strip()


@dataclass(frozen=True, slots=True)
class DecisionEvent(_DocumentEvent):
    """The decision that the client gets, whether the model was asked for it or not."""

    shown: str | None  # id of the suggestion; the fields below are its fields
    reason: str
    task: str = ""
    edit: PlacedText | None = None
    #: What is left of it where some is typed already.
    rest: Annotated[str, Field(alias="text")] = ""
    score: Annotated[float, Field(alias="confidence")] = 0.0  # 0 … 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class DrawnEvent:
    """The client has drawn a suggestion on the screen."""

    time_ms: TimeMs
    suggestion: str


@dataclass(frozen=True, slots=True)
class OutcomeEvent(_DocumentEvent):
    """The outcome of a suggestion. An acceptance comes before the change that it makes."""

    suggestion: str
    task: str
    outcome: str  # "accepted", "rejected", "ignored", "replaced" or "cancelled"


Event = (
    Encountered | SetContent | StoreContent | RestoreContent | Opened | Closed | Focused | Changed
    | SelectionChanged | Note | FetchStarted | AnswerEvent | DecisionEvent | DrawnEvent
    | OutcomeEvent
)  # fmt: skip


# --- the codec -----------------------------------------------------------------------------------

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
#: Keys that an entry lacks if the value is None, "", False or 0.
_LEFT_OUT = frozenset(("v", "simulated", "after", "task", "edit", "text", "confidence", "model"))

_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: lone surrogates survive


@cache  # made at the first use: all of them take 36 ms
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _read(cls: Any, entry: Mapping[str, Any]) -> Any:
    try:
        return _adapter(cls).validate_python(entry)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        if problem["type"] == "missing":
            raise KeyError(where) from None
        raise ValueError(f"{where}: {problem['msg']}") from None


def _written(event: Any) -> Entry:
    cls: Any = type(event)
    entry = _adapter(cls).dump_python(event, by_alias=True, warnings=False)
    return {
        key: value
        for key, value in entry.items()
        if value or key not in _LEFT_OUT or value == ()  # a change may have no edits
    }


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
