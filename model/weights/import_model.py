"""Makes a model of one's own out of a Hugging Face folder: read, converted, registered, checked.

The result lies below ``models`` in the cache: one ready folder per variant, each with the SHA-256
of its files, and the description by which the registry lists it. The folder it came from is not
needed any more. Knows nothing of running; it blocks for as long as the weights take.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Literal, cast

from ..config import ModelConfig
from ..errors import SettingsError, WeightsError
from ..network.quantize import VARIANTS, FloatArray, check_variant
from ..prompt.tokens import Tokenizer
from .adapter import Adapter, check_adapter, load_adapter, merge
from .combine import expected_bytes, make_ready
from .fetch import Progress, ProgressCallback
from .files import explaining, make_folder, sha256_of, write_atomically
from .gguf import tensor_shapes
from .huggingface import checkpoint_sha256, family_name, read_hf_checkpoint
from .registry import DESCRIPTION, ModelInfo, cache_dir, check_name, list_models, read_description

#: The accurate one of those that run on a CPU: nobody has measured how these weights take int8.
DEFAULT_VARIANT = "q8"


def import_model(
    folder: Path,
    name: str | None = None,
    variants: Sequence[str] = (DEFAULT_VARIANT,),
    block: int | None = None,
    adapter: Path | None = None,
    progress: ProgressCallback | None = None,
) -> ModelInfo:
    """Convert the weights in ``folder`` and register them as ``name``.

    Importing the same weights again adds the variants that are missing; other weights of the same
    name replace what was imported.

    Args:
        name: None: the folder's.
        block: see :func:`read_hf_checkpoint`.
        adapter: trained for exactly these weights with 'redraft train run', to be merged.

    Raises:
        SettingsError: the name is taken, or there is no such variant.
        WeightsError: the weights cannot be read, or the result not be written.
    """
    for variant in variants:
        check_variant(variant)
    config, tensors, tokenizer_file = read_hf_checkpoint(folder, name, block)
    check_name(config.name)
    target = cache_dir() / "models" / config.name
    before = _existing(config.name, target)
    if progress is not None:
        progress(Progress("combine", 0, 0))
    digest = checkpoint_sha256(folder)
    context: Mapping[str, FloatArray] = tensors
    canvas = context
    if adapter is not None:
        config, trained = _adapted(config, adapter, digest)
        context, canvas = merge(config, tensors, trained)
        digest = f"{sha256_of(adapter)[:8]}{digest}"
    tokenizer = Tokenizer.from_file(tokenizer_file)
    model = _describe(folder, config, digest[:16], variants, before, target)
    if before is not None and before.version != model.version:
        (target / DESCRIPTION).unlink()  # never beside weights it does not describe
    for variant in variants:

        def write(place: Path, variant: str = variant) -> None:
            tokenizer.save(place / "tokenizer.json")
            _convert(config, context, canvas, variant, place, progress)

        size = expected_bytes(config, variant)
        make_ready(target / variant, size, f"{digest} {variant}", write)
    content = json.dumps(model.describe(), indent=1)
    write_atomically(target / DESCRIPTION, content.encode())
    for stale in set(VARIANTS) - set(model.prebuilt):
        shutil.rmtree(target / stale, ignore_errors=True)
    return model


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
    if where not in ("canvas", "all") or verifier not in ("none", "ar") or not width.isdecimal():
        raise WeightsError(
            f"{path} says adapter = {where!r}, verifier = {verifier!r}, canvas = {width!r}, which "
            "this Redraft does not know. Upgrade with 'pip install -U redraft'."
        )
    adapted = replace(
        config,
        adapter=cast("Literal['canvas', 'all']", where),
        verifier=cast("Literal['none', 'ar']", verifier),
        logit_shift=said.get("logit_shift", "1") == "1",
        canvas_width=int(width),
    )
    check_adapter(trained, adapted, digest)
    return adapted, trained


def _describe(
    folder: Path,
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
        summary=f"{family_name(folder)} of {_size(weights)} weights{adapted}, imported",
        license=_license(folder),
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


def _license(folder: Path) -> str:
    """As the model card states it at its top; "" where it does not."""
    card = folder / "README.md"
    if not card.is_file():
        return ""
    with explaining("read", card):
        head = card.read_text(encoding="utf-8", errors="replace")[:20_000]
    found = re.search(
        r"\A---\n(?:.*\n)*?license: *['\"]?([\w.+-]+)", head.partition("\n---")[0] + "\n"
    )
    return found[1] if found else ""


def _convert(
    config: ModelConfig,
    context: Mapping[str, FloatArray],
    canvas: Mapping[str, FloatArray],
    variant: str,
    place: Path,
    progress: ProgressCallback | None,
) -> None:
    from ..network.onnx_files import materialise  # here: it brings onnx along

    def report(fraction: float) -> None:
        if progress is not None:
            progress(Progress("combine", round(fraction * 1_000), 1_000))

    materialise(config, context, canvas, variant, place, report)
