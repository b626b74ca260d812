"""Files that are mapped into memory, and whether they were written to since.

The system reads pages of a mapped file when they are looked at. A program that writes into it
changes what the model computes, and one that shortens it ends our process. Our own programs never
do: they put a whole new file in its place, which leaves the mapped one as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO


class MappedFiles:
    """Open files whose sizes and times are compared; it costs microseconds.

    Raises:
        OSError: one cannot be opened.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._opened: list[tuple[Path, BinaryIO, tuple[int, int]]] = []
        for file in files:
            handle = file.open("rb", buffering=0)
            self._opened.append((file, handle, _stamp(handle)))

    def changed(self) -> Path | None:
        """Return the first that was written to since."""
        return next((file for file, handle, was in self._opened if _stamp(handle) != was), None)

    def close(self) -> None:
        while self._opened:
            self._opened.pop()[1].close()


def _stamp(handle: BinaryIO) -> tuple[int, int]:
    status = os.fstat(handle.fileno())
    return status.st_size, status.st_mtime_ns
