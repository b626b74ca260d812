"""Conversion: base weights and an adapter become a folder ready to run, whole or not at all.

Works tensor by tensor in numpy, without torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import NamedTuple

from ..config import ModelConfig, tensor_shapes
from ..errors import WeightsError
from ..prompts.tokenizer import Tokenizer
from .adapter import check_adapter, load_adapter, merge
from .catalog import ModelInfo
from .download import Progress, ProgressCallback
from .files import atomic_folder, require_space, sha256_of, write_manifest
from .gguf import GGUFFile, read_checkpoint
from .tensors import FloatArray
from .vocabularies import gguf_tokenizer

#: In a ready folder whose base knows conversations: how they are written, in Jinja.
CHAT_TEMPLATE = "chat_template.jinja"

_BYTES_PER_WEIGHT = {"fp32": 4.0, "fp16": 2.0, "int8": 1.05, "q4": 0.8, "q4f16": 1.0}


class Weights(NamedTuple):
    """Everything that a ready folder is made of."""

    config: ModelConfig
    context: Mapping[str, FloatArray]  # of the causal pass, by our names
    canvas: Mapping[str, FloatArray]  # the same object where nothing differs
    tokenizer: Tokenizer
    template: str  # of conversations; "" where they are unknown


def own_weights(model: ModelInfo, base: Path) -> Weights:
    """Return the weights of a model of ours.

    Args:
        base: a verified GGUF file.

    Raises:
        WeightsError: base, adapter and description do not fit together.
    """
    file = GGUFFile(base)
    fields, tensors = read_checkpoint(file, tied=model.config.tied)
    for key, value in fields.items():
        if getattr(model.config, key) != value:
            raise WeightsError(
                f"the model's description says {key} = {getattr(model.config, key)}, its base has "
                f"{value}. Correct the description."
            )
    adapter = None
    if model.adapter is not None:
        found = sha256_of(model.adapter)
        if found != model.adapter_sha256:
            raise WeightsError(
                f"{model.adapter} has SHA-256 {found}, not {model.adapter_sha256}: it is damaged "
                "or from another version. Reinstall Redraft, or correct the model's description."
            )
        adapter = load_adapter(model.adapter)
        check_adapter(adapter, model.config, model.base.gguf_sha256)
    context, canvas = merge(model.config, tensors, adapter)
    return Weights(model.config, context, canvas, gguf_tokenizer(file), file.chat_template())


def convert(
    weights: Weights, variant: str, folder: Path, recipe: str, progress: ProgressCallback
) -> None:
    """Write a ready folder, in the place of what is at ``folder``.

    Args:
        recipe: names what the folder is made from, for :func:`~.files.problem_of`.

    Raises:
        WeightsError: a tensor cannot be read, or the disk or the memory does not suffice; what was
            at ``folder`` before is then still there.
    """
    size = estimate_bytes(weights.config, variant)
    try:
        with atomic_folder(folder) as place:
            require_space(place, size)
            weights.tokenizer.save(place / "tokenizer.json")
            if weights.template:
                (place / CHAT_TEMPLATE).write_text(weights.template, "utf-8")
            write_graphs(weights.config, weights.context, weights.canvas, variant, place, progress)
            write_manifest(place, recipe)
    except MemoryError as error:
        raise WeightsError(
            f"not enough memory to make {folder}, of {size / 1e6:,.0f} MB. Close other programs "
            "and try again."
        ) from error


def write_graphs(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: ProgressCallback,
) -> None:
    """Write graphs and weights; see :func:`~redraft.model.network.onnx_files.materialise`."""
    # Imported here: it brings onnx along, which serving does not need once a model is ready.
    from ..network.onnx_files import materialise

    def report(fraction: float) -> None:
        progress(Progress("combine", round(fraction * 1_000), 1_000))

    materialise(config, context, canvas, variant, folder, report)


def estimate_bytes(config: ModelConfig, variant: str) -> int:
    """Return about how much a ready folder takes."""
    without, with_one = (
        sum(prod(shape) for shape in tensor_shapes(asdict(config) | {"layers": layers}).values())
        for layers in (0, 1)
    )
    weights = without + (with_one - without) * config.layers
    if variant == "int8":
        weights += config.vocab * config.hidden  # the head is stored apart from the embedding
    passes = 2 if config.adapter == "canvas" else 1
    return int(weights * passes * _BYTES_PER_WEIGHT[variant])
