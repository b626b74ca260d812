"""Decisions over several candidates, and the percentages in their sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import ShownCandidate, decide, percentages, situation_of, too_unsure
from redraft.model.gate.filters import Situation
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Confidence, EditRequest
from support.models.gates import PLAIN

CODE = "def area(r):\n    return r\n"


def candidate(start: int, end: int, new: str, sure: float = 1.0, **features: float) -> Candidate:
    confidence = Confidence(sure, sure, sure)
    return Candidate(start, end, new, confidence, 1, 1, "end", features=features)


def test_trailing_spaces_of_shown_text_are_removed() -> None:
    here = Situation("infill", "a.py", "python", "x = \n", 4, threshold=0.85)
    found = decide([candidate(4, 4, "1  ", 0.85)], here, PLAIN)
    assert isinstance(found, ShownCandidate)
    assert (found.edit, found.score) == (Edit("x = \n", 4, 4, "1"), pytest.approx(0.85))


def test_filters_come_before_the_threshold_as_reasons() -> None:
    here = situation_of(EditRequest("next_edit", "a.py", CODE, 0, "python"), 0.88)
    at, end = CODE.index("    return"), len(CODE) - 1
    wrong, unsure = (
        candidate(at, end, "    return r ", 0.1),
        candidate(at, end, "    return (r", 0.1),
    )
    right = candidate(at, end, "    return 2 * r", 0.9)
    found = decide([wrong, unsure, right], here, PLAIN)
    assert isinstance(found, ShownCandidate) and found.candidate is right
    objection = decide([wrong, unsure], here, PLAIN)
    assert isinstance(objection, Abstain) and objection.kind == "whitespace_only"
    assert decide([unsure], here, PLAIN) == Abstain(
        "below_threshold", "10 % likely to be kept (shown from 88 %)"
    )
    assert decide([], replace(here, nothing="none"), PLAIN) == Abstain("nothing_to_do", "none")


@pytest.mark.parametrize(
    ("sure", "threshold", "said"),
    [
        (0.08, 0.25, "8 % likely to be kept (medium shows from 25 %)"),
        (0.246, 0.25, "24.6 % likely to be kept (medium shows from 25 %)"),
        (0.24996, 0.25, "24.996 % likely to be kept (medium shows from 25 %)"),
        (0.004, 0.1, "less than 1 % likely to be kept (high shows from 10 %)"),
        (0.0, 0.5, "0 % likely to be kept (low shows from 50 %)"),
        (0.876, 0.88, "87.6 % likely to be kept (shown from 88 %)"),
    ],
)
def test_what_is_hidden_is_told_in_percent(sure: float, threshold: float, said: str) -> None:
    assert too_unsure(sure, threshold, "infill") == Abstain("below_threshold", said)


@given(st.floats(0, 1), st.floats(0, 1))
def test_percentages_keep_the_order_of_their_numbers(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high - low > 1e-15:
        texts = (text.replace("less than 1", "0.5") for text in percentages(low, high))
        left, right = (float(text.removesuffix(" %")) for text in texts)
        assert left < right


def test_a_name_that_was_undone_is_not_suggested_again() -> None:
    at = CODE.index("area")
    made = candidate(at, at + len("area"), "size")
    here = Situation("next_edit", "a.py", "python", CODE, 0, threshold=0.0, last_edit=0)
    assert isinstance(decide([made], here, PLAIN), ShownCandidate)
    assert decide([replace(made, features={"undone": 1.0})], here, PLAIN) == Abstain(
        "reversal", "the edit would bring back a name that you just removed"
    )
