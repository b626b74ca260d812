"""Ranking of candidates by a gate, and what each feature adds to it.

Over the candidates that no rule forbids: the areas under the ROC curve and under the risk–coverage
curve, calibration, and what each feature is worth (the area lost where it is replaced by its mean).
Intervals are by resampling repositories. The measures take the scores of some candidates and
whether each was right. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.gate import Gate, Head
from redraft.model.records import Task

from ..figures import FEW_GROUPS, draws, middle_95
from .comparing import GateScores, Score, scored_by_hand
from .labels import Judged

Scores = Sequence[float] | NDArray[np.float64]
Rights = Sequence[bool] | NDArray[np.bool_]

BINS = 10
_DRAWS = 200


def area(scores: Scores, right: Rights) -> float | None:
    """Return the area under the ROC curve.

    That is how often what is right scores more than what is not; a tie counts half. None: all are
    right, or none is.
    """
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
    """Return the area under the risk–coverage curve (1901.07390).

    That is the share of wrong ones among the surest 1, 2, …, n, in the mean; among equals every
    order is as likely. None: there are none.
    """
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
    """Return the adaptive expected calibration error, in bins of equal size."""
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


#: What can be told of a candidate without a model, and is not how sure the model is.
STATIC = (
    *("ahead", "lines", "removes", "away", "after"),
    *("errors", "unknown", "quoted", "again", "undone"),
)

#: For people: fewer than in a drawing.
_BINS = 5
_RESAMPLES = 1_000

Value = tuple[float, float, float]  # with its 95 % interval


@dataclass(frozen=True, slots=True)
class Ranking:
    """How one score ranks the candidates for one task, and how true it is."""

    task: Task
    name: str
    auc: Value | None  # None: all are right, or none is
    risk: Value | None  # area under the risk–coverage curve; None: there is no candidate
    least_risk: float | None  # of a ranking without fault
    error: Value | None  # calibration
    by_chance: float  # error to be expected were every chance true
    bins: tuple[Bin, ...]
    candidates: int
    right: int


@dataclass(frozen=True, slots=True)
class Worth:
    """What a feature adds to the ranking."""

    task: Task
    feature: str
    weight: float  # of the policy, standardised
    auc_lost: float  # where it is taken for average


def rankings(gates: Sequence[GateScores], judged: Sequence[Judged], seed: int = 0) -> list[Ranking]:
    """Of the score by hand and of each gate's chance and policy, by task."""
    found = []
    for task in FEATURES:
        mine = [each for each in judged if each.task == task and not each.barred]
        scores: list[tuple[str, Score]] = [("by hand", scored_by_hand)]
        for gate in gates:
            scores += [(f"{gate.name}, chance", gate.chance), (f"{gate.name}, policy", gate.score)]
        found += [_ranking(task, name, score, mine, seed) for name, score in scores]
    return found


def _ranking(task: Task, name: str, score: Score, mine: Sequence[Judged], seed: int) -> Ranking:
    scores = np.array([score(each) for each in mine], np.float64)
    right = np.array([each.kept for each in mine], np.bool_)
    drawn = _drawn([each.block for each in mine], seed)

    def value(measure: Callable[..., float | None]) -> Value | None:
        whole = measure(scores, right) if mine else None
        if whole is None:
            return None
        parts = (measure(scores[each], right[each]) for each in drawn)
        return (whole, *middle_95([one for one in parts if one is not None]))

    return Ranking(
        task,
        name,
        value(area),
        value(risk_coverage),
        least_risk_coverage(right),
        value(calibration_error),
        error_by_chance(scores, seed=seed),
        tuple(reliability(scores, right, _BINS)),
        len(mine),
        int(right.sum()),
    )


def _drawn(blocks: Sequence[str], seed: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Which candidates each resample holds: whole blocks, or candidates where these are few."""
    names = {name: at for at, name in enumerate(dict.fromkeys(blocks))}
    member = np.array([names[name] for name in blocks], np.int64)
    if len(names) < FEW_GROUPS:
        member = np.arange(len(blocks))
    if not len(member):
        return []
    every = np.arange(len(blocks))
    count = int(member.max()) + 1
    return [
        np.repeat(every, times.astype(np.int64)[member]) for times in draws(count, seed, _RESAMPLES)
    ]


def worths(gate: Gate, judged: Sequence[Judged]) -> list[Worth]:
    """What each feature adds, the most telling ones first."""
    found = []
    for task, head in gate.heads.items():
        mine = [each for each in judged if each.task == task and not each.barred]
        right = [each.kept for each in mine]
        whole = area(_policy(head, mine), right) if mine else None
        for at, feature in enumerate(head.features):
            weight = head.policy[at + 1]
            without = replace(head, policy=_nought(head.policy, at + 1))
            rest = area(_policy(without, mine), right) if mine else None
            lost = 0.0 if whole is None or rest is None else whole - rest
            found.append(Worth(task, feature, weight, lost))
    return sorted(found, key=lambda each: (each.task, -each.auc_lost))


def _policy(head: Head, mine: Sequence[Judged]) -> list[float]:
    return [head.weigh(head.row(features_of(each.candidate))).score for each in mine]


def _nought(weights: tuple[float, ...], at: int) -> tuple[float, ...]:
    return (*weights[:at], 0.0, *weights[at + 1 :])
