"""Gates side by side on the same moments: ``redraft eval gate``.

Each policy makes rows of a run, of what it would have shown: the first candidate that no filter
refuses and whose score is high enough. Beside the gate stand what it has to beat:
thresholds set by hand, the best single threshold on the same score (the intercept alone learned),
and plain logistic regression with a threshold. Pure; asks no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from redraft.model.gate.eagerness import EAGERNESS, Eagerness, threshold
from redraft.model.gate.gate import Gate
from redraft.model.records import Candidate, Task
from redraft.model.training.gate.fit import FOLDS, fold_of

from ..example import Example, Row
from ..run import Run
from ..sources.begun import POSITIONS, position_of
from ..tables import Metric
from .labels import Judged, judged

NEXT_EDIT = "next edit"
PLACES = (*POSITIONS, NEXT_EDIT)

METRICS = (
    Metric("shown", "share", "shown"),
    Metric("kept, of those shown", "share", "kept_shown", better="more"),
    Metric("equal, of those shown", "share", "exact_shown", better="more"),
    Metric("kept and shown, of all moments", "share", "accepted", better="more"),
    Metric("quiet where nothing is left", "share", "quiet", better="more"),
    Metric("utility of 100 moments", "mean", "utility", digits=2, better="more"),
    Metric("Brier score of candidates", "mean", "brier", digits=3, better="less"),
)
BY_PLACE = tuple(each for each in METRICS if each.field in ("shown", "kept_shown", "exact_shown"))

#: Set by hand before there was a gate: the least mean probability of a token, by task; ghost text
#: and next edits. A repetition of a recent edit counted by its chance, unless its text was
#: unlikely.
BY_HAND: dict[Eagerness, dict[Task, float]] = {
    "low": {"infill": 0.92, "next_edit": 0.95},
    "medium": {"infill": 0.85, "next_edit": 0.88},
    "high": {"infill": 0.0, "next_edit": 0.0},
}
_UNLIKELY = -1.2  # nats a token


def by_hand(candidate: Candidate, task: Task) -> float:
    """The score that was held against these thresholds."""
    sure = candidate.confidence
    if sure.repeat is None or sure.place is None:
        return sure.mean
    if sure.total - sure.place < _UNLIKELY * candidate.tokens:
        return sure.mean
    return max(sure.mean, 0.8 + 0.2 * sure.repeat)


Score = Callable[[Judged], float]


@dataclass(frozen=True, slots=True)
class GateScores:
    """What a gate says of candidates; or several gates, each of those that it was not fitted on."""

    name: str
    chance: Score
    score: Score


def says(name: str, gate_of: Callable[[Judged], Gate]) -> GateScores:
    return GateScores(
        name,
        lambda each: gate_of(each).weigh(each.candidate, each.task).chance,
        lambda each: gate_of(each).weigh(each.candidate, each.task).score,
    )


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Shows what scores at least so much."""

    name: str
    score: Score
    least: Callable[[Judged], float]


@dataclass(frozen=True, slots=True)
class JudgedMoment:
    """A moment with its candidates, best first."""

    example: Example
    candidates: tuple[Judged, ...]

    @property
    def is_done(self) -> bool:
        """True if the text needs no further edit."""
        same = self.example.moment.text == self.example.truth.final
        return same and not any(each.right for each in self.candidates)

    @property
    def place(self) -> str:
        """Where ghost text stands, or that it is a next edit."""
        example = self.example
        if example.task != "infill":
            return NEXT_EDIT
        if example.prediction is None:
            return "not asked"
        return position_of(example.moment.text, example.moment.cursor)


def moments_of(runs: Iterable[Run]) -> list[JudgedMoment]:
    """Return all moments of some runs that have candidates to label."""
    return [
        JudgedMoment(each, tuple(judged(each))) for run in runs for each in run.examples.values()
    ]


def policies(
    gate: GateScores, moments: Sequence[JudgedMoment], others: Sequence[GateScores] = ()
) -> list[ThresholdPolicy]:
    """What is compared; the first is what the others have to beat."""
    free = [each for moment in moments for each in moment.candidates if not each.barred]
    medium = _at(threshold("medium"))
    found = [
        ThresholdPolicy(f"by hand, {name}", scored_by_hand, _least_by_hand(name))
        for name in ("medium", "high")
    ]
    found.append(
        ThresholdPolicy("by hand, threshold learned", scored_by_hand, _best_thresholds(free))
    )
    found.append(ThresholdPolicy("logistic", gate.chance, medium))
    for name in EAGERNESS:
        found.append(ThresholdPolicy(f"gate, {name}", gate.score, _at(threshold(name))))
    found += [ThresholdPolicy(f"{each.name}, medium", each.score, medium) for each in others]
    return [*found, *_as_many(found[0], gate.score, moments)]


def scored_by_hand(each: Judged) -> float:
    return by_hand(each.candidate, each.task)


def _least_by_hand(eagerness: Eagerness) -> Callable[[Judged], float]:
    return lambda each: BY_HAND[eagerness][each.task]


def _at(least: float) -> Callable[[Judged], float]:
    return lambda each: least


def _as_many(
    first: ThresholdPolicy, score: Score, moments: Sequence[JudgedMoment]
) -> list[ThresholdPolicy]:
    """The gate where it shows as many as ``first`` does, and where as many of them are right."""
    told = [row_of(first, each) for each in moments]
    shown, right = (sum(bool(each[name]) for each in told) for name in ("any", "accepted"))
    levels = sorted(
        {score(c) for m in moments for c in m.candidates if not c.barred},
        reverse=True,
    )
    found = []
    for name, field, count in (
        ("gate, as many shown", "any", shown),
        ("gate, as many right", "accepted", right),
    ):
        tried = ThresholdPolicy(name, score, _at(1.1))
        low, high = 0, max(len(levels) - 1, 0)
        while low < high:  # both counts grow as the threshold falls
            middle = (low + high) // 2
            at = replace(tried, least=_at(levels[middle]))
            if sum(bool(row_of(at, each)[field]) for each in moments) >= count:
                high = middle
            else:
                low = middle + 1
        found.append(replace(tried, least=_at(levels[low] if levels else 1.1)))
    return found


def _best_thresholds(free: Sequence[Judged]) -> Callable[[Judged], float]:
    """Of the score by hand, for each task the threshold of the most utility, learned on other
    repositories than it is used for."""
    groups = [each.source for each in free]
    folds = dict(zip(groups, fold_of(groups).tolist(), strict=True)) if free else {}
    found: dict[tuple[str, int], float] = {}
    for task in ("infill", "next_edit"):
        mine = [each for each in free if each.task == task]
        for fold in range(FOLDS):
            rest = [each for each in mine if folds[each.source] != fold]
            found[task, fold] = _best_threshold(rest)
    return lambda each: found[each.task, folds[each.source]]


def _best_threshold(some: Sequence[Judged]) -> float:
    scored = sorted(((scored_by_hand(e), e.kept) for e in some), reverse=True)
    worth = np.cumsum([utility(kept) for _, kept in scored])
    best = int(worth.argmax()) if len(worth) else 0
    return scored[best][0] if len(worth) and worth[best] > 0 else 1.1


def utility(kept: bool) -> float:
    """Of showing it."""
    return 0.75 if kept else -0.25


# --- as rows -----------------------------------------------------------------------------------


def rows_of(policy: ThresholdPolicy, moments: Sequence[JudgedMoment]) -> list[Row]:
    """Return what a policy would have shown."""
    return [row_of(policy, each) for each in moments]


def row_of(policy: ThresholdPolicy, moment: JudgedMoment) -> Row:
    """Return a moment by a policy: the candidate shown, else the likeliest."""
    scored = [(policy.score(each), each) for each in moment.candidates if not each.barred]
    shown = next((each for each in scored if each[0] >= policy.least(each[1])), None)
    lead = shown or max(scored, key=lambda each: each[0], default=None)
    is_shown, kept = shown is not None, lead is not None and lead[1].kept
    return {
        "id": moment.example.id,
        "group": moment.example.group,
        "task": moment.example.task,
        "where": moment.place,
        "any": is_shown,
        "shown": None if moment.is_done else is_shown,
        "quiet": not is_shown if moment.is_done else None,
        "kept_shown": kept if is_shown else None,
        "exact_shown": lead[1].right if is_shown and lead is not None else None,
        "accepted": is_shown and kept,
        "utility": 100 * utility(kept) if is_shown else 0.0,
        "brier": None if lead is None else (lead[0] - kept) ** 2,
    }
