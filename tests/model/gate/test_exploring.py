"""A threshold that moves at few moments, where the user wants it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.explore import BAND, SHARE, ExplorationDraw, draw_threshold
from support.editors.predictor import infill
from support.editors.workbench import Ask, Decision, Workbench, reason, shown

USUAL = 0.25


def drawn(count: int = 20_000) -> Counter[float]:
    draws = (draw_threshold(USUAL, True, f"7 file:///a.py {revision}") for revision in range(count))
    return Counter(round(each.threshold, 6) for each in draws)


def test_nothing_moves_unless_the_user_wants_it() -> None:
    for revision in range(1_000):
        assert draw_threshold(USUAL, False, f"7 {revision}") == ExplorationDraw(USUAL, USUAL, False)


def test_the_threshold_moves_at_one_in_a_hundred() -> None:
    found = drawn()
    assert set(found) == {USUAL - BAND, USUAL, USUAL + BAND}
    for moved in (USUAL - BAND, USUAL + BAND):
        assert found[moved] / sum(found.values()) == pytest.approx(SHARE / 2, rel=0.2)


def test_a_repeated_moment_has_the_same_threshold() -> None:
    moments = [f"7 file:///a.py {revision}" for revision in range(1_000)]
    first = [draw_threshold(USUAL, True, each).threshold for each in moments]
    assert [draw_threshold(USUAL, True, each).threshold for each in moments] == first
    others = [draw_threshold(USUAL, True, f"8{each[1:]}").threshold for each in moments]
    assert others != first


@pytest.mark.parametrize("sure", [0.0, 0.14, 0.16, 0.24, 0.26, 0.34, 0.36, 1.0])
def test_the_propensity_is_how_often_it_would_be_shown(sure: float) -> None:
    found = drawn()
    shown = sum(n for threshold, n in found.items() if sure >= threshold) / sum(found.values())
    assert draw_threshold(USUAL, True, "").propensity(sure) == pytest.approx(shown, abs=0.004)
    assert draw_threshold(USUAL, False, "").propensity(sure) == float(sure >= USUAL)


def answered_at(move: float, confidence: float, **fields: object) -> tuple[Workbench, Decision]:
    """Return a desk at whose moment the threshold moves so, and its decision on an answer."""
    for seed in range(2_000):
        desk = Workbench(explore_gate=True)
        desk.session.gates.recordings = SimpleNamespace(is_on=lambda: True)  # type: ignore[assignment]
        desk.session.gates.seed = seed
        drawn = desk.session.gates.threshold_at(desk.query(), "infill")
        if drawn.threshold == pytest.approx(USUAL + move):
            ask = desk.session.consider(desk.query(**fields))
            assert isinstance(ask, Ask)
            made = infill(ask.request, "x", confidence=confidence)
            return desk, desk.settle(ask, made)
    raise AssertionError("no seed draws this move")


def test_a_lowered_threshold_marks_its_suggestion() -> None:
    desk, decision = answered_at(-BAND, 0.2)
    assert shown(decision) == "x"
    assert isinstance(decision, Offer)
    assert decision.suggestion.unsure == "20 % likely to be kept (medium shows from 25 %)"
    assert shown(desk.consider()) == "x"
    assert reason(answered_at(-BAND, 0.1)[1]) == "10 % likely to be kept (shown from 15 %)"


def test_a_raised_threshold_hides_a_narrow_pass() -> None:
    assert reason(answered_at(BAND, 0.3)[1]) == "30 % likely to be kept (shown from 35 %)"
    assert shown(answered_at(BAND, 0.4)[1]) == "x"


def test_a_gesture_gets_the_usual_threshold() -> None:
    assert shown(answered_at(BAND, 0.3, invoked=True)[1]) == "x"
