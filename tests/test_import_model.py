"""Open weights of every family: what is read, and that it computes what its publisher's does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.config import ModelConfig
from redraft.model.huggingface import read_hf_checkpoint
from redraft.model.materialise import materialise
from redraft.model.tokens import END, MASK, Tokenizer
from tiny_hf import LAYOUTS, Layout, reference_logits, torch, write_hf

whole = pytest.importorskip("redraft.model.whole", reason="needs onnxruntime")

#: Largest difference of logits whose spread is about ten: float32 sums in another order.
CLOSE = 2e-4


def some_text(config: ModelConfig, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Text with the mask in every fifth place."""
    tokens = np.random.default_rng(seed).choice(np.array(config.text_ids), count)
    tokens[::5] = config.mask_token
    return tokens.astype(np.int64)


def predictable(config: ModelConfig) -> NDArray[np.int64]:
    return np.array([*config.text_ids, config.end_token])


def compare(config: ModelConfig, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Logits [n, vocab] of ours and [n, rows] of the reference agree wherever text may follow."""
    ids = predictable(config)
    assert np.ptp(expected[:, ids]) > 5  # neither side is flat
    assert np.abs(found[:, ids] - expected[:, ids]).max() < CLOSE
    assert (np.delete(found, ids, axis=1) < -1e8).all()


class Published:
    """A folder of one family and the reference its weights came from."""

    def __init__(self, folder: Path, layout: Layout, shards: int = 1) -> None:
        self.folder, self.layout = folder, layout
        self.model: Any = write_hf(folder, layout, shards=shards)


@pytest.fixture(scope="module", params=list(LAYOUTS))
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name = "x-bd3lm" if request.param == "Tiny-A2D by blocks" else "x"
    return Published(tmp_path_factory.mktemp("hf") / name, LAYOUTS[request.param])


def test_conventions_come_from_the_family(published: Published) -> None:
    layout = published.layout
    config, tensors, path = read_hf_checkpoint(published.folder)
    tokenizer = Tokenizer.from_file(path)
    assert (config.attention, config.block) == (layout.attention, layout.block)
    assert config.logit_shift == layout.shift
    assert config.adapter == "none"
    assert config.vocab == tokenizer.size == len(tensors["embed.weight"])
    assert tokenizer.special[config.end_token] == "<|endoftext|>"
    assert tokenizer.special[config.mask_token] == (layout.mask or "<|fim_pad|>")
    assert config.mask_token == tokenizer.mark(MASK)
    assert config.end_token == tokenizer.mark(END)
    assert set(config.text_ids) == set(range(tokenizer.size)) - set(tokenizer.special)
    assert ("head.weight" in tensors) is not layout.tied


def test_torch_computes_what_the_reference_does(published: Published) -> None:
    from redraft.model.network import Network

    config, tensors, _ = read_hf_checkpoint(published.folder)
    network = Network(config).eval()
    network.load(tensors)
    tokens = some_text(config, 75)
    with torch.no_grad():
        found = network.logits(network.whole(torch.from_numpy(tokens)[None])[0]).numpy()
    compare(config, found, reference_logits(published.model, published.layout, tokens))


@pytest.fixture(scope="module")
def stored(published: Published) -> Published:
    """The same with its ONNX graphs in fp32 beside it."""
    config, tensors, _ = read_hf_checkpoint(published.folder)
    materialise(config, tensors, tensors, "fp32", published.folder / "fp32")
    return published


@pytest.mark.parametrize("cached", [0, 1, 41, 64])
def test_onnx_computes_what_the_reference_does(stored: Published, cached: int) -> None:
    backend = whole.open_backend(stored.folder / "fp32", threads=1)
    config, sequence = backend.config, backend.new_sequence(256)
    tokens = some_text(config, 75)
    sequence.prefill(tokens[:cached])
    if config.attention == "canvas":
        rest = tokens[cached:]
        found = sequence.verify(rest, logits=True).logits
        expected = reference_logits(stored.model, stored.layout, tokens)[cached:]
    else:
        found = sequence.denoise(tokens[cached:], logits=True).logits
        expected = reference_predictions(stored, config, tokens)[cached:]
    compare(config, found, expected)


def reference_predictions(
    published: Published, config: ModelConfig, tokens: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Logits of the token after each of ``tokens``, where masks fill the last block."""
    layout = published.layout
    ahead = 0 if layout.shift else 1
    length = len(tokens) + ahead
    length = -(-length // layout.block) * layout.block if layout.block else length
    masked = np.full(length, config.mask_token, np.int64)
    masked[: len(tokens)] = tokens
    return reference_logits(published.model, layout, masked)[ahead : ahead + len(tokens)]
