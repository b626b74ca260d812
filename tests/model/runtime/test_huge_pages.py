"""Memory in pages of 2 MB: which memory gets them, and what does without."""

from __future__ import annotations

import mmap
import sys

import numpy as np
import psutil
import pytest
from redraft.model.runtime.huge_pages import HUGE, collapse, small_zeros, stretches

MAPS = """\
7f0000100000-7f0000d00000 rw-p 00000000 00:00 0
7f0001000000-7f0001800000 r--p 00000000 fe:01 1234                       /weights.bin
7f0002000000-7f0002800000 rw-s 00000000 00:01 99                         /dev/zero (deleted)
7f0003000000-7f0003200000 rw-p 00000000 00:00 0
55d000000000-55d000900000 rw-p 00000000 00:00 0                          [heap]
7f0004100000-7f0004520000 rw-p 00000000 00:00 0
"""


def test_only_large_memory_of_no_file_gets_whole_pages() -> None:
    found = list(stretches(MAPS.splitlines(keepends=True)))
    assert found == [(0x7F0000200000, 5 * HUGE), (0x7F0004200000, HUGE)]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: only there pages are joined")
def test_what_is_in_memory_stays() -> None:
    with mmap.mmap(-1, 8 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        pattern = bytes(range(256)) * 16
        for at in range(0, len(memory), len(pattern)):
            memory[at : at + len(pattern)] = pattern
        joined = collapse()
        assert joined % HUGE == 0
        assert memory[:] == pattern * (len(memory) // len(pattern))


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: only there pages are chosen")
def test_room_never_written_to_takes_no_memory() -> None:
    heads, room = 96, 163_840  # float32: 60 MB, a page of 2 MB reaches over three heads
    process = psutil.Process()
    before = process.memory_info().rss
    found = small_zeros((heads, room), np.float32)
    found[:, :1_000] = 1.0
    taken = process.memory_info().rss - before
    assert taken < found.nbytes / 4
    assert found[:, 1_000:].max() == 0.0 and found.sum() == heads * 1_000


@pytest.mark.parametrize("shape", [(3, 5), (1_024, 1_025)])
def test_small_zeros_are_zeros_to_write_to(shape: tuple[int, ...]) -> None:
    found = small_zeros(shape, np.float16)
    assert (found.shape, found.dtype) == (shape, np.dtype(np.float16))
    assert not found.any() and found.flags.writeable and found.flags.c_contiguous
    found[-1, -1] = 2
    assert found.sum() == 2
