"""When the next edit is asked for, which one is shown, what is kept and what never comes back."""

from __future__ import annotations

import pytest
from redraft.lsp.editor.documents import Document
from redraft.lsp.session.answers_and_rejections import CACHED_RESULTS
from redraft.lsp.session.decisions import Ask, Show
from redraft.lsp.session.next_edits import AFTER_EDIT_S, LIFETIME_S
from redraft.lsp.settings import updated
from redraft.model.edits.abstained import Abstained
from redraft.model.records import Prediction
from support.next_edits import CODE, edited, shown_edit
from support.predictor import infill, rewrite
from support.workbench import URI, Workbench, reason, shown

# --- what is asked -----------------------------------------------------------------------------


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


def test_the_region_is_as_large_as_in_training() -> None:
    desk = Workbench("".join(f"value_{i} = compute({i})\n" for i in range(400)))
    desk.swap("compute(200)", "compute(201)")
    region = desk.ask_edit().request.region
    assert region is not None
    first, last = region
    assert first <= 200 < last
    assert 12 <= last - first <= 36


def test_a_line_longer_than_any_region_is_asked_about_alone() -> None:
    desk = Workbench("x = [" + "1, " * 1000 + "]\ny = 1\n")
    desk.swap("[1", "[2")
    assert desk.ask_edit().request.region == (0, 1)


def test_asking_waits_for_the_debounce_and_a_gesture_does_not() -> None:
    assert edited().ask_edit().delay_ms == 100
    assert edited().ask_edit(invoked=True).delay_ms == 0


# --- when to ask -------------------------------------------------------------------------------


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


def test_nothing_is_offered_while_undoing() -> None:
    desk = edited()
    desk.swap("area(r, pi)", "area(r)")
    assert reason(desk.consider_edit()) == "you just undid or redid a change"
    assert isinstance(desk.consider_edit(invoked=True), Ask)


def test_nothing_is_offered_right_after_a_bulk_change() -> None:
    desk = edited()
    desk.type("\n# pasted" * 30)
    assert reason(desk.consider_edit()) == "a large change was just made, such as a paste"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"selected": 4}, "text is selected"),
        ({"cursors": 3}, "there are 3 cursors"),
        ({"in_snippet": True}, "filling in a snippet"),
        ({"path": "app/.env"}, "secret_globs"),
    ],
)
def test_nothing_is_offered_in_the_way_of_other_things(
    fields: dict[str, object], expected: str
) -> None:
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


# --- ghost text and next edit together ---------------------------------------------------------


def test_ghost_text_that_is_shown_comes_first() -> None:
    desk = edited()
    desk.answer(" -> float")
    assert reason(desk.consider_edit()) == "ghost text is shown at the cursor"
    assert reason(desk.consider_edit(invoked=True)) == "ghost text is shown at the cursor"


def test_a_next_edit_that_is_shown_stays_while_it_agrees_with_the_document() -> None:
    desk = edited()
    shown_edit(desk)
    assert reason(desk.consider()) == "a next edit is shown"
    assert reason(desk.consider(invoked=True)) == "a next edit is shown"


def test_a_next_edit_that_is_shown_stays_however_long_its_reader_thinks() -> None:
    desk = edited()
    show = shown_edit(desk)
    desk.clock.now += AFTER_EDIT_S + LIFETIME_S
    there = desk.consider_edit(cursor=desk.text.index("print"))  # Tab has jumped to it
    assert isinstance(there, Show)
    assert there.suggestion.id == show.suggestion.id


def test_whoever_goes_on_typing_elsewhere_gets_ghost_text_again() -> None:
    desk = edited()
    shown_edit(desk)
    desk.type(", e")
    assert isinstance(desk.consider(), Ask)


# --- what is kept ------------------------------------------------------------------------------


def test_the_same_text_has_the_same_answer_wherever_the_cursor_is() -> None:
    desk = edited()
    first = shown_edit(desk)
    again = desk.consider_edit(cursor=0)
    assert isinstance(again, Show)
    assert again.suggestion.id == first.suggestion.id


def test_that_there_is_no_edit_is_kept_as_well() -> None:
    desk = edited()
    assert "change nothing" in reason(desk.edit("no such", ""))
    assert "change nothing" in reason(desk.consider_edit(cursor=0))


def test_the_cache_holds_the_last_results_only() -> None:
    desk = edited()
    desk.edit("no such", "")
    first = desk.query()
    for number in range(CACHED_RESULTS + 1):
        desk.type(str(number % 10))
        desk.edit("no such", "")
    assert isinstance(desk.session.consider_edit(first), Ask)


def test_an_edit_typed_by_hand_stays_and_shrinks() -> None:
    desk = edited()
    first = shown_edit(desk)
    at = desk.text.index("print(area(r") + len("print(area(r")
    desk.becomes(desk.text[:at] + "," + desk.text[at:], at + 1)
    again = desk.consider_edit()
    assert isinstance(again, Show)
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
    again = desk.consider_edit()
    assert isinstance(again, Show)
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
    late = desk.session.settle(ask, prediction, desk.revision, 50, lambda: desk.text)
    assert isinstance(late, Abstained)
    assert late.stale
    again = desk.consider_edit()
    assert isinstance(again, Show)
    assert "pi * r * r" in again.suggestion.result
    assert "print(area(r, 3))" in again.suggestion.result


def test_an_answer_overtaken_by_a_change_in_its_place_is_dropped() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.swap("print(area(r))", "log(area(r))")
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    desk.session.settle(ask, prediction, desk.revision, 50, lambda: desk.text)
    assert isinstance(desk.consider_edit(), Ask)


def test_an_answer_for_a_closed_document_is_dropped() -> None:
    desk = edited()
    ask = desk.ask_edit()
    desk.session.closed(URI)
    prediction = rewrite(ask.request, "print(area(r))", "print(area(r, 3))")
    decision = desk.session.settle(ask, prediction, None, 0)
    assert isinstance(decision, Abstained)
    assert decision.stale


# --- what is never shown -----------------------------------------------------------------------


def test_below_the_threshold_says_both_numbers() -> None:
    decision = edited().edit("print(area(r))", "print(area(r, 3))", confidence=0.13)
    assert reason(decision) == "13 % likely to be kept (medium shows from 25 %)"
    low = edited(eagerness="low").edit("print(area(r))", "print(area(r, 3))", confidence=0.4)
    assert reason(low) == "40 % likely to be kept (low shows from 50 %)"


def test_raising_eagerness_shows_what_was_held_back_without_asking_again() -> None:
    desk = edited()
    desk.edit("print(area(r))", "print(area(r, 3))", confidence=0.2)
    desk.session.settings, _ = updated(desk.session.settings, {"eagerness": "high"})
    assert isinstance(desk.consider_edit(), Show)


def test_an_edit_that_takes_back_what_was_just_typed_is_not_shown() -> None:
    desk = edited()
    assert reason(desk.edit("area(r, pi)", "area(r)")) == "the edit would undo what you just typed"


def test_an_edit_that_breaks_the_file_is_not_shown() -> None:
    decision = edited().edit("print(area(r))", "print(area(r, 3)")
    assert "syntax error" in reason(decision)


def test_the_next_candidate_is_shown_where_the_best_cannot_be() -> None:
    desk = edited()
    ask = desk.ask_edit()
    bad = rewrite(ask.request, "print(area(r))", "print (area(r))").candidates
    good = rewrite(ask.request, "print(area(r))", "print(area(r, 3))").candidates
    prediction = Prediction("1", "fake", bad + good)
    decision = desk.session.settle(ask, prediction, desk.revision, 0, lambda: desk.text)
    assert isinstance(decision, Show)
    assert "print(area(r, 3))" in decision.suggestion.result


def test_the_models_own_reason_is_passed_on() -> None:
    desk = edited()
    ask = desk.ask_edit()
    prediction = Prediction("1", "fake", (), "the model is unsure where to edit")
    decision = desk.session.settle(ask, prediction, desk.revision, 0, lambda: desk.text)
    assert reason(decision) == "the model is unsure where to edit"


def test_ghost_text_that_was_just_deleted_is_not_offered_again() -> None:
    desk = Workbench("value = compute(total, rate)")
    desk.clock.now += 5
    desk.erase(len("total, rate)"))
    ask = desk.ask()
    decision = desk.session.settle(ask, infill(ask.request, "total, rate)"), desk.revision, 0)
    assert reason(decision) == "the model would write what you just deleted"
    other = desk.session.settle(ask, infill(ask.request, "amount)"), desk.revision, 0)
    assert shown(other) == "amount)"
