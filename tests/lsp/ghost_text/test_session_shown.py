"""Suggestions of a session: what is shown of an answer, and the outcomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.suggestions.outcomes import SuggestionEnded
from redraft.lsp.suggestions.rejections import COOL_DOWN_S
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from support.editors.next_edits import edited, shown_edit
from support.editors.predictor import infill, rewrite_lines
from support.editors.workbench import URI, Ask, Decision, Workbench, asking, reason, showing, shown


@pytest.mark.parametrize(
    ("completion", "after", "expected"),
    [
        ("return x\n", "", "return x"),
        ("return x\n    ", "\nnext", "return x"),
        ("x = 1\n\n    return x  \n", "   \nnext", "x = 1\n\n    return x"),
        ("a, ", "b)\n", "a, "),
    ],
)
def test_blank_space_at_line_ends_is_left_out(completion: str, after: str, expected: str) -> None:
    desk = Workbench()
    ask = asking(desk.session.consider(desk.query(text=desk.text + after, invoked=True)))
    prediction = infill(ask.request, completion)
    assert shown(desk.settle(ask, prediction)) == expected


def test_more_eagerness_shows_what_was_held_unasked() -> None:
    ghost, edit = Workbench(), edited()
    ghost.answer("x", confidence=0.1)
    hidden = edit.edit("3.14 * r", "pi * r", confidence=0.1)
    assert reason(hidden) == "10 % likely to be kept (medium shows from 11 %)"
    for desk in (ghost, edit):
        desk.session.workspace.settings, _ = update_settings(
            desk.session.workspace.settings, {"eagerness": "high"}
        )
    assert shown(ghost.consider()) == "x"
    assert isinstance(edit.consider_edit(), Offer)


def test_the_next_candidate_stands_in_for_the_best() -> None:
    assert shown(Workbench().answer("   ", "return x")) == "return x"


def taken(desk: Workbench) -> None:
    desk.type("return x")


def typed_after_reading(desk: Workbench) -> None:
    desk.clock.now += 1
    desk.type("p")


def went_to_the_next_line_after_reading(desk: Workbench) -> None:
    desk.clock.now += 1
    desk.type("\n    ")


def typed_some_of_it_and_a_blank(desk: Workbench) -> None:
    desk.type("ret")
    desk.clock.now += 1
    desk.type(" ")


def typed_at_once(desk: Workbench) -> None:
    desk.type("p")


def edited_elsewhere(desk: Workbench) -> None:
    desk.becomes("# a comment\n" + desk.text)


def closed(desk: Workbench) -> None:
    desk.session.close(URI)


def reported(desk: Workbench) -> None:
    desk.session.report_accepted("redraft-1")


def taken_in_part_then_left(desk: Workbench) -> None:
    desk.session.memory.outcomes.report_accepted_part("redraft-1")
    desk.type("return")
    desk.clock.now += 1
    desk.type("!")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (taken, "accepted"),
        (typed_after_reading, "rejected"),
        (typed_at_once, "ignored"),
        (went_to_the_next_line_after_reading, "ignored"),
        (typed_some_of_it_and_a_blank, "ignored"),
        (edited_elsewhere, "ignored"),
        (closed, "ignored"),
        (reported, "accepted"),
        (taken_in_part_then_left, "accepted"),
    ],
)
def test_an_outcome_is_told_once(event: Callable[[Workbench], None], expected: str) -> None:
    desk = Workbench()
    desk.answer("return x")
    event(desk)
    desk.session.close(URI)
    assert desk.outcomes == [expected]


@pytest.mark.parametrize(
    ("part", "means", "saved"), [(4, "part", 3), (8, "whole", 7), (0, "whole", 7)]
)
def test_late_partial_acceptance_is_marked(part: int, means: str, saved: int) -> None:
    desk = Workbench()
    ended: list[SuggestionEnded] = []
    desk.answer("return x")
    desk.type("p")
    desk.session.memory.outcomes.listener = ended.append
    desk.session.report_accepted("redraft-1", part=part)
    assert [(each.outcome, each.means, each.saved) for each in ended] == [
        ("accepted", means, saved)
    ]
    assert desk.history.view().with_pending[-1].accepted


def test_a_suggestion_is_replaced_by_the_next_one() -> None:
    desk = Workbench("a\nb\n")
    desk.answer("return x")
    desk.cursor = 0
    desk.answer("import os\n")
    assert desk.outcomes == ["replaced"]


def test_an_answer_that_came_too_late_was_cancelled() -> None:
    desk = Workbench()
    ask = desk.ask()
    desk.type("x")
    desk.settle(ask, infill(ask.request, "return"))
    assert desk.outcomes == ["cancelled"]


def test_a_report_corrects_what_was_inferred() -> None:
    desk = Workbench()
    desk.answer("f(x)")
    desk.clock.now += 1
    desk.type("f( x )")  # a formatter had its way with it
    desk.session.report_accepted("redraft-1")
    desk.session.report_accepted("redraft-1")
    assert desk.outcomes == ["rejected", "accepted"]


def test_time_to_read_counts_from_drawing() -> None:
    desk = Workbench()
    desk.answer("return x")
    desk.clock.now += 1
    desk.session.report_shown("redraft-1")
    desk.type("p")
    assert desk.outcomes == ["ignored"]


def test_a_late_report_marks_what_was_accepted() -> None:
    desk = Workbench()
    desk.answer("f(x)")
    desk.type("f( x )")  # a formatter had its way with it
    desk.session.report_accepted("redraft-1")
    desk.clock.now += 2
    assert [edit.accepted for edit in desk.session.workspace.history.view().finished] == [True]


def test_settings_are_read_in_both_spellings() -> None:
    base = LspSettings()
    assert update_settings(base, {"delayMs": 250})[0].delay_ms == 250
    assert update_settings(base, {"redraft": {"delay_ms": 250}})[0].delay_ms == 250
    assert update_settings(base, None) == (base, ())


def test_a_bad_value_is_named_and_changes_nothing() -> None:
    settings, problems = update_settings(
        LspSettings(), {"maxLines": "many", "delayMs": 5, "colour": 1}
    )
    assert (settings.max_lines, settings.delay_ms) == (6, 5)
    assert any("max_lines" in p and "'many'" in p for p in problems)
    assert any("'colour'" in p for p in problems)


@pytest.mark.parametrize("sent", [5, "text", [1], True])
def test_settings_of_the_wrong_shape_change_nothing(sent: object) -> None:
    settings, problems = update_settings(LspSettings(), sent)
    assert settings == LspSettings()
    assert problems


def kind(decision: Decision) -> str:
    assert isinstance(decision, Abstain), decision
    return decision.kind


def test_a_hidden_next_edit_comes_back_in_another_line() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.report_dismissed(first.suggestion.id)
    assert desk.outcomes == ["ignored"]
    assert (
        kind(desk.consider_edit())
        == kind(desk.consider_edit(cursor=desk.cursor - 1))
        == "dismissed"
    )
    elsewhere = desk.consider_edit(cursor=len(desk.text))
    assert isinstance(elsewhere, Offer) and elsewhere.text == first.text


def test_a_hidden_next_edit_returns_with_the_user() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.report_dismissed(first.suggestion.id)
    assert isinstance(desk.consider_edit(cursor=len(desk.text)), Offer)
    back = desk.consider_edit()
    assert isinstance(back, Offer) and back.text == first.text


def test_a_hidden_next_edit_comes_back_after_an_edit() -> None:
    desk = edited()
    desk.session.report_dismissed(shown_edit(desk).suggestion.id)
    desk.type("x")
    assert isinstance(desk.consider_edit(), Ask)


def test_a_gesture_brings_a_hidden_suggestion_back() -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.session.report_dismissed(first.suggestion.id)
    again = desk.consider_edit(invoked=True)
    assert isinstance(again, Offer) and again.text == first.text


def test_what_is_hidden_twice_is_rejected() -> None:
    desk = edited()
    desk.session.report_dismissed(shown_edit(desk).suggestion.id)
    again = showing(desk.consider_edit(cursor=len(desk.text)))
    desk.session.report_dismissed(again.suggestion.id)
    assert desk.outcomes == ["ignored", "rejected"]
    desk.clock.now += COOL_DOWN_S
    assert kind(desk.consider_edit()) == "rejected_before"


def test_hidden_ghost_text_returns_and_leaves_edits() -> None:
    desk = Workbench("def f():\n    \n\ndef g():\n    ")
    shown = showing(desk.answer("return 1"))
    desk.session.report_dismissed(shown.suggestion.id)
    assert kind(desk.consider()) == "dismissed"
    assert kind(desk.consider_edit()) == "nothing_edited"
    assert isinstance(desk.consider(cursor=desk.text.index("\n\n")), Ask)
    assert isinstance(desk.consider(), Offer)


def test_a_rejection_offers_the_next_candidate_at_once() -> None:
    desk = edited()
    ask = desk.ask_edit()
    first = ask.request.text[: ask.request.text.index("    print(area")].count("\n") + 1
    lines = [(first, first, [f"    print(area(r, {number}))"]) for number in (3, 4)]
    prediction = rewrite_lines(ask.request, *lines)
    shown = desk.settle(ask, prediction)
    assert isinstance(shown, Offer) and "3" in shown.text
    desk.session.report_rejected(shown.suggestion.id)
    following = desk.consider_edit()
    assert isinstance(following, Offer) and "4" in following.text


def test_a_rejection_asks_about_the_next_place_at_once() -> None:
    filler = "".join(f"value_{i} = compute({i})\n" for i in range(60))
    desk = Workbench(f"def area(r):\n    return r\n\nprint(area(1))\n{filler}print(area(2))\n")
    desk.swap("area(r)", "area(r, pi)")
    shown = showing(desk.edit("print(area(1))", "print(area(1, 3))"))
    desk.session.report_rejected(shown.suggestion.id)
    following = desk.consider_edit()
    assert isinstance(following, Ask) and following.origin is not None
    assert following.query.line == desk.text[: desk.text.index("area(2)")].count("\n")


def test_a_rejection_offers_other_ghost_text_at_once() -> None:
    desk = Workbench()
    ask = desk.ask()
    prediction = infill(ask.request, "return 1", "return 2")
    shown = desk.settle(ask, prediction)
    assert isinstance(shown, Offer) and shown.text == "return 1"
    desk.session.report_rejected(shown.suggestion.id)
    following = desk.consider()
    assert isinstance(following, Offer) and following.text == "return 2"


def test_a_suggestion_typed_by_hand_is_one_user_edit() -> None:
    desk, by_hand = Workbench(), Workbench()
    desk.answer("return x")
    for key in "return x":
        for each in (desk, by_hand):
            each.clock.now += 0.15
            each.type(key)
    for each in (desk, by_hand):
        each.clock.now += 2
    assert (
        desk.session.workspace.history.view().finished
        == by_hand.session.workspace.history.view().finished
    )
    assert [edit.accepted for edit in desk.session.workspace.history.view().finished] == [False]
