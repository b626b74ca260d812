"""A key that hides a suggestion for now, and one that rejects it."""

from __future__ import annotations

from redraft.lsp.session.answers_and_rejections import COOL_DOWN_S
from redraft.lsp.session.decisions import Ask, Decision, Show
from redraft.model.gate.reasons import Abstain
from support.next_edits import edited, shown_edit
from support.predictor import infill, rewrite_lines
from support.workbench import Workbench, showing


def kind(decision: Decision) -> str:
    assert isinstance(decision, Abstain), decision
    return decision.kind


def test_a_hidden_next_edit_stays_away_in_its_line_and_comes_back_in_another() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.dismissed(first.suggestion.id)
    assert desk.outcomes == ["ignored"]
    assert (
        kind(desk.consider_edit())
        == kind(desk.consider_edit(cursor=desk.cursor - 1))
        == "dismissed"
    )
    elsewhere = desk.consider_edit(cursor=len(desk.text))
    assert isinstance(elsewhere, Show) and elsewhere.text == first.text


def test_a_hidden_next_edit_comes_back_where_the_user_returns_to_its_line() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.dismissed(first.suggestion.id)
    assert isinstance(desk.consider_edit(cursor=len(desk.text)), Show)
    back = desk.consider_edit()
    assert isinstance(back, Show) and back.text == first.text


def test_a_hidden_next_edit_comes_back_after_an_edit() -> None:
    desk = edited()
    desk.session.dismissed(shown_edit(desk).suggestion.id)
    desk.type("x")
    assert isinstance(desk.consider_edit(), Ask)


def test_a_gesture_brings_a_hidden_suggestion_back() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.dismissed(first.suggestion.id)
    again = desk.consider_edit(invoked=True)
    assert isinstance(again, Show) and again.text == first.text


def test_what_is_hidden_twice_is_rejected() -> None:
    desk = edited()
    desk.session.dismissed(shown_edit(desk).suggestion.id)
    again = showing(desk.consider_edit(cursor=len(desk.text)))
    desk.session.dismissed(again.suggestion.id)
    assert desk.outcomes == ["ignored", "rejected"]
    desk.clock.now += COOL_DOWN_S
    assert kind(desk.consider_edit()) == "rejected_before"


def test_ghost_text_that_is_hidden_leaves_next_edits_alone_and_comes_back() -> None:
    desk = Workbench("def f():\n    \n\ndef g():\n    ")
    shown = showing(desk.answer("return 1"))
    desk.session.dismissed(shown.suggestion.id)
    assert kind(desk.consider()) == "dismissed"
    assert kind(desk.consider_edit()) == "nothing_edited"
    assert isinstance(desk.consider(cursor=desk.text.index("\n\n")), Ask)
    assert isinstance(desk.consider(), Show)


def test_after_a_rejection_the_next_candidate_is_offered_at_once() -> None:
    desk = edited()
    ask = desk.ask_edit()
    first = ask.request.text[: ask.request.text.index("    print(area")].count("\n") + 1
    lines = [(first, first, [f"    print(area(r, {number}))"]) for number in (3, 4)]
    prediction = rewrite_lines(ask.request, *lines)
    shown = desk.session.settle(ask, prediction, desk.revision, 0.0, lambda: desk.text)
    assert isinstance(shown, Show) and "3" in shown.text
    desk.session.rejected(shown.suggestion.id)
    following = desk.consider_edit()
    assert isinstance(following, Show) and "4" in following.text


def test_after_a_rejection_the_next_place_is_asked_about_at_once() -> None:
    filler = "".join(f"value_{i} = compute({i})\n" for i in range(60))
    desk = Workbench(f"def area(r):\n    return r\n\nprint(area(1))\n{filler}print(area(2))\n")
    desk.swap("area(r)", "area(r, pi)")
    shown = showing(desk.edit("print(area(1))", "print(area(1, 3))"))
    desk.session.rejected(shown.suggestion.id)
    following = desk.consider_edit()
    assert isinstance(following, Ask) and following.origin is not None
    assert following.query.line == desk.text[: desk.text.index("area(2)")].count("\n")


def test_after_a_rejection_other_ghost_text_is_offered_at_once() -> None:
    desk = Workbench()
    ask = desk.ask()
    prediction = infill(ask.request, "return 1", "return 2")
    shown = desk.session.settle(ask, prediction, desk.revision, 0.0)
    assert isinstance(shown, Show) and shown.text == "return 1"
    desk.session.rejected(shown.suggestion.id)
    following = desk.consider()
    assert isinstance(following, Show) and following.text == "return 2"
