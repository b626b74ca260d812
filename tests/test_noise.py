"""What a training canvas shows, asks and counts: worked examples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.noise import (
    PADDING_WEIGHT,
    canvases_of,
    complement,
    full_mask,
    lay_canvas,
    prefix_mask,
    random_mask,
)

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
