"""Makes a model of one's own out of open weights at hand: read, converted, registered, checked.

The result lies below ``models`` in the cache: one ready folder per variant, each with the SHA-256
of its files, and the description by which the registry lists it. What it came from is not needed
any more. Knows nothing of running; it blocks for as long as the weights take.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import NamedTuple

import psutil

from ..config import ModelConfig, tensor_shapes
from ..errors import SettingsError, WeightsError
from ..network.quantize import VARIANTS, FloatArray, check_variant
from ..records import MAX_ANSWER_TOKENS
from .adapter import Adapter, check_adapter, load_adapter, merge
from .combine import CHAT_TEMPLATE, expected_bytes, make_ready, write_graphs
from .fetch import Progress, ProgressCallback, no_progress
from .files import make_folder, sha256_of, write_atomically
from .registry import DESCRIPTION, ModelInfo, cache_dir, check_name, list_models, read_description
from .sources import DRAFTING_FILE, Source, drafting_adapter, read_source, served

#: The accurate one of those that run on a CPU: nobody has measured how these weights take int8.
DEFAULT_VARIANT = "q8"
#: What is made where that does not fit in memory, or fp16 on a GPU.
SMALLER = {"q8": "q4", "fp16": "q4f16"}

#: Of the memory, what a model may take.
_MOST_MEMORY = 0.9


def import_model(
    path: Path,
    name: str | None = None,
    variants: Sequence[str] | None = None,
    block: int | None = None,
    adapter: Path | None = None,
    progress: ProgressCallback = no_progress,
    prompt_format: str | None = None,
    license_: str = "",
    called: tuple[str, ...] = (),
    memory: int | None = None,
    gpu: bool = False,
) -> ModelInfo:
    """Convert the weights at ``path`` and register them as ``name``.

    Importing the same weights again adds the variants that are missing; other weights of the same
    name replace what was imported.

    Args:
        path: a Hugging Face folder, or a GGUF file.
        name: None: the folder's or file's.
        variants: None: that of those for where it is to run that fits in memory.
        block: see :func:`read_hf_checkpoint`.
        adapter: trained for exactly these weights with 'redraft train run', to be merged.
        prompt_format: see :func:`served`.
        license_: where the weights themselves do not state it.
        called: further names of the weights, which may tell what they were trained on.
        memory: bytes where it is to run; None: this machine's, asked for.
        gpu: it is to run on CUDA.

    Raises:
        SettingsError: the name is taken, or there is no such variant or format.
        WeightsError: the weights cannot be read, do not fit in memory, or the result cannot be
            written.
    """
    for variant in variants or ():
        check_variant(variant)
    source = read_source(path, name, block)
    source = replace(source, license=source.license or license_, names=(*source.names, *called))
    check_name(source.config.name)
    made = _merged(source, path, adapter, prompt_format)
    config, digest = made.config, made.digest
    variants = fitting(config, variants, memory or psutil.virtual_memory().total, gpu)
    target = cache_dir() / "models" / config.name
    before = _existing(config.name, target)
    progress(Progress("combine", 0, 0))
    model = _describe(source, config, digest[:16], variants, before, target)
    others = before is not None and before.version != model.version
    for variant in variants:

        def write(place: Path, variant: str = variant) -> None:
            source.tokenizer.save(place / "tokenizer.json")
            if source.template:
                (place / CHAT_TEMPLATE).write_text(source.template, "utf-8")
            write_graphs(config, made.context, made.canvas, variant, place, progress)
            if others:  # about to be replaced: never a description beside weights of others
                (target / DESCRIPTION).unlink(missing_ok=True)

        size = expected_bytes(config, variant)
        make_ready(target / variant, size, f"{digest} {variant}", write)
    content = json.dumps(model.describe(), indent=1)
    write_atomically(target / DESCRIPTION, content.encode())
    for stale in set(VARIANTS) - set(model.prebuilt):
        shutil.rmtree(target / stale, ignore_errors=True)
    return model


class _Merged(NamedTuple):
    """Weights as they are to be written."""

    config: ModelConfig
    context: Mapping[str, FloatArray]  # of the prompt
    canvas: Mapping[str, FloatArray]  # the same where nothing adapts it
    digest: str  # of all they came from


def _merged(source: Source, path: Path, adapter: Path | None, prompt_format: str | None) -> _Merged:
    """The weights with their adapter: that which is named, else the one for drafts beside them."""
    if adapter is not None:
        config, trained = _adapted(source.config, adapter, source.digest)
        file = adapter
    else:
        config, found = served(source, prompt_format), drafting_adapter(path)
        if found is None or config.verifier != "ar":
            return _Merged(config, source.tensors, source.tensors, source.digest)
        config, trained, file = replace(config, adapter="canvas"), found, path / DRAFTING_FILE
    context, canvas = merge(config, source.tensors, trained)
    return _Merged(config, context, canvas, f"{sha256_of(file)[:8]}{source.digest}")


def fitting(
    config: ModelConfig, variants: Sequence[str] | None, memory: int, gpu: bool
) -> Sequence[str]:
    """``variants``, or the one to make where none is named.

    Raises:
        WeightsError: the largest of them would not fit in ``memory`` bytes.
    """
    room = _MOST_MEMORY * memory
    if not variants:
        usual = "fp16" if gpu else DEFAULT_VARIANT
        smaller = SMALLER[usual]
        variants = (usual if expected_bytes(config, usual) <= room else smaller,)
    largest = max(variants, key=lambda variant: expected_bytes(config, variant))
    if (needed := expected_bytes(config, largest)) > room:
        where = "this GPU" if gpu else "this machine"
        least = "" if largest in SMALLER.values() else " or another --variant"
        raise WeightsError(
            f"{config.name} takes {needed / 1e9:.1f} GB as {largest}, {where} has "
            f"{memory / 1e9:.1f} GB of memory. Choose smaller weights{least}."
        )
    return variants


def _existing(name: str, target: Path) -> ModelInfo | None:
    """What was imported under this name before.

    Raises:
        SettingsError: the name belongs to a model that was not imported.
    """
    for model in list_models():
        if model.name == name and (model.folder != target or model.origin is not None):
            raise SettingsError(
                f"There is a model {name!r} already, in {model.folder or 'Redraft itself'}. Choose "
                "another name with --name."
            )
    make_folder(target)
    description = target / DESCRIPTION
    if not description.is_file():
        return None
    try:
        return read_description(description)
    except WeightsError:  # damaged: written anew
        return None


def _adapted(config: ModelConfig, path: Path, digest: str) -> tuple[ModelConfig, Adapter]:
    """The configuration under which an adapter was trained for these weights, and the adapter."""
    trained = load_adapter(path)
    if config.attention != "canvas":
        raise SettingsError(
            f"{config.name} is a diffusion model already; an adapter of Redraft changes only plain "
            "Llama, Qwen2 and Qwen3 weights. Leave --adapter out."
        )
    said = {"adapter": "canvas", "canvas": str(config.canvas_width), **trained.metadata}
    where, verifier, width = said["adapter"], said.get("verifier", "none"), said["canvas"]
    if (where, verifier) != ("all", "ar") or not width.isdecimal():
        raise WeightsError(
            f"{path} says adapter = {where!r}, verifier = {verifier!r}, canvas = {width!r}; this "
            "Redraft serves adapters of the causal pass (adapter = 'all', verifier = 'ar'). Train "
            "one with 'redraft train run --config causal-cpu'."
        )
    adapted = replace(
        config,
        adapter="all",
        verifier="ar",
        draft_after=MAX_ANSWER_TOKENS,
        logit_shift=said.get("logit_shift", "1") == "1",
        canvas_width=int(width),
    )
    check_adapter(trained, adapted, digest)
    return adapted, trained


def _describe(
    source: Source,
    config: ModelConfig,
    version: str,
    variants: Sequence[str],
    before: ModelInfo | None,
    target: Path,
) -> ModelInfo:
    kept: set[str] = set()
    if before is not None and (before.version, before.config) == (version, config):
        kept = {variant for variant in before.prebuilt if (target / variant).is_dir()}
    weights = sum(prod(shape) for shape in tensor_shapes(config.to_dict()).values())
    adapted = "" if config.adapter == "none" else ", adapted"
    return ModelInfo(
        name=config.name,
        version=version,
        summary=f"{source.family} of {_size(weights)} weights{adapted}, imported",
        license=source.license,
        origin=None,
        adapter=None,
        adapter_sha256="",
        config=config,
        default_variant=variants[0],
        folder=target,
        prebuilt=tuple(v for v in VARIANTS if v in kept or v in variants),
    )


def _size(weights: int) -> str:
    return f"{weights / 1e9:.1f}B" if weights >= 1e9 else f"{weights / 1e6:.0f}M"
