"""Variants, and the formats of their tensors: floats, 8 or 4 bits in blocks, 8 bits per row.

A :class:`Stored` names weights that a graph needs and their format. It has the name, type and shape
of every tensor that this takes; ``encode`` makes them from the weights, by numpy alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError, WeightsError

Array = NDArray[Any]
FloatArray = NDArray[np.float32]

#: ``whole`` as the weights are, float; ``turned`` [inputs, outputs] float; ``blocks`` 8 bits with
#: one scale per block of inputs (the layout of MatMulNBits), ``nibbles`` 4; ``rows`` 8 bits with
#: one scale per output, [inputs, outputs] (MatMulIntegerToFloat).
Format = Literal["whole", "turned", "blocks", "nibbles", "rows"]

VariantName = Literal["fp32", "int8", "fp16", "q4", "q4f16"]

FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)


@dataclass(frozen=True, slots=True)
class Variant:
    """Formats of the matrices of a model, and the type of everything else.

    Args:
        linear: of the linear maps in a block.
        embedding: of the table that is looked up outside the graphs.
        head: where it is as ``embedding``, a tied head is stored once.
        block: inputs that share a scale in ``blocks`` and ``nibbles``.
        dtype: of activations, the KV cache and tensors that are not quantised.
    """

    linear: Format
    embedding: Format
    head: Format
    block: int = 32
    dtype: np.dtype[Any] = FLOAT32


_VARIANTS: dict[VariantName, Variant] = {
    "fp32": Variant("turned", "whole", "whole"),
    # A head in blocks takes twice as long over 16 positions (31 for 17 ms of 151,936 tokens).
    "int8": Variant("rows", "blocks", "rows", block=64),
    "fp16": Variant("turned", "whole", "whole", dtype=FLOAT16),
    # A wrong token is worse than a larger table.
    "q4": Variant("nibbles", "blocks", "blocks"),
    "q4f16": Variant("nibbles", "whole", "whole", dtype=FLOAT16),
}
VARIANTS: tuple[str, ...] = tuple(_VARIANTS)
#: Those of half precision, which run on CUDA alone: its fused attention takes nothing finer.
HALF = tuple(name for name, variant in _VARIANTS.items() if variant.dtype == FLOAT16)

#: Values quantised at once: a vocabulary of 0.5 GB would otherwise take several times as much.
_AT_ONCE = 1 << 22


def variant_named(name: str) -> Variant:
    """Return the variant of a name.

    Raises:
        SettingsError: there is no such variant.
    """
    found = {str(each): variant for each, variant in _VARIANTS.items()}.get(name)
    if found is None:
        raise SettingsError(f"Unknown variant {name!r}: choose one of {', '.join(VARIANTS)}.")
    return found


@dataclass(frozen=True, slots=True)
class Stored:
    """Something a graph reads from the data file.

    Args:
        name: unique within a graph together with ``format``.
        sources: weights, stacked along their outputs.
        shape: of the stacked weights, (outputs, inputs) or (length,).
        dtype: of unquantised tensors, and of the scales of ``nibbles``.
        adapted: it differs between context and canvas when the adapter is on the canvas only.
        of_masks: it belongs to the adapter that acts on masks alone.
    """

    name: str
    sources: tuple[str, ...]
    format: Format
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: int = 32
    adapted: bool = False
    of_masks: bool = False

    def tensors(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Return type and shape of each tensor by its name in the graph."""
        if self.format == "whole":
            return {self.name: (self.dtype, self.shape)}
        outputs, inputs = self.shape
        if self.format == "turned":
            return {self.name: (self.dtype, (inputs, outputs))}
        if self.format == "rows":
            return {
                f"{self.name}.rows": (np.dtype(np.int8), (inputs, outputs)),
                f"{self.name}.row_scales": (FLOAT32, (outputs,)),
            }
        count = -(-inputs // self.block)
        width, scales = self.block, FLOAT32
        if self.format == "nibbles":
            width, scales = self.block // 2, self.dtype
        singular = self.format.removesuffix("s")
        return {
            f"{self.name}.{self.format}": (np.dtype(np.uint8), (outputs, count, width)),
            f"{self.name}.{singular}_scales": (scales, (outputs, count)),
        }

    def encode(self, weights: Mapping[str, FloatArray]) -> dict[str, Array]:
        """Return the tensors named by :meth:`tensors`.

        Raises:
            WeightsError: a weight is missing or has another shape than the configuration says.
        """
        stacked = self._stack(weights)
        if self.format == "whole":
            found: tuple[Array, ...] = (stacked,)
        elif self.format == "turned":
            found = (stacked.T,)
        elif self.format == "rows":
            found = quantize_rows(stacked)
        else:
            quantize = quantize_blocks if self.format == "blocks" else quantize_nibbles
            found = quantize(stacked, self.block)
        return {
            name: np.ascontiguousarray(values, dtype)
            for (name, (dtype, _)), values in zip(self.tensors().items(), found, strict=True)
        }

    def _stack(self, weights: Mapping[str, FloatArray]) -> FloatArray:
        parts = []
        for source in self.sources:
            if source not in weights:
                raise WeightsError(
                    f"The weights lack the tensor {source!r}: they belong to another architecture "
                    "than their config.json says. Run 'redraft model pull' again."
                )
            parts.append(np.asarray(weights[source], dtype=np.float32))
        trailing = {part.shape[1:] for part in parts}
        shape = (sum(part.shape[0] for part in parts), *self.shape[1:])
        if trailing != {self.shape[1:]} or shape != self.shape:
            raise WeightsError(
                f"The weights {', '.join(self.sources)} have shapes "
                f"{[part.shape for part in parts]}, together {self.shape} is needed: config.json "
                "describes another model. Run 'redraft model pull' again."
            )
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def quantize_blocks(matrix: FloatArray, block: int) -> tuple[Array, FloatArray]:
    """Return a matrix in 8 bits around 128, with one scale per ``block`` inputs.

    Args:
        matrix: [outputs, inputs]; inputs are padded with zeros to whole blocks.

    Returns:
        uint8 [outputs, blocks, block] and float32 scales [outputs, blocks];
        matrix ≈ (values - 128) · scale.
    """
    values, scales = _room_for_blocks(matrix, block, block)
    for at, grouped in _blocks_of(matrix, block):
        scales[at] = scale = _steps(np.abs(grouped).max(axis=2), 127)  # [outputs, blocks]
        values[at] = np.rint(grouped / scale[..., None]) + 128.0  # [outputs, blocks, block]
    return values, scales


def quantize_nibbles(matrix: FloatArray, block: int) -> tuple[Array, FloatArray]:
    """Return a matrix in 4 bits around 8, with one scale per ``block`` inputs.

    A scale may be negative: the largest value of a block is met exactly, as in GGUF's Q4_0.

    Args:
        matrix: [outputs, inputs]; inputs are padded with zeros to whole blocks.

    Returns:
        uint8 [outputs, blocks, block / 2], the earlier input in the low half, and float32 scales
        [outputs, blocks]; matrix ≈ (values - 8) · scale.
    """
    values, scales = _room_for_blocks(matrix, block, block // 2)
    for at, grouped in _blocks_of(matrix, block):
        peak = np.abs(grouped).argmax(axis=2, keepdims=True)
        largest = np.take_along_axis(grouped, peak, axis=2)  # [outputs, blocks, 1]
        scale = np.where(largest != 0, largest / np.float32(-8.0), np.float32(1.0))
        levels = np.clip(np.rint(grouped / scale) + 8.0, 0, 15).astype(np.uint8)
        values[at] = levels[..., ::2] | levels[..., 1::2] << 4
        scales[at] = scale[..., 0]
    return values, scales


def quantize_rows(matrix: FloatArray) -> tuple[Array, FloatArray]:
    """Return a matrix in 8 bits around 0, with one scale per output, exact on every processor.

    x86 without VNNI adds the products of two neighbouring inputs in 16 bits, where
    2 · 255 · 127 overflows. The values of two neighbours, inputs 2k and 2k + 1, therefore sum to
    128 at most: 255 · 128 fits. A scale is up to twice as coarse for that, 1.2 times for most rows.

    Args:
        matrix: [outputs, inputs].

    Returns:
        int8 [inputs, outputs] and float32 scales [outputs]; matrix ≈ (values · scale) transposed.
    """
    outputs, inputs = matrix.shape
    scales = np.empty(outputs, np.float32)
    values = np.empty((inputs, outputs), np.int8)
    paired = inputs // 2 * 2
    for at in _parts(outputs, inputs):
        part = matrix[at]
        sums = np.abs(part[:, :paired:2] + part[:, 1::2]).max(axis=1, initial=0)
        scales[at] = scale = np.maximum(
            _steps(np.abs(part).max(axis=1), 127), _steps(sums, 128, nothing=0)
        )
        rounded = np.rint(part / scale[:, None])
        sums = rounded[:, :paired:2] + rounded[:, 1::2]
        rounded[:, :paired:2] -= sums - np.clip(sums, -128, 128)  # where both were rounded up
        values[:, at] = rounded.T
    return values, scales


def _parts(outputs: int, inputs: int) -> Iterator[slice]:
    """Return the rows of a matrix in parts of :data:`_AT_ONCE` values."""
    step = max(1, _AT_ONCE // max(1, inputs))
    return (slice(at, at + step) for at in range(0, outputs, step))


def _room_for_blocks(matrix: FloatArray, block: int, width: int) -> tuple[Array, FloatArray]:
    """Return empty uint8 values [outputs, blocks, width] and scales [outputs, blocks]."""
    outputs, inputs = matrix.shape
    shape = outputs, -(-inputs // block)
    return np.empty((*shape, width), np.uint8), np.empty(shape, np.float32)


def _blocks_of(matrix: FloatArray, block: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield parts of a matrix in blocks, [outputs, blocks, block], and which rows they are."""
    outputs, inputs = matrix.shape
    for at in _parts(outputs, inputs):
        part = matrix[at]
        if inputs % block:
            part = np.pad(part, ((0, 0), (0, -inputs % block)))
        yield at, part.reshape(len(part), -1, block)


def _steps(largest: FloatArray, count: int, nothing: float = 1.0) -> FloatArray:
    """Return scales with ``count`` steps to the largest value.

    Args:
        nothing: the scale where all is zero; not 0 where values are divided by it.
    """
    steps = largest / np.float32(count)
    return np.where(largest > 0, steps, np.float32(nothing)).astype(np.float32)
