"""When the model is asked, what still holds, what is shown, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redraft.lsp.session.answers_and_rejections import CACHED_RESULTS
from redraft.lsp.session.decisions import Ask, Decision, Show
from redraft.lsp.session.outcomes import Debounce
from redraft.lsp.settings import LspSettings, updated
from redraft.model.edits.abstained import Abstained
from redraft.model.records import Prediction
from support.desk import URI, Desk, reason, shown
from support.predictor import infill

# --- what is asked -----------------------------------------------------------------------------


def test_the_request_holds_the_document_and_the_settings() -> None:
    desk = Desk(max_tokens=32, quality="high", context_tokens=1024)
    request = desk.ask().request
    assert (request.task, request.path, request.language) == ("infill", "a.py", "python")
    assert (request.text, request.cursor) == (desk.text, desk.cursor)
    assert (request.max_tokens, request.quality, request.context_tokens) == (32, "high", 1024)


@pytest.mark.parametrize(
    ("after", "expected"),
    [("", 6), ("   ", 6), ("))]}", 6), ("\")'\n", 6), (" + 1", 1), ("):", 1), ("\nnext line", 6)],
)
def test_one_line_is_asked_for_where_code_follows_the_cursor(after: str, expected: int) -> None:
    desk = Desk("x = f(")
    query = desk.query(text="x = f(" + after)
    decision = desk.session.consider(query)
    assert isinstance(decision, Ask)
    assert decision.request.max_lines == expected


def test_finished_edits_go_with_the_question_and_the_one_in_progress_does_not() -> None:
    desk = Desk()
    desk.type("return 1\n")
    assert desk.session.complete(desk.ask()).request.edits == ()
    desk.clock.now += 2
    assert [edit.diff for edit in desk.session.complete(desk.ask()).request.edits] == [
        " def f():\n-    \n+    return 1\n+\n"
    ]


def test_a_pause_that_ends_an_edit_does_not_make_it_another_question() -> None:
    desk = Desk()
    desk.type("x = 1\n    ")
    desk.answer("return x")
    desk.clock.now += 2
    assert shown(desk.consider()) == "return x"


def test_typing_waits_for_the_debounce_and_a_gesture_does_not() -> None:
    desk = Desk()
    assert desk.ask().delay_ms == 100
    assert desk.ask(invoked=True).delay_ms == 0


def test_the_debounce_makes_up_for_the_models_latency() -> None:
    desk = Desk()
    desk.answer("pass", took_ms=60)
    desk.type("other")
    assert desk.ask().delay_ms == pytest.approx(40)


# --- debounce ----------------------------------------------------------------------------------


def test_rejections_lengthen_and_acceptances_shorten_the_debounce() -> None:
    debounce = Debounce()
    debounce.note("rejected", 0)
    debounce.note("rejected", 0)
    assert debounce.delay_ms(100, 0, 0) == pytest.approx(225)
    debounce.note("accepted", 0)
    assert debounce.delay_ms(100, 0, 0) == pytest.approx(180)


def test_an_outcome_fades_over_ten_minutes() -> None:
    debounce = Debounce()
    debounce.note("rejected", 0)
    assert debounce.delay_ms(100, 0, 300) == pytest.approx(100 * 1.5**0.5)
    assert debounce.delay_ms(100, 0, 600) == pytest.approx(100)


def test_only_the_last_ten_outcomes_count() -> None:
    debounce = Debounce()
    debounce.note("rejected", 0)
    for _ in range(10):
        debounce.note("ignored", 0)
    assert debounce.delay_ms(100, 0, 0) == pytest.approx(100)


def test_the_debounce_stays_between_its_bounds() -> None:
    eager, weary = Debounce(), Debounce()
    for _ in range(10):
        eager.note("accepted", 0)
        weary.note("rejected", 0)
    assert eager.delay_ms(100, 0, 0) == 50
    assert weary.delay_ms(100, 0, 0) == 3000
    assert eager.delay_ms(100, 400, 0) == 0


# --- what still holds --------------------------------------------------------------------------


def test_typing_the_suggestion_shrinks_it_and_asks_nothing() -> None:
    desk = Desk()
    assert shown(desk.answer("return x")) == "return x"
    desk.type("ret")
    assert shown(desk.consider()) == "urn x"
    desk.type("urn")
    assert shown(desk.consider()) == " x"


def test_deleting_what_was_typed_of_it_grows_it_back() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.type("retu")
    desk.erase(3)
    assert shown(desk.consider()) == "eturn x"
    desk.erase(1)
    assert shown(desk.consider()) == "return x"


def test_type_through_keeps_the_suggestions_identity() -> None:
    desk = Desk()
    first = desk.answer("return x")
    desk.type("r")
    second = desk.consider()
    assert isinstance(first, Show)
    assert isinstance(second, Show)
    assert first.suggestion.id == second.suggestion.id
    assert desk.outcomes == []


def test_typing_something_else_asks_anew() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.type("p")
    assert isinstance(desk.consider(), Ask)


def test_nothing_is_left_to_show_when_all_was_typed() -> None:
    desk = Desk()
    desk.answer("ab")
    desk.type("ab")
    assert isinstance(desk.consider(), Ask)


def test_a_suggestion_does_not_hold_where_the_text_before_it_differs() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.becomes(desk.text.replace("f()", "g()") + "ret")
    assert isinstance(desk.consider(), Ask)


def test_an_answer_overtaken_by_a_keystroke_serves_if_the_keystroke_confirms_it() -> None:
    desk = Desk()
    ask = desk.ask()
    desk.type("r")
    late = desk.session.settle(ask, infill(ask.request, "return x"), desk.revision, 50)
    assert isinstance(late, Abstained)
    assert late.stale
    assert shown(desk.consider()) == "eturn x"


def test_the_same_text_and_cursor_have_the_same_answer() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.type("zzz")
    desk.answer()
    desk.type("y")
    desk.erase(1)
    assert "nothing to add" in reason(desk.consider())  # the absence of one is kept as well
    desk.erase(3)
    assert shown(desk.consider()) == "return x"


def test_the_cache_holds_the_last_results_only() -> None:
    desk = Desk()
    first = desk.query()
    for _ in range(CACHED_RESULTS + 1):
        desk.answer()
        desk.type("x")
    assert isinstance(desk.session.consider(first), Ask)


def test_another_cursor_in_the_same_text_is_another_question() -> None:
    desk = Desk()
    desk.answer("return x")
    assert isinstance(desk.consider(cursor=0), Ask)


# --- never -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [".env", "app/.env.local", "keys/server.PEM", "id_rsa", "poetry.lock", "web/package-lock.json"],
)
def test_secret_and_lock_files_never_reach_the_model(path: str) -> None:
    decision = Desk().consider(path=path, invoked=True)
    assert "secret_globs" in reason(decision)


@pytest.mark.parametrize("path", ["env.py", "monkey.py", "keyboard/layout.keymap", "src/blocks.rs"])
def test_names_that_only_resemble_secrets_are_served(path: str) -> None:
    assert isinstance(Desk().consider(path=path), Ask)


def test_a_large_file_says_how_large() -> None:
    desk = Desk("x = 1\n" * 50, max_file_chars=100)
    assert reason(desk.consider()) == "file too large: 300 characters > 100"


def test_minified_text_is_left_alone() -> None:
    assert "line too long" in reason(Desk("a=1;" * 5000).consider())
    dense = ("a" * 900 + "\n") * 20
    assert "minified" in reason(Desk(dense).consider())


def test_a_binary_file_is_not_read() -> None:
    assert "line 2 holds a NUL" in reason(Desk("a = 1\nb\0c\n").consider(invoked=True))


def test_a_long_line_elsewhere_does_no_harm() -> None:
    desk = Desk("data = '" + "x" * 9000 + "'\n" + "y = 1\n" * 500)
    assert isinstance(desk.consider(), Ask)


def test_a_selection_gets_no_suggestion() -> None:
    assert "3 characters are selected" in reason(Desk().consider(selected=3))


def test_switched_off_says_so() -> None:
    assert "enabled" in reason(Desk(enabled=False).consider())
    assert "python" in reason(Desk(disabled_languages=("python",)).consider())


def test_a_document_out_of_step_gets_nothing_and_the_reason() -> None:
    assert "a change was lost" in reason(Desk().consider(out_of_step="a change was lost"))


def test_a_paste_is_no_moment_to_suggest_unless_asked_to() -> None:
    desk = Desk()
    desk.type("x" * 200)
    assert reason(desk.consider()) == "right after a bulk change"
    assert isinstance(desk.consider(invoked=True), Ask)
    desk.clock.now += 1.6
    assert isinstance(desk.consider(), Ask)


def test_many_lines_at_once_are_a_bulk_change() -> None:
    desk = Desk()
    desk.type("\n" * 8)
    assert reason(desk.consider()) == "right after a bulk change"


def test_nothing_is_asked_while_undoing_unless_asked_to() -> None:
    desk = Desk()
    desk.type("abc")
    desk.erase(3)
    assert reason(desk.consider()) == "while undoing or redoing"
    assert isinstance(desk.consider(invoked=True), Ask)
    desk.type("x")
    assert isinstance(desk.consider(), Ask)


def test_taking_a_long_suggestion_is_no_bulk_change() -> None:
    desk = Desk()
    long = "\n    ".join(f"y{number} = {number**3}" for number in range(60))
    assert shown(desk.answer(long)) == long
    desk.type(long)
    assert isinstance(desk.consider(), Ask)


# --- what is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("completion", "after", "expected"),
    [
        ("", "", "nothing to add"),
        ("  \n ", "", "whitespace"),
        ("foo()", "foo()", "already follows"),
        (")", ")\n", "already follows"),
        (" return x\n", "\n    return x\n", "already follows"),
        ("x<|endoftext|>", "", "<|endoftext|>"),
        ("<empty_output>", "", "<empty_output>"),
        ("a <fim_middle> b", "", "<fim_middle>"),
        ("name = '\ufffd\ufffd'", "", "half a character"),
        ("x = 1" + "0" * 24, "", "in circles"),
        ("x[" + "text.rfind('a', 0) + 1: " * 3 + "text", "", "in circles"),
        ("the 'E' in " * 5, "", "in circles"),
    ],
)
def test_useless_answers_are_never_shown(completion: str, after: str, expected: str) -> None:
    desk = Desk()
    ask = desk.session.consider(desk.query(text=desk.text + after, invoked=True))
    assert isinstance(ask, Ask)
    prediction = infill(ask.request, completion)
    assert expected in reason(desk.session.settle(ask, prediction, desk.revision, 0))


def test_a_special_token_that_the_file_itself_speaks_of_is_no_leak() -> None:
    desk = Desk("EOT = '<|endoftext|>'\nEOT2 = '")
    assert shown(desk.answer("<|endoftext|>'")) == "<|endoftext|>'"


@pytest.mark.parametrize(
    "completion",
    ["[0, 0, 0, 0, 0, 0]", "# " + "-" * 70, "a.append(1)\n    b.append(2)\n    c.append(3)"],
)
def test_repetition_that_people_write_is_shown(completion: str) -> None:
    assert shown(Desk().answer(completion)) == completion


def test_repetition_that_the_file_has_already_is_shown() -> None:
    desk = Desk("T = [\n" + "    (0, 0, 0, 0),\n" * 3 + "    ")
    assert "(0, 0, 0, 0),\n" in shown(desk.answer("(0, 0, 0, 0),\n" + "    (0, 0, 0, 0),\n" * 3))


@pytest.mark.parametrize(
    ("completion", "after", "expected"),
    [
        ("return x\n", "", "return x"),
        ("return x\n    ", "\nnext", "return x"),
        ("x = 1\n\n    return x  \n", "   \nnext", "x = 1\n\n    return x"),
        ("a, ", "b)\n", "a, "),
    ],
)
def test_blank_space_at_the_end_of_a_line_is_not_part_of_a_suggestion(
    completion: str, after: str, expected: str
) -> None:
    desk = Desk()
    ask = desk.session.consider(desk.query(text=desk.text + after, invoked=True))
    assert isinstance(ask, Ask)
    prediction = infill(ask.request, completion)
    assert shown(desk.session.settle(ask, prediction, desk.revision, 0)) == expected


def test_below_the_threshold_says_both_numbers() -> None:
    def answered(confidence: float, **settings: object) -> Decision:
        desk = Desk(**settings)
        ask = desk.ask()
        prediction = infill(ask.request, "x", confidence=confidence)
        return desk.session.settle(ask, prediction, desk.revision, 0.0)

    assert reason(answered(0.12)) == "below threshold 0.12 < 0.25"
    assert shown(answered(0.12, eagerness="high")) == "x"
    assert "0.40 < 0.50" in reason(answered(0.40, eagerness="low"))


def test_raising_eagerness_shows_what_was_held_back_without_asking_again() -> None:
    desk = Desk()
    desk.answer("x", confidence=0.12)
    desk.session.settings, _ = updated(desk.session.settings, {"eagerness": "high"})
    assert shown(desk.consider()) == "x"


def test_the_next_candidate_is_shown_where_the_best_cannot_be() -> None:
    assert shown(Desk().answer("   ", "return x")) == "return x"


def test_the_models_own_reason_is_passed_on() -> None:
    desk = Desk()
    prediction = Prediction("1", "fake", (), "the cursor is inside a token")
    decision = desk.session.settle(desk.ask(), prediction, 0, 0)
    assert reason(decision) == "the cursor is inside a token"


def test_an_answer_for_an_older_text_is_never_shown() -> None:
    desk = Desk()
    ask = desk.ask()
    desk.type("x")
    decision = desk.session.settle(ask, infill(ask.request, "return"), desk.revision, 0)
    assert isinstance(decision, Abstained)
    assert decision.stale


def test_an_answer_for_a_closed_document_is_dropped() -> None:
    desk = Desk()
    ask = desk.ask()
    desk.session.closed(URI)
    decision = desk.session.settle(ask, infill(ask.request, "return"), None, 0)
    assert "closed" in reason(decision)


# --- outcomes ----------------------------------------------------------------------------------


def taken(desk: Desk) -> None:
    desk.type("return x")


def typed_after_reading(desk: Desk) -> None:
    desk.clock.now += 1
    desk.type("p")


def went_to_the_next_line_after_reading(desk: Desk) -> None:
    desk.clock.now += 1
    desk.type("\n    ")


def typed_some_of_it_and_a_blank(desk: Desk) -> None:
    desk.type("ret")
    desk.clock.now += 1
    desk.type(" ")


def typed_at_once(desk: Desk) -> None:
    desk.type("p")


def edited_elsewhere(desk: Desk) -> None:
    desk.becomes("# a comment\n" + desk.text)


def closed(desk: Desk) -> None:
    desk.session.closed(URI)


def reported(desk: Desk) -> None:
    desk.session.accepted("redraft-1")


def taken_in_part_then_left(desk: Desk) -> None:
    desk.session.accepted_part("redraft-1")
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
def test_what_became_of_a_suggestion_is_told_once(
    event: Callable[[Desk], None], expected: str
) -> None:
    desk = Desk()
    desk.answer("return x")
    event(desk)
    desk.session.closed(URI)
    assert desk.outcomes == [expected]


def test_a_suggestion_is_replaced_by_the_next_one() -> None:
    desk = Desk("a\nb\n")
    desk.answer("return x")
    desk.cursor = 0
    desk.answer("import os\n")
    assert desk.outcomes == ["replaced"]


def test_an_answer_that_came_too_late_was_cancelled() -> None:
    desk = Desk()
    ask = desk.ask()
    desk.type("x")
    desk.session.settle(ask, infill(ask.request, "return"), desk.revision, 0)
    assert desk.outcomes == ["cancelled"]


def test_a_report_corrects_what_the_document_made_us_think() -> None:
    desk = Desk()
    desk.answer("f(x)")
    desk.clock.now += 1
    desk.type("f( x )")  # a formatter had its way with it
    desk.session.accepted("redraft-1")
    desk.session.accepted("redraft-1")
    assert desk.outcomes == ["rejected", "accepted"]


def test_time_to_read_counts_from_when_the_client_drew_it() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.clock.now += 1
    desk.session.shown("redraft-1")
    desk.type("p")
    assert desk.outcomes == ["ignored"]


def test_accepted_suggestions_are_marked_in_the_history() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.type("return x")
    desk.clock.now += 2
    assert [edit.accepted for edit in desk.session.history.edits()] == [True]


def test_a_late_report_marks_what_was_accepted() -> None:
    desk = Desk()
    desk.answer("f(x)")
    desk.type("f( x )")  # a formatter had its way with it
    desk.session.accepted("redraft-1")
    desk.clock.now += 2
    assert [edit.accepted for edit in desk.session.history.edits()] == [True]


def test_a_report_on_an_unknown_suggestion_does_nothing() -> None:
    desk = Desk()
    desk.session.accepted("no such")
    desk.session.accepted_part("no such")
    desk.session.shown("no such")
    assert desk.outcomes == []


def test_rejections_slow_the_asking_down() -> None:
    desk = Desk()
    desk.answer("return x")
    desk.clock.now += 1
    desk.type("p")
    assert desk.ask().delay_ms == pytest.approx(150)


# --- settings ----------------------------------------------------------------------------------


def test_settings_are_read_in_either_spelling_and_under_their_key() -> None:
    base = LspSettings()
    assert updated(base, {"delayMs": 250})[0].delay_ms == 250
    assert updated(base, {"redraft": {"delay_ms": 250}})[0].delay_ms == 250
    assert updated(base, None) == (base, ())


def test_a_bad_value_is_named_and_leaves_its_setting_alone() -> None:
    settings, problems = updated(LspSettings(), {"maxLines": "many", "delayMs": 5, "colour": 1})
    assert (settings.max_lines, settings.delay_ms) == (6, 5)
    assert any("max_lines" in p and "'many'" in p for p in problems)
    assert any("'colour'" in p for p in problems)


@pytest.mark.parametrize("sent", [5, "text", [1], True])
def test_settings_of_the_wrong_shape_change_nothing(sent: object) -> None:
    settings, problems = updated(LspSettings(), sent)
    assert settings == LspSettings()
    assert problems
