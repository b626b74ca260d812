"""A figure over many runs in three numbers. Knows nothing of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 95th and 99th percentile of one figure."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if not values:
            return cls(0.0, 0.0, 0.0)
        found = np.quantile(values, (0.5, 0.95, 0.99))  # between the two nearest values
        return cls(*(round(float(value), 3) for value in found))
