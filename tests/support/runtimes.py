"""Real graphs in onnxruntime, as their tests use them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.onnx_models import BASE, some_tokens, some_window, store

TOKENS = some_tokens(BASE, 90)


WINDOW = some_window(BASE, placed=2)


def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same weights for context and canvas are run by one graph ("shared"), others by two."""
    apart, alike = BASE, dataclasses.replace(BASE, adapter="all")
    return {
        name: store(config, name.split()[0], tmp_path_factory.mktemp(name.replace(" ", "-")))
        for name, config in (
            ("fp32", apart),
            ("q8", apart),
            ("int8", apart),
            ("fp16", apart),
            ("fp32 shared", alike),
            ("q8 shared", alike),
            ("int8 shared", alike),
        )
    }


def fresh(backend: Any, tokens: NDArray[np.int64]) -> Any:
    """A sequence that computed ``tokens`` in one go."""
    sequence = backend.new_sequence(200)
    sequence.prefill(tokens)
    return sequence
