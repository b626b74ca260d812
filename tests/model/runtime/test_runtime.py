"""The onnxruntime backend: every shortcut equals computing afresh; bad folders are explained."""

from __future__ import annotations

import dataclasses
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.errors import InvalidRequest
from redraft.model.network.layout import TOP
from redraft.model.runtime.backend import Scores
from redraft.model.runtime.kv_memory import SIZE_CLASSES
from redraft.model.runtime.onnx_sequence import SCORED_CHUNK
from redraft.model.runtime.onnx_session import Graphs
from redraft.model.runtime.rope import rope_tables, stretch
from support.models.onnx_models import BASE, predictable, some_tokens, some_window, store
from support.models.runtimes import NOTHING, TOKENS, WINDOW, fresh, is_same

runtime = pytest.importorskip("redraft.model.runtime.onnx_backend")


def assert_same(found: Any, expected: Any, window: NDArray[np.int64] = WINDOW) -> None:
    """Both hold the same tokens and write the same; numbers agree to rounding."""
    assert found.tokens == expected.tokens
    left, right = (
        found.denoise(window, NOTHING, logits=True),
        expected.denoise(window, NOTHING, logits=True),
    )
    assert_same_output(left, right)


def assert_same_output(left: Scores, right: Scores) -> None:
    assert np.array_equal(left.top[:, 0], right.top[:, 0])
    assert np.allclose(np.exp(left.top_logprob), np.exp(right.top_logprob), atol=2e-4)
    assert left.logits is not None and right.logits is not None
    ids = predictable(BASE)
    assert np.allclose(left.logits[..., ids], right.logits[..., ids], atol=2e-2)


@pytest.mark.parametrize("capacity", [100, 3_000])
def test_a_fork_equals_fresh_and_keeps_its_source(backend: Any, capacity: int) -> None:
    source = fresh(backend, TOKENS)
    before = source.denoise(WINDOW, NOTHING)
    fork = backend.fork(source, 50, capacity)
    assert fork.capacity >= capacity
    other = some_tokens(BASE, 20, seed=9)
    fork.extend(other)
    assert_same(fork, fresh(backend, np.concatenate([TOKENS[:50], other])))
    after = source.denoise(WINDOW, NOTHING)
    assert source.tokens == TOKENS.tolist()
    assert np.array_equal(before.top_logprob, after.top_logprob)


def test_denoising_leaves_the_cache_as_it_was(backend: Any) -> None:
    sequence = fresh(backend, TOKENS)
    first = sequence.denoise(WINDOW, NOTHING)
    for placed in range(4):
        sequence.denoise(some_window(BASE, placed, seed=placed), NOTHING)
    again = sequence.denoise(WINDOW, NOTHING)
    assert np.array_equal(first.top, again.top)
    assert np.array_equal(first.top_logprob, again.top_logprob)
    more = some_tokens(BASE, 12, seed=3)
    sequence.extend(more)
    assert_same(sequence, fresh(backend, np.concatenate([TOKENS, more])))


def test_a_result_is_not_overwritten_by_the_next_step(backend: Any) -> None:
    sequence = fresh(backend, TOKENS)
    first = sequence.denoise(WINDOW, NOTHING, logits=True)
    kept = first.top.copy(), first.top_logprob.copy(), first.logits.copy()
    sequence.denoise(some_window(BASE, 5, seed=11), NOTHING, logits=True)
    assert np.array_equal(first.top, kept[0])
    assert np.array_equal(first.top_logprob, kept[1])
    assert np.array_equal(first.logits, kept[2])


def test_what_a_pass_said_is_free_once_nobody_holds_it(backend: Any) -> None:
    """Each sequence of the prefix cache would else hold its last logits: 15 MB of 24 rows."""
    sequence = fresh(backend, TOKENS)
    said = sequence.score(TOKENS[:4], logits=True)
    gone = weakref.ref(said.logits if said.logits.base is None else said.logits.base)
    del said
    assert gone() is None
    assert sequence.score(TOKENS[:4], logits=True).logits is not None


def test_windows_of_several_widths_take_turns(backend: Any) -> None:
    sequence = fresh(backend, TOKENS)
    wide = np.concatenate([WINDOW, np.full(5, BASE.mask_token)])
    first = sequence.denoise(WINDOW, NOTHING)
    assert sequence.denoise(wide, NOTHING).top.shape == (len(wide), TOP)
    again = sequence.denoise(WINDOW, NOTHING)
    assert np.array_equal(first.top, again.top)
    assert again.logits is None


def test_scores_do_not_depend_on_chunks(backend: Any) -> None:
    tokens = some_tokens(BASE, 2 * SCORED_CHUNK + 44, seed=5)
    whole = backend.open(400).score(tokens)
    parts = backend.open(400)
    parts.extend(tokens[:100])
    rest = parts.score(tokens[100:])
    assert whole.target_logprob.shape == (len(tokens),)
    assert np.allclose(whole.target_logprob[100:], rest.target_logprob, atol=2e-3)
    assert np.allclose(whole.top_logprob[100:], rest.top_logprob, atol=2e-3)


def test_judging_leaves_the_same_cache(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fresh(backend, TOKENS)
    scored = backend.open(200)
    scored.score(TOKENS)
    assert_same(scored, expected)
    monkeypatch.setattr(Graphs, "idle_rows", 1)  # CUDA judges one row in every chunk
    assert_same(fresh(backend, TOKENS), expected)


def test_a_single_token_is_judged_by_what_follows_it(backend: Any) -> None:
    one = backend.open(50)
    one.extend(TOKENS[:-1])
    out = one.score(TOKENS[-1:], logits=True)
    assert out.top.shape == out.top_logprob.shape == (1, TOP)
    assert out.target_logprob.shape == (1,)
    assert one.tokens == TOKENS.tolist()
    whole = backend.open(50).score(TOKENS)
    assert out.top[0, 0] == whole.top[-1, 0]


def test_a_reused_buffer_remembers_nothing(backend: Any) -> None:
    first = fresh(backend, some_tokens(BASE, 150, seed=21))
    block = first.buffer.block
    backend.release(first)
    second = fresh(backend, TOKENS)
    assert second.buffer.block is block
    assert_same(second, fresh(backend, TOKENS))


def test_released_sequences_cannot_be_used(backend: Any) -> None:
    sequence = fresh(backend, TOKENS)
    backend.release(sequence)
    with pytest.raises(AssertionError, match="released"):
        sequence.extend(TOKENS)


def test_tokens_that_do_not_fit_are_refused_unchanged(backend: Any) -> None:
    sequence = fresh(backend, TOKENS)
    many = some_tokens(BASE, SIZE_CLASSES[0])
    for call in (sequence.extend, sequence.score, lambda tokens: sequence.denoise(tokens, NOTHING)):
        with pytest.raises(InvalidRequest, match="do not fit"):
            call(many)
    assert_same(sequence, fresh(backend, TOKENS))


def test_bytes_per_token_is_what_the_buffers_take(backend: Any) -> None:
    sequence = backend.open(10)
    assert sequence.buffer.block.nbytes == backend.bytes_per_token * sequence.capacity


@pytest.mark.parametrize("chunks", [[1] * 90, [2] * 45, [30] * 3, [1, 64, 25], [89, 1], [17, 73]])
def test_keys_and_values_are_the_same_in_any_chunks(backend: Any, chunks: list[int]) -> None:
    whole, parts = fresh(backend, TOKENS), backend.open(200)
    for start, size in zip(np.cumsum([0, *chunks]), chunks, strict=False):
        parts.extend(TOKENS[start : start + size])
    parts.settle()
    assert parts.tokens == whole.tokens
    left = whole.buffer.block[..., : len(TOKENS), :]
    assert is_same(left, parts.buffer.block[..., : len(TOKENS), :])


def test_a_single_token_fills_the_last_place(backend: Any) -> None:
    sequence = backend.open(10)
    sequence.extend(some_tokens(BASE, sequence.capacity - 1))
    sequence.extend(TOKENS[:1])
    assert len(sequence.tokens) == sequence.capacity


def test_int8_is_the_same_however_tokens_share_a_chunk(folders: dict[str, Path]) -> None:
    """An outlier elsewhere in the chunk moves no token's result: there is one scale per row."""
    backend = runtime.OnnxBackend(folders["int8"], threads=1)
    together, apart = backend.open(200), backend.open(200)
    together.extend(TOKENS)
    apart.extend(TOKENS[:45])
    apart.extend(TOKENS[45:])
    left = together.buffer.block[..., : len(TOKENS), :]
    right = apart.buffer.block[..., : len(TOKENS), :]
    assert np.abs(left - right).max() < 1e-4 * np.abs(left).max()


def test_a_fork_into_another_rotation_starts_empty(tmp_path: Path) -> None:
    config = dataclasses.replace(BASE, max_positions=2_048)
    backend = runtime.OnnxBackend(store(config, "fp32", tmp_path), threads=1)
    source = fresh(backend, TOKENS)
    longer = backend.fork(source, 50, 3_000)
    assert longer.tokens == []
    longer.extend(TOKENS)
    expected = backend.open(3_000)
    expected.extend(TOKENS)
    assert_same(longer, expected)


@pytest.mark.parametrize("scaling", ["linear", "ntk", "yarn", "none"])
def test_positions_past_the_trained_ones_are_scaled(scaling: str) -> None:
    config = dataclasses.replace(BASE, max_positions=64, rope_scaling=scaling)
    assert stretch(config, 64) == 1.0
    assert stretch(config, 256) == (1.0 if scaling == "none" else 4.0)
    cos, sin = rope_tables(config, 256)
    assert cos.shape == sin.shape == (256, config.head_dim // 2)
    if scaling == "none":
        assert np.array_equal(cos[:64], rope_tables(config, 64)[0])
        return
    slowest = np.arccos(np.clip(cos[100, -1] / np.hypot(cos[100, -1], sin[100, -1]), -1, 1))
    unscaled = 100 * config.rope_base ** (-(config.head_dim - 2) / config.head_dim)
    assert slowest == pytest.approx(unscaled / 4, rel=0.05)


def test_the_largest_class_scales_as_a_full_context() -> None:
    assert stretch(BASE, SIZE_CLASSES[-1]) == stretch(BASE, 32_768) == 4.0
