"""When the next edit is asked for, which one is shown, what is kept and what never comes back."""

from __future__ import annotations

import pytest
from redraft.lsp.editor.documents import Document
from redraft.lsp.session.decisions import Ask
from redraft.lsp.session.next_edits import AFTER_EDIT_S, LIFETIME_S
from redraft.model.gate.reasons import Abstain
from support.next_edits import CODE, edited, shown_edit
from support.predictor import infill, rewrite
from support.workbench import URI, Workbench, reason, showing, shown


def test_the_edit_just_made_goes_with_the_question() -> None:
    request = edited().ask_edit().request
    assert request.task == "next_edit"
    assert request.region == (0, 11)
    [edit] = request.edits
    assert edit.diff.startswith("-def area(r):\n+def area(r, pi):\n     return")


def test_considering_does_not_end_the_edit_in_progress_and_asking_does() -> None:
    desk = edited()
    desk.consider_edit()
    assert desk.session.history.in_progress(URI)
    desk.ask_edit()
    assert not desk.session.history.in_progress(URI)


def test_nothing_is_asked_before_anything_was_edited_unless_asked_to() -> None:
    desk = Workbench(CODE)
    assert reason(desk.consider_edit()) == "you have not edited anything yet"
    assert isinstance(desk.consider_edit(invoked=True), Ask)


def test_the_next_edit_is_asked_for_within_ten_seconds_of_the_last() -> None:
    desk = edited()
    desk.clock.now += AFTER_EDIT_S
    assert isinstance(desk.consider_edit(), Ask)
    desk.clock.now += 0.1
    assert reason(desk.consider_edit()) == "your last edit is more than 10 s ago"


def test_moving_to_another_file_after_an_edit_asks_there() -> None:
    desk = edited()
    other = Document("file:///w/b.py", "area(1)\n")
    desk.session.opened(other.uri, "b.py", other.lines)
    ask = desk.ask_edit(uri=other.uri, path="b.py", text=other.text, cursor=0)
    assert [edit.path for edit in ask.request.edits] == ["a.py"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"selected": 4}, "text is selected"),
        ({"cursors": 3}, "there are 3 cursors"),
        ({"in_snippet": True}, "filling in a snippet"),
        ({"path": "app/.env"}, "secret_globs"),
    ],
)
def test_nothing_is_offered_in_the_way(fields: dict[str, object], expected: str) -> None:
    assert expected in reason(edited().consider_edit(**fields))
    assert expected in reason(edited().consider(**fields))


def test_nothing_is_offered_in_an_unfocused_window() -> None:
    desk = edited()
    desk.session.focus(False)
    assert reason(desk.consider_edit()) == "the editor window is not active"
    assert reason(desk.consider(cursor=len(desk.text))) == "the editor window is not active"
    desk.type("x")
    assert isinstance(desk.consider_edit(), Ask)


def test_next_edits_can_be_switched_off_alone() -> None:
    desk = edited(next_edits=False)
    assert "next_edits" in reason(desk.consider_edit())
    assert isinstance(desk.consider(), Ask)


def test_a_next_edit_that_is_shown_stays_while_it_agrees_with_the_document() -> None:
    desk = edited()
    shown_edit(desk)
    assert reason(desk.consider()) == "a next edit is shown"
    assert reason(desk.consider(invoked=True)) == "a next edit is shown"


def test_a_next_edit_that_is_shown_stays_however_long_its_reader_thinks() -> None:
    desk = edited()
    show = shown_edit(desk)
    desk.clock.now += AFTER_EDIT_S + LIFETIME_S
    there = showing(desk.consider_edit(cursor=desk.text.index("print")))  # Tab has jumped
    assert there.suggestion.id == show.suggestion.id


def test_whoever_goes_on_typing_elsewhere_gets_ghost_text_again() -> None:
    desk = edited()
    shown_edit(desk)
    desk.type(", e")
    assert isinstance(desk.consider(), Ask)


def test_that_there_is_no_edit_is_kept_as_well() -> None:
    desk = edited()
    assert "change nothing" in reason(desk.edit("no such", ""))
    assert "change nothing" in reason(desk.consider_edit(cursor=0))


def test_an_edit_typed_by_hand_stays_and_shrinks() -> None:
    desk = edited()
    first = shown_edit(desk)
    at = desk.text.index("print(area(r") + len("print(area(r")
    desk.becomes(desk.text[:at] + "," + desk.text[at:], at + 1)
    again = showing(desk.consider_edit())
    assert again.suggestion.id == first.suggestion.id
    assert shown(again) == " 3"
    assert again.text == again.suggestion.replacement
    assert again.suggestion.result == first.suggestion.result
    assert reason(desk.consider()) == "a next edit is shown"


def test_an_edit_typed_to_its_end_was_accepted() -> None:
    desk = edited()
    shown_edit(desk)
    at = desk.text.index("print(area(r") + len("print(area(r")
    for number, character in enumerate(", 3"):
        desk.becomes(desk.text[: at + number] + character + desk.text[at + number :])
    assert desk.outcomes == ["accepted"]


@pytest.mark.parametrize(("old", "new"), [("3.14", "pi"), ("show(2)", "show(2.5)")])
def test_edits_above_and_below_move_a_shown_edit_along(old: str, new: str) -> None:
    desk = edited()
    first = shown_edit(desk)
    desk.swap(old, new)
    again = showing(desk.consider_edit())
    assert again.suggestion.id == first.suggestion.id
    assert again.suggestion.text == desk.text
    assert "print(area(r, 3))" in again.suggestion.result
    assert desk.outcomes == []


def test_a_shown_edit_that_was_left_behind_is_given_up() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += LIFETIME_S + 1
    desk.swap("3.14", "pi")
    assert isinstance(desk.consider_edit(), Ask)
    assert desk.outcomes == ["ignored"]


def test_a_change_where_the_edit_was_turns_it_down() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += 1
    desk.swap("print(area(r))", "print(volume(r))")
    assert desk.outcomes == ["rejected"]
    assert isinstance(desk.consider_edit(), Ask)


def test_white_space_where_the_edit_was_is_no_rejection() -> None:
    desk = edited()
    shown_edit(desk)
    desk.clock.now += 1
    desk.swap("print(area(r))", "\n    print(area(r))")
    assert desk.outcomes == ["ignored"]


def test_an_answer_overtaken_by_a_change_elsewhere_is_shown_next_time() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.swap("3.14", "pi")
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    late = desk.settle(ask, prediction, 50)
    assert isinstance(late, Abstain)
    assert late.is_stale
    again = showing(desk.consider_edit())
    assert "pi * r * r" in again.suggestion.result
    assert "print(area(r, 3))" in again.suggestion.result


def test_an_answer_overtaken_by_a_change_in_its_place_is_dropped() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.swap("print(area(r))", "log(area(r))")
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    desk.settle(ask, prediction, 50)
    assert isinstance(desk.consider_edit(), Ask)


def test_ghost_text_that_was_just_deleted_is_not_offered_again() -> None:
    desk = Workbench("value = compute(total, rate)")
    desk.clock.now += 5
    desk.erase(len("total, rate)"))
    ask = desk.ask()
    decision = desk.session.settle(ask, infill(ask.request, "total, rate)"), desk.revision, 0)
    assert reason(decision) == "the model would write what you just deleted"
    other = desk.session.settle(ask, infill(ask.request, "amount)"), desk.revision, 0)
    assert shown(other) == "amount)"
