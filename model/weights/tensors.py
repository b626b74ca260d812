"""Named tensors that are read one at a time: a checkpoint may be larger than memory.

Safetensors files hold float32, float16 or bfloat16, which are decoded without torch; no file is
ever unpickled. Format: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - names bfloat16 for numpy
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ..errors import WeightsError
from .files import explain_errors

FloatArray = NDArray[np.float32]

_FLOATS = ("F32", "F16", "BF16")


class Tensors(Mapping[str, FloatArray]):
    """Weights under Redraft's names (see :class:`ModelConfig`); every access reads one anew."""

    def __init__(self, names: Iterable[str], read: Callable[[str], FloatArray]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> FloatArray:
        return self._read(name)

    def __contains__(self, name: object) -> bool:  # Mapping's own would read the tensor
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a safetensors file, which stays mapped as long as this lives."""

    path: Path
    name: str
    dtype: str  # as the format names it
    shape: tuple[int, ...]
    values: Any  # of the library: read where it is sliced

    def read(self, rows: int | None = None) -> FloatArray:
        """Return the values, or the first ``rows`` of them, as float32.

        Raises:
            WeightsError: of a type that is not known, cut short, or not finite.
        """
        self.check_type()
        return self.check_finite(self.as_stored(rows).astype(np.float32))

    def check_type(self) -> None:
        """Check that its numbers are of a kind that weights are kept in.

        Raises:
            WeightsError: they are not.
        """
        if self.dtype not in _FLOATS:
            raise WeightsError(
                f"{self.path} stores {self.name!r} as {self.dtype}; known are "
                f"{', '.join(_FLOATS)}. Use a checkpoint that is not quantised."
            )

    def as_stored(self, rows: int | None = None) -> NDArray[Any]:
        """Return the values in the type that they are stored in."""
        values: NDArray[Any] = self.values[slice(rows)]
        return values

    def check_finite(self, values: FloatArray) -> FloatArray:
        """Return ``values``.

        Raises:
            WeightsError: they are not finite.
        """
        if not np.isfinite(values).all():
            raise WeightsError(
                f"{self.path} holds values in {self.name!r} that are not finite: the file is "
                "damaged, or its training diverged. Fetch it again or use another one."
            )
        return values


def tensors_in(path: Path) -> dict[str, StoredTensor]:
    """Return every tensor of a safetensors file by its name; read the header alone.

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
    """Return the metadata of a safetensors file; see :func:`tensors_in`."""
    return dict(_opened(path).metadata() or {})


def _opened(path: Path) -> Any:
    try:
        with explain_errors("read", path):
            return safe_open(path, "numpy")
    except (SafetensorError, ValueError) as error:
        raise WeightsError(
            f"{path} is not a whole safetensors file: {error}. Fetch it again; if it came with "
            "Redraft, reinstall Redraft."
        ) from error
