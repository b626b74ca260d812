"""How each variant stores its tensors: float32, float16, 8 or 4 bits in blocks, 8 bits per row.

numpy only. A :class:`Stored` says what a graph needs (which weights, in which format) and knows the
name, type and shape of every tensor that takes; ``encode`` makes them from the weights. Knows
nothing of graphs or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError, WeightsError

Array = NDArray[Any]
FloatArray = NDArray[np.float32]

Variant = Literal["fp32", "q8", "int8", "fp16", "q4", "q4f16"]
VARIANTS: tuple[str, ...] = get_args(Variant)
#: Those of half precision, which run on CUDA alone: its fused attention knows nothing finer.
HALF = ("fp16", "q4f16")

#: A matrix: the linear maps of a block, the embedding that is looked up outside the graphs, or the
#: head. Where both have one format, a tied head is stored once.
Role = Literal["linear", "embedding", "head"]

#: ``plain`` [inputs, outputs] float; ``table`` [rows, columns] float; ``vector`` float;
#: ``blocks`` 8 bits with one scale per block of inputs (the layout of MatMulNBits), ``nibbles`` 4;
#: ``rows`` 8 bits with one scale per output, [inputs, outputs] (MatMulIntegerToFloat).
Format = Literal["plain", "table", "vector", "blocks", "nibbles", "rows"]

_FORMATS: dict[str, dict[Role, Format]] = {
    "fp32": {"linear": "plain", "embedding": "table", "head": "table"},
    "fp16": {"linear": "plain", "embedding": "table", "head": "table"},
    "q8": {"linear": "blocks", "embedding": "blocks", "head": "blocks"},
    # A head in blocks takes twice as long over 16 positions (31 for 17 ms of 151,936 tokens).
    "int8": {"linear": "rows", "embedding": "blocks", "head": "rows"},
    # A wrong token is worse than a larger table.
    "q4": {"linear": "nibbles", "embedding": "blocks", "head": "blocks"},
    "q4f16": {"linear": "nibbles", "embedding": "table", "head": "table"},
}

#: Inputs that share a scale in ``blocks``. 32 halves the error of 64 and costs 10 % speed: q8 is
#: the accurate variant, int8 the fast one.
_BLOCK = {"fp32": 32, "fp16": 32, "q8": 32, "int8": 64, "q4": 32, "q4f16": 32}

#: Values quantised at once: a vocabulary of 0.5 GB would otherwise take several times as much.
_AT_ONCE = 1 << 22


def format_of(variant: str, role: Role) -> Format:
    """The format of a matrix in a variant.

    Raises:
        SettingsError: there is no such variant.
    """
    check_variant(variant)
    return _FORMATS[variant][role]


def block_size(variant: str) -> int:
    """Inputs that share a scale in the formats ``blocks`` and ``nibbles``."""
    return _BLOCK[variant]


def float_type(variant: str) -> np.dtype[Any]:
    """Type of activations, of the KV cache and of everything not quantised."""
    return np.dtype(np.float16 if variant in HALF else np.float32)


def check_variant(variant: str) -> None:
    if variant not in _FORMATS:
        raise SettingsError(f"Unknown variant {variant!r}: choose one of {', '.join(VARIANTS)}.")


@dataclass(frozen=True, slots=True)
class Stored:
    """Something a graph reads from the data file.

    Args:
        name: unique within a graph together with ``format``.
        sources: weights, stacked along their outputs.
        shape: of the stacked weights, (outputs, inputs) or (length,).
        diagonal: each source has inputs of its own as well, so that zeros fill the rest.
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
    diagonal: bool = False

    def tensors(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each tensor by its name in the graph."""
        if self.format in ("vector", "table"):
            return {self.name: (self.dtype, self.shape)}
        outputs, inputs = self.shape
        if self.format == "plain":
            return {self.name: (self.dtype, (inputs, outputs))}
        if self.format == "rows":
            return {
                f"{self.name}.rows": (np.dtype(np.int8), (inputs, outputs)),
                f"{self.name}.row_scales": (np.dtype(np.float32), (outputs,)),
            }
        count = -(-inputs // self.block)
        if self.format == "nibbles":
            return {
                f"{self.name}.nibbles": (np.dtype(np.uint8), (outputs, count, self.block // 2)),
                f"{self.name}.nibble_scales": (self.dtype, (outputs, count)),
            }
        return {
            f"{self.name}.blocks": (np.dtype(np.uint8), (outputs, count, self.block)),
            f"{self.name}.block_scales": (np.dtype(np.float32), (outputs, count)),
        }

    def encode(self, weights: Mapping[str, FloatArray]) -> dict[str, Array]:
        """The tensors named by :meth:`tensors`.

        Raises:
            WeightsError: a weight is missing or has another shape than the configuration says.
        """
        stacked = self._stack(weights)
        if self.format in ("vector", "table"):
            return {self.name: stacked.astype(self.dtype)}
        if self.format == "plain":
            return {self.name: np.ascontiguousarray(stacked.T, dtype=self.dtype)}
        if self.format == "rows":
            values, scales = quantize_rows(stacked)
            return {f"{self.name}.rows": values, f"{self.name}.row_scales": scales}
        if self.format == "nibbles":
            values, scales = quantize_nibbles(stacked, self.block)
            names = f"{self.name}.nibbles", f"{self.name}.nibble_scales"
            return dict(zip(names, (values, scales.astype(self.dtype)), strict=True))
        values, scales = quantize_blocks(stacked, self.block)
        return {f"{self.name}.blocks": values, f"{self.name}.block_scales": scales}

    def _stack(self, weights: Mapping[str, FloatArray]) -> FloatArray:
        parts = []
        for source in self.sources:
            if source not in weights:
                raise WeightsError(
                    f"The weights lack the tensor {source!r}: they belong to another architecture "
                    "than their config.json says. Run 'redraft model pull' again."
                )
            parts.append(np.asarray(weights[source], dtype=np.float32))
        if self.diagonal and all(part.ndim == 2 for part in parts):
            parts = _along_diagonal(parts)
        trailing = {part.shape[1:] for part in parts}
        shape = (sum(part.shape[0] for part in parts), *self.shape[1:])
        if trailing != {self.shape[1:]} or shape != self.shape:
            raise WeightsError(
                f"The weights {', '.join(self.sources)} have shapes "
                f"{[part.shape for part in parts]}, together {self.shape} is needed: config.json "
                "describes another model. Run 'redraft model pull' again."
            )
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _along_diagonal(parts: list[FloatArray]) -> list[FloatArray]:
    """Each matrix [outputs, inputs] with zeros where the inputs of the others are."""
    inputs = [part.shape[1] for part in parts]
    return [
        np.pad(part, ((0, 0), (sum(inputs[:at]), sum(inputs[at + 1 :]))))
        for at, part in enumerate(parts)
    ]


def quantize_blocks(matrix: FloatArray, block: int) -> tuple[Array, FloatArray]:
    """8 bits around 128, one scale per ``block`` inputs.

    Args:
        matrix: [outputs, inputs]; inputs are padded with zeros to whole blocks.

    Returns:
        uint8 [outputs, blocks, block] and float32 scales [outputs, blocks];
        matrix ≈ (values - 128) · scale.
    """
    outputs, inputs = matrix.shape
    count = -(-inputs // block)
    values = np.empty((outputs, count, block), np.uint8)
    scales = np.empty((outputs, count), np.float32)
    step = max(1, _AT_ONCE // max(1, inputs))
    for at in range(0, outputs, step):
        part = matrix[at : at + step]
        if count * block != inputs:
            part = np.pad(part, ((0, 0), (0, count * block - inputs)))
        grouped = part.reshape(-1, count, block)
        scales[at : at + step] = _scales(np.abs(grouped).max(axis=2))  # [outputs, blocks]
        # [outputs, blocks, block]
        values[at : at + step] = np.rint(grouped / scales[at : at + step, :, None]) + 128.0
    return values, scales


def quantize_nibbles(matrix: FloatArray, block: int) -> tuple[Array, FloatArray]:
    """4 bits around 8, one scale per ``block`` inputs, which may be negative: the largest value of
    a block is met exactly, as in GGUF's Q4_0.

    Args:
        matrix: [outputs, inputs]; inputs are padded with zeros to whole blocks.

    Returns:
        uint8 [outputs, blocks, block / 2], the earlier input in the low half, and float32 scales
        [outputs, blocks]; matrix ≈ (values - 8) · scale.
    """
    outputs, inputs = matrix.shape
    count = -(-inputs // block)
    values = np.empty((outputs, count, block // 2), np.uint8)
    scales = np.empty((outputs, count), np.float32)
    step = max(1, _AT_ONCE // max(1, inputs))
    for at in range(0, outputs, step):
        part = matrix[at : at + step]
        if count * block != inputs:
            part = np.pad(part, ((0, 0), (0, count * block - inputs)))
        grouped = part.reshape(-1, count, block)
        peak = np.abs(grouped).argmax(axis=2, keepdims=True)
        largest = np.take_along_axis(grouped, peak, axis=2)  # [outputs, blocks, 1]
        scale = np.where(largest != 0, largest / np.float32(-8.0), np.float32(1.0))
        levels = np.clip(np.rint(grouped / scale) + 8.0, 0, 15).astype(np.uint8)
        values[at : at + step] = levels[..., ::2] | levels[..., 1::2] << 4
        scales[at : at + step] = scale[..., 0]
    return values, scales


def quantize_rows(matrix: FloatArray) -> tuple[Array, FloatArray]:
    """8 bits around 0, one scale per output.

    Args:
        matrix: [outputs, inputs].

    Returns:
        int8 [inputs, outputs] and float32 scales [outputs]; matrix ≈ (values · scale) transposed.
    """
    outputs, inputs = matrix.shape
    scales = np.empty(outputs, np.float32)
    values = np.empty((inputs, outputs), np.int8)
    step = max(1, _AT_ONCE // max(1, inputs))
    for at in range(0, outputs, step):
        part = matrix[at : at + step]
        scales[at : at + step] = found = _scales(np.abs(part).max(axis=1))
        values[:, at : at + step] = np.rint(part / found[:, None]).T
    return values, scales


def _scales(largest: FloatArray) -> FloatArray:
    """127 steps to the largest value; all-zero groups get 1 so that nothing divides by zero."""
    return np.where(largest > 0, largest / np.float32(127.0), np.float32(1.0)).astype(np.float32)
