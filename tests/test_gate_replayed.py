"""What is proposed in recordings, held against what was typed next, as outcomes of the gate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redraft.evals.gate.curves import moments_of
from redraft.evals.gate.replayed import replay_outcomes
from redraft.evals.gate.samples import labelled
from redraft.evals.predictors import ReadyPredictor
from redraft.evals.run import Run
from redraft.evals.sources.recorded_moments import Script
from redraft.evals.spec import RunSpec
from redraft.model.records import EditRequest, Prediction
from support.predictor import READY, infill
from support.typist import Typist

TEXT = "def area(width, height):\n    \n"
AT = TEXT.index("\n") + 5
WANTED = "return width * height"


def a_function(pasted: bool = False) -> Script:
    """Types "ret", thinks, and writes the rest."""
    typist = Typist()
    typist.opens(TEXT)
    typist.pauses(1)
    typist.types("ret", AT)
    typist.pauses(3)
    if pasted:
        typist.puts(WANTED[3:], AT + 3, source="paste")
    else:
        typist.types(WANTED[3:], AT + 3)
    typist.leaves()
    return typist.script()


def run_of(script: Script, ask: Callable[[EditRequest], Prediction], run: Run) -> Run:
    replay_outcomes([script], ReadyPredictor(ask, READY, lambda: None), run, None, 1_024)
    return run


def says(*texts: str) -> Callable[[EditRequest], Prediction]:
    return lambda request: infill(request, *(texts if request.task == "infill" else ()))


@pytest.mark.parametrize(
    ("text", "pasted", "right"),
    [
        (WANTED[3:], False, [True]),
        ("urn width * ", False, [True]),  # ten characters of it agree
        ("urn 0", False, [False]),
        (WANTED[3:], True, []),  # nobody can tell whether the user would have written it
    ],
)
def test_right_is_what_the_user_typed_next(text: str, pasted: bool, right: list[bool]) -> None:
    run = run_of(a_function(pasted), says(text), Run(RunSpec("outcomes")))
    first = run.examples["replayed:made-up:0:infill"]
    assert (first.group, first.moment.text[AT : AT + 3]) == ("made-up:0", "ret")
    found = list(labelled(first))
    assert [each.right for each in found] == right
    assert all((each.source, each.block) == ("made-up", "made-up:0") for each in found)


def test_each_moment_has_both_tasks_and_is_asked_once() -> None:
    asked: list[EditRequest] = []

    def ask(request: EditRequest) -> Prediction:
        asked.append(request)
        return says("urn 0")(request)

    script = a_function()
    run = run_of(script, ask, Run(RunSpec("outcomes")))
    assert len(run.examples) == 2 * len(script.moments)
    assert {each.measured["moment"] for each in run.examples.values()} == {
        m.id for m in script.moments
    }
    assert all(request.min_tokens == 1 for request in asked)
    before = len(asked)
    run_of(script, ask, run)
    assert len(asked) == before


def test_where_the_user_stops_nothing_was_left_to_do() -> None:
    moments = moments_of([run_of(a_function(), says("urn 0"), Run(RunSpec("outcomes")))])
    done = {each.example.id: each.is_done for each in moments}
    assert done["replayed:made-up:0:infill"] is False
    assert done["replayed:made-up:1:infill"] is True
