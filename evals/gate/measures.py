"""Of scores and of what was right: how well they rank, and how true they are.

Each takes the scores of some candidates and whether each was right. Pure; knows nothing of gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[float] | NDArray[np.float64]
Rights = Sequence[bool] | NDArray[np.bool_]

BINS = 10
_DRAWS = 200


def area(scores: Scores, right: Rights) -> float | None:
    """Area under the ROC curve: how often what is right scores more than what is not; a tie counts
    half. None: all are right, or none is."""
    score, hit = np.asarray(scores, np.float64), np.asarray(right, np.bool_)
    if hit.all() or not hit.any():
        return None
    levels, order = np.unique(score, return_inverse=True)
    above = np.concatenate(
        [[0], np.cumsum(np.bincount(order[~hit], minlength=len(levels)))]
    )  # wrong ones up to a level
    below, tied = above[order[hit]], np.diff(above)[order[hit]]
    return float((below + tied / 2).sum() / (hit.sum() * (~hit).sum()))


def risk_coverage(scores: Scores, right: Rights) -> float | None:
    """Area under the risk–coverage curve (1901.07390): the share of wrong ones among the surest
    1, 2, …, n, in the mean; among equals every order is as likely. None: there are none."""
    score, hit = np.asarray(scores, np.float64), np.asarray(right, np.float64)
    if not len(score):
        return None
    _, level, size = np.unique(-score, return_inverse=True, return_counts=True)
    evened = (np.bincount(level, hit) / size)[level]
    shown = np.arange(1, len(score) + 1)
    risks = 1 - np.cumsum(evened[np.argsort(-score, kind="stable")]) / shown
    return float(risks.mean())


def least_risk_coverage(right: Rights) -> float | None:
    """The same where all that is right comes first: no ranking has less."""
    return risk_coverage(np.asarray(right, np.float64), right)


def calibration_error(scores: Scores, right: Rights, bins: int = BINS) -> float:
    """Adaptive expected calibration error: mean distance of said and true, in bins of equal
    size."""
    found = reliability(scores, right, bins)
    return sum(abs(each.said - each.true) * each.n for each in found) / max(len(scores), 1)


def error_by_chance(scores: Scores, seed: int = 0) -> float:
    """The calibration error to be expected were every chance true: so few tell no more."""
    said, rng = np.asarray(scores, np.float64), np.random.default_rng(seed)
    drawn = (calibration_error(said, rng.random(len(said)) < said) for _ in range(_DRAWS))
    return float(np.mean([*drawn])) if len(said) else 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """Candidates of about one chance."""

    said: float  # in the mean
    true: float  # share that was right
    n: int


def reliability(scores: Scores, right: Rights, bins: int = BINS) -> list[Bin]:
    """Bins of equal size, by what was said."""
    order = np.argsort(np.asarray(scores), kind="stable")
    said, true = np.asarray(scores, np.float64)[order], np.asarray(right, np.float64)[order]
    parts = zip(np.array_split(said, bins), np.array_split(true, bins), strict=True)
    return [Bin(float(a.mean()), float(b.mean()), len(a)) for a, b in parts if len(a)]
