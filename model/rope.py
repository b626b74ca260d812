"""Rotary position tables, and their scaling past the trained positions; numpy only.

Shared by the torch network and the onnxruntime backend: both take cos/sin rows as inputs, so no
graph knows about scaling. Sources: RoPE (2104.09864), linear interpolation (2306.15595), NTK-aware
and YaRN (2309.00071).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .config import ModelConfig

FloatTable = NDArray[np.float32]

#: YaRN: wave lengths that turn more often than FAST over the trained range stay as they are, those
#: that turn less often than SLOW are interpolated; in between a ramp (section 3.2 of the paper).
YARN_FAST, YARN_SLOW = 32.0, 1.0


def frequencies(config: ModelConfig, reach: int) -> tuple[NDArray[np.float64], float]:
    """Angular frequency per pair of dimensions [head_dim / 2], and the factor on cos and sin.

    Args:
        reach: the positions the sequence may use; nothing is scaled up to config.max_positions.
    """
    half = config.head_dim // 2
    base = config.rope_base ** (-np.arange(half, dtype=np.float64) / half)
    scale = reach / config.max_positions
    if scale <= 1.0 or config.rope_scaling == "none":
        return base, 1.0
    if config.rope_scaling == "linear":
        return base / scale, 1.0
    if config.rope_scaling == "ntk":
        wider = config.rope_base * scale ** (config.head_dim / (config.head_dim - 2))
        return wider ** (-np.arange(half, dtype=np.float64) / half), 1.0
    turns = config.max_positions * base / (2 * math.pi)
    keep = np.clip((turns - YARN_SLOW) / (YARN_FAST - YARN_SLOW), 0.0, 1.0)
    return base * keep + base / scale * (1 - keep), 0.1 * math.log(scale) + 1.0


def rope_tables(config: ModelConfig, length: int, reach: int = 0) -> tuple[FloatTable, FloatTable]:
    """cos and sin of positions 0 … length-1, each [length, head_dim / 2] float32.

    Args:
        reach: see :func:`frequencies`; 0 means ``length``.
    """
    frequency, factor = frequencies(config, reach or length)
    angle = np.arange(length, dtype=np.float64)[:, None] * frequency
    return (
        (np.cos(angle) * factor).astype(np.float32),
        (np.sin(angle) * factor).astype(np.float32),
    )
