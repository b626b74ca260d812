"""The model that runs where none is named."""

from __future__ import annotations

from .registry import DEFAULT_MODEL

#: The name that stands for the default model in settings.
AUTO = "auto"

#: The process with the 0.5B model, its caches and onnxruntime takes up to 2.4 GB; a machine sold
#: with 4 GB reports as little as 3.4.
NEEDED_BYTES = 3_000_000_000


def resolve(model: str) -> str:
    """Return the name of the model that a setting means."""
    return DEFAULT_MODEL if model == AUTO else model


def memory_problem(model: str, memory_bytes: int) -> str:
    """Return why a machine is too small for the default model; "" for any other model.

    Args:
        memory_bytes: memory that the machine has, used or not.
    """
    if model != DEFAULT_MODEL or memory_bytes >= NEEDED_BYTES:
        return ""
    return (
        f"{model} needs a machine with {NEEDED_BYTES / 1e9:.0f} GB of memory, this one has "
        f"{memory_bytes / 1e9:.1f} GB"
    )
