"""Does a gate rank well, and by what? The first question: without ranking no threshold helps.

Over the candidates that no rule forbids: the area under the ROC curve, how far said and true are
apart, and what each feature is worth (the area lost where it is taken for average). Intervals are
by resampling repositories. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from redraft.model.edits.gate import Gate, Head
from redraft.model.edits.gate_features import GATED
from redraft.model.records import Task

from ..figures.intervals import draws, middle_95
from .comparing import area, by_hand, calibration_error
from .fitting import repository_of
from .labels import Judged

#: What can be told of a candidate without a model, and is not how sure the model is.
STATIC = ("ahead", "lines", "removes", "away", "after", "errors", "unknown", "quoted", "again")

Score = Callable[[Judged], float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How one score ranks the candidates for one task."""

    task: Task
    name: str
    auc: float | None  # None: all are right, or none is
    low: float | None  # 95 %
    high: float | None
    error: float | None  # calibration; None: it is not meant as a probability
    candidates: int
    right: int


@dataclass(frozen=True, slots=True)
class Worth:
    """What a feature adds to the ranking."""

    task: Task
    feature: str
    weight: float  # of the policy, standardised
    auc_lost: float  # where it is taken for average


def rankings(
    gates: Sequence[tuple[str, Gate]], judged: Sequence[Judged], seed: int = 0
) -> list[Ranking]:
    """Of the score by hand and of each gate's chance and policy, by task."""
    found = []
    for task in GATED:
        mine = [each for each in judged if each.task == task and not each.barred]
        scores: list[tuple[str, Score, bool]] = [
            ("by hand", lambda each: by_hand(each.candidate, each.task), True)
        ]
        for name, gate in gates:
            scores.append((f"{name}, chance", _chance(gate), True))
            scores.append((f"{name}, policy", _sure(gate), True))
        found += [_ranking(task, name, score, mine, says, seed) for name, score, says in scores]
    return found


def _chance(gate: Gate) -> Score:
    return lambda each: gate.weigh(each.candidate, each.task).chance


def _sure(gate: Gate) -> Score:
    return lambda each: gate.weigh(each.candidate, each.task).sure


def _ranking(
    task: Task, name: str, score: Score, mine: Sequence[Judged], says: bool, seed: int
) -> Ranking:
    scores, right = [score(each) for each in mine], [each.right for each in mine]
    low, high = _interval(scores, right, [repository_of(each.group) for each in mine], seed)
    error = calibration_error(scores, right) if says and mine else None
    auc = area(scores, right) if mine else None
    return Ranking(task, name, auc, low, high, error, len(mine), sum(right))


def _interval(
    scores: Sequence[float], right: Sequence[bool], groups: Sequence[str], seed: int
) -> tuple[float | None, float | None]:
    members: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        members.setdefault(group, []).append(at)
    found = []
    for times in draws(len(members), seed) if members else ():
        pairs = zip(times.astype(int), members.values(), strict=True)
        drawn = [at for count, block in pairs for at in block * count]
        value = area([scores[at] for at in drawn], [right[at] for at in drawn])
        found += [] if value is None else [value]
    return middle_95(found) if found else (None, None)


def worths(gate: Gate, judged: Sequence[Judged]) -> list[Worth]:
    """What each feature adds, the most telling ones first."""
    found = []
    for task, head in gate.heads.items():
        mine = [each for each in judged if each.task == task and not each.barred]
        right = [each.right for each in mine]
        whole = area(_policy(head, mine), right) if mine else None
        for at, feature in enumerate(head.features):
            weight = head.policy[at + 1]
            without = replace(head, policy=_nought(head.policy, at + 1))
            rest = area(_policy(without, mine), right) if mine else None
            lost = 0.0 if whole is None or rest is None else whole - rest
            found.append(Worth(task, feature, weight, lost))
    return sorted(found, key=lambda each: (each.task, -each.auc_lost))


def _policy(head: Head, mine: Sequence[Judged]) -> list[float]:
    return [head.weigh(head.row(each.candidate)).sure for each in mine]


def _nought(weights: tuple[float, ...], at: int) -> tuple[float, ...]:
    return (*weights[:at], 0.0, *weights[at + 1 :])
