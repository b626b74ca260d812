"""Storage formats: how far a quantised matrix is from the original, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.network.quantize import (
    Stored,
    format_of,
    quantize_blocks,
    quantize_nibbles,
    quantize_rows,
)

F32 = np.dtype(np.float32)


def random_matrix(outputs: int, inputs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-4, 4, (outputs, 1))
    return (rng.normal(size=(outputs, inputs)) * scale).astype(np.float32)


@given(st.integers(1, 9), st.integers(1, 130), st.sampled_from([16, 32, 64]), st.integers(0, 99))
def test_blocks_are_within_half_a_step(outputs: int, inputs: int, block: int, seed: int) -> None:
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_blocks(matrix, block)
    back = (values.astype(np.float32) - 128) * scales[..., None]
    back = back.reshape(outputs, -1)
    assert back.shape[1] % block == 0
    assert np.all(back[:, inputs:] == 0)
    step = np.repeat(scales, block, axis=1)[:, :inputs]
    assert np.all(np.abs(back[:, :inputs] - matrix) <= 0.5001 * step)


@given(st.integers(1, 9), st.integers(1, 130), st.integers(0, 99))
def test_nibbles_are_within_a_step_of_the_values(outputs: int, inputs: int, seed: int) -> None:
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_nibbles(matrix, 32)
    levels = np.stack([values & 15, values >> 4], axis=-1).reshape(outputs, -1, 32)
    back = ((levels.astype(np.float32) - 8) * scales[..., None]).reshape(outputs, -1)
    assert np.all(back[:, inputs:] == 0)
    step = np.abs(np.repeat(scales, 32, axis=1)[:, :inputs])
    assert np.all(np.abs(back[:, :inputs] - matrix) <= 1.0001 * step)
    largest = np.abs(matrix).argmax(axis=1)[:, None]
    met = [np.take_along_axis(side, largest, axis=1) for side in (back, matrix)]
    assert np.allclose(*met, rtol=1e-5)


@given(st.integers(1, 9), st.integers(1, 130), st.integers(0, 99))
def test_rows_are_within_half_a_step(outputs: int, inputs: int, seed: int) -> None:
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_rows(matrix)
    assert values.shape == (inputs, outputs)
    assert np.all(np.abs(values.T * scales[:, None] - matrix) <= 0.5001 * scales[:, None])


def test_the_largest_value_is_kept_exactly_enough_and_zeros_stay_zero() -> None:
    values, scales = quantize_rows(np.array([[1.0, -3.0, 0.5]], np.float32))
    assert values[1, 0] == -127
    assert scales[0] == pytest.approx(3.0 / 127)
    matrix = np.zeros((2, 32), np.float32)
    values, scales = quantize_blocks(matrix, 32)
    assert np.all(values == 128) and np.all(np.isfinite(scales)) and np.all(scales > 0)
    rows, scales = quantize_rows(matrix)
    assert np.all(rows == 0) and np.all(scales > 0)


@pytest.mark.parametrize("how", ["plain", "blocks", "nibbles", "rows"])
def test_encoded_tensors_have_the_promised_types_and_shapes(how: str) -> None:
    stored = Stored("m", ("a", "b"), how, (12, 40), F32, block=32)  # type: ignore[arg-type]
    weights = {"a": random_matrix(8, 40, 0), "b": random_matrix(4, 40, 1)}
    arrays = stored.encode(weights)
    assert {n: (a.dtype, a.shape) for n, a in arrays.items()} == stored.tensors()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({}, r"blocks\.7\.attn\.q\.weight.*redraft model pull"),
        ({"blocks.7.attn.q.weight": np.zeros((4, 9), np.float32)}, "shapes"),
        ({"blocks.7.attn.q.weight": np.zeros((5, 8), np.float32)}, "shapes"),
    ],
)
def test_a_missing_or_wrong_weight_is_refused(weights: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        Stored("m", ("blocks.7.attn.q.weight",), "plain", (4, 8), F32).encode(weights)


def test_an_unknown_variant_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingsError, match=r"int4.*fp32, q8, int8, fp16"):
        format_of("int4", "linear")
