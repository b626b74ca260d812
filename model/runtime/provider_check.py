"""Comparison of a provider of onnxruntime with the CPU, on a tiny network with random weights.

The network has the operators of the model's graphs. Both read the same tokens in each way that a
prediction does: causally, at given places or with masks, and as a canvas.

:data:`CLOSE` bounds the root mean square difference of the logits, as a part of their spread. It is
below 1 % in fp32 and fp16 and below 2 % in the other variants where only the rounding differs, and
above 10 % where 4 % of the rows of one matrix are lost.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import ON_MASKS, ModelConfig, tensor_shapes
from .backend import Denoises, Rows
from .onnx_backend import OnnxBackend

#: Largest difference from the CPU's logits, as a part of their spread.
CLOSE: Mapping[str, float] = MappingProxyType(
    {"fp32": 0.01, "fp16": 0.01, "q8": 0.03, "int8": 0.03, "q4": 0.03, "q4f16": 0.03}
)
#: The variant that the CPU runs instead of half precision: its ScatterND adds no float16.
_IN_FULL: Mapping[str, str] = MappingProxyType({"fp16": "fp32", "q4f16": "q4"})

PLAIN = ModelConfig(
    name="probe", vocab=96, hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16,
    intermediate=96, adapter="none", max_positions=64,
)  # fmt: skip
_CACHED, _ROWS, _MASKS = 8, 12, 3
_LOWEST = -100.0  # in place of the logits of tokens that are not to be predicted

Array = NDArray[np.float32]


def how_it_differs(opened: Callable[[Path], OnnxBackend], variant: str, config: ModelConfig) -> str:
    """Return what a provider does otherwise than the CPU, or "" where their results agree.

    Args:
        opened: opens a model folder on the provider.
        config: configuration of the model that is to run there in ``variant``.
    """
    from ..network.onnx_files import materialise  # brings onnx along

    network = network_like(config)
    weights = _weights(network)
    full = _IN_FULL.get(variant, variant)
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            on_cpu, on_other = Path(folder, "cpu"), Path(folder, "other")
            materialise(network, weights, weights, full, on_cpu)
            materialise(network, weights, weights, variant, on_other)
            expected = _logits(OnnxBackend(on_cpu, "CPU", 1))
            found = _logits(opened(on_other))
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        return f"does not run our graphs in {variant}: {first_line(error)}"
    spread = expected[0][:, network.special_tokens :].std()
    apart = max(
        float(np.sqrt(np.square(theirs - ours).mean()) / spread)
        for ours, theirs in zip(expected, found, strict=True)
    )
    if apart <= CLOSE[variant]:
        return ""
    return (
        f"computes something else in {variant}: logits differ from the CPU's by {apart:.1%} of "
        f"their spread, where rounding explains {CLOSE[variant]:.0%}"
    )


def network_like(config: ModelConfig) -> ModelConfig:
    """Return the tiny network whose graphs have the operators of a model's."""
    masks: dict[str, Any] = {}
    if config.adapter == "masks":
        masks = {"adapter": "masks", "masks": _MASKS, "mask_rank": 4, "sampler": 8}
    return replace(
        PLAIN,
        **masks,
        verifier=config.verifier,
        draft_after=config.draft_after,
        attention=config.attention,
        block=4 if config.block else 0,
        qkv_bias=config.qkv_bias,
        qk_norm=config.qk_norm,
    )


def _weights(config: ModelConfig) -> dict[str, Array]:
    """Return weights drawn at random, the same each time."""
    from ..network.onnx_graph import sampler_parts

    rng = np.random.default_rng(0)
    shapes = tensor_shapes(dataclasses.asdict(config))
    shapes |= {part.name: part.shape for part in sampler_parts(config)}
    for name in [*shapes] if config.mask_rank else []:
        stem, (outputs, *inputs) = name.removesuffix(".weight"), shapes[name]
        if stem.endswith(ON_MASKS):
            shapes[f"{stem}.lora_a"] = (config.mask_rank, *inputs)
            shapes[f"{stem}.lora_b"] = (outputs, config.mask_rank)
    drawn = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, values in drawn.items():
        if "norm" in name:
            values[:] = 1
        elif "embed" not in name:
            values /= 8
    return drawn


def _logits(backend: OnnxBackend) -> list[Array]:
    """Return the logits of each way to read some tokens behind others."""
    try:
        return [np.maximum(each, _LOWEST) for each in _read(backend) if each is not None]
    finally:
        backend.close()


def _read(backend: OnnxBackend) -> Iterator[Array | None]:
    config, sees = backend.config, np.tril(np.ones((_ROWS, _ROWS), np.bool_))
    tokens = np.random.default_rng(1).choice(config.text_ids, _CACHED + _ROWS)
    before, row, places = tokens[:_CACHED], tokens[_CACHED:], np.arange(_ROWS)
    sequence = backend.open(len(tokens))
    sequence.extend(before)
    masks = _MASKS if config.adapter == "masks" else 0
    if config.attention == "canvas":
        yield sequence.score(row, logits=True).logits
        sequence.truncate(_CACHED)
        placed = sequence.read(Rows(row, _CACHED + places, sees, row, masks), logits=True)
        yield placed.logits
        yield placed.masks.logit if placed.masks else None
        sequence.truncate(_CACHED)
    row[-_MASKS:] = config.mask_token
    if isinstance(sequence, Denoises):
        yield sequence.denoise(row, row[:0], logits=True).logits
    backend.release(sequence)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
