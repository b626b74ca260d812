"""Suggestions and what became of them, read from recordings as the recorder writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from redraft.lsp.learning.recording_file import read_recording
from redraft.lsp.learning.shown import Shown, find_shown_text
from redraft.lsp.question import Answer, Question
from redraft.lsp.recording.answer_events import answer_event, decision_event
from redraft.lsp.recording.recorder import PREFETCHED
from redraft.lsp.recording.recording_events import (
    AnswerEvent,
    DrawnEvent,
    Encountered,
    Event,
    Header,
    Note,
    OutcomeEvent,
    encode_all,
)
from redraft.lsp.suggestions.outcomes import Outcome
from redraft.lsp.suggestions.suggestion import Offer, Suggestion
from redraft.model.errors import InvalidRequest
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction, Task
from support.editors.shop import memory, question

TEXT = "def area(r):\n    return\n"
AT = len(TEXT) - 1
URI = "file:///w/src/a.py"
PARTS = Confidence(0.91, 0.5, 0.8, total=-0.4, place=-0.1, nothing=-3.0)


class Session:
    """A recorded connection of one editor."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.lines: list[Header | Event] = [
            Header(self.now_ms, "u1", "file:///w", "redraft test"),
            Encountered(self.now_ms, 3, "src/a.py"),
        ]

    def answer(self, asked: Question, made: Prediction, decided: Offer | Abstain) -> None:
        self.now_ms += 100
        at = self.now_ms, 3
        self.lines.append(answer_event(at, Answer(asked, made, 90.0), decided, memory()))

    def decide(self, decision: Offer | Abstain) -> None:
        self.now_ms += 100
        self.lines.append(decision_event(self.now_ms, 3, decision))

    def draw(self, id_: str, after_ms: int) -> None:
        self.now_ms += after_ms
        self.lines.append(DrawnEvent(self.now_ms, id_))

    def suggest(
        self, id_: str, text: str = " r * r", task: Task = "infill", ahead: bool = False
    ) -> None:
        """Asked, answered with two candidates, and the first of them shown."""
        asked = question(URI, TEXT, EditRequest(task, "src/a.py", TEXT, AT))
        made = Candidate(AT, AT, f"{text}\n", PARTS, 5, 2, "end", source="both")
        other = Candidate(AT, AT, " pi", Confidence(0.2, 0.1, 0.1), 3, 1, "end")
        prediction = Prediction("fake fp32", "w", (made, other))
        suggestion = Suggestion(id_, URI, task, TEXT, AT, AT, AT, text, 0.91, "fake fp32")
        show = Offer(suggestion, text, "from the model")
        decided = PREFETCHED if ahead else show
        self.answer(asked, prediction, decided)
        self.decide(show)

    def settle(
        self, id_: str, outcome: Outcome, after_ms: int = 100, task: Task = "infill"
    ) -> None:
        self.now_ms += after_ms
        self.lines.append(OutcomeEvent(self.now_ms, 3, id_, task, outcome))


def written(tmp_path: Path, lines: Sequence[Header | Event]) -> Path:
    path = tmp_path / "recording.jsonl"
    path.write_bytes(encode_all(lines))
    return path


def read(tmp_path: Path, lines: Sequence[Header | Event]) -> list[Shown]:
    return list(find_shown_text(read_recording(written(tmp_path, lines))).values())


def test_a_suggestion_comes_with_its_outcome(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1")
    session.settle("redraft-1", "accepted", after_ms=1_500)
    session.decide(Abstain("below_threshold", "below threshold"))
    session.settle("redraft-7", "cancelled")  # it was never shown
    [shown] = read(tmp_path, session.lines)
    assert shown.answer is not None
    candidate = shown.answer.candidates[shown.place]
    assert (candidate.source, candidate.confidence) == ("both", PARTS)
    assert (shown.at_ms, shown.outcome, shown.seconds) == (1_200, "accepted", 1.5)


def test_time_counts_from_when_it_was_drawn(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1")
    session.draw("redraft-1", 700)
    session.draw("redraft-1", 200)  # the window was redrawn
    session.settle("redraft-1", "rejected", after_ms=100)
    [shown] = read(tmp_path, session.lines)
    assert shown.seconds == 0.3


def test_what_is_shown_again_counts_once(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1")
    session.suggest("redraft-1", "* r")  # typed as far as that
    [shown] = read(tmp_path, session.lines)
    assert shown.at_ms == 1_200


def test_a_later_report_corrects_outcome_not_time(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1")
    session.settle("redraft-1", "ignored", after_ms=500)
    session.settle("redraft-1", "accepted", after_ms=9_000)
    [shown] = read(tmp_path, session.lines)
    assert (shown.outcome, shown.seconds) == ("accepted", 0.5)


def test_what_was_computed_ahead_finds_its_answer(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1", task="next_edit", ahead=True)
    [shown] = read(tmp_path, session.lines)
    assert shown.answer is not None
    assert shown.answer.candidates[shown.place].confidence == PARTS
    assert (shown.outcome, shown.seconds) == ("", None)


def test_a_deletion_is_of_its_replacing_candidate(tmp_path: Path) -> None:
    session = Session()
    asked = question(URI, TEXT, EditRequest("next_edit", "src/a.py", TEXT, AT))
    elsewhere = Candidate(4, 8, "size", Confidence(0.91, 0.1, 0.1), 3, 1, "end")
    deletes = Candidate(AT - 7, AT, "", PARTS, 5, 2, "end")
    prediction = Prediction("fake fp32", "w", (elsewhere, deletes))
    start, end = AT - 7, AT
    gone = Suggestion("redraft-1", URI, "next_edit", TEXT, AT, start, end, "", 0.91, "fake")
    show = Offer(gone, "", "from the model")
    session.answer(asked, prediction, show)
    session.decide(show)
    [shown] = read(tmp_path, session.lines)
    assert shown.answer is not None
    assert shown.answer.candidates[shown.place].confidence == PARTS


def test_without_its_answer_the_outcome_is_known(tmp_path: Path) -> None:
    session = Session()
    session.suggest("redraft-1")
    session.settle("redraft-1", "ignored")
    lines = [event for event in session.lines if not isinstance(event, AnswerEvent)]
    [shown] = read(tmp_path, lines)
    assert (shown.answer, shown.outcome) == (None, "ignored")


def test_an_event_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    session = Session()
    data = {"sourceId": "Redraft.decision", "shown": "redraft-1", "edit": []}
    session.lines.append(Note(1_100, "documentEvent", 3, data))
    with pytest.raises(InvalidRequest, match=r"Redraft\.decision at 1100 ms"):
        read(tmp_path, session.lines)


@pytest.mark.parametrize("depth", [70, 500, 100_000])
@pytest.mark.parametrize("first", [True, False])
def test_what_is_nested_without_end_is_refused(tmp_path: Path, depth: int, first: bool) -> None:
    session = Session()
    session.suggest("redraft-1")
    path = written(tmp_path, session.lines)
    lines = path.read_bytes().splitlines(keepends=True)
    nested = b'{"kind":"event","time":1,"data":%b1%b}\n' % (b'{"a":[' * depth, b"]}" * depth)
    lines.insert(0 if first else 3, nested)
    path.write_bytes(b"".join(lines))
    with pytest.raises(InvalidRequest, match="nested more than 64"):
        read_recording(path)
    path.write_bytes(b'{"log": [%b]}' % nested)
    with pytest.raises(InvalidRequest):
        read_recording(path)
