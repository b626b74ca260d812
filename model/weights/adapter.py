"""Adapters: low-rank changes of the base weights, kept as safetensors, and how to merge them.

A matrix is stored as float32, float16, bfloat16, or in 8 bits: int8 values [rows, columns] under
its name, and under ``NAME.scales`` a float16 for every 32 columns of a row; value · scale is the
number. That halves a file of bfloat16. LoRA: https://arxiv.org/abs/2106.09685
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import LINEARS, SAMPLER, ModelConfig, tensor_shapes
from ..errors import WeightsError
from .files import write_atomically
from .tensors import FloatArray, StoredTensor, Tensors, metadata_in, tensors_in

_MASK_ROW = "mask_embedding"
#: Suffix of the scales of a matrix stored in 8 bits, and how many columns share one.
_SCALES, _GROUP = ".scales", 32
_EIGHT_BITS = "I8"
#: Prefix of a low-rank change that is merged into the base before anything else.
GROUND = "base."


class Adapter(NamedTuple):
    """Content of an adapter file, in float32."""

    metadata: dict[str, str]
    lora: dict[str, FloatArray]  # "blocks.0.attn.q.lora_a" [rank, in], "….lora_b" [out, rank]
    mask_embedding: FloatArray | None  # [hidden], replaces the row of the mask token
    ground: dict[str, FloatArray] = {}  # noqa: RUF012 - as lora, of the base that lora changes
    sampler: dict[str, FloatArray] = {}  # noqa: RUF012 - "sampler.enter.weight", …; see ModelConfig

    @property
    def scale(self) -> float:
        """Return the factor of the low-rank product.

        Raises:
            WeightsError: the metadata states no number.
        """
        try:
            return float(self.metadata.get("scale", "1.0"))
        except ValueError as error:
            raise WeightsError(
                f"the adapter's scale is {self.metadata['scale']!r}, not a number. Export it again "
                "or fetch it anew."
            ) from error


def load_adapter(path: Path) -> Adapter:
    """Return the adapter in a file.

    Raises:
        WeightsError: it is missing, truncated, inconsistent, not finite, or holds other tensors
            than an adapter has.
    """
    stored = tensors_in(path)
    tensors = {
        name: _from_8_bits(each, stored.get(name + _SCALES))
        if each.dtype == _EIGHT_BITS
        else each.read()
        for name, each in stored.items()
        if not name.endswith(_SCALES)
    }
    mask_embedding = tensors.pop(_MASK_ROW, None)
    sampler = {name: tensors.pop(name) for name in SAMPLER if name in tensors}
    known = {f"{linear}.lora_{side}" for linear in LINEARS for side in "ab"}
    for name in tensors:
        prefix, _, rest = name.removeprefix(GROUND).partition(".")
        layer, _, part = rest.partition(".")
        if prefix != "blocks" or not layer.isdecimal() or part not in known:
            raise WeightsError(
                f"{path} is not an adapter: it holds {name!r}. Expected are 'mask_embedding', "
                "'blocks.{i}.{linear}.lora_a' and '.lora_b', those merged first after 'base.', and "
                f"{', '.join(map(repr, SAMPLER))}."
            )
    lora = {name: values for name, values in tensors.items() if not name.startswith(GROUND)}
    ground = {n.removeprefix(GROUND): v for n, v in tensors.items() if n.startswith(GROUND)}
    return Adapter(metadata_in(path), lora, mask_embedding, ground, sampler)


def _from_8_bits(tensor: StoredTensor, scales: StoredTensor | None) -> FloatArray:
    shape = tensor.shape
    groups = (*shape[:-1], -(-shape[-1] // _GROUP)) if shape else ()
    if scales is None or scales.dtype != "F16" or scales.shape != groups:
        raise WeightsError(
            f"{tensor.path} stores {tensor.name!r} as {_EIGHT_BITS} of shape {list(shape)} without "
            f"its scales, F16 of shape {list(groups)}. Export it again."
        )
    values = tensor.as_stored().astype(np.float32)
    values *= np.repeat(scales.as_stored().astype(np.float32), _GROUP, axis=-1)[..., : shape[-1]]
    return tensor.check_finite(values)


def check_adapter(adapter: Adapter, config: ModelConfig, base_sha256: str) -> None:
    """Compare what the adapter says about itself with what the model expects of it.

    Raises:
        WeightsError: it was trained for another base or under other conventions.
    """
    expected = {
        "base_sha256": base_sha256,
        "logit_shift": str(int(config.logit_shift)),
        "canvas": str(config.canvas_width),
        "adapter": config.adapter,
        "verifier": config.verifier,
        "prompt_format": config.prompt_format,
        "masks": str(config.masks),
        "sampler": str(config.sampler),
    }
    for key, value in expected.items():
        found = adapter.metadata.get(key, value)
        if found != value and key == "prompt_format":
            raise WeightsError(
                f"the adapter was trained with prompt_format = {found!r}; {config.name} needs "
                f"{value!r}. The adapters of Redraft's own models come with this release: leave "
                f"--adapter out, or run 'redraft model pull {config.name}'. Train one of your own "
                "again with 'redraft train run'."
            )
        if found != value:
            raise WeightsError(
                f"the adapter was trained with {key} = {found!r}, the model's description says "
                f"{value!r}. Correct the description, or use the adapter that belongs to it."
            )


# --- merging --------------------------------------------------------------------------------------


def merge(
    config: ModelConfig, base: Mapping[str, FloatArray], adapter: Adapter | None
) -> tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]]:
    """Return the weights of the context pass and those of the canvas, by our names.

    Where both are the same weights they are the same object. The canvas's new row for the mask is
    an input only: as a special token the mask is never predicted, tied head or not. The matrices of
    an adapter on masks, and of its sampler, stand beside the canvas's weights, unmerged.

    Raises:
        WeightsError: the adapter does not fit the base, or is missing or unexpected.
    """
    if (adapter is None) != (config.adapter == "none"):
        raise WeightsError(
            f"the model's config says adapter = {config.adapter!r}, but "
            f"{'no adapter file is named' if adapter is None else 'an adapter file is named'}. "
            "Correct the model's description."
        )
    if adapter is None:
        return base, base
    below = with_ground(config, base, adapter)
    _check_shapes(config, below, adapter)
    if config.adapter == "masks":
        return below, _beside(config, below, adapter)
    merged = _merged(config, below, adapter)
    return (merged if config.adapter == "all" else below), merged


def with_ground(
    config: ModelConfig, base: Mapping[str, FloatArray], adapter: Adapter
) -> Mapping[str, FloatArray]:
    """Return the base with what the adapter merges into it first.

    Raises:
        WeightsError: the adapter does not fit the base.
    """
    if not adapter.ground:
        return base
    first = Adapter(adapter.metadata, adapter.ground, None)
    _check_shapes(config, base, first)
    return _merged(config, base, first)


def _merged(config: ModelConfig, base: Mapping[str, FloatArray], adapter: Adapter) -> Tensors:
    """Return the base with an adapter worked in, tensor by tensor."""

    def read(name: str) -> FloatArray:
        values, stem = base[name], name.removesuffix(".weight")
        if name == "embed.weight" and adapter.mask_embedding is not None:
            values = values.copy()
            values[config.mask_token] = adapter.mask_embedding
        elif (low := adapter.lora.get(f"{stem}.lora_a")) is not None and name != stem:
            change: FloatArray = adapter.lora[f"{stem}.lora_b"] @ low  # [out, in]
            change *= np.float32(adapter.scale)
            change += values
            return change
        return values

    return Tensors(base, read)


def _beside(config: ModelConfig, base: Mapping[str, FloatArray], adapter: Adapter) -> Tensors:
    """Return the base with the mask's row, and an adapter's matrices beside it."""
    below = _merged(config, base, adapter._replace(lora={}))

    def read(name: str) -> FloatArray:
        if name in adapter.lora:
            scale = adapter.scale if name.endswith("lora_b") else 1.0
            return adapter.lora[name] * np.float32(scale)
        return adapter.sampler[name] if name in adapter.sampler else below[name]

    return Tensors([*base, *adapter.lora, *adapter.sampler], read)


def _check_shapes(config: ModelConfig, base: Mapping[str, FloatArray], adapter: Adapter) -> None:
    shapes = tensor_shapes(asdict(config))
    if set(base) != set(shapes):
        raise WeightsError(
            f"the base lacks or exceeds what the model's config says, at "
            f"{sorted(set(base) ^ set(shapes))[:3]}. Correct the model's description."
        )
    for name in sorted({name.rpartition(".")[0] for name in adapter.lora}):
        low, high = (adapter.lora.get(f"{name}.lora_{side}") for side in "ab")
        wanted = shapes.get(f"{name}.weight")
        fits = (
            low is not None
            and high is not None
            and low.ndim == high.ndim == 2
            and (high.shape[0], low.shape[1]) == wanted
            and low.shape[0] == high.shape[1]
        )
        if not fits:
            raise WeightsError(
                f"the adapter's {name!r} does not fit the base: lora_a is {_shape(low)}, lora_b "
                f"{_shape(high)}, the base {list(wanted or ()) or 'has no such layer'}. It belongs "
                "to another base."
            )
    row = adapter.mask_embedding
    if row is not None and row.shape != (config.hidden,):
        raise WeightsError(
            f"the adapter's mask embedding has shape {_shape(row)}, not [{config.hidden}]. It "
            "belongs to another base."
        )


def _shape(values: FloatArray | None) -> str:
    return "missing" if values is None else str(list(values.shape))


# --- writing --------------------------------------------------------------------------------------


def to_8_bits(values: FloatArray) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return a matrix as it is stored in 8 bits.

    No value is off by more than half its group's scale.

    Args:
        values: [rows, columns].

    Returns:
        int8 [rows, columns] and float16 scales [rows, groups of 32 columns].
    """
    values = np.ascontiguousarray(values)  # a transposed matrix would give transposed scales
    rows, columns = values.shape
    padding = -columns % _GROUP
    grouped = np.pad(values, ((0, 0), (0, padding))).reshape(rows, -1, _GROUP)
    largest = np.abs(grouped).max(axis=2)  # [rows, groups]
    wanted = largest / np.float32(127.0)
    scales = wanted.astype(np.float16)
    # Rounded up, so that the largest value is not cut off.
    low = scales.astype(np.float32) < wanted
    scales[low] = np.nextafter(scales[low], np.float16(np.inf))
    factors = np.where(scales > 0, scales.astype(np.float32), np.float32(1.0))
    whole = np.rint(grouped / factors[..., None]).astype(np.int8).reshape(rows, -1)
    return np.ascontiguousarray(whole[:, :columns]), np.ascontiguousarray(scales)


def save_in_8_bits(adapter: Adapter, path: Path, **metadata: str) -> None:
    """Write an adapter: its matrices in 8 bits, its vectors in float16.

    Args:
        metadata: in the place of what the adapter says of itself.

    Raises:
        WeightsError: the file cannot be written.
    """
    from safetensors.numpy import save

    ground = {f"{GROUND}{name}": values for name, values in adapter.ground.items()}
    mask = {} if adapter.mask_embedding is None else {_MASK_ROW: adapter.mask_embedding}
    tensors: dict[str, NDArray[Any]] = {}
    for name, values in {**adapter.lora, **ground, **adapter.sampler, **mask}.items():
        if values.ndim == 2:
            tensors[name], tensors[name + _SCALES] = to_8_bits(values)
        else:
            tensors[name] = values.astype(np.float16)
    write_atomically(path, save(tensors, metadata={**adapter.metadata, **metadata}))
