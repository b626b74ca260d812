"""What became of a text, by whose hand, and whether that was what was suggested."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.evals.replay.matchers import (
    Comparison,
    DocumentChange,
    Followed,
    Match,
    PlacedEdit,
    compare,
    match,
    needed,
    until_rest,
)

YES, NO, UNKNOWN = Match(True, True, True), Match(False, False, False), Match(None, None, None)


def put(
    at: int, text: str, removed: int = 0, typed: bool = True, at_s: float = 0.0
) -> DocumentChange:
    return DocumentChange(at_s, (PlacedEdit(at, at + removed, text),), typed)


def typing(at: int, text: str) -> list[DocumentChange]:
    return [put(at + i, char) for i, char in enumerate(text)]


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


AGAIN = [put(2, "x") for _ in range(50)]
LINE = typing(0, "return value or None")
ELSEWHERE = [put(0, "# top\n"), *typing(8, "a"), put(12, "end"), *typing(9, ", b")]


@pytest.mark.parametrize(
    ("text", "start", "end", "suggested", "steps", "expected"),
    [
        ("f()\n", 2, 2, "a, b", typing(2, "a, b"), YES),
        ("f()\n", 2, 2, "a", typing(2, "a, b"), YES),  # further than the suggestion
        ("f()\nx\n", 2, 2, "a, b", ELSEWHERE, YES),
        # A new line is written above, and the old one deleted.
        ("f(old)\n", 2, 5, "new", [put(0, "f(new)\n"), put(7, "", removed=7)], YES),
        ("a = old + 1\n", 4, 7, "new", [put(0, "a = new", removed=7)], YES),  # more replaced
        ("f()\n", 2, 2, "a, b", typing(2, "a,b"), Match(False, True, True)),  # white space
        ("\n", 0, 0, "return value", LINE[:11], Match(False, False, True)),  # ten characters
        ("\n", 0, 0, "return what()", LINE, Match(False, False, False)),
        ("\n", 0, 0, "retur", typing(0, "retu"), NO),  # too short for a prefix
        ("\n\n", 0, 0, "a", [*AGAIN, put(0, "a")], NO),  # too late
        ("\n\n", 0, 0, "a", [*AGAIN[:49], put(0, "a")], YES),
        ("f()\n", 2, 2, "a, b", [put(2, "a, b", typed=False)], UNKNOWN),  # pasted
        ("f()\nx\n", 2, 2, "a", [put(5, "pasted", typed=False), *typing(2, "a")], YES),
        ("f()\n", 2, 2, "a, b", [put(2, "x"), put(3, "y", typed=False)], NO),
        ("f()\n", 2, 2, "a, b", [put(2, "a"), put(3, "y", typed=False)], UNKNOWN),
        (
            *("\n", 0, 0, "return value"),
            [*typing(0, "return val"), put(10, "ue", typed=False)],
            Match(None, None, True),
        ),
    ],
)
def test_a_suggestion_is_matched_with_what_was_typed(
    text: str, start: int, end: int, suggested: str, steps: list[DocumentChange], expected: Match
) -> None:
    assert match(text, start, end, suggested, steps) == expected


def test_the_end_of_a_recording_cannot_tell() -> None:
    assert match("\n", 0, 0, "a", [], told=False) == UNKNOWN
    assert match("\n", 0, 0, "a", [], told=True) == NO
    assert match("f()\n", 2, 2, "a, b", [put(2, "x")], told=False) == NO


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


PERFECT = Comparison(3, 3, 3, 100.0)


@pytest.mark.parametrize(
    ("text", "at", "new", "steps", "expected"),
    [
        ("f(a)\n", 3, ", b", [put(3, ", b")], PERFECT),
        # Text from elsewhere in the same line makes no truth. In other lines it is left out.
        ("f(a)\n", 3, ", b", [put(3, ", b"), put(0, "x = ", typed=False)], None),
        ("f(a)\ng\nh\n", 3, ", b", [put(4, "  # pasted", typed=False), put(3, ", b")], None),
        ("f(a)\ng\nh\n", 3, ", b", [put(7, "pasted\n", typed=False), put(3, ", b")], PERFECT),
        ("a\n", 2, "b\n", [put(2, "b\n")], Comparison(2, 2, 2, 100.0)),  # at the very end
    ],
)
def test_text_from_elsewhere_is_left_out_or_makes_no_truth(
    text: str, at: int, new: str, steps: list[DocumentChange], expected: Comparison | None
) -> None:
    assert compare(text, at, at, new, steps) == expected
