"""Which model runs where nobody has named one: the best that the machine can run in time.

The decision is a pure function; :func:`resolve` gives it the facts of this machine.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from .registry import BEST_MODEL, TINY_MODEL

#: The name that stands for "choose for me" in settings.
AUTO = "auto"

#: The process with the 0.5B model, its caches and onnxruntime takes up to 2.4 GB; a machine sold
#: with 4 GB reports as little as 3.4.
NEEDED_BYTES = 3_000_000_000
#: One core takes twice as long as two: a suggestion would come after the next key.
NEEDED_CORES = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """A model's name, why it is this one, and what to run where it cannot be had."""

    name: str
    reason: str
    fallback: str | None = None


def choose_default(cores: int, memory_bytes: int, there: Collection[str]) -> Choice:
    """
    Args:
        cores: physical ones.
        memory_bytes: that the machine has, used or not.
        there: names of the models that lie ready.
    """
    if memory_bytes < NEEDED_BYTES:
        why = (
            f"{memory_bytes / 1e9:.1f} GB of memory; {BEST_MODEL} needs a machine with "
            f"{NEEDED_BYTES / 1e9:.0f}"
        )
        return Choice(TINY_MODEL, why)
    if cores < NEEDED_CORES:
        return Choice(TINY_MODEL, f"{cores} core; {BEST_MODEL} needs {NEEDED_CORES} to be in time")
    can = f"the best for {cores} cores and {memory_bytes / 1e9:.0f} GB of memory"
    fetched = "" if BEST_MODEL in there else ", fetched at the first use"
    return Choice(BEST_MODEL, f"{can}{fetched}", TINY_MODEL)


def resolve(model: str) -> Choice:
    """The model that a setting means on this machine; a name means itself."""
    if model != AUTO:
        return Choice(model, "as configured")
    import psutil

    from .provide import ready_variants
    from .registry import info

    there = [name for name in (BEST_MODEL, TINY_MODEL) if ready_variants(info(name))]
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return choose_default(cores, psutil.virtual_memory().total, there)
