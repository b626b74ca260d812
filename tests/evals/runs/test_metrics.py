"""Metrics of suggestions: worked examples of every figure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.evals.metrics import (
    delta_chrf,
    errors_added,
    harmonic_mean,
    keystrokes_saved,
    reversal_ratio,
    show_quiet_score,
    utility,
)
from redraft.lsp.learning.kept_text import KeptCharacters, measure_kept


@pytest.mark.parametrize(
    ("base", "wanted", "found", "score"),
    [
        ("f(a)", ["f(a, b)"], "f(a, b)", 100),
        ("f(a)", ["f(a)"], "f(a)", 100),
        ("f(a)", ["f(a, b)"], "f( a,\n b )", 100),  # white space is dropped
        ("ab", ["xyz", "abc"], "abc", 100),  # the best of several expected texts
        # n = 1: dE = +c, dA = +d: nothing right, P = R = 0. n = 2: +bc, +bd: 0. n = 3: 0.
        # n = 4, 5, 6: no text has so many characters, nothing to do: P = R = 1.
        # P = R = 3/6 = 0.5; F = 5 * 0.5 * 0.5 / (4 * 0.5 + 0.5) = 0.5.
        ("ab", ["abc"], "abd", 50),
        # n = 1: dE = +b +c, dA = +b: TP 1, FP 0, FN 1: P = 1, R = 1/2.
        # n = 2: dE = +ab +bc, dA = +ab: P = 1, R = 1/2.
        # n = 3: dE = +abc, dA = nothing: P = 1 (nothing found), R = 0. n = 4, 5, 6: 1, 1.
        # P = 1; R = (1/2 + 1/2 + 0 + 3) / 6 = 2/3; F = 5 * 2/3 / (4 + 2/3) = 5/7.
        ("a", ["abc"], "ab", 100 * 5 / 7),
        # n = 1: dE = -c +d, dA = -c: TP 1 (the deletion), FP 0, FN 1: P = 1, R = 1/2.
        # n = 2: dE = -bc +bd, dA = -bc: P = 1, R = 1/2. n = 3: the same. n = 4, 5, 6: 1, 1.
        # P = 1; R = (3 * 1/2 + 3) / 6 = 3/4; F = 5 * 3/4 / (4 + 3/4).
        ("abc", ["abd"], "ab", 100 * 3.75 / 4.75),
        # n = 1: dE = +b, dA = +b +b: TP 1, FP 1: P = 1/2, R = 1. n = 2: P = 1/2, R = 1.
        # n = 3: dA = +abb: P = 0, R = 1 (none wanted). n = 4, 5, 6: 1, 1.
        # P = (1/2 + 1/2 + 0 + 3) / 6 = 2/3; R = 1; F = 5 * 2/3 / (4 * 2/3 + 1).
        ("a", ["ab"], "abb", 100 * (10 / 3) / (11 / 3)),
    ],
)
def test_delta_chrf_by_hand(base: str, wanted: list[str], found: str, score: float) -> None:
    assert delta_chrf(base, wanted, found) == pytest.approx(score)


_TEXT = st.text("ab(", max_size=24)


@given(_TEXT, _TEXT, _TEXT, _TEXT, _TEXT)
@settings(max_examples=60, deadline=None)
def test_delta_chrf_skips_shared(head: str, base: str, wanted: str, found: str, tail: str) -> None:
    texts = [head + middle + tail for middle in (base, wanted, found)]
    assert delta_chrf(texts[0], [texts[1]], texts[2]) == pytest.approx(_plainly(*texts))


def _plainly(base: str, wanted: str, found: str) -> float:
    """Compute the definition word by word: signed counts of all n-grams of the whole texts."""
    precision = recall = 0.0
    for n in range(1, 7):
        counts = [[t[i : i + n] for i in range(len(t) - n + 1)] for t in (base, wanted, found)]
        right = too_much = too_little = 0
        for gram in {gram for each in counts for gram in each}:
            was, want, got = (each.count(gram) for each in counts)
            for sign in (1, -1):
                expected, actual = max(0, sign * (want - was)), max(0, sign * (got - was))
                right += min(expected, actual)
                too_much += max(0, actual - expected)
                too_little += max(0, expected - actual)
        precision += right / (right + too_much) if right + too_much else 1.0
        recall += right / (right + too_little) if right + too_little else 1.0
    p, r = precision / 6, recall / 6
    return 100 * 5 * p * r / (4 * p + r) if p + r else 0.0


@pytest.mark.parametrize(
    ("before", "suggested", "after", "expected"),
    [
        ("f(a)\n", "f(a, b)\n", "f(a, b)\n", KeptCharacters(right=3, suggested=3, done=3)),
        # Written: "foo", "(", "bar", ")" = 8. The user kept foo( ) = 5 and wrote "x" = 1.
        ("", "foo(bar)", "foo(x)", KeptCharacters(right=5, suggested=8, done=6)),
        # Both delete "old" (3); the suggestion writes "new" (3), the user "other" (5).
        ("old\n", "new\n", "other\n", KeptCharacters(right=3, suggested=6, done=8)),
        # "x" is written once more than before. The user has the first one alone in the end.
        ("x\n", "x\nx\n", "x\n", KeptCharacters(right=0, suggested=2, done=0)),
        ("a", "a", "a", KeptCharacters(right=0, suggested=0, done=0)),
    ],
)
def test_kept_by_hand(before: str, suggested: str, after: str, expected: KeptCharacters) -> None:
    found = measure_kept(before, suggested, after)
    assert found == expected
    rate = expected.right / expected.suggested if expected.suggested else None
    assert found.kept_rate == rate


def test_texts_that_differ_too_much_are_not_compared() -> None:
    many = " ".join(map(str, range(4_000)))
    assert measure_kept("", many, many[::-1]) is None


@pytest.mark.parametrize(
    ("before", "typed", "suggested", "ratio"),
    [
        ("f(old)", "f(new)", "f(old)", 1.0),
        # The user wrote "cd". The suggestion makes "x" of "d": one of its two characters undoes.
        ("ab", "abcd", "abcx", 0.5),
        ("a\nb\nc", "ax\nb\nc", "ax\nb\ncx", 0.0),  # elsewhere
        ("f(", "f(a", "f(a, b", 0.0),  # goes on from the last edit
        # Between two edits of the user, and neither taken back.
        ("a\nb\nc", "x\nb\ny", "x\nz\ny", 0.0),
        ("f(a, b)\nb\nc", "f(a)\nb\nd", "f(a, b)\nb\nd", 1.0),  # one of two
        ("a", "b", "b", None),
    ],
)
def test_reversal_ratio(before: str, typed: str, suggested: str, ratio: float | None) -> None:
    assert reversal_ratio(before, typed, suggested) == ratio


def test_only_added_syntax_errors_are_counted() -> None:
    assert errors_added("x = 1\n", "x = (1\n", "python") == 1
    assert errors_added("x = (1\n", "x = (1)\n", "python") == -1
    assert errors_added("x", "y", "klingon") is None


def test_keystrokes_utility_and_scores_by_hand() -> None:
    assert keystrokes_saved("", "if x:\n        return", jumps=False) == 12 - 1
    assert keystrokes_saved("old", "new", jumps=True) == 3 + 1 - 2
    assert utility(True) + 3 * utility(False) == 0.0
    assert harmonic_mean(0.5, 1.0) == pytest.approx(2 / 3)
    assert harmonic_mean(0.0, 0.0) == 0.0
    assert show_quiet_score(60.0, 0.5, 1.0) == pytest.approx(0.4)
