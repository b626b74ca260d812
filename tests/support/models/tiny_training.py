"""Training of a tiny network, for tests; processes that a test starts import it by its name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from redraft.model.config import ModelConfig
from redraft.model.training.checkpoints import Arrays, RunFolder, TrainConfig
from redraft.model.training.loop import build, run
from redraft.model.training.network import Network
from safetensors.torch import load_file

from .tiny import tiny_config

MODEL = tiny_config(adapter="all")
QUICK = TrainConfig(
    rank=4, learning_rate=1e-2, warmup_steps=2, average=0.99, code_tokens=0,
    batch_tokens=2_000, steps=6,
    minutes=5, evaluate_every=3, evaluate_rows=12, max_context=2_000,
)  # fmt: skip
#: The probe of arithmetics measures time: two runs that are compared could choose differently.
COMPARED = replace(QUICK, arithmetic="fp32")


def random_weights(seed: int = 0, model: ModelConfig = MODEL) -> dict[str, np.ndarray]:
    generator = torch.Generator().manual_seed(seed)
    network = Network(model)
    found = {}
    for name, p in network.named_parameters():
        if name == "mask_embedding":
            continue
        key = name if name.endswith(("weight", "bias")) else f"{name}.weight"
        value = torch.ones(p.shape) if "norm" in name else torch.randn(p.shape, generator=generator)
        found[key] = (value * (1 if "norm" in name else 0.1)).numpy()
    return found


def trained(
    config: TrainConfig, packed: Path, out: Path, ground: Arrays | None = None
) -> dict[str, np.ndarray]:
    network = build(config, MODEL, random_weights(), device="cpu")
    written = run(config, network, RunFolder(out, ground or {}), packed)
    return {name: tensor.float().numpy() for name, tensor in load_file(written).items()}


def take_part(rank: int, port: int, packed: Path, out: Path) -> None:
    """Run one of two processes, as torchrun starts them."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    trained(replace(COMPARED, steps=3), packed, out)
