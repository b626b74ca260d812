"""Tensors of safetensors files, read one at a time: a checkpoint may be larger than memory.

Decodes float32, float16 and bfloat16 without torch; no file is ever unpickled. Knows nothing of
what the tensors mean.

Format: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - names bfloat16 for numpy
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ..errors import WeightsError
from .files import explaining

FloatArray = NDArray[np.float32]

FLOATS = ("F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor that was not read yet; its file stays mapped as long as this lives."""

    path: Path
    name: str
    dtype: str  # as the format names it
    shape: tuple[int, ...]
    values: Any  # of the library: read where it is sliced

    def read(self, rows: int | None = None) -> FloatArray:
        """The values, or the first ``rows`` of them, as float32.

        Raises:
            WeightsError: of a type that is not known, cut short, or not finite.
        """
        self.check_type()
        return self.checked(self.as_stored(rows).astype(np.float32))

    def check_type(self) -> None:
        """
        Raises:
            WeightsError: its numbers are of a kind that weights are not kept in.
        """
        if self.dtype not in FLOATS:
            raise WeightsError(
                f"{self.path} stores {self.name!r} as {self.dtype}; known are {', '.join(FLOATS)}. "
                "Use a checkpoint that is not quantised."
            )

    def as_stored(self, rows: int | None = None) -> NDArray[Any]:
        values: NDArray[Any] = self.values[slice(rows)]
        return values

    def checked(self, values: FloatArray) -> FloatArray:
        """
        Raises:
            WeightsError: ``values`` are not finite.
        """
        if not np.isfinite(values).all():
            raise WeightsError(
                f"{self.path} holds values in {self.name!r} that are not finite: the file is "
                "damaged, or its training diverged. Fetch it again or use another one."
            )
        return values


def tensors_in(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of a safetensors file by its name; reads the header alone.

    Raises:
        WeightsError: the file is missing, cut short, or its header does not describe it.
    """
    file = _opened(path)
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    return {
        name: StoredTensor(path, name, one.get_dtype(), tuple(one.get_shape()), one)
        for name, one in slices.items()
    }


def metadata_in(path: Path) -> dict[str, str]:
    """What a file says of itself; see :func:`tensors_in`."""
    return dict(_opened(path).metadata() or {})


def _opened(path: Path) -> Any:
    try:
        with explaining("read", path):
            return safe_open(path, "numpy")
    except (SafetensorError, ValueError) as error:
        raise WeightsError(
            f"{path} is not a whole safetensors file: {error}. Fetch it again; if it came with "
            "Redraft, reinstall Redraft."
        ) from error
