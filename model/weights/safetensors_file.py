"""Tensors of safetensors files, read one at a time: a checkpoint may be larger than memory.

Decodes float32, float16 and bfloat16 without torch, and nothing else: no file is ever unpickled.
Knows nothing of what the tensors mean.

Format: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import WeightsError
from .files import explaining
from .gguf import bf16_to_float32

FloatArray = NDArray[np.float32]

_LONGEST_HEADER = 100 << 20  # bytes; as the format's own library has it


class _Kind(NamedTuple):
    size: int  # bytes of a value
    decode: Callable[[NDArray[np.uint8]], FloatArray]


def _plain(dtype: str) -> Callable[[NDArray[np.uint8]], FloatArray]:
    return lambda raw: raw.view(dtype).astype(np.float32)


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "F32": _Kind(4, _plain("<f4")),
        "F16": _Kind(2, _plain("<f2")),
        "BF16": _Kind(2, bf16_to_float32),
    }
)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    length: int  # bytes

    def read(self, rows: int | None = None) -> FloatArray:
        """The values, or the first ``rows`` of them, as float32.

        Raises:
            WeightsError: of a type that is not known, cut short, or not finite.
        """
        kind = _KINDS.get(self.dtype)
        if kind is None:
            raise WeightsError(
                f"{self.path} stores {self.name!r} as {self.dtype}; known are {', '.join(_KINDS)}. "
                "Use a checkpoint that is not quantised."
            )
        shape = self.shape if rows is None else (min(rows, self.shape[0]), *self.shape[1:])
        wanted = prod(shape) * kind.size
        with explaining("read", self.path), self.path.open("rb") as file:
            file.seek(self.start)
            raw = np.fromfile(file, np.uint8, wanted)
        if len(raw) != wanted:
            raise WeightsError(f"{self.path} ends inside {self.name!r}. Download it again.")
        values = kind.decode(raw).reshape(shape)
        if not np.isfinite(values).all():
            raise WeightsError(
                f"{self.path} holds values in {self.name!r} that are not finite: the file is "
                "damaged, or its training diverged. Download it again or use another checkpoint."
            )
        return values


def tensors_in(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of a safetensors file by its name; reads the header alone.

    Raises:
        WeightsError: the file is missing, cut short, or its header does not describe it.
    """
    with explaining("read", path), path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_LONGEST_HEADER, size - 8):
            raise _broken(path, f"its header claims {length:,} of {size:,} bytes")
        header = file.read(length)
    try:
        entries = json.loads(header)
        return {
            name: _entry(path, name, entry, 8 + length, size)
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _broken(path, f"its header is damaged: {error}") from error


def _entry(path: Path, name: str, entry: Mapping[str, Any], base: int, size: int) -> StoredTensor:
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    whole = (begin, end, *shape)
    if not all(type(value) is int and value >= 0 for value in whole) or base + end > size:
        raise ValueError(f"{name} lies at {begin} … {end}, shape {list(shape)}")
    kind = _KINDS.get(entry["dtype"])
    if kind is not None and end - begin != prod(shape) * kind.size:
        raise ValueError(f"{name} has {end - begin} bytes, shape {list(shape)}")
    return StoredTensor(path, name, str(entry["dtype"]), shape, base + begin, end - begin)


def _broken(path: Path, why: str) -> WeightsError:
    return WeightsError(f"{path} is not a whole safetensors file: {why}. Download it again.")
