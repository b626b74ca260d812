"""Suggestions that were shown in recordings, each with its answer and its outcome.

Only Redraft's recorder writes these events; a recording of another recorder shows none.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redraft.lsp.recording.events import (
    AnswerEvent,
    DecisionEvent,
    DrawnEvent,
    Encountered,
    OutcomeEvent,
    PlacedText,
    RecordedCandidate,
)

from ..sources.recordings import Recording, read_recording

#: Answers that are searched for a suggestion's; some are computed well ahead.
_REMEMBERED = 64
#: Difference of two scores of one candidate, as the gate weighs it anew each time.
_SAME = 0.05


@dataclass(slots=True)
class Shown:
    """A suggestion that a client was given."""

    session: str  # of one editor's connection; its files share it
    decision: DecisionEvent
    edit: PlacedText
    path: str  # of its document, relative to the workspace
    simulated: bool  # not of a person
    at_ms: int  # since 1970: when it was drawn, if the client reports that; else when it was given
    answer: AnswerEvent | None = None  # it comes from; None: the recording lacks it
    place: int = 0  # of the candidate in the answer
    outcome: str = ""  # "accepted", "rejected", "ignored", "replaced", "cancelled"; "": none yet
    settled_ms: int | None = None  # since 1970, of the first outcome
    is_drawn: bool = False

    @property
    def candidate(self) -> RecordedCandidate | None:
        """The candidate that was shown, or a part of it."""
        return self.answer.candidates[self.place] if self.answer else None

    @property
    def seconds(self) -> float | None:
        """Seconds from the screen to the outcome."""
        return None if self.settled_ms is None else (self.settled_ms - self.at_ms) / 1000

    def as_json(self) -> dict[str, Any]:
        """Return what ``redraft record outcomes --json`` prints."""
        decision, answer, candidate = self.decision, self.answer, self.candidate
        return {
            "session": self.session,
            "id": decision.shown,
            "at_ms": self.at_ms,
            "task": decision.task,
            "path": self.path,
            "start": self.edit.start,
            "end": self.edit.end,
            "text": self.edit.text,
            "confidence": decision.score,
            "parts": asdict(candidate.confidence) if candidate else None,
            "source": candidate.source if candidate else "",
            "threshold": answer.threshold if answer else None,
            "model": decision.model,
            "reason": decision.reason,
            "simulated": self.simulated,
            "features": answer.moment if answer else {},
            "outcome": self.outcome,
            "settled_ms": self.settled_ms,
            "seconds": self.seconds,
        }


def read_outcomes(paths: Iterable[Path]) -> Iterator[Shown]:
    """Yield the suggestions shown in some recordings, in order of time within each session.

    The outcome of one may be in a later file of its session, wherever that is in ``paths``.

    Raises:
        InvalidRequest: a file is no recording, or an entry of ours lacks a field.
    """
    sessions: dict[str, list[Recording]] = {}
    for path in paths:
        recording = read_recording(path)
        sessions.setdefault(recording.header.uuid or str(path), []).append(recording)
    for recordings in sessions.values():
        yield from shown_in(sorted(recordings, key=lambda one: one.header.time_ms)).values()


def shown_in(recordings: Iterable[Recording]) -> dict[str, Shown]:
    """Return the suggestions shown in the recordings of one session, by id, in order of time."""
    shown: dict[str, Shown] = {}
    answers: deque[AnswerEvent] = deque(maxlen=_REMEMBERED)  # the newest first
    for recording in recordings:
        paths: dict[int, str] = {}
        for event in recording.events:
            match event:
                case Encountered():
                    paths[event.document] = event.path
                case AnswerEvent():
                    answers.appendleft(event)
                case DecisionEvent() if event.shown and event.edit and event.shown not in shown:
                    path, header = paths.get(event.document, ""), recording.header
                    session, is_simulated = header.uuid or recording.path, header.simulated
                    found = shown[event.shown] = Shown(
                        session, event, event.edit, path, is_simulated, event.time_ms
                    )
                    found.answer, found.place = _origin(event, event.edit, answers)
                case DrawnEvent() if one := shown.get(event.suggestion):
                    if not one.is_drawn and one.settled_ms is None:
                        one.is_drawn, one.at_ms = True, event.time_ms
                case OutcomeEvent() if one := shown.get(event.suggestion):
                    # A later report corrects the outcome; the time stays.
                    one.outcome = event.outcome
                    if one.settled_ms is None:
                        one.settled_ms = event.time_ms
    return shown


def _origin(
    decision: DecisionEvent, edit: PlacedText, answers: Iterable[AnswerEvent]
) -> tuple[AnswerEvent | None, int]:
    """Return the answer that a suggestion comes from, and the index of its candidate.

    What is shown may be less than the candidate, which includes characters that stay.
    """
    for answer in sorted(answers, key=lambda one: one.shown != decision.shown):
        nearest = 1.0 if answer.shown == decision.shown else _SAME
        found = [
            (abs(candidate.show_probability - decision.score), at)
            for at, candidate in enumerate(answer.candidates)
            if answer.task == decision.task and _is_part(edit, candidate.edit)
        ]
        if found and min(found)[0] <= nearest:
            return answer, min(found)[1]
    return None, 0


def _is_part(edit: PlacedText, whole: PlacedText) -> bool:
    """Return whether an edit writes some of what another does, or deletes some of it."""
    if edit.text:
        return edit.text in whole.text
    return whole.start <= edit.start and edit.end <= whole.end


@dataclass(frozen=True, slots=True)
class OutcomeTally:
    """Numbers of outcomes of the suggestions for one task."""

    task: str
    shown: int
    outcomes: Mapping[str, int]  # by name; "" for those without one
    median_s: float | None  # from the screen to the outcome; None if there is none
    accepted_median_s: float | None  # the same of those accepted


def tallies(shown: Iterable[Shown]) -> list[OutcomeTally]:
    """Return one tally for each task, by name."""
    by_task: dict[str, list[Shown]] = {}
    for one in shown:
        by_task.setdefault(one.decision.task, []).append(one)
    return [
        OutcomeTally(
            task,
            len(some),
            dict(Counter(one.outcome for one in some)),
            _median_s(some),
            _median_s(one for one in some if one.outcome == "accepted"),
        )
        for task, some in sorted(by_task.items())
    ]


def _median_s(shown: Iterable[Shown]) -> float | None:
    times = [one.seconds for one in shown if one.seconds is not None]
    return round(statistics.median(times), 3) if times else None
