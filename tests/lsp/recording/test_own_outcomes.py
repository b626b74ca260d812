"""Outcomes of a user's candidates, read from recordings, and the commands for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Position, Range
from redraft.lsp.learning.own_samples import OwnSamples, label_shown, own_samples
from redraft.lsp.question import Answer, Question
from redraft.lsp.recording.own_gate import EVERY, OUTDATED, OwnGate, fit_in_background
from redraft.lsp.recording.recordings_folder import Recordings
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.suggestions.outcomes import Outcome, SuggestionEnded
from redraft.lsp.suggestions.suggestion import Offer, Suggestion
from redraft.model.gate.gate import Gate, Head, load_shipped, write_gate
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction
from support.command import without_laboratory
from support.editors.workbench import URI, Workbench, change
from support.models.gates import PLAIN
from typer.testing import CliRunner

TEXT = "def area(r):\n    return \n"
AT = TEXT.index("return ") + len("return ")
CIRCLE = "3.14 * r * r"


@pytest.mark.parametrize(
    ("outcome", "seconds", "kept", "typed", "expected"),
    [
        ("accepted", 1.0, 1.0, False, (True, 1.0)),
        ("accepted", 1.0, 0.5, False, (True, 1.0)),
        ("accepted", 1.0, 0.3, False, (True, 0.3)),  # partly
        ("accepted", 1.0, 0.0, False, (False, 1.0)),  # undone
        ("accepted", 1.0, 1.0, True, (True, 0.7)),
        ("accepted", 1.0, None, False, None),  # another hand wrote there
        ("rejected", 1.0, None, False, (False, 1.0)),
        ("rejected", 0.2, None, False, None),
        ("ignored", 0.8, None, False, (False, 0.4)),
        ("ignored", 0.5, None, False, None),
        ("ignored", -3_600.0, None, False, None),  # the clock went back
        ("rejected", 86_400.0, None, False, None),  # or jumped, or the lid was closed
        ("rejected", None, None, False, None),
        ("replaced", 5.0, None, False, None),
        ("cancelled", 5.0, None, False, None),
        ("", None, None, False, None),
    ],
)
def test_labels_of_what_was_shown(
    outcome: str, seconds: float | None, kept: float | None, typed: bool, expected: object
) -> None:
    assert label_shown(outcome, seconds, kept, typed) == expected


class Work(Workbench):
    """A user who gets ghost text in a file, and whose outcomes are recorded."""

    def suggest(
        self, *texts: str, sure: float = 0.9, id_: str = "redraft-1", shown: int = 0
    ) -> Suggestion:
        """Answer with ``texts`` and show the one at ``shown`` where it is sure enough."""
        document = self.documents.get(URI)
        assert document is not None
        text = document.text
        request = EditRequest("infill", "a.py", text, AT)
        asked = Question(self.session.at(URI, AT, RequestFlags()), request, number=1)
        confidence = Confidence(sure, sure, sure)
        candidates = tuple(
            Candidate(AT, AT, each, confidence, 4, 1, "end", features={f"is {each}": 1.0})
            for each in texts
        )
        made = Suggestion(id_, URI, "infill", text, AT, AT, AT, texts[shown], sure, "fake fp32")
        show = sure >= self.session.workspace.settings.threshold_in("python", "infill")
        decision = Offer(made, texts[shown], "") if show else Abstain("below_threshold", "")
        self.recorder.on_question(asked)
        self.clock.now += 0.1
        prediction = Prediction("1", "fake fp32", candidates, weights="w1")
        self.recorder.on_answer(Answer(asked, prediction, 90.0), decision)
        self.recorder.on_decision(URI, decision)
        return made

    def settle(self, made: Suggestion, outcome: Outcome, after_ms: int = 1_000) -> None:
        self.clock.now += after_ms / 1000
        self.recorder.on_end(SuggestionEnded(made, outcome))

    def rest(self) -> OwnSamples:
        """Long enough for all to be at rest; what the recordings tell then."""
        self.clock.now += 60
        self.open("end", "project/end.py")
        return own_samples(self.files())


@pytest.fixture
def work(tmp_path: Path) -> Work:
    scene = Work(None, tmp_path / "recordings")
    scene.open(TEXT)
    return scene


def told(own: OwnSamples) -> list[tuple[str, bool, float]]:
    """Return the text of each sample, which a feature names, whether it was kept, its weight."""
    return [
        (name.removeprefix("is "), each.kept, each.weight)
        for each in own.samples["infill"]
        for name in each.features
        if name.startswith("is ")
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_what_stays_until_rest_is_right(work: Work, kept: bool) -> None:
    work.settle(work.suggest("r * r"), "accepted")
    work.change(change("r * r", 1, 11), accepted=True)
    if not kept:
        for at in range(16, 11, -1):
            work.change(ContentChange("", Range(Position(1, at - 1), Position(1, at))))
        work.type_at(1, 11, "None")
    own = work.rest()
    assert told(own) == [("r * r", kept, 1.0)]
    assert (own.shown, own.hidden, own.weights) == (1, 0, "fake fp32 w1")


def test_the_outcome_is_of_the_shown_candidate(work: Work) -> None:
    made = work.suggest("(r", "r * r", shown=1)  # a filter refused the first: it breaks the syntax
    work.settle(made, "accepted")
    work.change(change("r * r", 1, 11), accepted=True)
    own = work.rest()
    assert ("r * r", True, 1.0) in told(own)
    assert not any(text == "(r" and weight == 1.0 for text, _, weight in told(own))
    assert own.shown == 1


@pytest.mark.parametrize(("text", "kept", "weight"), [(CIRCLE, True, 0.3), ("0", False, 0.1)])
def test_what_was_hidden_is_labelled_too(work: Work, text: str, kept: bool, weight: float) -> None:
    work.suggest(text, sure=0.1)
    work.type_at(1, 11, CIRCLE)
    assert told(work.rest()) == [(text, kept, weight)]


def test_what_another_hand_writes_says_nothing(work: Work) -> None:
    words = ("red", "orange", "yellow", "green", "blue", "one", "two", "three", "four") * 2
    lines = "\n".join(["(", *(f"        {word} +" for word in words), "        r", "    )"])
    work.suggest(lines, sure=0.1)
    work.recorder.on_focus("")  # an agent, while the editor is left
    work.change(change(lines, 1, 11))
    own = work.rest()
    assert told(own) == []
    assert own.unlabelled == 1


def test_outcomes_of_other_weights_are_left_out(work: Work) -> None:
    made = work.suggest("r * r")
    work.settle(made, "rejected")
    own = work.rest()
    assert told(own) == [("r * r", False, 1.0)]
    other = own_samples(work.files(), weights="another model")
    assert (other.count, other.other_model) == (0, 1)


@pytest.mark.parametrize("jump_ms", [-900, 86_400_000])
def test_a_jumping_clock_teaches_no_reading_time(work: Work, jump_ms: int) -> None:
    work.settle(work.suggest("2 * r"), "rejected")
    work.settle(work.suggest("3 * r", id_="redraft-2"), "ignored", after_ms=jump_ms)
    own = work.rest()
    assert told(own) == [("2 * r", False, 1.0)]
    assert own.unlabelled == 1


def test_an_edit_that_takes_back_is_no_candidate(tmp_path: Path) -> None:
    work = Work(None, tmp_path / "recordings")
    work.open(TEXT.replace("return ", "return total"))
    work.change(ContentChange("", Range(Position(1, 11), Position(1, 16))))
    work.suggest("total", CIRCLE, sure=0.1)  # a filter refuses the first: it was just deleted
    work.type_at(1, 11, CIRCLE)
    own = work.rest()
    assert told(own) == [(CIRCLE, True, 0.3)]
    assert own.hidden == 1


def run(*arguments: str) -> str:
    from redraft.server.commands.main import app

    result = CliRunner().invoke(app, ["gate", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture
def at_home(work: Work, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Use the recordings of this user."""
    monkeypatch.setenv("REDRAFT_RECORDINGS_DIR", str(work.recordings.folder))
    return work


def test_no_recordings_nothing_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_RECORDINGS_DIR", str(tmp_path))
    assert "Nothing to learn from yet" in run("fit")
    assert "In use: plain Your own gate: none yet." in run("status")
    assert "no gate of your own" in run("reset")
    assert list(tmp_path.iterdir()) == []


def test_with_few_outcomes_the_shipped_gate_stays(at_home: Work) -> None:
    at_home.settle(at_home.suggest("r * r"), "rejected")
    at_home.rest()
    assert "yours, 1 outcomes" in run("fit")
    assert "In use: plain" in run("status")
    card = json.loads(run("status", "--json"))["own"]
    assert (card["taken"], card["outcomes"], card["weights"]) == (False, 1, "fake fp32 w1")
    assert at_home.recordings.others() == []
    assert "Deleted gate.json" in run("reset")
    assert not at_home.recordings.learned.exists()


@pytest.mark.usefixtures("spawn")
def test_a_fit_needs_no_laboratory(at_home: Work, tmp_path: Path) -> None:
    at_home.settle(at_home.suggest("r * r"), "rejected")
    at_home.rest()
    done = without_laboratory(tmp_path, "gate", "fit")
    assert "yours, 1 outcomes" in done.stdout, done.stderr
    written = at_home.recordings.learned.read_bytes()
    at_home.recordings.learned.unlink()
    assert fit_in_background("medium").wait(60) == 0
    assert at_home.recordings.learned.read_bytes() == written


def test_garbage_and_other_weights_are_reported(at_home: Work) -> None:
    at_home.settle(at_home.suggest("r * r"), "rejected")
    at_home.rest()
    [path] = at_home.files()
    line = next(each for each in path.read_text().split("\n") if "Redraft.answer" in each)
    strange = line.replace('"weights":"w1"', '"weights":"w0"')
    broken = line.replace('"candidates":[', '"candidates":[7,')
    assert strange != line != broken
    session = "ab" * 16
    header = path.read_text().split("\n")[0]
    uuid = json.loads(header)["uuid"]
    torn = path.with_name(f"20200101-000000-{session[:8]}-1.jsonl")
    torn.write_text(path.read_text().replace(uuid, session).replace(line, broken))
    path.write_text(path.read_text().replace(line, f"{strange}\n{line}"))
    for told in (run("fit"), run("status")):
        assert "1 answers of other weights are left out" in told
        assert f"cannot be read: {torn.name}" in told
        assert "yours, 1 outcomes" in told
        assert "the shipped one is in use" in told


def test_deleting_recordings_deletes_what_was_learned(at_home: Work) -> None:
    from redraft.server.commands.main import app

    at_home.settle(at_home.suggest("r * r"), "rejected")
    at_home.rest()
    run("fit")
    at_home.recorder.stop()
    result = CliRunner().invoke(app, ["record", "delete", "--all", "--yes"])
    assert "What was learned from them is deleted too" in " ".join(result.output.split())
    assert not at_home.recordings.learned.exists()


class Fit:
    """A process that fits a gate, as its caller sees it."""

    begun = 0

    def __call__(self, eagerness: str) -> Any:
        self.begun += 1
        return self

    def poll(self) -> int:
        return 0


def test_it_is_fitted_after_enough_recorded_outcomes(tmp_path: Path) -> None:
    recordings, fit, allowed = Recordings(tmp_path), Fit(), [True]
    learning = OwnGate(recordings, lambda: allowed[0], lambda: 0.0, fit)
    for _ in range(EVERY):
        learning.count("accepted")
    assert fit.begun == 0  # nothing is recorded
    recordings.turn_on()
    for outcome in ("accepted", "ignored", "cancelled", "replaced"):
        for _ in range(EVERY // 2):
            learning.count(outcome)  # type: ignore[arg-type]
    assert fit.begun == 1
    allowed[0] = False
    for _ in range(2 * EVERY):
        learning.count("rejected")
    assert fit.begun == 1


def test_a_gate_of_other_features_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_RECORDINGS_DIR", str(tmp_path))
    recordings, fit = Recordings(tmp_path), Fit()
    other = Head(("minimum",), (0.0,), (1.0,), (0.0, 1.0), (0.0, 1.0), (0.01, 0.01))
    own = Gate("yours, 300 outcomes", {"infill": other, "next_edit": other})
    write_gate(recordings.learned, own, {"taken": True})
    learning = OwnGate(recordings, lambda: True, lambda: 0.0, fit)
    assert learning.gate() is load_shipped()
    assert learning.summary == OUTDATED
    assert fit.begun == 1
    assert "In use: plain" in run("status") and "fitted again" in run("status")


def test_the_own_gate_is_used_where_better_and_allowed(tmp_path: Path) -> None:
    recordings, allowed, now = Recordings(tmp_path), [True], [0.0]
    learning = OwnGate(recordings, lambda: allowed[0], lambda: now[0], Fit())
    own = Gate("yours, 300 outcomes", PLAIN.heads)

    def after(**card: object) -> Gate:
        now[0] += 10
        write_gate(recordings.learned, own, card)
        return learning.gate()

    assert learning.gate() is load_shipped()
    assert after(taken=False, told="yours, 300 outcomes: 0.21 < 0.27") is load_shipped()
    assert "0.21 < 0.27" in learning.summary
    assert after(taken=True, weights="fake fp32 w1", n=1).name == own.name
    learning.on_answer(Prediction("1", "fake fp32", weights="w2"))
    assert learning.gate() is load_shipped()  # it was fitted on other weights
    learning.on_answer(Prediction("1", "fake fp32", weights="w1"))
    assert learning.gate().name == own.name
    allowed[0] = False
    assert learning.gate() is load_shipped()
    allowed[0] = True
    recordings.learned.write_text('{"heads": {"infill": "\\u0000"}, "card": {}, "format": 1}')
    now[0] += 10
    assert learning.gate() is load_shipped()
    assert "cannot be read" in learning.summary
