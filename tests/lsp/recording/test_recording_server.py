"""The real server records: turned on from an editor, every candidate, killed at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.learning.recording_file import read_recording
from redraft.lsp.recording.recording_events import (
    AnswerEvent,
    DecisionEvent,
    DrawnEvent,
    OutcomeEvent,
)
from redraft.lsp.recording.recordings_folder import Recordings
from support.editors.lsp import LspClient, insert_texts, lsp_client
from support.editors.recordings import changes_in, replayed


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_RECORDINGS_DIR", str(tmp_path))


def recording(client: LspClient) -> Any:
    client.initialize()
    return client.command("redraft.record", "on")["result"]


def only(folder: Path) -> Path:
    [kept] = Recordings(folder).list_recordings()
    return kept.path


def test_an_editor_can_turn_it_on_and_off(tmp_path: Path) -> None:
    with lsp_client("total") as client:
        client.initialize()
        assert client.command("redraft.record", "status")["result"]["on"] is False
        client.open("x = \n")
        told = client.command("redraft.record", "on")["result"]
        assert (told["on"], told["folder"], told["problem"]) == (True, str(tmp_path), "")
        client.insert(0, 4, "1", 2)
        assert client.command("redraft.record")["result"]["file"] == told["file"]
        assert client.command("redraft.record", "off")["result"]["on"] is False
        client.insert(0, 5, "2", 3)
        error = client.command("redraft.record", "always")["error"]
        assert error["message"] == "redraft.record takes on, off or status, got 'always'"
    assert replayed(only(tmp_path)) == {"a.py": "x = 1\n"}


def test_every_candidate_is_recorded_with_its_outcome(tmp_path: Path) -> None:
    unsure = {"text": "maybe", "confidence": 0.13}
    with lsp_client(unsure, "total") as client:
        recording(client)
        client.open("x = \n")
        assert insert_texts(client.complete(0, 4, context={"triggerKind": 2})) == []
        client.insert(0, 4, "y + ", 2)
        [item] = client.complete(0, 8)["result"]["items"]
        client.notify("textDocument/didShowCompletion", {"item": item})
        client.insert(0, 8, "total", 3)
        client.command("redraft.record", "status")
    recorded = read_recording(only(tmp_path))
    first, second = answers_in(only(tmp_path))
    assert first.shown is None
    assert first.reason == "13 % likely to be kept (medium shows from 25 %)"
    assert first.candidates[0].edit == ((0, 4), (0, 4), "maybe")
    assert first.candidates[0].show_probability == 0.13
    assert second.shown == item["command"]["arguments"][0]
    assert second.versions["model"] == "fake-1m int8"
    assert second.latency["tookMs"] > 0
    ours = (AnswerEvent, DecisionEvent, DrawnEvent, OutcomeEvent)
    about = [event for event in recorded.events if isinstance(event, ours)]
    answered, drawn = [AnswerEvent, DecisionEvent], [DrawnEvent, OutcomeEvent]
    assert [*map(type, about)] == [*answered, *answered, *drawn]
    assert isinstance(about[-1], OutcomeEvent) and about[-1].outcome == "accepted"
    assert [change.source for change in recorded.changes] == ["user", "suggestion"]
    assert replayed(only(tmp_path)) == {"a.py": "x = y + total\n"}


def test_what_is_computed_ahead_is_recorded_as_such(tmp_path: Path) -> None:
    with lsp_client({"edit": ["total", "sum_of_all"]}) as client:
        recording(client)
        client.open("total = 1\nprint(total)\n")
        client.insert(0, 0, " ", 2)
        [edit] = client.edits(0, 1, 2, context={"triggerKind": 1})
        client.await_event("asked", times=2)
        while len(answers_in(only(tmp_path))) < 2:
            client.command("redraft.record", "status")
    shown, ahead, *_ = answers_in(only(tmp_path))
    assert shown.shown == edit["command"]["arguments"][0] == ahead.after
    assert ahead.shown is None
    assert ahead.reason == "computed ahead of time"
    assert ahead.candidates[0].edit.text == "sum_of_all"


def answers_in(path: Path) -> list[AnswerEvent]:
    return [event for event in read_recording(path).events if isinstance(event, AnswerEvent)]


def test_an_acceptance_reported_late_is_told_late(tmp_path: Path) -> None:
    with lsp_client("total") as client:
        recording(client)
        client.open("x = \n")
        [item] = client.complete(0, 4)["result"]["items"]
        client.insert(0, 4, "totals", 2)  # something else had a hand in it
        client.command("redraft.accept", item["command"]["arguments"][0])
    [change] = changes_in(only(tmp_path))
    assert (change.source, change.reason) == ("suggestion", "inlineSuggestion.accept")
