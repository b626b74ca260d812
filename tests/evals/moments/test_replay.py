"""Recordings played through the language server: when it is asked, what it shows, its worth."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from redraft.evals.example import Example, Row
from redraft.evals.gate.curves import moments_of
from redraft.evals.gate.samples import label_candidates
from redraft.evals.predictors import ReadyPredictor
from redraft.evals.replay.player import play
from redraft.evals.replay.replay_runs import Job, examples_of
from redraft.evals.replay.simulated_predictor import ReplayPredictor
from redraft.evals.run import Run
from redraft.evals.spec import RunSpec
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.learning.recorded_moments import Script
from redraft.model.errors import EngineGone
from redraft.model.records import EditRequest, Prediction
from support.editors.predictor import READY, infill, rewrite
from support.editors.typist import Typist

Ask = Callable[[EditRequest], Prediction]

TEXT = "def area(width, height):\n    \n"
AT = TEXT.index("\n") + 5
WANTED = "return width * height"


def says(*texts: str, confidence: float = 0.95) -> Ask:
    """Ghost text, and no next edit."""

    def ask(request: EditRequest) -> Prediction:
        return infill(request, *(texts if request.task == "infill" else ()), confidence=confidence)

    return ask


def lines(
    script: Script, ask: Ask, latency_ms: float | None = 100.0, **settings: object
) -> list[Row]:
    job = Job(script, frozenset(moment.id for moment in script.moments))
    spec = RunSpec("replay", latency_ms=latency_ms, **settings)  # type: ignore[arg-type]
    found = examples_of(job, spec, ReadyPredictor(ask, READY, lambda: None))
    return [each.row() for each in found]


def begun() -> Typist:
    """Open the file and type "ret"."""
    typist = Typist()
    typist.opens(TEXT)
    typist.pauses(1)
    typist.types("ret", AT)
    return typist


def a_function(rest: str = WANTED[3:], pause_s: float = 3.0) -> Typist:
    """Types "ret", thinks, and writes the rest."""
    typist = begun()
    typist.pauses(pause_s)
    typist.types(rest, AT + 3)
    typist.leaves()
    return typist


def test_replay_requests_contain_no_later_text() -> None:
    requests: list[EditRequest] = []

    def ask(request: EditRequest) -> Prediction:
        requests.append(request)
        return infill(request)

    script = a_function().script()
    chosen = {moment.id for moment in script.moments}
    outcomes = list(play(script, chosen, ReplayPredictor(ask, READY, 50.0), LspSettings()))
    assert [outcome.moment.text for outcome in outcomes] == [
        TEXT.replace("    \n", "    ret\n"),
        TEXT.replace("    \n", f"    {WANTED}\n"),
    ]
    first = [request for request in requests if "ret\n" in request.text]
    assert [request.task for request in first] == ["infill", "next_edit"]
    assert all(request.cursor == AT + 3 for request in first)
    assert not any("width *" in str(request) for request in first)


def test_the_sessions_own_rules_hold() -> None:
    typist = Typist()
    typist.opens(TEXT)
    typist.puts("x = 1\n" * 50, 0, source="paste")
    typist.leaves()
    (line,) = lines(typist.script(), says("return 1"))
    assert not line["shown"]
    assert line["requests"] == 0
    assert "large change" in line["reason"]


def test_a_suggestion_typed_later_counts_as_accepted() -> None:
    first, last = lines(a_function().script(), says(WANTED[3:]))
    assert first["shown"] and first["accepted"] is True
    assert first["task"] == "infill"
    assert first["kept_chars"] == first["suggested_chars"] == first["done_chars"]
    assert first["delta_chrf"] == 100.0
    assert first["saved"] == len(WANTED[3:]) - 1
    assert first["utility"] == 0.75
    assert first["left"] is True and first["shown_left"] is True
    assert last["left"] is False


def test_what_the_user_never_types_would_not_have_been() -> None:
    first, _ = lines(a_function().script(), says("urn None"))
    assert first["shown"] and first["accepted"] is False
    assert first["utility"] == -0.25
    assert first["saved"] == 0


def test_silence_is_right_where_nothing_is_left() -> None:
    loud = lines(a_function().script(), says(WANTED[3:], "  # done"))
    silent = lines(a_function().script(), says())
    assert silent[-1]["quiet"] is True
    assert loud[-1]["quiet"] is not None


def test_an_unsure_candidate_is_labelled_but_not_shown() -> None:
    first, _ = lines(a_function().script(), says(WANTED[3:], confidence=0.13))
    assert not first["shown"] and first["accepted"] is None
    assert "13 % likely to be kept" in first["reason"]
    ghost_text = Example.from_json(first["asked"][0])
    (candidate,) = label_candidates(ghost_text)
    assert candidate.right and not candidate.barred


def test_a_candidate_that_a_filter_refuses_is_barred() -> None:
    first, _ = lines(a_function().script(), says("return\x07"), eagerness="high")
    assert not first["shown"]
    (candidate,) = label_candidates(Example.from_json(first["asked"][0]))
    assert candidate.barred


@pytest.mark.parametrize(
    ("text", "pasted", "right"),
    [
        (WANTED[3:], False, [True]),
        ("urn width * ", False, [True]),  # ten characters of it agree
        ("urn 0", False, [False]),
        (WANTED[3:], True, []),  # it is unknown whether the user would have written it
    ],
)
def test_labels_say_what_the_user_typed_next(text: str, pasted: bool, right: list[bool]) -> None:
    typist = begun()
    typist.pauses(3)
    if pasted:
        typist.puts(WANTED[3:], AT + 3, source="paste")
    else:
        typist.types(WANTED[3:], AT + 3)
    typist.leaves()
    script = typist.script()
    job = Job(script, frozenset(moment.id for moment in script.moments))
    ready = ReadyPredictor(says(text), READY, lambda: None)
    run = Run(RunSpec("replay", latency_ms=100.0))
    for example in examples_of(job, run.spec, ready):
        run.add(example)
    moments = {each.example.id: each for each in moments_of([run])}
    assert len(moments) == 2 * len(script.moments)
    first = moments["made-up:0:infill"]
    assert (first.example.group, first.example.moment.cursor) == ("made-up:0", AT + 3)
    assert [each.right for each in first.candidates] == right
    assert all((c.source, c.block) == ("made-up", "made-up:0") for c in first.candidates)
    assert moments["made-up:1:infill"].is_done and first.is_done is False


def test_a_next_edit_is_judged_where_it_is() -> None:
    typist = Typist()
    typist.opens("def f(a):\n    pass\n\n\nf(1)\nf(2)\n")
    typist.pauses(1)
    typist.types(", b", 8)
    typist.pauses(4)
    at = typist.texts[0].index("f(1)") + 3
    typist.types(", 0", at)
    typist.leaves()

    def ask(request: EditRequest) -> Prediction:
        if request.task == "infill":
            return infill(request)
        return rewrite(request, "f(1)", "f(1, 0)", confidence=0.99)

    first, *_ = lines(typist.script(), ask)
    assert first["task"] == "next_edit"
    assert (first["was"], first["suggested"]) == ("", ", 0")
    assert first["accepted"] is True
    assert first["saved"] == len(", 0") - 2  # Tab goes there first


def test_what_somebody_else_wrote_is_no_acceptance() -> None:
    typist = begun()
    typist.pauses(3)
    typist.puts(WANTED[3:], AT + 3, source="suggestion")
    typist.leaves()
    first, *_ = lines(typist.script(), says(WANTED[3:]))
    assert first["shown"]
    assert first["accepted"] is None and first["utility"] is None
    assert first["told"] is False
    assert first["reached"] is True


def test_an_answer_that_comes_too_late_is_not_shown() -> None:
    script = a_function("x = 1", pause_s=1.5).script()
    first, _ = lines(script, says(WANTED[3:]), latency_ms=1_600.0)
    assert not first["shown"]
    assert "text changed" in first["reason"]


def test_typing_during_a_request_shrinks_the_answer() -> None:
    script = a_function(pause_s=1.5).script()
    first, *_ = lines(script, says(WANTED[3:]), latency_ms=1_600.0)
    assert first["shown"] and first["late"]
    assert WANTED.endswith(first["suggested"])
    assert 0 < len(first["suggested"]) < len(WANTED[3:])
    assert first["accepted"] is True


def test_an_answer_takes_as_long_as_it_took() -> None:
    def slow(request: EditRequest) -> Prediction:
        time.sleep(0.05)
        return says(WANTED[3:])(request)

    first, _ = lines(a_function().script(), slow, latency_ms=None)
    assert first["shown"]
    assert first["model_ms"] >= 50
    assert first["total_ms"] >= first["delay_ms"] + 50


def test_a_model_that_is_gone_ends_the_replay() -> None:
    def ask(request: EditRequest) -> Prediction:
        raise EngineGone("the server does not answer")

    with pytest.raises(EngineGone, match="does not answer"):
        lines(a_function().script(), ask)


def test_a_repeated_suggestion_is_one_episode() -> None:
    typist = begun()
    typist.pauses(2)
    typist.types("urn", AT + 3)
    typist.pauses(2)
    typist.types(" width", AT + 6)
    typist.leaves()

    def ask(request: EditRequest) -> Prediction:
        typed = request.text[AT : request.cursor]
        return says(WANTED[len(typed) :] if WANTED.startswith(typed) else "")(request)

    found = lines(typist.script(), ask)
    assert [line["shown"] for line in found] == [True, True, True]
    assert [line["repeat"] for line in found] == [False, True, True]
    assert {line["episode"] for line in found} == {"made-up:0"}
    assert "accepted" not in found[1] and found[1]["utility"] == 0.0
