"""Is another execution provider faster than the CPU? Asked before it is chosen without being named.

A network as wide as the tiny model's, four layers of it, reads twelve tokens on both, in turns; the
fastest of some passes counts, which other programs disturb least. Knows nothing of models.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .provider_probe import PLAIN, Opener, reader, write_network

#: As a part of the CPU's time: a provider that saves less is not worth its memory.
WORTH = 0.9
_WARM, _PASSES = 2, 9
_WIDE = replace(PLAIN, layers=4, hidden=576, heads=9, kv_heads=3, head_dim=64, intermediate=1_536)


def slower(
    on_cpu: tuple[Opener, str], on_other: tuple[Opener, str], name: str, clock: Callable[[], float]
) -> str:
    """Why a provider is not worth being chosen, for people; "" when it is faster.

    Args:
        on_cpu, on_other: what opens a graph there, and the variant that would be served.
        name: of the provider.
        clock: seconds.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        passes: list[Callable[[], object]] = []
        for opens, variant in (on_cpu, on_other):
            path = write_network(Path(folder) / str(len(passes)), _WIDE, variant)[0]
            passes.append(reader(opens(path), _WIDE, variant, path.stem))
        took: list[list[float]] = [[], []]
        for turn in range(_WARM + _PASSES):
            for read, times in zip(passes, took, strict=True):
                begun = clock()
                read()
                if turn >= _WARM:
                    times.append((clock() - begun) * 1e3)
        del passes, read  # before their files go, which Windows insists on
    cpu_ms, other_ms = map(min, took)
    if other_ms <= WORTH * cpu_ms:
        return ""
    return f"{name} is slower here, {other_ms:.1f} ms a pass where the CPU takes {cpu_ms:.1f}"
