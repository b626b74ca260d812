"""Pages of 2 MB for weights and of 4 KB for caches, on systems that leave it to each program.

Every pass reads all weights once, and a processor fetches ahead no further than to the end of a
page. Linux knows how to join pages that are there already (``MADV_COLLAPSE``, since 6.1); Debian,
Ubuntu and Fedora leave that to each program. Elsewhere nothing happens, and nothing can fail.

Source: madvise(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: A page on x86-64, and on ARM with small pages of 4 KB.
HUGE = 2 << 20
#: Stretches of memory from this size on are worth it: weights and caches, not what Python holds.
LEAST = 4 << 20

_MADV_COLLAPSE = 25

_PRIVATE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0\s*$")


def collapse() -> int:
    """Ask for huge pages wherever this process holds much private memory.

    Returns:
        bytes that have them now; 0 where the system knows no such thing.
    """
    if sys.platform != "linux":
        return 0
    try:
        maps = Path("/proc/self/maps").read_text(encoding="ascii", errors="replace")
        libc = ctypes.CDLL(None)
        advise = libc.madvise
    except (OSError, AttributeError):
        return 0
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    found = stretches(maps.splitlines())
    return sum(size for start, size in found if advise(start, size, _MADV_COLLAPSE) == 0)


def stretches(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield address and size of the whole huge pages within memory that belongs to no file.

    Args:
        maps: lines of ``/proc/self/maps``.
    """
    for line in maps:
        if (match := _PRIVATE.match(line)) is None:
            continue
        start, end = (int(side, 16) for side in match.groups())
        first, last = -(-start // HUGE) * HUGE, end // HUGE * HUGE
        if end - start >= LEAST and last > first:
            yield first, last - first


def small_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros that take memory only where they are written to, by 4 KB and not by 2 MB.

    numpy asks for huge pages on Linux. Of keys and values each head's lie apart, with room behind
    them for tokens to come: the first token of a head would take the page that reaches over all its
    room, and a prompt of 600 tokens the memory of 1,280.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if sys.platform != "linux" or size < LEAST:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel built without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)
