"""Moments of a recording, and the changes that follow each of them in its document.

A moment is the end of an edit: changes in quick succession and near each other, after which the
user paused or went on elsewhere. Texts have the form that the session sees: line feeds alone,
``str`` indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from redraft.lsp.learning.recording_file import Recording
from redraft.lsp.learning.texts import Texts, plain
from redraft.lsp.recording.recording_events import (
    Changed,
    ChangeSource,
    Event,
    RestoreContent,
    SetContent,
)
from redraft.model.text.common import common_ends
from redraft.model.text.syntax import language_of

#: Within this time an editor has moved the cursor after a change, and asks.
ASKS_AFTER_S = 0.02
#: Moments within so many seconds of one recording are resampled together: they are dependent.
STRETCH_S = 300.0

#: Changes of a document belong to one edit if they follow each other within so many seconds, and
#: their first lines are so near.
PAUSE_S, NEAR_LINES = 1.0, 8


@dataclass(frozen=True, slots=True)
class PlacedEdit:
    """``text`` in place of [start, end) of the text as it was before the change."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change of a document: edits that apply together, sorted by place, without overlaps."""

    at_s: float
    edits: tuple[PlacedEdit, ...]
    source: ChangeSource = "user"

    @property
    def is_typed(self) -> bool:
        """True if the user typed it, key by key."""
        return self.source == "user"

    def apply(self, text: str) -> str:
        """Return the text after the change."""
        for edit in reversed(self.edits):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text


@dataclass(frozen=True, slots=True)
class ReplayMoment:
    """The user has made an edit."""

    id: str
    group: str  # the stretch of its session
    session: str
    document: int
    path: str
    language: str  # LSP id, "" when unknown
    at_s: float  # since the recording began
    asks_s: float  # when the editor asks; nothing else has happened by then
    before: str  # the document before the edit
    text: str  # and after it
    done: int  # changes of the document until now
    typed: int  # characters the user typed in the edit


@dataclass(frozen=True, slots=True)
class Script:
    """A recording with its moments, ready to be played."""

    name: str
    recording: Recording
    moments: tuple[ReplayMoment, ...]
    steps: dict[int, tuple[DocumentChange, ...]]  # by document
    paths: dict[int, str]
    ends_s: float

    def seconds(self, event: Event) -> float:
        """Return the time since the recording began."""
        return (event.time_ms - self.recording.events[0].time_ms) / 1000

    def steps_after(self, document: int, done: int) -> Sequence[DocumentChange]:
        """Return the changes of a document after its first ``done``."""
        return self.steps.get(document, ())[done:]


def script_of(recording: Recording, name: str) -> Script:
    """Return the moments of a recording, and the changes of its documents."""
    reading = _Reading(name, recording)
    moments = tuple(reading.moments())
    steps = {document: tuple(some) for document, some in reading.steps.items()}
    last_ms = recording.events[-1].time_ms if recording.events else 0
    return Script(name, recording, moments, steps, reading.paths, reading.seconds(last_ms))


@dataclass(slots=True)
class _Edit:
    """Changes of one document in quick succession and near each other."""

    document: int
    before: str  # the document before the first of them
    line: int = 0  # of the last one, 0-based
    text: str = ""  # the document after it
    at_s: float = 0.0
    next_s: float | None = None  # when something changes after it, in whatever document
    done: int = 0  # changes of the document until it
    typed: int = 0  # characters

    def continues(self, document: int, line: int, at_s: float) -> bool:
        """Return whether a change belongs to the edit."""
        is_near = self.document == document and abs(line - self.line) <= NEAR_LINES
        return is_near and at_s - self.at_s <= PAUSE_S


class _Reading:
    """A recording on its way to a script."""

    def __init__(self, name: str, recording: Recording) -> None:
        self.steps: dict[int, list[DocumentChange]] = {}
        self.paths: dict[int, str] = {}
        self._name, self._events, self._texts = name, recording.events, Texts()
        self._starts_ms = recording.events[0].time_ms if recording.events else 0
        self._count = 0  # moments so far

    def seconds(self, time_ms: float) -> float:
        return (time_ms - self._starts_ms) / 1000

    def moments(self) -> Iterator[ReplayMoment]:
        """Read all events; yield a moment for each edit, once it has ended."""
        edit: _Edit | None = None
        for event in self._events:
            if not isinstance(event, Changed | SetContent | RestoreContent):
                self._texts.apply(event)
                continue
            document, at_s = event.document, self.seconds(event.time_ms)
            if edit is not None and edit.next_s is None:
                edit.next_s = at_s
            if not isinstance(event, Changed) or not event.edits:
                self._change(event)
                continue
            before = self._texts.plain(document)
            line = before.count("\n", 0, self._texts.index(document, event.edits[0].start))
            if edit is None or not edit.continues(document, line, at_s):
                if edit is not None:
                    yield self._moment(edit)
                edit = _Edit(document, before)
            step = self._change(event)
            edit.line, edit.at_s, edit.next_s = line, at_s, None
            edit.text, edit.done = self._texts.plain(document), len(self.steps[document])
            edit.typed += sum(len(each.text) for each in event.edits) if step.is_typed else 0
        if edit is not None:
            yield self._moment(edit)

    def _change(self, event: Changed | SetContent | RestoreContent) -> DocumentChange:
        """Apply a change of a document, and note it unless the document was unknown before."""
        document, texts = event.document, self._texts
        is_known = document in texts.ids or isinstance(event, Changed)
        before = texts.plain(document) if is_known else ""
        placed: tuple[PlacedEdit, ...] = ()
        source: ChangeSource = "external"
        if isinstance(event, Changed):
            source, index = event.source, partial(texts.index, document)
            placed = tuple(
                PlacedEdit(index(e.start), index(e.end), plain(e.text)) for e in event.edits
            )
        texts.apply(event)
        text, at_s = texts.plain(document), self.seconds(event.time_ms)
        self.paths[document] = texts.path(document)
        step = DocumentChange(at_s, placed, source)
        if not placed or step.apply(before) != text:  # it may part or join a line end
            step = replace(step, edits=(_difference(before, text),))
        if is_known:
            self.steps.setdefault(document, []).append(step)
        return step

    def _moment(self, edit: _Edit) -> ReplayMoment:
        asks_s = edit.at_s + ASKS_AFTER_S
        if edit.next_s is not None:  # the editor asks before anything else changes
            asks_s = min(asks_s, (edit.at_s + edit.next_s) / 2)
        path, number = self.paths[edit.document], self._count
        self._count += 1
        return ReplayMoment(
            id=f"{self._name}:{number}",
            group=f"{self._name}:{int(edit.at_s // STRETCH_S)}",
            session=self._name,
            document=edit.document,
            path=path,
            language=language_of(path) or "",
            at_s=edit.at_s,
            asks_s=asks_s,
            before=edit.before,
            text=edit.text,
            done=edit.done,
            typed=edit.typed,
        )


def _difference(before: str, after: str) -> PlacedEdit:
    head, tail = common_ends(before, after)
    return PlacedEdit(head, len(before) - tail, after[head : len(after) - tail])
