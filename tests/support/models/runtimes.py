"""Real graphs in onnxruntime, as their tests use them."""

from __future__ import annotations

import dataclasses
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.models.onnx_models import BASE, some_tokens, some_window, store

TOKENS = some_tokens(BASE, 90)


WINDOW = some_window(BASE, placed=2)
#: What stands behind a canvas.
NOTHING = np.empty(0, np.int64)


def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write folders whose context and canvas have the same weights ("alike"), and others."""
    apart, alike = BASE, dataclasses.replace(BASE, adapter="all")
    return {
        name: store(config, name.split()[0], tmp_path_factory.mktemp(name.replace(" ", "-")))
        for name, config in (
            ("fp32", apart),
            ("int8", apart),
            ("fp16", apart),
            ("fp32 alike", alike),
            ("int8 alike", alike),
        )
    }


def fresh(backend: Any, tokens: NDArray[np.int64]) -> Any:
    """Return a sequence that computed ``tokens`` in a single pass."""
    sequence = backend.open(200)
    sequence.extend(tokens)
    return sequence


def is_same(left: Any, right: Any) -> bool:
    """Return whether two arrays are equal: bit by bit on x86-64.

    Elsewhere onnxruntime sums in another order in wider passes, so the last bits may differ.
    """
    if platform.machine().lower() in ("x86_64", "amd64"):
        return np.array_equal(left, right)
    return np.allclose(left, right, rtol=1e-4, atol=1e-4)
