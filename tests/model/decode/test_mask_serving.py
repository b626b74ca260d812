"""Masks behind judged tokens as they are served: onnxruntime and torch, with and without masks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from redraft.model.decode.pass_costs import Groups
from redraft.model.decode.speculative import lay_out
from redraft.model.runtime.backend import MaskGuesses, Rows
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.runtime.onnx_sequence import OnnxSequence
from support.models.onnx_models import shaped, store, weights_for
from support.models.runtimes import is_same

CONFIG = shaped("masks")
CACHED = 37


def some_tokens(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(CONFIG.special_tokens, CONFIG.vocab, count)


def row(drafts: int, group: int, behind: tuple[int, ...] | None = None) -> Rows:
    last, *tokens = some_tokens(drafts + 1, seed=5).tolist()
    groups = Groups(group, tuple(range(drafts + 1)) if behind is None else behind)
    return lay_out(last, tokens, CACHED, groups, CONFIG.mask_token)


def opened(folder: Path) -> OnnxSequence:
    sequence = OnnxBackend(folder, threads=1).open(256)
    sequence.extend(some_tokens(CACHED))
    return sequence


def judged(sequence: OnnxSequence, laid: Rows):  # type: ignore[no-untyped-def]
    return sequence.read(laid, logits=True)


def chain(masks: MaskGuesses, count: int, before: int) -> tuple[list[int], list[float]]:
    """Return the guesses of ``count`` masks, each behind the one before it."""
    tokens, sure = list[int](), list[float]()
    for mask in range(count):
        before, p = masks.guess(mask, before)
        tokens, sure = [*tokens, before], [*sure, p]
    return tokens, sure


@pytest.mark.parametrize("variant", ["fp32", "int8"])
@pytest.mark.parametrize("laid", [row(0, 3), row(2, 3), row(3, 2, (0, 3))])
def test_the_judge_says_the_same_without_masks(variant: str, laid: Rows, tmp_path: Path) -> None:
    sequence = opened(store(CONFIG, variant, tmp_path))
    out = judged(sequence, laid)
    assert (
        len(sequence.tokens) == CACHED + len(laid.tokens) - laid.masks
    )  # no mask stays in the cache
    after = sequence.score(some_tokens(4, seed=9))
    sequence.truncate(CACHED)
    plain = sequence.score(laid.tokens[: -laid.masks], logits=True)
    again = sequence.score(some_tokens(4, seed=9))
    assert is_same(out.logits, plain.logits)  # bit by bit, or drafts change answers
    assert is_same(out.target_logprob[:-1], plain.target_logprob[:-1])
    assert np.array_equal(after.top, again.top)
    assert is_same(after.target_logprob, again.target_logprob)


def test_infills_with_masks_and_edits_share_a_sequence(tmp_path: Path) -> None:
    """Two forms ask for the same number of outputs of a graph, with other names."""
    sequence, laid, tokens = opened(store(CONFIG, "int8", tmp_path)), row(2, 3), some_tokens(4)
    depths, sees = np.arange(4), np.tril(np.ones((4, 4), np.bool_))

    def infill() -> list[int]:
        said = sequence.read(laid)
        sequence.truncate(CACHED)
        return [*said.top[:, 0].tolist(), *said.masks.token[:, 0].tolist()]

    def edit() -> list[int]:
        said = sequence.read(Rows(tokens, CACHED + depths, sees, tokens))
        sequence.truncate(CACHED)
        return said.top[:, 0].tolist()

    first, second = infill(), edit()
    assert [infill(), edit(), infill()] == [first, second, first]


@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_groups_do_not_see_each_other(variant: str, tmp_path: Path) -> None:
    sequence = opened(store(CONFIG, variant, tmp_path))
    together = judged(sequence, row(3, 2))
    sequence.truncate(CACHED)
    alone = judged(sequence, row(3, 2, (1,)))
    assert np.array_equal(together.masks.token[2:4], alone.masks.token)
    assert np.allclose(together.masks.confidence[2:4], alone.masks.confidence, atol=1e-5)


def test_masks_are_read_with_their_own_adapter(tmp_path: Path) -> None:
    with_adapter = judged(opened(store(CONFIG, "fp32", tmp_path / "a")), row(1, 3))
    context, canvas = weights_for(CONFIG)
    nothing = {k: np.zeros_like(v) if "lora_b" in k else v for k, v in canvas.items()}
    from redraft.model.network.onnx_files import materialise

    materialise(CONFIG, context, nothing, "fp32", tmp_path / "b")
    without = judged(opened(tmp_path / "b"), row(1, 3))
    assert np.array_equal(with_adapter.logits, without.logits)
    assert not np.allclose(with_adapter.masks.confidence, without.masks.confidence, atol=1e-3)


def test_eight_bits_change_little(tmp_path: Path) -> None:
    exact = judged(opened(store(CONFIG, "fp32", tmp_path / "fp32")), row(2, 3))
    stored = judged(opened(store(CONFIG, "int8", tmp_path / "int8")), row(2, 3))
    assert np.abs(exact.masks.confidence - stored.masks.confidence).mean() < 0.1


@pytest.mark.parametrize("shape", ["masks", "sampler"])
def test_onnx_equals_torch(shape: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch (pip install '.[lab]')")
    from redraft.model.training.network import Network
    from support.models.torch_sequence import TorchSequence

    config = shaped(shape)
    sequence = opened(store(config, "fp32", tmp_path))
    context, canvas = weights_for(config)
    network = Network(config, rank=config.mask_rank, reach=sequence.capacity).eval()
    own = {name: values for name, values in canvas.items() if "lora" in name or "sampler" in name}
    network.load(context | own | {"mask_embedding": canvas["embed.weight"][config.mask_token]})
    twin = TorchSequence(network, sequence.capacity)
    twin.extend(some_tokens(CACHED))
    for laid in (row(0, 3), row(2, 3), row(3, 2, (0, 3))):
        found, expected = judged(sequence, laid), judged(twin, laid)  # type: ignore[arg-type]
        assert np.array_equal(found.top[:, 0], expected.top[:, 0])
        assert found.masks is not None and expected.masks is not None
        count = laid.masks
        for before in some_tokens(5, seed=11).tolist():
            tokens, sure = chain(found.masks, count, before)
            like, as_sure = chain(expected.masks, count, before)
            assert tokens == like and np.allclose(sure, as_sure, atol=1e-4)
        sequence.truncate(CACHED)
        twin.truncate(CACHED)


def test_a_sampler_has_guesses_follow_the_token_before(tmp_path: Path) -> None:
    out = judged(opened(store(shaped("sampler"), "int8", tmp_path)), row(0, 3))
    assert out.masks is not None
    chains = {tuple(chain(out.masks, 3, before)[0]) for before in some_tokens(20).tolist()}
    assert len(chains) > 5
    alone = dataclasses.replace(out.masks, follows=None)
    assert {tuple(chain(alone, 3, before)[0]) for before in (20, 30, 40)} == {
        tuple(out.masks.token[:, 0].tolist())
    }


def test_guesses_behind_a_token_are_probabilities() -> None:
    """Two candidates hold 0.9 of the weight; the sampler makes the second e times likelier."""
    logit = np.log(np.array([[0.6, 0.3]], np.float32))
    guesses = MaskGuesses(
        np.array([[7, 8]]),
        np.array([0.6], np.float32),
        logit,
        np.zeros((1, 4), np.float32),
        lambda hidden, before, ids: np.where(ids == before, 1.0, 0.0).astype(np.float32),
    )
    assert guesses.guess(0, 5) == (7, pytest.approx(0.6))
    token, sure = guesses.guess(0, 8)
    assert token == 8
    assert sure == pytest.approx(0.3 * np.e / (0.6 + 0.3 * np.e + 0.1))


def test_without_a_cache_no_mask_is_read(tmp_path: Path) -> None:
    sequence = OnnxBackend(store(CONFIG, "fp32", tmp_path), threads=1).open(64)
    out = judged(sequence, row(1, 3))
    assert out.masks is None and len(out.top) == 2


def test_the_masks_count_is_part_of_the_description() -> None:
    plain = dataclasses.replace(CONFIG, adapter="all", masks=0, mask_rank=0)
    assert "masks" not in plain.to_dict() and CONFIG.to_dict()["masks"] == 3
