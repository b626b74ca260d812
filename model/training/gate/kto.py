"""KTO (2402.01306) of a gate: the policy "show", tuned on what became of candidates.

The policy shows a candidate with probability σ(u), u = w·φ - logit(t): from half a chance on where
w·φ says that it is kept at least as often as the threshold t wants. Of what is shown, the reward is
r = log σ(u) - log σ(u_ref); what is kept should have more of it than usual, what is not less:

    loss = λ_D (1 - σ(β (r - z)))  of what is kept,   λ_U (1 - σ(β (z - r)))  of what is not.

``z``, what is usual, is the mean divergence KL(policy ‖ reference) over all moments: exact here, as
there are but two things to do, and not differentiated, as in KTO. The loss is linear in σ(β(r -
z)), so that it wants a candidate shown exactly where the chance that it is kept exceeds λ_U / (λ_U
+ λ_D): the ratio of the two is the threshold. Its optimum lies at infinity; what holds it is the
prior around the reference and the most divergence allowed. Pure; needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .chance import Bools, Floats, Outcomes, Prior, logit, sigmoid

_STEPS = 200
_STILL = 1e-7
_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Objective:
    """What is wanted, and how far it may go."""

    ratio: float  # λ_D : λ_U; their sum is 1
    beta: float = 1.0
    most_kl: float = 0.05  # nats a moment, from the reference

    @property
    def desirable(self) -> float:
        return self.ratio / (1 + self.ratio)

    @property
    def undesirable(self) -> float:
        return 1 / (1 + self.ratio)

    @property
    def threshold(self) -> float:
        """The chance from which on it wants a candidate shown."""
        return self.undesirable


@dataclass(frozen=True, slots=True)
class Tuned:
    """A policy."""

    weights: Floats  # [d], log-odds that a candidate is kept, as far as the decision goes
    kl: float  # nats a moment, from the reference
    loss: float
    steps: int


def shows(rows: Floats, weights: Floats, threshold: float) -> Floats:
    """σ(u) of each row, [n]."""
    return sigmoid(rows @ weights - logit(threshold))


def divergence(policy: Floats, reference: Floats) -> Floats:
    """KL(policy ‖ reference) of showing or not, nats, [n]."""
    tiny = 1e-12
    p, q = np.clip(policy, tiny, 1 - tiny), np.clip(reference, tiny, 1 - tiny)
    result: Floats = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return result


def usual(outcomes: Outcomes, weights: Floats, reference: Floats, want: Objective) -> float:
    """``z``: the mean divergence over all moments, nats."""
    now = shows(outcomes.rows, weights, want.threshold)
    return float(divergence(now, shows(outcomes.rows, reference, want.threshold)).mean())


def loss_of(
    outcomes: Outcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> float:
    """The mean loss, each outcome by its weight."""
    worth = _worth(outcomes, weights, reference, z, want)
    lambda_ = np.where(outcomes.kept > 0.5, want.desirable, want.undesirable)
    return float((outcomes.weight * lambda_ * (1 - worth)).sum() / outcomes.weight.sum())


def slope_of(
    outcomes: Outcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> Floats:
    """The gradient of :func:`loss_of` by the weights, ``z`` held, [d]."""
    worth = _worth(outcomes, weights, reference, z, want)
    sign = np.where(outcomes.kept > 0.5, -want.desirable, want.undesirable)
    now = shows(outcomes.rows, weights, want.threshold)
    by_u = sign * want.beta * worth * (1 - worth) * (1 - now)  # dr/du = 1 - σ(u)
    result: Floats = outcomes.rows.T @ (outcomes.weight * by_u) / outcomes.weight.sum()
    return result


def _worth(
    outcomes: Outcomes, weights: Floats, reference: Floats, z: float, want: Objective
) -> Floats:
    """σ(β(r - z)) of what is kept, σ(β(z - r)) of what is not, [n]."""
    tiny = 1e-12
    now = np.log(shows(outcomes.rows, weights, want.threshold) + tiny)
    before = np.log(shows(outcomes.rows, reference, want.threshold) + tiny)
    sign = np.where(outcomes.kept > 0.5, 1.0, -1.0)
    return sigmoid(sign * want.beta * (now - before - z))


def fit_kto(
    outcomes: Outcomes, reference: Prior, want: Objective, positive: Bools | None = None
) -> Tuned:
    """The policy of the least loss that does not go further than allowed.

    Steps down the slope, each weight as fast as its prior allows and none below 0 that may not be;
    ``z`` is reckoned anew before each.

    Args:
        reference: its mean is the policy to begin with, its variance how freely each weight moves.
    """
    begin = reference.mean
    bounded = np.zeros(len(begin), np.bool_) if positive is None else positive
    count = float(outcomes.weight.sum())

    def loss(tried: Floats) -> float:  # by the z of the step
        held = ((tried - begin) ** 2 / reference.variance).sum() / (2 * count)
        return loss_of(outcomes, tried, begin, z, want) + float(held)

    weights, z, rate, steps = begin.copy(), 0.0, 1.0, 0
    while steps < _STEPS:
        steps += 1
        z = usual(outcomes, weights, begin, want)
        slope = slope_of(outcomes, weights, begin, z, want)
        slope += (weights - begin) / reference.variance / count
        down = reference.variance * count * slope
        moved, rate = _step(weights, down, rate, bounded, loss)
        kept, stopped = _within(outcomes, weights, moved, begin, want)
        still = float(np.abs(kept - weights).max()) < _STILL
        weights = kept
        if still or stopped:
            break
        rate = min(4 * rate, 1.0)
    z = usual(outcomes, weights, begin, want)
    return Tuned(weights, z, loss_of(outcomes, weights, begin, z, want), steps)


def _step(
    weights: Floats,
    down: Floats,
    rate: float,
    bounded: Bools,
    loss: Callable[[Floats], float],
) -> tuple[Floats, float]:
    """The largest step that lessens the loss, and how large; the same weights where none does."""
    before = loss(weights)
    for _ in range(_HALVINGS):
        moved = weights - rate * down
        moved = np.where(bounded, np.maximum(moved, 0.0), moved)
        if loss(moved) < before:
            return moved, rate
        rate /= 2
    return weights, rate


def _within(
    outcomes: Outcomes, weights: Floats, moved: Floats, reference: Floats, want: Objective
) -> tuple[Floats, bool]:
    """As much of a step as keeps within the divergence allowed; was it too much?"""
    if usual(outcomes, moved, reference, want) <= want.most_kl:
        return moved, False
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        part = weights + middle * (moved - weights)
        if usual(outcomes, part, reference, want) <= want.most_kl:
            low = middle
        else:
            high = middle
    return weights + low * (moved - weights), True
