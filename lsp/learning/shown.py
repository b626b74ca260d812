"""Suggestions that were shown in a recording, each with its answer and its outcome.

Only Redraft's recorder writes these events; a recording of another recorder shows none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from redraft.lsp.learning.recording_file import Recording
from redraft.lsp.recording.recording_events import (
    AnswerEvent,
    DecisionEvent,
    DrawnEvent,
    OutcomeEvent,
    PlacedText,
)

#: Answers that are searched for a suggestion's; some are computed well ahead.
_REMEMBERED = 64
#: Difference of two scores of one candidate, as the gate weighs it anew each time.
_SAME = 0.05


@dataclass(slots=True)
class Shown:
    """A suggestion that a client was given."""

    at_ms: int  # since 1970: when it was drawn, if the client reports that; else when it was given
    answer: AnswerEvent | None = None  # it comes from; None: the recording lacks it
    place: int = 0  # of the candidate in the answer
    outcome: str = ""  # "accepted", "rejected", "ignored", "replaced", "cancelled"; "": none yet
    settled_ms: int | None = None  # since 1970, of the first outcome
    is_drawn: bool = False

    @property
    def seconds(self) -> float | None:
        """Seconds from the screen to the outcome."""
        return None if self.settled_ms is None else (self.settled_ms - self.at_ms) / 1000


def find_shown_text(recording: Recording) -> dict[str, Shown]:
    """Return the suggestions shown in a recording, by id, in order of time."""
    shown: dict[str, Shown] = {}
    answers: deque[AnswerEvent] = deque(maxlen=_REMEMBERED)  # the newest first
    for event in recording.events:
        match event:
            case AnswerEvent():
                answers.appendleft(event)
            case DecisionEvent() if event.shown and event.edit and event.shown not in shown:
                answer, place = _origin(event, event.edit, answers)
                shown[event.shown] = Shown(event.time_ms, answer, place)
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
