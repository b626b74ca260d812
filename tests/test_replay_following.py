"""What became of a text, by whose hand, and whether that was what was suggested."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.evals.replay.followed_text import DocumentChange, Followed, PlacedEdit
from redraft.evals.replay.matchers import Match, match
from redraft.evals.replay.until_rest import Comparison, compare, needed, until_rest

YES, NO, UNKNOWN = Match(True, True, True), Match(False, False, False), Match(None, None, None)


def put(
    at: int, text: str, removed: int = 0, typed: bool = True, at_s: float = 0.0
) -> DocumentChange:
    return DocumentChange(at_s, (PlacedEdit(at, at + removed, text),), typed)


def typing(at: int, text: str) -> list[DocumentChange]:
    return [put(at + i, char) for i, char in enumerate(text)]


# --- following -----------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_what_lies_outside_of_regions_is_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("ab\n") for _ in range(rng.randrange(30)))
    start = rng.randint(0, len(text))
    followed, now = Followed(text, (start, rng.randint(start, len(text)))), text
    for _ in range(rng.randrange(8)):
        low = rng.randint(0, len(now))
        high = rng.randint(low, min(len(now), low + 4))
        step = DocumentChange(
            0.0, (PlacedEdit(low, high, rng.choice(["", "x", "y\n", "zz"])),), rng.random() < 0.8
        )
        now = step.apply(now)
        followed.apply(step)
    assert followed.now == now
    rebuilt, at = "", 0
    for region in followed.regions:
        rebuilt += text[at : region.old_start] + now[region.start : region.end]
        at = region.old_end
    assert rebuilt + text[at:] == now
    lines = followed.lines()
    if not any(region.foreign for region in followed.regions):
        whole, at = "", 0
        for low, high in lines:
            whole += text[at:low] + followed.new_parts([(low, high)])
            at = high
        assert whole + text[at:] == now


def test_edits_of_one_change_count_in_the_text_before_it() -> None:
    step = DocumentChange(0.0, (PlacedEdit(0, 1, "xyz"), PlacedEdit(2, 3, "")), True)
    followed = Followed("abc")
    followed.apply(step)
    assert followed.now == step.apply("abc") == "xyzb"


# --- matching ------------------------------------------------------------------------------------


def test_typing_the_suggestion_out_is_exact() -> None:
    assert match("f()\n", 2, 2, "a, b", typing(2, "a, b")) == YES


def test_going_past_the_suggestion_is_exact_as_well() -> None:
    assert match("f()\n", 2, 2, "a", typing(2, "a, b")) == YES


def test_edits_elsewhere_meanwhile_do_not_matter() -> None:
    steps = [put(0, "# top\n"), *typing(8, "a"), put(12, "end"), *typing(9, ", b")]
    assert match("f()\nx\n", 2, 2, "a, b", steps) == YES


def test_reaching_the_same_text_by_another_way_is_exact() -> None:
    # Suggested: old -> new. The user writes a new line above and deletes the old one.
    steps = [put(0, "f(new)\n"), put(7, "", removed=7)]
    assert match("f(old)\n", 2, 5, "new", steps) == YES


def test_replacing_more_than_the_suggestion_by_the_same_is_exact() -> None:
    assert match("a = old + 1\n", 4, 7, "new", [put(0, "a = new", removed=7)]) == YES


def test_other_white_space_matches_but_is_not_exact() -> None:
    assert match("f()\n", 2, 2, "a, b", typing(2, "a,b")) == Match(False, True, True)


def test_ten_characters_that_agree_are_a_prefix() -> None:
    steps = typing(0, "return value or None")
    assert match("\n", 0, 0, "return value", steps[:11]) == Match(False, False, True)
    assert match("\n", 0, 0, "return what()", steps) == Match(False, False, False)


def test_a_short_suggestion_has_to_be_exact() -> None:
    assert match("\n", 0, 0, "retur", typing(0, "retu")) == NO


def test_a_match_after_fifty_changes_comes_too_late() -> None:
    elsewhere = [put(2, "x") for _ in range(50)]
    assert match("\n\n", 0, 0, "a", [*elsewhere, put(0, "a")]) == NO
    assert match("\n\n", 0, 0, "a", [*elsewhere[:49], put(0, "a")]) == YES


def test_what_was_pasted_says_nothing() -> None:
    assert match("f()\n", 2, 2, "a, b", [put(2, "a, b", typed=False)]) == UNKNOWN


def test_a_paste_elsewhere_does_not_matter() -> None:
    steps = [put(5, "pasted", typed=False), *typing(2, "a")]
    assert match("f()\nx\n", 2, 2, "a", steps) == YES


def test_who_wrote_something_else_there_before_a_paste_did_not_accept() -> None:
    assert match("f()\n", 2, 2, "a, b", [put(2, "x"), put(3, "y", typed=False)]) == NO
    assert match("f()\n", 2, 2, "a, b", [put(2, "a"), put(3, "y", typed=False)]) == UNKNOWN
    assert match("f()\n", 2, 2, "a, b", [put(2, "x")], told=False) == NO


def test_what_was_typed_before_a_paste_still_counts() -> None:
    steps = [*typing(0, "return val"), put(10, "ue", typed=False)]
    assert match("\n", 0, 0, "return value", steps) == Match(None, None, True)


def test_the_end_of_a_recording_cannot_tell() -> None:
    assert match("\n", 0, 0, "a", [], told=False) == UNKNOWN
    assert match("\n", 0, 0, "a", [], told=True) == NO


# --- at rest -------------------------------------------------------------------------------------


def test_a_document_rests_after_ten_quiet_seconds_or_five_minutes() -> None:
    steps = [put(0, "a", at_s=t) for t in (1.0, 9.0, 18.0, 28.0)]
    assert until_rest(steps, 0.0) == steps[:3]
    busy = [put(0, "a", at_s=9.0 * t) for t in range(60)]
    assert until_rest(busy, 0.0)[-1].at_s == 297.0


def test_what_is_left_to_do_is_what_the_user_does_soon() -> None:
    assert needed([put(0, "a", at_s=5.0)], 0.0, 100.0) is True
    assert needed([put(0, "a", at_s=15.0)], 0.0, 100.0) is False
    assert needed([put(0, "a", typed=False, at_s=5.0)], 0.0, 100.0) is None
    assert needed([], 0.0, 5.0) is None


def test_a_suggestion_is_compared_with_all_that_the_user_did() -> None:
    text = "f(a)\n" + "x\n" * 50 + "g(a)\n"
    steps = [put(3, ", b"), put(3 + len(text) - 2 - 1 + 1, ", b")]
    # Suggested and typed: ", b" in f (3 characters); typed besides: ", b" in g.
    found = compare(text, 3, 3, ", b", steps)
    assert found is not None
    assert (found.right, found.suggested, found.done) == (3, 3, 6)
    assert 0 < found.delta_chrf < 100


def test_a_suggestion_that_the_user_made_is_perfect() -> None:
    assert compare("f(a)\n", 3, 3, ", b", [put(3, ", b")]) == Comparison(3, 3, 3, 100.0)


def test_text_from_elsewhere_in_the_same_line_makes_no_truth() -> None:
    steps = [put(3, ", b"), put(0, "x = ", typed=False)]
    assert compare("f(a)\n", 3, 3, ", b", steps) is None


def test_text_from_elsewhere_in_other_lines_is_left_out() -> None:
    steps = [put(4, "  # pasted", typed=False), put(3, ", b")]
    assert compare("f(a)\ng\nh\n", 3, 3, ", b", steps) is None
    steps = [put(7, "pasted\n", typed=False), put(3, ", b")]
    assert compare("f(a)\ng\nh\n", 3, 3, ", b", steps) == Comparison(3, 3, 3, 100.0)


def test_what_is_appended_at_the_very_end_counts() -> None:
    assert compare("a\n", 2, 2, "b\n", [put(2, "b\n")]) == Comparison(2, 2, 2, 100.0)
