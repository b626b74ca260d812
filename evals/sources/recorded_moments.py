"""Moments of a recording, and the changes that follow each of them in its document.

A moment is the end of an edit event: changes in quick succession and near each other, after which
the user paused or went on elsewhere. Texts have the form that the session sees: line feeds alone,
``str`` indices.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from redraft.lsp.positions import index_at, without_surrogates
from redraft.lsp.recording.events import Changed, ChangeSource, Event, RestoreContent, SetContent
from redraft.model.errors import SettingsError
from redraft.model.text.common import common_ends
from redraft.model.text.syntax import language_of

from .documents import Texts
from .recordings import Recording, read_recording

SUFFIXES = (".json", ".jsonl")
#: Within this time an editor has moved the cursor after a change, and asks.
ASKS_AFTER_S = 0.02
#: Moments within so many seconds of one recording are resampled together: they are dependent.
STRETCH_S = 300.0

_CHANGES = (Changed, SetContent, RestoreContent)
_OTHER_LINE_ENDS = re.compile("\r\n|\r")


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
class EditEvent:
    """Changes of one document in quick succession and near each other."""

    document: int
    changes: tuple[Changed, ...]
    last: int  # index of the last change in the recording's events

    @property
    def ended_ms(self) -> int:
        """Time of the last change."""
        return self.changes[-1].time_ms


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

    @property
    def simulated(self) -> bool:
        """True if it was made from commits."""
        return self.recording.header.simulated

    def following(self, document: int, done: int) -> Sequence[DocumentChange]:
        """Return the changes of a document after its first ``done``."""
        return self.steps.get(document, ())[done:]


def plain(text: str) -> str:
    """Return a text as the session sees it."""
    return without_surrogates(_OTHER_LINE_ENDS.sub("\n", text) if "\r" in text else text)


def coalesce(recording: Recording, gap_s: float = 1.0, lines: int = 8) -> list[EditEvent]:
    """Return the edit events of a recording.

    Changes of a document belong together if they follow each other within ``gap_s``, and their
    first lines are at most ``lines`` apart.
    """
    found: list[EditEvent] = []
    texts, line = Texts(), 0
    for at, event in enumerate(recording.events):
        if isinstance(event, Changed) and event.edits:
            text = texts.text(event.document)
            first = text.count("\n", 0, index_at(text, event.edits[0].start))
            last = found[-1] if found else None
            if (
                last is not None
                and last.document == event.document
                and event.time_ms - last.ended_ms <= 1000 * gap_s
                and abs(first - line) <= lines
            ):
                found[-1] = EditEvent(last.document, (*last.changes, event), at)
            else:
                found.append(EditEvent(event.document, (event,), at))
            line = first
        texts.apply(event)
    return found


def script_of(recording: Recording, name: str) -> Script:
    """Return the moments of a recording, and the changes of its documents."""
    reading = _Reading(name, recording)
    moments = tuple(reading.moments())
    steps = {document: tuple(some) for document, some in reading.steps.items()}
    last_ms = recording.events[-1].time_ms if recording.events else 0
    return Script(name, recording, moments, steps, reading.paths, reading.seconds(last_ms))


class _Reading:
    """A recording on its way to a script."""

    def __init__(self, name: str, recording: Recording) -> None:
        self.steps: dict[int, list[DocumentChange]] = {}
        self.paths: dict[int, str] = {}
        self._name, self._recording, self._texts = name, recording, Texts()
        self._starts_ms = recording.events[0].time_ms if recording.events else 0
        self._raw: dict[int, str] = {}  # texts as the editor has them

    def seconds(self, time_ms: float) -> float:
        return (time_ms - self._starts_ms) / 1000

    def moments(self) -> Iterator[ReplayMoment]:
        """Read all events; yield a moment at the end of each edit."""
        events = self._recording.events
        edits = {edit.last: edit for edit in coalesce(self._recording)}
        begins = {id(edit.changes[0]): edit.last for edit in edits.values()}
        before: dict[int, str] = {}  # documents before edits, by the index of their last change
        times = [(at, each.time_ms) for at, each in enumerate(events) if isinstance(each, _CHANGES)]
        next_ms = {at: later for (at, _), (_, later) in pairwise(times)}
        for at, event in enumerate(events):
            if id(event) in begins:
                before[begins[id(event)]] = plain(
                    self._raw.get(edits[begins[id(event)]].document, "")
                )
            if isinstance(event, _CHANGES):
                self._change(event)
            else:
                self._texts.apply(event)
            if at in edits:
                number = len(before) - 1
                yield self._moment(number, edits[at], before[at], next_ms.get(at))

    def _change(self, event: Changed | SetContent | RestoreContent) -> None:
        document, texts = event.document, self._texts
        is_known = document in self._raw  # it may have been introduced anew since
        raw = self._raw.get(document, "")
        texts.apply(event)
        self._raw[document] = texts.text(document)
        self.paths[document] = texts.path(document)
        if not is_known and not isinstance(event, Changed):
            return
        before, text = plain(raw), plain(self._raw[document])
        edits: tuple[PlacedEdit, ...] = (_difference(before, text),)
        source: ChangeSource = "external"
        if isinstance(event, Changed):
            source = event.source
            placed = DocumentChange(0.0, _edits(raw, event))
            if placed.edits and placed.apply(before) == text:
                edits = placed.edits  # else the change parts or joins a line end
        step = DocumentChange(self.seconds(event.time_ms), edits, source)
        self.steps.setdefault(document, []).append(step)

    def _moment(
        self, number: int, edit: EditEvent, before: str, next_ms: int | None
    ) -> ReplayMoment:
        document, at_s = edit.document, self.seconds(edit.ended_ms)
        asks_s = at_s + ASKS_AFTER_S
        if next_ms is not None:  # the editor asks before anything else changes
            asks_s = min(asks_s, (at_s + self.seconds(next_ms)) / 2)
        path = self._texts.path(document)
        put = [each.text for change in edit.changes if change.is_typed for each in change.edits]
        return ReplayMoment(
            id=f"{self._name}:{number}",
            group=f"{self._name}:{int(at_s // STRETCH_S)}",
            session=self._name,
            document=document,
            path=path,
            language=language_of(path) or "",
            at_s=at_s,
            asks_s=asks_s,
            before=before,
            text=plain(self._texts.text(document)),
            done=len(self.steps[document]),
            typed=sum(map(len, put)),
        )


def _edits(raw: str, change: Changed) -> tuple[PlacedEdit, ...]:
    """Return the edits of a change, as the session counts."""

    def place(offset: int) -> int:
        index = index_at(raw, offset)
        return index - raw.count("\r\n", 0, index)

    return tuple(PlacedEdit(place(e.start), place(e.end), plain(e.text)) for e in change.edits)


def _difference(before: str, after: str) -> PlacedEdit:
    head, tail = common_ends(before, after)
    return PlacedEdit(head, len(before) - tail, after[head : len(after) - tail])


# --- many recordings -----------------------------------------------------------------------------


def read_scripts(paths: Iterable[Path]) -> list[Script]:
    """Return the recordings of files and folders, each with a name that no other has.

    Raises:
        SettingsError: there is none.
        InvalidRequest: a file is no recording.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise SettingsError(
            "There is no recording here. Name files or folders that hold recordings "
            f"({', '.join(SUFFIXES)}); 'redraft record list' says where yours are."
        )
    counts: dict[str, int] = {}
    scripts = []
    for file in files:
        name = file.name.partition(".")[0]
        counts[name] = counts.get(name, 0) + 1
        name = name if counts[name] == 1 else f"{name}~{counts[name]}"
        scripts.append(script_of(read_recording(file), name))
    return scripts


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    return [path]


def sample(scripts: Iterable[Script], limit: int | None, seed: int) -> set[str]:
    """Return the ids of the moments to ask at: all, or ``limit`` of them.

    They are drawn by hash, so that a smaller sample is part of a larger one.
    """
    ids = [moment.id for script in scripts for moment in script.moments]
    if limit is None or limit >= len(ids):
        return set(ids)
    return set(sorted(ids, key=lambda id_: _hash(f"{seed}:{id_}"))[:limit])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def fingerprint(scripts: Iterable[Script]) -> str:
    """Return a hash of what is played."""
    whole = hashlib.sha256()
    for script in scripts:
        for moment in script.moments:
            whole.update(f"{moment.id} {moment.at_s} {len(moment.text)} {moment.text}".encode())
    return whole.hexdigest()[:16]
