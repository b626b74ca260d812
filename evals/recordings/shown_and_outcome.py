"""What was shown to people and what they made of it, out of recordings.

One :class:`Shown` for each suggestion that a client was given: what, how sure the model was and in
what respects, and what became of it. A gate learns from these. Reads our own events of a recording
(``Redraft.…``, see :mod:`redraft.lsp.recording.format`); other recorders tell nothing of the kind.
Pure but for reading files; knows nothing of replays, which only suppose what people would do.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from redraft.lsp.recording.format import ANSWER, DECISION, DRAWN, OUTCOME
from redraft.model.errors import InvalidRequest
from redraft.model.records import Confidence

from .format import Encountered, Note, Stream
from .parser import parse

LineAndColumn = tuple[int, int]  # 0-based line, character in UTF-16 code units

#: Answers among which the one of a suggestion is looked for; some are computed well ahead.
_REMEMBERED = 64
#: How far apart two words of the gate on one candidate may be.
_SAME = 0.05


@dataclass(frozen=True, slots=True)
class Shown:
    """A suggestion that a client was given."""

    session: str  # of one editor's connection; its files share it
    id: str  # within the session
    at_ms: int  # since 1970: when it was drawn, as far as the client told; else when it was given
    task: str  # "infill" or "next_edit"
    path: str  # of its document, relative to the workspace
    start: LineAndColumn  # of what it replaces
    end: LineAndColumn
    text: str
    confidence: float  # held against the threshold, 0 … 1
    parts: Confidence | None  # what that was made of; None: the recording lacks the answer
    source: str  # "model", "repeat" or "both"; "" where the recording lacks the answer
    threshold: float | None
    model: str
    reason: str  # why it was shown, for people
    simulated: bool  # nobody sat there
    features: Mapping[str, Any] = field(default_factory=dict)  # of the moment, as recorded
    outcome: str = ""  # "accepted", "rejected", "ignored", "replaced", "cancelled"; "": not told
    settled_ms: int | None = None  # since 1970

    @property
    def seconds(self) -> float | None:
        """From the screen to the outcome."""
        return None if self.settled_ms is None else (self.settled_ms - self.at_ms) / 1000


def read_outcomes(paths: Iterable[Path]) -> Iterator[Shown]:
    """The suggestions that were shown in some recordings, in order of time within each session.
    What became of one may stand in a later file of its session, wherever that is in ``paths``.

    Raises:
        InvalidRequest: a file is no recording, or an entry of ours lacks what it needs.
    """
    sessions: dict[str, list[Stream]] = {}
    for path in paths:
        stream = parse(path)
        sessions.setdefault(stream.header.uuid or str(path), []).append(stream)
    for session, streams in sessions.items():
        reading = _Session(session)
        for stream in sorted(streams, key=lambda one: one.header.time_ms):
            reading.read(stream)
        yield from reading.shown.values()


@dataclass(frozen=True, slots=True)
class OutcomeTally:
    """What became of the suggestions for one task."""

    task: str
    shown: int
    outcomes: Mapping[str, int]  # by name; "" for those of which nothing is told
    median_s: float | None  # from the screen to the outcome; None where there is none
    accepted_median_s: float | None  # the same of those accepted


def tallies(shown: Iterable[Shown]) -> list[OutcomeTally]:
    """One for each task, by name."""
    by_task: dict[str, list[Shown]] = {}
    for one in shown:
        by_task.setdefault(one.task, []).append(one)
    return [_tally(task, by_task[task]) for task in sorted(by_task)]


def _tally(task: str, shown: list[Shown]) -> OutcomeTally:
    accepted = [one for one in shown if one.outcome == "accepted"]
    counts = Counter(one.outcome for one in shown)
    return OutcomeTally(task, len(shown), dict(counts), _median(shown), _median(accepted))


def _median(shown: Iterable[Shown]) -> float | None:
    times = [one.seconds for one in shown if one.seconds is not None]
    return round(statistics.median(times), 3) if times else None


# --- reading -------------------------------------------------------------------------------------


class _Session:
    """The files of one editor's connection, in order."""

    def __init__(self, session: str) -> None:
        self.shown: dict[str, Shown] = {}  # by id, in order of time
        self._session = session
        self._answers: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self._drawn: set[str] = set()

    def read(self, stream: Stream) -> None:
        paths: dict[int, str] = {}
        for event in stream.events:
            if isinstance(event, Encountered):
                paths[event.document] = event.path
            elif isinstance(event, Note):
                try:
                    self._note(event, paths, stream.header.simulated)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise InvalidRequest(
                        f"{stream.path}: the event {event.source_id} at {event.time_ms} ms cannot "
                        f"be used: {type(error).__name__} {error}"
                    ) from error

    def _note(self, note: Note, paths: Mapping[int, str], simulated: bool) -> None:
        data = note.data
        if note.source_id == ANSWER:
            self._answers.appendleft(data)
        elif note.source_id == DECISION and data["shown"] and data["shown"] not in self.shown:
            path = paths.get(note.document, "") if note.document is not None else ""
            made = _shown(data, self._answers)
            made = replace(made, session=self._session, at_ms=note.time_ms, path=path)
            self.shown[made.id] = replace(made, simulated=simulated)
        elif note.source_id == DRAWN and (one := self.shown.get(data["suggestion"])) is not None:
            if one.id not in self._drawn and one.settled_ms is None:
                self._drawn.add(one.id)
                self.shown[one.id] = replace(one, at_ms=note.time_ms)
        elif note.source_id == OUTCOME and (one := self.shown.get(data["suggestion"])) is not None:
            # A later word on it corrects the first; what it took people stays as it was.
            at_ms = note.time_ms if one.settled_ms is None else one.settled_ms
            self.shown[one.id] = replace(one, outcome=str(data["outcome"]), settled_ms=at_ms)


def _shown(data: Mapping[str, Any], answers: Iterable[Mapping[str, Any]]) -> Shown:
    """A suggestion as it was decided on; the caller knows when and where."""
    (first, last, text), confidence = data["edit"], float(data["confidence"])
    answer, at = candidate_of(data, answers)
    candidate = answer["candidates"][at] if answer else None
    return Shown(
        session="",
        id=str(data["shown"]),
        at_ms=0,
        task=str(data["task"]),
        path="",
        start=_place(first),
        end=_place(last),
        text=str(text),
        confidence=confidence,
        parts=confidence_of(candidate["confidence"]) if candidate else None,
        source=str(candidate["source"]) if candidate else "",
        threshold=answer.get("threshold") if answer else None,
        model=str(data["model"]),
        reason=str(data["reason"]),
        simulated=False,
        features=answer.get("features", {}) if answer else {},
    )


def candidate_of(
    data: Mapping[str, Any], answers: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any] | None, int]:
    """Return the answer that a decision to show came from, and the index of its candidate.

    What is shown may be less than the candidate, which also tells of characters that stay.
    """
    told, sure = data["shown"], float(data["confidence"])
    for answer in sorted(answers, key=lambda one: one["shown"] != told):
        near = 1.0 if answer["shown"] == told else _SAME  # the gate weighs anew each time
        found = [
            (abs(candidate["showProbability"] - sure), at)
            for at, candidate in enumerate(answer["candidates"])
            if answer["task"] == data["task"] and _is_part(data["edit"], candidate["edit"])
        ]
        if found and min(found)[0] <= near:
            return answer, min(found)[1]
    return None, 0


def _is_part(edit: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Does an edit write some of what another does, or delete some of it?"""
    if edit[2]:
        return edit[2] in whole[2]
    return _place(whole[0]) <= _place(edit[0]) and _place(edit[1]) <= _place(whole[1])


def confidence_of(recorded: Mapping[str, Any]) -> Confidence:
    """Return the recorded confidence, without parts that this version does not know."""
    known = {each.name for each in fields(Confidence)}
    parts = {name: value for name, value in recorded.items() if name in known}
    lists = {name: tuple(parts.get(name, ())) for name in ("logs", "lines")}
    return Confidence(**parts | lists)


def _place(pair: Iterable[int]) -> LineAndColumn:
    line, character = pair
    return int(line), int(character)
