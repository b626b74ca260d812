"""Two fits of a gate to outcomes: how probable it is that a candidate is kept, and when to show it.

The chance is Bayesian logistic regression: a normal prior on the weights, the mode by Newton steps,
the variance from the curvature there.

The policy is KTO (2402.01306). It shows a candidate with probability σ(u), u = w·φ - logit(t): from
half a chance on where w·φ says that it is kept at least as often as the threshold t wants. Of what
is shown, the reward is r = log σ(u) - log σ(u_ref); kept candidates should have more of it than
usual, others less:

    loss = λ_D (1 - σ(β (r - z)))  of what is kept,   λ_U (1 - σ(β (z - r)))  of what is not.

``z``, the usual reward, is the mean divergence KL(policy ‖ reference) over all moments: exact here,
because there are only two actions, and not differentiated, as in KTO. The loss is linear in
σ(β(r - z)), so that it wants a candidate shown exactly where the chance that it is kept exceeds
λ_U / (λ_U + λ_D): the ratio of the two is the threshold. Its optimum lies at infinity; the prior
around the reference and the most divergence allowed hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NEWTON_STEPS = 50
_STEPS = 200
_STILL_NEWTON, _STILL = 1e-9, 1e-7  # a step this small is the last one
_HALVINGS = 30
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class LabelledOutcomes:
    """Features of candidates, and whether they were kept."""

    rows: Floats  # [n, d]; the first column is 1
    kept: Floats  # [n]; 1: right to show, 0: not
    weight: Floats  # [n]; how much each counts, above 0

    def __len__(self) -> int:
        return len(self.kept)

    def where(self, chosen: Bools) -> LabelledOutcomes:
        """Return the chosen ones."""
        return LabelledOutcomes(self.rows[chosen], self.kept[chosen], self.weight[chosen])


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normals, one for each weight; also the result of a fit."""

    mean: Floats  # [d]
    variance: Floats  # [d], above 0; tiny: the weight does not move


def sigmoid(log_odds: Floats) -> Floats:
    """Return the probabilities of log-odds."""
    result: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    return result


def logit(probability: float) -> float:
    """Return the log-odds of a probability."""
    return float(np.log(probability / (1 - probability)))


def fit_chance(outcomes: LabelledOutcomes, prior: Prior, positive: Bools | None = None) -> Prior:
    """Return the most probable weights and their variance.

    Args:
        positive: [d]; weights that may not be negative: they become 0 where they would be.
    """
    free = np.ones(len(prior.mean), np.bool_)
    bounded = np.zeros_like(free) if positive is None else positive
    while True:
        found = _newton(outcomes, prior, free)
        wrong = bounded & (found.mean < 0)
        if not wrong.any():
            return found
        free &= ~wrong
        prior = Prior(np.where(wrong, 0.0, prior.mean), prior.variance)


def _newton(outcomes: LabelledOutcomes, prior: Prior, free: Bools) -> Prior:
    """Return the mode with only some weights free; the others stay at the mean of their prior."""
    weights = prior.mean.copy()
    precision = np.diag(1 / prior.variance[free])
    rows, curvature = outcomes.rows[:, free], precision
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(outcomes.rows @ weights)
        slope = rows.T @ (outcomes.weight * (p - outcomes.kept))
        slope += precision @ (weights - prior.mean)[free]
        curvature = (rows.T * (outcomes.weight * p * (1 - p))) @ rows + precision
        step = np.linalg.solve(curvature, slope)
        largest = float(np.abs(step).max(initial=0.0))
        weights[free] -= step * min(1.0, 2.0 / max(largest, _TINY))  # from a start far away
        if largest < _STILL_NEWTON:
            break
    variance = np.where(free, 0.0, prior.variance)
    variance[free] = np.diag(np.linalg.inv(curvature))
    return Prior(weights, variance)


# --- the policy -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Objective:
    """Price of showing what is not kept, and how far a policy may go from its reference."""

    ratio: float  # λ_D : λ_U; their sum is 1
    beta: float = 1.0
    most_kl: float = 0.05  # nats a moment, from the reference

    @property
    def desirable(self) -> float:
        """λ_D."""
        return self.ratio / (1 + self.ratio)

    @property
    def threshold(self) -> float:
        """λ_U: also the chance from which on a candidate is to be shown."""
        return 1 / (1 + self.ratio)

    def lambdas(self, outcomes: LabelledOutcomes) -> Floats:
        """Return λ of each outcome. [n]."""
        return np.where(outcomes.kept > 0.5, self.desirable, self.threshold)


@dataclass(frozen=True, slots=True)
class Tuned:
    """A policy."""

    weights: Floats  # [d], log-odds that a candidate is kept, as far as the decision goes
    kl: float  # nats a moment, from the reference
    loss: float
    steps: int


def shows(rows: Floats, weights: Floats, threshold: float) -> Floats:
    """Return σ(u) of each row. [n]."""
    return sigmoid(rows @ weights - logit(threshold))


def divergence(policy: Floats, reference: Floats) -> Floats:
    """Return KL(policy ‖ reference) of showing or not, in nats. [n]."""
    p, q = (np.clip(each, _TINY, 1 - _TINY) for each in (policy, reference))
    result: Floats = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return result


def usual(outcomes: LabelledOutcomes, weights: Floats, reference: Floats, want: Objective) -> float:
    """Return ``z``: the mean divergence over all moments, in nats."""
    now, before = (shows(outcomes.rows, w, want.threshold) for w in (weights, reference))
    return float(divergence(now, before).mean())


def loss_of(
    outcomes: LabelledOutcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> float:
    """Return the mean loss, each outcome by its weight."""
    worth = _worth(outcomes, weights, reference, z, want)
    losses = outcomes.weight * want.lambdas(outcomes) * (1 - worth)
    return float(losses.sum() / outcomes.weight.sum())


def slope_of(
    outcomes: LabelledOutcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> Floats:
    """Return the gradient of :func:`loss_of` by the weights, ``z`` held. [d]."""
    worth = _worth(outcomes, weights, reference, z, want)
    now = shows(outcomes.rows, weights, want.threshold)
    sign = np.where(outcomes.kept > 0.5, -1.0, 1.0) * want.lambdas(outcomes)
    by_u = sign * want.beta * worth * (1 - worth) * (1 - now)  # dr/du = 1 - σ(u)
    result: Floats = outcomes.rows.T @ (outcomes.weight * by_u) / outcomes.weight.sum()
    return result


def _worth(
    outcomes: LabelledOutcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> Floats:
    """Return σ(β(r - z)) of what is kept, σ(β(z - r)) of what is not. [n]."""
    now, before = (
        np.log(shows(outcomes.rows, w, want.threshold) + _TINY) for w in (weights, reference)
    )
    sign = np.where(outcomes.kept > 0.5, 1.0, -1.0)
    return sigmoid(sign * want.beta * (now - before - z))


def fit_kto(
    outcomes: LabelledOutcomes, reference: Prior, want: Objective, positive: Bools | None = None
) -> Tuned:
    """Return the policy of the least loss that does not go further than allowed.

    It steps down the slope, each weight as fast as its prior allows and none below 0 that may not
    be; ``z`` is computed anew before each step.

    Args:
        reference: its mean is the policy to begin with, its variance how freely each weight moves.
    """
    begin = reference.mean
    bounded = np.zeros(len(begin), np.bool_) if positive is None else positive
    count = float(outcomes.weight.sum())

    def loss(tried: Floats) -> float:  # by the z of the step
        held = ((tried - begin) ** 2 / reference.variance).sum() / (2 * count)
        return loss_of(outcomes, tried, begin, z, want) + float(held)

    weights, rate, steps = begin.copy(), 1.0, 0
    while steps < _STEPS:
        steps += 1
        z = usual(outcomes, weights, begin, want)
        slope = slope_of(outcomes, weights, begin, z, want)
        slope += (weights - begin) / reference.variance / count
        moved, rate = _step(weights, reference.variance * count * slope, rate, bounded, loss)
        kept, is_cut = _within(outcomes, weights, moved, begin, want)
        is_still = float(np.abs(kept - weights).max()) < _STILL
        weights, rate = kept, min(4 * rate, 1.0)
        if is_still or is_cut:
            break
    z = usual(outcomes, weights, begin, want)
    return Tuned(weights, z, loss_of(outcomes, weights, begin, z, want), steps)


def _step(
    weights: Floats,
    down: Floats,
    rate: float,
    bounded: Bools,
    loss: Callable[[Floats], float],
) -> tuple[Floats, float]:
    """Return the weights after the largest step that lessens the loss, and its rate."""
    before = loss(weights)
    for _ in range(_HALVINGS):
        moved = weights - rate * down
        moved = np.where(bounded, np.maximum(moved, 0.0), moved)
        if loss(moved) < before:
            return moved, rate
        rate /= 2
    return weights, rate


def _within(
    outcomes: LabelledOutcomes, weights: Floats, moved: Floats, reference: Floats, want: Objective
) -> tuple[Floats, bool]:
    """Return as much of a step as keeps within the divergence allowed, and whether it was cut."""

    def is_within(share: float) -> bool:
        part = weights + share * (moved - weights)
        return usual(outcomes, part, reference, want) <= want.most_kl

    if is_within(1.0):
        return moved, False
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return weights + low * (moved - weights), True
