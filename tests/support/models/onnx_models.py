"""Tiny random models on disk, for tests of graphs and runtime."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redraft.model.config import ON_MASKS, ModelConfig, tensor_shapes
from redraft.model.network.onnx_files import materialise
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.weights import convert
from redraft.model.weights.catalog import DESCRIPTION, ModelInfo
from redraft.model.weights.download import no_progress

from support.models.reference import Reference, Weights, adapted, random_weights

BASE = ModelConfig(
    name="tiny",
    vocab=160,
    hidden=64,
    layers=2,
    heads=6,
    kv_heads=2,
    head_dim=16,
    intermediate=96,
    canvas_width=8,
    adapter="canvas",
)

#: Every flag of the architecture at least once, alone and together.
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "biased": {"qkv_bias": True},
    "normed heads": {"qk_norm": True},
    "untied": {"tied": False},
    "no adapter": {"adapter": "none"},
    "adapter everywhere": {"adapter": "all"},
    "one head each, odd sizes": {"heads": 4, "kv_heads": 4, "hidden": 40, "intermediate": 56},
    "masks": {"adapter": "masks", "masks": 3, "mask_rank": 8, "qkv_bias": True},
    "sampler": {"adapter": "masks", "masks": 3, "mask_rank": 8, "sampler": 24},
    "all": {"qkv_bias": True, "qk_norm": True, "tied": False, "head_dim": 32},
}


def shaped(name: str) -> ModelConfig:
    return dataclasses.replace(BASE, **SHAPES[name])


def weights_for(config: ModelConfig, seed: int = 0) -> tuple[Weights, Weights]:
    """Weights of the context pass and of the canvas pass."""
    context = random_weights(config, seed)
    if config.adapter == "none":
        return context, context
    canvas = adapted(config, context, seed + 1)
    if config.adapter == "masks":
        mask = {"embed.weight": canvas["embed.weight"]}
        own = low_rank(config, seed + 2) | sampler(config, seed + 3)
        return context, context | mask | own
    return (canvas, canvas) if config.adapter == "all" else (context, canvas)


def sampler(config: ModelConfig, seed: int) -> dict[str, np.ndarray]:
    """Return a sampler that makes the guess of a mask depend on the token before it."""
    rng, hidden, width = np.random.default_rng(seed), config.hidden, config.sampler
    shapes = {
        "enter.weight": (width, 2 * hidden),
        "enter.bias": (width,),
        "mix.weight": (width, width),
        "mix.bias": (width,),
        "leave.weight": (hidden, width),
    }
    return {
        f"sampler.{part}": rng.normal(0, 0.3, shape).astype(np.float32)
        for part, shape in shapes.items()
        if width
    }


def low_rank(config: ModelConfig, seed: int) -> Weights:
    """Matrices of an adapter on masks, large enough to matter."""
    rng = np.random.default_rng(seed)
    found: Weights = {}
    for name, shape in tensor_shapes(dataclasses.asdict(config)).items():
        stem = name.removesuffix(".weight")
        if not stem.endswith(ON_MASKS):
            continue
        outputs, inputs = shape
        found[f"{stem}.lora_a"] = rng.normal(0, 0.3, (config.mask_rank, inputs)).astype(np.float32)
        found[f"{stem}.lora_b"] = rng.normal(0, 0.3, (outputs, config.mask_rank)).astype(np.float32)
    return found


def store(config: ModelConfig, variant: str, folder: Path) -> Path:
    materialise(config, *weights_for(config), variant, folder)
    return folder


def register(root: Path, name: str, config: ModelConfig, tokenizer: Tokenizer) -> Path:
    """Write a model that the registry finds by ``name`` if REDRAFT_MODELS is ``root``.

    Returns the folder of its only variant, fp32.
    """
    folder = root / name / "fp32"

    context, canvas = weights_for(config)
    weights = convert.Weights(config, context, canvas, tokenizer, "")
    convert.convert(weights, "fp32", folder, name, no_progress)
    model = ModelInfo(
        name, "1", "random weights", "", None, None, "", config, "fp32", folder.parent, ("fp32",)
    )
    (folder.parent / DESCRIPTION).write_text(json.dumps(model.describe()))
    return folder


def reference_for(config: ModelConfig, capacity: int) -> Reference:
    return Reference(config, *weights_for(config), capacity)


def some_tokens(config: ModelConfig, count: int, seed: int = 0) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return rng.integers(config.special_tokens, config.vocab, count)


def some_window(config: ModelConfig, placed: int = 0, seed: int = 0) -> NDArray[np.int64]:
    """Return a context token, ``placed`` tokens, and masks."""
    window = np.full(config.canvas_width, config.mask_token, np.int64)
    window[: placed + 1] = some_tokens(config, placed + 1, seed)
    return window


def predictable(config: ModelConfig) -> NDArray[np.int64]:
    """Ids that may be predicted."""
    return np.array([config.end_token, *range(config.special_tokens, config.vocab)])


def relative(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """Largest difference, relative to the largest expected value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())
