"""What a training canvas shows, asks and counts: worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.training.noise import (
    PADDING_WEIGHT,
    Noise,
    canvases_of,
    causal_weights,
    complement,
    corrupt,
    full_mask,
    lay_canvas,
    prefix_mask,
    random_mask,
    settle_end,
    sloped_mask,
)
from support.reference import sharpening

MASK, END = 16, 0
#       prompt          answer   END and padding
ROW = np.array([101, 102, 103, 7, 8, 9, END, END, END, END, END, END, END, END, END])


def test_window_opens_with_the_last_prompt_token_and_predicts_the_next_ones() -> None:
    canvas = lay_canvas(ROW, 3, 3, 0, full_mask(4), MASK)
    assert canvas.start == 2
    assert canvas.window.tolist() == [103, MASK, MASK, MASK]
    assert canvas.target.tolist() == [7, 8, 9, END]
    assert canvas.weight.tolist() == [1, 1, 1, 1]


def test_shown_tokens_are_inputs_and_do_not_count() -> None:
    hidden = np.array([False, True, False, True])
    canvas = lay_canvas(ROW, 3, 3, 0, hidden, MASK)
    assert canvas.window.tolist() == [103, 7, MASK, 9]
    assert canvas.weight.tolist() == [0, 1, 0, 1]


def test_padding_after_the_first_end_counts_little() -> None:
    canvas = lay_canvas(ROW, 3, 1 + 2, 0, full_mask(6), MASK)
    assert canvas.target.tolist() == [7, 8, 9, END, END, END]
    assert np.allclose(canvas.weight, [1, 1, 1, 1, PADDING_WEIGHT, PADDING_WEIGHT])


def test_a_later_canvas_opens_with_the_last_token_of_the_one_before() -> None:
    canvas = lay_canvas(ROW, 3, 3, 2, full_mask(2), MASK)
    assert canvas.window.tolist() == [8, MASK]
    assert canvas.target.tolist() == [9, END]


def test_the_last_position_is_always_predicted_because_it_is_never_shown() -> None:
    canvas = lay_canvas(ROW, 3, 3, 0, np.array([True, False, False]), MASK)
    assert canvas.weight[-1] == 1


@given(st.integers(0, 2**32), st.integers(2, 32))
def test_complementary_masks_cover_every_position_once(seed: int, width: int) -> None:
    mask = random_mask(width, 0.2, np.random.default_rng(seed))
    assert mask.any()
    assert (mask ^ complement(mask)).all()


@given(st.integers(0, 2**32), st.integers(2, 32))
def test_prefix_mask_shows_a_beginning_and_hides_the_end(seed: int, width: int) -> None:
    mask = prefix_mask(width, np.random.default_rng(seed))
    assert not mask[0]
    assert mask[-1]


@given(st.integers(0, 2**32), st.integers(0, 20), st.integers(2, 6))
def test_every_row_gets_as_many_canvases_as_asked_and_one_as_serving_begins(
    seed: int, answer: int, count: int
) -> None:
    prompt, width = 60, 8
    tokens = np.concatenate(
        [np.arange(100, 100 + prompt), np.arange(500, 500 + answer), np.zeros(2 * width + 1, int)]
    )
    laid = canvases_of(tokens, prompt, answer, 20, count, width, MASK, np.random.default_rng(seed))
    assert len(laid) == count
    assert any(c.start == prompt - 1 and (c.window[1:] == MASK).all() for c in laid)
    for canvas in laid:
        assert (canvas.target == tokens[canvas.start + 1 : canvas.start + 1 + width]).all()
        shown = canvas.window[1:] != MASK
        assert (canvas.window[1:][shown] == canvas.target[:-1][shown]).all()
        assert (canvas.weight[:-1][shown] == 0).all()
        assert canvas.weight.sum() > 0


def test_ratios_are_uniform_and_later_positions_are_hidden_more() -> None:
    rng = np.random.default_rng(0)
    masks = np.array([sloped_mask(16, 0.3, 0.4, rng) for _ in range(4_000)])
    by_position = masks.mean(0)
    assert by_position[-4:].mean() - by_position[:4].mean() == pytest.approx(0.25, abs=0.06)
    level = np.array([sloped_mask(16, 0.3, 0.0, rng) for _ in range(4_000)])
    assert level.mean() == pytest.approx((0.3 + 1) / 2 + 0.35 / 16, abs=0.015)
    assert masks.any(axis=1).all()


def test_padding_is_shown_with_the_first_end_and_hidden_with_it() -> None:
    mask = np.array([True, False, True, False, False, True])
    assert settle_end(mask, 2).tolist() == [True, False, True, True, True, True]
    assert settle_end(mask, 3).tolist() == [True, False, True, False, False, False]
    assert settle_end(mask, 6).tolist() == mask.tolist()


@given(st.integers(0, 2**32), st.integers(0, 20))
def test_with_settled_ends_no_canvas_gives_away_a_hidden_end(seed: int, answer: int) -> None:
    tokens = np.concatenate([np.arange(100, 140), np.arange(500, 500 + answer), np.zeros(17, int)])
    noise = Noise(settled_end=True)
    rng = np.random.default_rng(seed)
    for canvas in canvases_of(tokens, 40, answer, 0, 6, 8, MASK, rng, noise):
        inputs = canvas.window[1:].tolist()
        if END in inputs:
            assert set(inputs[inputs.index(END) :]) == {END}
            assert inputs.index(END) == answer - (canvas.start - 39)


def test_wrong_tokens_are_asked_for_and_right_ones_are_to_stay() -> None:
    hidden = np.array([False, True, False, False, True, False])
    canvas = lay_canvas(ROW, 3, 3, 0, hidden, MASK)
    noise = Noise(wrong=1.0, wrong_weight=0.7, ordinary=(200, 400))
    spoilt = corrupt(canvas, hidden, 4, ROW[:3], noise, np.random.default_rng(0))
    assert spoilt.target.tolist() == canvas.target.tolist()
    assert np.allclose(spoilt.weight, [0.7, 1, 0.7, 0.7, PADDING_WEIGHT, PADDING_WEIGHT])
    wrong = spoilt.window != canvas.window
    assert wrong.tolist() == [False, True, False, True, True, False]
    assert (spoilt.window[1:][wrong[1:]] != spoilt.target[:-1][wrong[1:]]).all()


def test_wrong_tokens_come_from_canvas_context_and_anywhere_in_the_asked_share() -> None:
    rng = np.random.default_rng(0)
    answer = np.arange(500, 600)
    context = np.arange(100, 200)
    tokens = np.concatenate([context, answer, np.zeros(200, int)])
    shown = np.zeros(100, np.bool_)
    canvas = lay_canvas(tokens, 100, 100, 0, shown, MASK)
    noise = Noise(wrong=0.3, right_weight=0.2, ordinary=(1_000, 2_000))
    replaced = []
    for _ in range(60):
        spoilt = corrupt(canvas, shown, 100, context, noise, rng)
        wrong = spoilt.window[1:] != canvas.window[1:]
        replaced += spoilt.window[1:][wrong].tolist()
        assert np.allclose(spoilt.weight[:-1], np.where(wrong, 1.0, 0.2))
    assert len(replaced) / (60 * 99) == pytest.approx(0.3, abs=0.03)
    for low, high in ((100, 200), (500, 600), (1_000, 2_000)):
        share = np.mean([low <= token < high for token in replaced])
        assert share == pytest.approx(1 / 3, abs=0.05)


def test_sharpening_is_the_entropy_of_what_is_right() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1]])
    target, weight = np.array([0, 2, 1, 0]), np.array([1.0, 1.0, 0.5, 0.0])
    entropy = -(p * np.log(p)).sum(1)
    found = sharpening(np.log(p), target, weight)
    assert found == pytest.approx((entropy[0] + 0.5 * entropy[2]) / 2.5)
    assert sharpening(np.log(p), np.array([2, 2, 2, 2]), weight) == 0


def test_the_causal_pass_learns_the_answer_its_end_and_some_code() -> None:
    weight = causal_weights(20, 3, 10, 4, 0.25, np.random.default_rng(0))
    assert len(weight) == 24
    assert (weight[20:] == 1).all()
    assert (weight[:11] == 0).all()
    assert sorted(weight[11:20].tolist()) == [0.0] * 5 + [0.25] * 4
    assert causal_weights(20, 3, 0, 4, 0.25, np.random.default_rng(0))[:20].sum() == 0
