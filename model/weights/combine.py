"""The combine step: base weights + adapter → a folder ready to run, whole or not at all.

Works tensor by tensor in numpy, without torch. Knows nothing of where the base came from or of
which folder is wanted; :mod:`.provide` decides that and holds the lock.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

from ..config import ModelConfig, tensor_shapes
from ..errors import WeightsError
from .adapter import check_adapter, load_adapter, merge
from .fetch import Progress, ProgressCallback
from .files import (
    explaining,
    make_folder,
    replace_folder,
    require_space,
    sha256_of,
    sync_files,
    write_manifest,
)
from .gguf import chat_template, read_checkpoint
from .registry import ModelInfo
from .safetensors_file import FloatArray
from .vocabularies import gguf_tokenizer

#: In a ready folder whose base knows conversations: how they are written, in Jinja.
CHAT_TEMPLATE = "chat_template.jinja"

_BYTES_PER_WEIGHT = {"fp32": 4.0, "fp16": 2.0, "q8": 1.2, "int8": 1.05, "q4": 0.8, "q4f16": 1.0}


def combine(
    model: ModelInfo,
    base: Path,
    variant: str,
    folder: Path,
    recipe: str,
    progress: ProgressCallback,
) -> None:
    """Make ``folder`` anew from a verified ``base`` and the model's adapter.

    Raises:
        WeightsError: the parts do not fit together or the disk does not take the result; what was
            at ``folder`` before is then still there.
    """
    size = expected_bytes(model.config, variant)
    make_ready(
        folder, size, recipe, lambda place: _write_model(model, base, variant, place, progress)
    )


def make_ready(folder: Path, size: int, recipe: str, write: Callable[[Path], None]) -> None:
    """Have ``write`` fill an empty place, add the manifest, and put it where ``folder`` is.

    Args:
        size: bytes it will take, about.
        recipe: names what the folder is made from, for :func:`problem_of`.

    Raises:
        WeightsError: the disk or the memory does not suffice, or ``write`` says so; what was at
            ``folder`` before is then still there.
    """
    make_folder(folder.parent)
    for leftover in folder.parent.glob(f".{folder.name}.*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    require_space(folder.parent, size)
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.tmp"
    make_folder(temporary)
    try:
        with explaining("write", temporary):
            write(temporary)
        sync_files(temporary)
        write_manifest(temporary, recipe)
        replace_folder(temporary, folder)
    except MemoryError as error:
        raise WeightsError(
            f"not enough memory to make {folder}, of {size / 1e6:,.0f} MB. Close other programs "
            "and try again."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_model(
    model: ModelInfo,
    base: Path,
    variant: str,
    folder: Path,
    progress: ProgressCallback,
) -> None:
    fields, tensors = read_checkpoint(base, tied=model.config.tied)
    _check_architecture(model.config, fields)
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
    gguf_tokenizer(tensors.file).save(folder / "tokenizer.json")
    if template := chat_template(tensors.file):
        (folder / CHAT_TEMPLATE).write_text(template, "utf-8")
    write_graphs(model.config, context, canvas, variant, folder, progress)


def write_graphs(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    folder: Path,
    progress: ProgressCallback,
) -> None:
    """See :func:`~redraft.model.network.onnx_files.materialise`."""
    # Imported here: it brings onnx along, which serving does not need once a model is ready.
    from ..network.onnx_files import materialise

    def report(fraction: float) -> None:
        progress(Progress("combine", round(fraction * 1_000), 1_000))

    materialise(config, context, canvas, variant, folder, report)


def _check_architecture(config: ModelConfig, fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if getattr(config, key) != value:
            raise WeightsError(
                f"the model's description says {key} = {getattr(config, key)}, its base has "
                f"{value}. Correct the description."
            )


def expected_bytes(config: ModelConfig, variant: str) -> int:
    """About how much a ready folder takes."""
    without, with_one = (
        sum(prod(shape) for shape in tensor_shapes(asdict(config) | {"layers": layers}).values())
        for layers in (0, 1)
    )
    weights = without + (with_one - without) * config.layers
    if variant == "int8":
        weights += config.vocab * config.hidden  # the head is stored apart from the embedding
    passes = 2 if config.adapter == "canvas" else 1
    return int(weights * passes * _BYTES_PER_WEIGHT[variant])
