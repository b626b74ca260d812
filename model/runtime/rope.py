"""Cosine and sine tables of the rotary position embedding, stretched past the trained positions.

numpy only, float32 out: the ONNX graphs take the tables as inputs and torch copies them, so there
is one place that decides how positions beyond ``config.max_positions`` are scaled.

A sequence keeps one table for life, chosen by its capacity: keys are cached already rotated, so
changing the scaling in the middle of a sequence would break its cache.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig

FloatArray = NDArray[np.float32]

# YaRN (2309.00071, section 3.2): dimensions that turn more than FAST times over the trained range
# keep their frequency, those that turn less than SLOW times are interpolated, a ramp between.
_YARN_FAST_TURNS = 32.0
_YARN_SLOW_TURNS = 1.0

# Doublings a capacity may lie above a range: 0.1 lets 34,816 positions share the factor of 32,768.
_GRACE = 0.1


def stretch(config: ModelConfig, capacity: int) -> float:
    """Return by how much positions are compressed in a sequence of ``capacity`` tokens.

    1.0 is not at all. It is always a power of two, so that sequences of similar capacity share
    their rotation. A few positions past the range do not double the factor.
    """
    if config.rope_scaling == "none" or capacity <= config.max_positions:
        return 1.0
    return float(2 ** math.ceil(math.log2(capacity / config.max_positions) - _GRACE))


def rope_tables(config: ModelConfig, capacity: int) -> tuple[FloatArray, FloatArray]:
    """Return cosines and sines for ``capacity`` positions. [capacity, head_dim / 2] each."""
    factor = stretch(config, capacity)
    frequencies, magnitude = _frequencies(config, factor)
    angles = np.outer(np.arange(capacity, dtype=np.float64), frequencies)
    cos = (np.cos(angles) * magnitude).astype(np.float32)
    sin = (np.sin(angles) * magnitude).astype(np.float32)
    return cos, sin  # [capacity, head_dim / 2] each


def _frequencies(config: ModelConfig, factor: float) -> tuple[NDArray[np.float64], float]:
    """Return the angle per position for each rotated pair, and the factor on cosines and sines."""
    dim = config.head_dim
    exponents = np.arange(0, dim, 2, dtype=np.float64) / dim
    plain = _trained(config, config.rope_base**-exponents)  # [head_dim / 2]
    if config.rope_yarn:  # trained so: it acts from the first position on
        by, fast, slow, positions, magnitude = config.rope_yarn
        ramp = _ramp(config, positions, fast, slow)
        return plain * (1.0 - ramp) + plain / by * ramp, magnitude
    if factor == 1.0:
        return plain, 1.0
    if config.rope_scaling == "linear":
        return plain / factor, 1.0
    if config.rope_scaling == "ntk":
        base = config.rope_base * factor ** (dim / (dim - 2))
        return _trained(config, base**-exponents), 1.0
    # These weights were trained without YaRN.
    ramp = _ramp(config, config.max_positions, _YARN_FAST_TURNS, _YARN_SLOW_TURNS)
    return plain * (1.0 - ramp) + plain / factor * ramp, 0.1 * math.log(factor) + 1.0


def _trained(config: ModelConfig, plain: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the frequencies that weights were trained with, given the plain ones.

    They are divided, as in GGUF, or Llama 3.1's: slow ones divided, fast ones kept.

    Source: The Llama 3 Herd of Models (2407.21783) and the configuration published with it.
    """
    if config.rope_divisors:
        plain = plain / np.array(config.rope_divisors)
    if not config.rope_llama3:
        return plain
    factor, low, high, positions = config.rope_llama3
    turns = positions * plain / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return plain * (kept + (1.0 - kept) / factor)


def _ramp(config: ModelConfig, positions: float, fast: float, slow: float) -> NDArray[np.float64]:
    """Return 0 where a dimension keeps its frequency, 1 where it is fully interpolated.

    These turn more than ``fast`` times over ``positions``, and less than ``slow`` times.
    """

    def dimension(turns: float) -> float:
        wavelength = positions / (turns * 2 * math.pi)
        return config.head_dim * math.log(wavelength) / (2 * math.log(config.rope_base))

    low = max(math.floor(dimension(fast)), 0)
    high = min(math.ceil(dimension(slow)), config.head_dim - 1)
    span = max(high - low, 1e-3)
    return np.clip((np.arange(config.head_dim // 2) - low) / span, 0.0, 1.0)
