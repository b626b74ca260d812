"""The embedding of a model folder, looked up in the mapped file on disk.

The tied head lies in memory packed for products, in a layout that cannot be read by rows. The table
it was packed from stays on disk, mapped, so only the pages of tokens that occur are ever read: some
megabytes instead of 140 for 151,936 tokens in 8 bits.

A program that writes into a mapped file changes what the model computes, and one that shortens it
ends our process. Our own programs never do: they put a whole new file in its place, which leaves
the mapped one as it was.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import WeightsError
from .backend import IntArray

#: What 8-bit blocks add to each value; as ``quantize.quantize_blocks``.
_ZERO_POINT = np.float32(128.0)


class Embedding:
    """The rows of one folder.

    Args:
        file: the data file of the folder.
        tables: where its tensors lie, as ``graphs.json`` has it.
        dtype: of activations.

    Raises:
        WeightsError: the file does not hold what ``tables`` says.
    """

    def __init__(
        self,
        file: Path,
        tables: Mapping[str, Mapping[str, Any]],
        config: ModelConfig,
        dtype: np.dtype[Any],
    ) -> None:
        self._config, self._dtype = config, dtype
        try:
            self._opened = file.open("rb", buffering=0)
            self._stamp = self._stamp_now()
            self._file = mmap.mmap(self._opened.fileno(), 0, access=mmap.ACCESS_READ)
            mapped = {name: _read(self._file, table) for name, table in tables.items()}
            self._values = mapped["embed"] if "embed" in mapped else mapped["embed.blocks"]
            self._scales = mapped.get("embed.block_scales")
            self._mask = np.array(mapped["mask"])
            self.sampler = {n: np.array(mapped[n]) for n in mapped if n.startswith("sampler.")}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise WeightsError(
                f"The embedding of {config.name} cannot be read from {file}: {error}. "
                "Run 'redraft model pull' again."
            ) from error

    def rows(self, tokens: IntArray, canvas: bool) -> NDArray[Any]:
        """Return the embeddings [1, n, hidden] of ``tokens`` [n].

        Args:
            canvas: masks have the embedding that the canvas has learnt.
        """
        found = self._values[tokens]
        if self._scales is not None:
            blocks = found.astype(np.float32) - _ZERO_POINT  # [n, blocks, block]
            blocks *= self._scales[tokens][..., None]
            found = blocks.reshape(len(tokens), -1)[:, : self._config.hidden]
        self._forget()
        if canvas:
            masks = (tokens == self._config.mask_token)[:, None]
            found = np.where(masks, self._mask, found)
        return np.ascontiguousarray(found, self._dtype)[None]

    def is_changed(self) -> bool:
        """Return whether the file was written to since it was opened; it costs microseconds."""
        return self._stamp_now() != self._stamp

    def close(self) -> None:
        """Close the file; its rows stay mapped."""
        self._opened.close()

    def _stamp_now(self) -> tuple[int, int]:
        status = os.fstat(self._opened.fileno())
        return status.st_size, status.st_mtime_ns

    def _forget(self) -> None:
        """Give the pages just read back to the system.

        With each row it maps 64 KB around it: 100 MB after a few prompts.
        """
        if hasattr(mmap, "MADV_DONTNEED"):
            self._file.madvise(mmap.MADV_DONTNEED)


def _read(file: mmap.mmap, table: Mapping[str, Any]) -> NDArray[Any]:
    """Return a tensor of the file, of which only the parts used are read."""
    shape = tuple(int(size) for size in table["shape"])
    dtype, offset = np.dtype(str(table["dtype"])), int(table["offset"])
    return np.frombuffer(file, dtype, math.prod(shape), offset).reshape(shape)
