"""Ghost text of a session: when the model is asked, and what stays valid."""

from __future__ import annotations

import math

import pytest
from redraft.lsp.policy.pace import Debounce
from redraft.lsp.suggestions.outcomes import Outcome
from redraft.model.gate.reasons import Abstain
from redraft.model.records import LEAST_LOG
from support.editors.predictor import infill
from support.editors.workbench import URI, Ask, Workbench, asking, reason, shown


def test_the_request_holds_document_and_settings() -> None:
    desk = Workbench(max_tokens=32, quality="high", context_tokens=1024)
    request = desk.ask().request
    assert (request.task, request.path, request.language) == ("infill", "a.py", "python")
    assert (request.text, request.cursor) == (desk.text, desk.cursor)
    assert (request.max_tokens, request.quality, request.context_tokens) == (32, "high", 1024)


def test_only_a_gesture_gets_what_is_too_unlikely() -> None:
    desk = Workbench()
    typed, by_hand = desk.ask().request, desk.ask(invoked=True).request
    assert by_hand.least_total == LEAST_LOG
    assert (
        math.log(desk.session.workspace.settings.threshold_in("python", "infill"))
        > typed.least_total
        > LEAST_LOG
    )


def test_a_gesture_asks_again_where_one_was_given_up() -> None:
    desk = Workbench()
    asked = desk.ask()
    desk.settle(asked, infill(asked.request))
    assert isinstance(desk.consider(), Abstain)
    assert isinstance(desk.consider(invoked=True), Ask)
    desk.type("r")
    asked = desk.ask()
    desk.settle(asked, infill(asked.request, "eturn x", confidence=0.0))
    assert shown(desk.consider(invoked=True)) == "eturn x"


@pytest.mark.parametrize(
    ("after", "expected"),
    [("", 6), ("   ", 6), ("))]}", 6), ("\")'\n", 6), (" + 1", 1), ("):", 1), ("\nnext line", 6)],
)
def test_one_line_is_asked_for_where_code_follows(after: str, expected: int) -> None:
    desk = Workbench("x = f(")
    query = desk.query(text="x = f(" + after)
    decision = asking(desk.session.consider(query))
    assert decision.request.max_lines == expected


def test_finished_edits_alone_go_with_the_question() -> None:
    desk = Workbench()
    desk.type("return 1\n")
    assert desk.ask().request.edits == ()
    desk.clock.now += 2
    assert [edit.diff for edit in desk.ask().request.edits] == [
        " def f():\n-    \n+    return 1\n+\n"
    ]


def test_a_pause_ending_an_edit_is_no_new_question() -> None:
    desk = Workbench()
    desk.type("x = 1\n    ")
    desk.answer("return x")
    desk.clock.now += 2
    assert shown(desk.consider()) == "return x"


def test_typing_waits_for_the_debounce_unlike_gestures() -> None:
    desk = Workbench()
    assert desk.ask().delay_ms == 100
    assert desk.ask(invoked=True).delay_ms == 0


def test_the_debounce_makes_up_for_the_models_latency() -> None:
    desk = Workbench()
    desk.answer("pass", took_ms=60)
    desk.type("other")
    assert desk.ask().delay_ms == pytest.approx(40, abs=0.001)


@pytest.mark.parametrize(
    ("outcomes", "latency_ms", "now_s", "expected"),
    [
        (["rejected"] * 2, 0, 0, 225),
        (["rejected"] * 2 + ["accepted"], 0, 0, 180),
        (["rejected"], 0, 300, 100 * 1.5**0.5),  # it fades over ten minutes
        (["rejected"], 0, 600, 100),
        (["rejected"] + ["ignored"] * 10, 0, 0, 100),  # the last ten count
        (["accepted"] * 10, 0, 0, 50),
        (["accepted"] * 10, 400, 0, 50),
        (["rejected"] * 10, 0, 0, 3000),
    ],
)
def test_rejections_lengthen_the_debounce(
    outcomes: list[Outcome], latency_ms: float, now_s: float, expected: float
) -> None:
    debounce = Debounce()
    for outcome in outcomes:
        debounce.note(outcome, 0)
    assert debounce.delay_ms(100, latency_ms, now_s) == pytest.approx(expected)


def test_typing_the_suggestion_shrinks_it_unasked() -> None:
    desk = Workbench()
    first = desk.answer("return x")
    assert shown(first) == "return x"
    for typed, rest in (("ret", "urn x"), ("urn", " x")):
        desk.type(typed)
        again = desk.consider()
        assert shown(again) == rest
        assert again.suggestion.id == first.suggestion.id
    assert desk.outcomes == []


@pytest.mark.parametrize("text", ["def f():\n    p", "def f():\n    ab", "def g():\n    a"])
def test_a_typed_or_contradicted_suggestion_is_gone(text: str) -> None:
    desk = Workbench()
    desk.answer("ab")
    assert isinstance(desk.consider(cursor=0), Ask)
    desk.becomes(text)
    assert isinstance(desk.consider(), Ask)


def test_deleting_what_was_typed_of_it_grows_it_back() -> None:
    desk = Workbench()
    desk.answer("return x")
    desk.type("retu")
    desk.erase(3)
    assert shown(desk.consider()) == "eturn x"
    desk.erase(1)
    assert shown(desk.consider()) == "return x"


def test_an_overtaken_answer_serves_if_confirmed() -> None:
    desk = Workbench()
    ask = desk.ask()
    desk.type("r")
    late = desk.settle(ask, infill(ask.request, "return x"), 50)
    assert isinstance(late, Abstain)
    assert late.is_stale
    assert shown(desk.consider()) == "eturn x"


def test_the_same_text_and_cursor_have_the_same_answer() -> None:
    desk = Workbench()
    desk.answer("return x")
    desk.type("zzz")
    desk.answer()
    desk.type("y")
    desk.erase(1)
    desk.clock.now += 1
    assert "nothing to add" in reason(desk.consider())  # the absence of one is kept as well
    desk.erase(3)
    assert shown(desk.consider()) == "return x"


def test_a_long_line_elsewhere_does_no_harm() -> None:
    desk = Workbench("data = '" + "x" * 9000 + "'\n" + "y = 1\n" * 500)
    assert isinstance(desk.consider(), Ask)


def test_a_paste_is_a_moment_only_if_asked_for() -> None:
    desk = Workbench()
    desk.type("x" * 200)
    assert reason(desk.consider()) == "a large change was just made, such as a paste"
    assert isinstance(desk.consider(invoked=True), Ask)
    desk.clock.now += 1.6
    assert isinstance(desk.consider(), Ask)


def test_taking_a_long_suggestion_is_no_bulk_change() -> None:
    desk = Workbench()
    long = "\n    ".join(f"y{number} = {number**3}" for number in range(60))
    assert shown(desk.answer(long)) == long
    desk.type(long)
    assert isinstance(desk.consider(), Ask)


def test_a_slow_model_keeps_the_debounce() -> None:
    assert Debounce().delay_ms(100, 700, 0) == 100
    assert Debounce().delay_ms(100, 40, 0) == 60


def test_a_closed_document_is_forgotten() -> None:
    desk = Workbench()
    desk.answer("return x")
    desk.session.report_rejected("redraft-1")
    assert desk.session.memory.rejections._cooling
    desk.session.close(URI)
    assert not desk.session.memory.rejections._cooling
