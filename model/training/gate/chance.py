"""Bayesian logistic regression: how probable it is that a candidate is kept.

A normal prior on the weights, the mode by Newton steps (iteratively reweighted least squares), the
variance from the curvature there. Weights that may not be negative are left out where they would
be. Pure; needs numpy alone and knows nothing of candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STEPS = 50
_STILL = 1e-9  # a step this small is the last one


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of candidates."""

    rows: Floats  # [n, d]; the first column is 1
    kept: Floats  # [n]; 1: right to show, 0: not
    weight: Floats  # [n]; how much each counts, above 0

    def __len__(self) -> int:
        return len(self.kept)

    def where(self, chosen: Bools) -> Outcomes:
        return Outcomes(self.rows[chosen], self.kept[chosen], self.weight[chosen])


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normals, one for each weight."""

    mean: Floats  # [d]
    variance: Floats  # [d], above 0; tiny: the weight does not move


@dataclass(frozen=True, slots=True)
class Chance:
    """The fitted weights."""

    weights: Floats  # [d]
    variance: Floats  # [d]


def sigmoid(log_odds: Floats) -> Floats:
    clipped = np.clip(log_odds, -500, 500)
    result: Floats = 1 / (1 + np.exp(-clipped))
    return result


def logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))


def fit_chance(outcomes: Outcomes, prior: Prior, positive: Bools | None = None) -> Chance:
    """The most probable weights.

    Args:
        positive: [d]; weights that may not be negative.
    """
    free = np.ones(len(prior.mean), np.bool_)
    bounded = np.zeros_like(free) if positive is None else positive
    while True:
        found = _newton(outcomes, prior, free)
        wrong = bounded & (found.weights < 0)
        if not wrong.any():
            return found
        free &= ~wrong
        prior = Prior(np.where(wrong, 0.0, prior.mean), prior.variance)


def _newton(outcomes: Outcomes, prior: Prior, free: Bools) -> Chance:
    """The mode with only some weights free; the others stay at their prior's mean."""
    weights = prior.mean.copy()
    precision = np.diag(1 / prior.variance[free])
    rows = outcomes.rows[:, free]
    curvature = precision
    for _ in range(_STEPS):
        p = sigmoid(outcomes.rows @ weights)
        slope = rows.T @ (outcomes.weight * (p - outcomes.kept))
        slope += precision @ (weights - prior.mean)[free]
        curvature = (rows.T * (outcomes.weight * p * (1 - p))) @ rows + precision
        step = np.linalg.solve(curvature, slope)
        largest = float(np.abs(step).max(initial=0.0))
        step *= min(1.0, 2.0 / largest) if largest else 1.0  # of a start far away
        weights[free] -= step
        if largest < _STILL:
            break
    variance = np.where(free, 0.0, prior.variance)
    variance[free] = np.diag(np.linalg.inv(curvature))
    return Chance(weights, variance)
