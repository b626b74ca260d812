"""The gate: is a candidate worth showing? A policy learned from outcomes, shipped or one's own.

For each task a head weighs the features of a candidate twice over: ``chance`` is the probability
that it would be kept, as well as that can be told (Bayesian logistic regression); ``sure`` the same
as KTO moved it, which decides (``model/training/kto.py``). What is shown is what has at least the
:func:`threshold` of the user's eagerness. Pure: reading and fitting are elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..records import Candidate, Task
from .gate_features import STANDARD, UNKNOWN, Situation, read

Eagerness = Literal["low", "medium", "high"]

EAGERNESS: tuple[Eagerness, ...] = get_args(Eagerness)

#: What a suggestion that is kept is worth to somebody, for each that was shown in vain: the ratio
#: λ_D : λ_U of KTO. It is the threshold: shown is what is kept one time in ``1 + ratio``.
RATIOS: dict[Eagerness, float] = {"low": 1.0, "medium": 3.0, "high": 9.0}


_GIVEN_UP = 3.6  # nats below the threshold


def threshold(eagerness: Eagerness) -> float:
    """The least sureness that is shown, 0 … 1."""
    return threshold_of(RATIOS[eagerness])


def threshold_of(ratio: float) -> float:
    return 1 / (1 + ratio)


def eagerness_of(shown_from: float) -> Eagerness | None:
    """Return the eagerness that has this threshold, None if no eagerness has it."""
    return next((each for each in EAGERNESS if threshold(each) == shown_from), None)


def least_total(threshold: float) -> float:
    """Return the log-probability below which ghost text is given up while it is written.

    At medium eagerness that is -5. Of 2,859 answers at training moments the shipped gate shows
    75.2 % with that bound, 76.3 % without one and 63.8 % with -2.8. The difference is bodies of
    several lines. An answer takes 10.0 tokens for 11.5 without a bound and 8.4 with -2.8.
    """
    return math.log(threshold) - _GIVEN_UP


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the gate says of a candidate."""

    sure: float  # 0 … 1, held against the threshold
    chance: float  # 0 … 1, that it would be kept


@dataclass(frozen=True, slots=True)
class Head:
    """The weights for one task: of each feature, standardised. Arrays are as long as ``features``,
    those of weights one longer: the intercept comes first."""

    features: tuple[str, ...]
    centre: tuple[float, ...]  # what counts as average
    scale: tuple[float, ...]  # what counts as much more than that; above 0
    chance: tuple[float, ...]  # log-odds
    policy: tuple[float, ...]  # log-odds
    variance: tuple[float, ...]  # of the weights ``chance``, how well they are known

    def row(self, candidate: Candidate, now: Situation = UNKNOWN) -> list[float]:
        """The features standardised, behind a 1; what nobody told is 0, the average."""
        told = (read(name, candidate, now) for name in self.features)
        return [1.0, *map(_standardised, told, self.centre, self.scale)]

    def weigh(self, row: Sequence[float]) -> Weighed:
        return Weighed(_sigmoid(_dot(self.policy, row)), _sigmoid(_dot(self.chance, row)))


@dataclass(frozen=True, slots=True)
class Gate:
    """The heads for both tasks."""

    name: str  # for people and recordings: "shipped 1", "yours, 312 outcomes"
    heads: Mapping[Task, Head]

    def weigh(self, candidate: Candidate, task: Task, now: Situation = UNKNOWN) -> Weighed:
        head = self.heads[task]
        weighed = head.weigh(head.row(candidate, now))
        return replace(weighed, sure=1.0) if candidate.family == STANDARD else weighed

    def sure(self, candidate: Candidate, task: Task, now: Situation = UNKNOWN) -> float:
        """What is held against the threshold, 0 … 1."""
        return self.weigh(candidate, task, now).sure


def _standardised(value: float | None, centre: float, scale: float) -> float:
    return 0.0 if value is None else (value - centre) / scale


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def _sigmoid(log_odds: float) -> float:
    if log_odds < 0:
        return 1 - _sigmoid(-log_odds)
    return 1 / (1 + math.exp(-log_odds))
