"""Training in 8 bits and bfloat16 stays close to float32; packed rows and the head are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the 'train' extra (torch)")

from redraft.model.config import ModelConfig  # noqa: E402
from redraft.model.training.arithmetic import (  # noqa: E402
    Arithmetic,
    FrozenMatrix,
    multiply,
    probe,
    quantise,
)
from redraft.model.training.batches import Batches  # noqa: E402
from redraft.model.training.checkpoints import FRESH, Start, TrainConfig  # noqa: E402
from redraft.model.training.loop import build, causal_loss  # noqa: E402
from redraft.model.training.network import Network  # noqa: E402
from redraft.model.training.shards import PackedRows  # noqa: E402
from support.models.tiny import tiny_config  # noqa: E402

torch.set_num_threads(1)
MODEL = tiny_config(adapter="all", layers=4, hidden=64, intermediate=160)
CONFIG = TrainConfig(rank=4, batch_tokens=400, arithmetic="fp32")
LENGTHS = (37, 61, 44)


def weights(config: ModelConfig) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {}
    for name, parameter in Network(config).named_parameters():
        key = name if name.endswith(("weight", "bias", "embedding")) else f"{name}.weight"
        size = 1.0 if name == "embed" else 0.08
        drawn = rng.normal(size=tuple(parameter.shape)) * size
        found[key] = (np.ones_like(drawn) if "norm" in name else drawn).astype(np.float32)
    return found


def trained_a_little(config: ModelConfig, rank: int) -> dict[str, np.ndarray]:
    """Return an adapter whose products are not zero, so that all its matrices have gradients."""
    rng = np.random.default_rng(1)
    return {
        name: (rng.normal(size=tuple(p.shape)) * 0.05).astype(np.float32)
        for name, p in Network(config, rank=rank).named_parameters()
        if name.endswith(("lora_a", "lora_b"))
    }


def rows() -> PackedRows:
    rng = np.random.default_rng(2)
    texts = [rng.integers(20, MODEL.vocab, length) for length in LENGTHS]
    return PackedRows(
        np.concatenate(texts).astype(np.uint16),
        np.concatenate([[0], np.cumsum(LENGTHS)]),
        (np.array(LENGTHS) - 20).astype(np.int32),
        np.full(len(LENGTHS), 2, np.int32),
        np.zeros(len(LENGTHS), np.uint8),
    )


def gradients(
    arithmetic: Arithmetic, config: TrainConfig = CONFIG
) -> tuple[float, dict[str, torch.Tensor]]:
    """Return the loss and the gradients of the adapter for one batch."""
    start = {
        name: values
        for name, values in trained_a_little(MODEL, config.rank).items()
        if int(name.split(".")[1]) >= config.low
    }
    config = replace(config, arithmetic=arithmetic)
    network = build(config, MODEL, weights(MODEL), Start({}, start), "cpu")
    loss, _ = causal_loss(network, Batches(rows(), config, MODEL.end_token)[0], "cpu")
    loss.backward()
    found = {n: p.grad for n, p in network.named_parameters() if p.grad is not None}
    return float(loss.detach()), found


@pytest.mark.parametrize("arithmetic", ["int8", "bf16"])
def test_loss_and_gradients_are_near_those_of_float32(arithmetic: Arithmetic) -> None:
    loss, exact = gradients("fp32")
    found, near = gradients(arithmetic)
    assert found == pytest.approx(loss, rel=0.02)
    assert set(near) == set(exact)
    for name in exact:
        cosine = torch.cosine_similarity(near[name].flatten(), exact[name].flatten(), dim=0)
        upper = int(name.split(".")[1]) >= MODEL.layers // 2
        assert cosine > (0.9 if upper else 0.7), name


def test_layers_below_the_adapted_get_no_gradient() -> None:
    _, found = gradients("fp32", TrainConfig(rank=4, batch_tokens=400, low=2))
    assert {int(name.split(".")[1]) for name in found} == {2, 3}


def test_rows_behind_one_another_do_not_see_each_other() -> None:
    network = build(CONFIG, MODEL, weights(MODEL), Start({}, trained_a_little(MODEL, 4)), "cpu")
    texts = [torch.from_numpy(rows()[i][0]) for i in range(len(LENGTHS))]
    with torch.no_grad():
        together, _ = network.context(torch.cat(texts), lengths=LENGTHS)
        apart = torch.cat([network.context(text)[0] for text in texts])
    assert torch.allclose(together, apart, atol=1e-4)


def test_the_sparse_head_gradient_is_near_the_whole() -> None:
    network = build(CONFIG, MODEL, weights(MODEL), FRESH, "cpu")
    target = torch.arange(20, 40)
    hidden = torch.randn(20, MODEL.hidden, generator=torch.Generator().manual_seed(3))
    slopes = []
    for sparse in (True, False):
        x = hidden.clone().requires_grad_()
        if sparse:
            nats = network.nats(x, target)
        else:
            nats = torch.nn.functional.cross_entropy(network.logits(x), target, reduction="none")
        nats.sum().backward()
        slopes.append((nats.detach(), x.grad))
    assert torch.allclose(slopes[0][0], slopes[1][0], atol=1e-4)
    assert torch.cosine_similarity(slopes[0][1], slopes[1][1]).min() > 0.95


def test_an_8_bit_product_is_exact_without_rounding() -> None:
    rng = np.random.default_rng(0)
    x, matrix = (torch.from_numpy(rng.integers(-127, 128, s)).float() for s in ((5, 32), (7, 32)))
    x[:, 0], matrix[:, 0] = 127, 127  # so that every scale is 1
    assert torch.equal(multiply(x, quantise(matrix)), x @ matrix.T)


def test_the_probe_takes_nothing_that_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    weight = torch.randn(64, 32)
    seconds = {"int8": 1.0, "fp32": 1.2}

    def measured(matrix: FrozenMatrix, _: torch.Tensor) -> float:
        return seconds["fp32" if matrix.eight is None else "int8"]

    monkeypatch.setattr("redraft.model.training.arithmetic._seconds", measured)
    assert probe(weight) == "fp32"
    seconds["int8"] = 0.5
    assert probe(weight) == "int8"
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    assert probe(weight) == "fp32"
