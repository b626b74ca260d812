"""Gates side by side on the same labelled moments: ``redraft eval gate``.

A policy shows the first candidate that no filter refuses and whose score is high enough. What has
to be beaten is the shipped gate; beside it stands plain logistic regression with the same
thresholds. A ranking has the areas under the ROC and the risk–coverage curve, calibration, and the
area lost where a feature is replaced by its mean. Intervals resample repositories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from redraft.model.gate.eagerness import Eagerness, threshold
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.gate import Gate, Head
from redraft.model.records import Task

from ..example import Example, Row
from ..figures import draws, independent_units, middle_95
from ..metrics import utility
from ..run import Run
from ..sources.begun import POSITIONS, position_of
from ..tables import Metric
from .samples import Labelled, examples_of, label_candidates

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

Score = Callable[[Labelled], float]


@dataclass(frozen=True, slots=True)
class GateScores:
    """Scores of a gate; or of several, each for the candidates that it was not fitted on."""

    name: str
    chance: Score
    score: Score


def scores_of(name: str, gate_of: Callable[[Labelled], Gate]) -> GateScores:
    """Return the scores of the gate that ``gate_of`` chooses for a candidate."""
    return GateScores(
        name,
        lambda each: gate_of(each).weigh(each.candidate, each.task).chance,
        lambda each: gate_of(each).weigh(each.candidate, each.task).score,
    )


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Policy that shows a candidate whose score reaches the threshold of its task."""

    name: str
    score: Score
    least: Mapping[Task, float]


@dataclass(frozen=True, slots=True)
class LabelledMoment:
    """Moment with its labelled candidates, best first."""

    example: Example
    candidates: tuple[Labelled, ...]

    @property
    def is_done(self) -> bool:
        """True if the text needs no further edit."""
        same = self.example.moment.text == self.example.truth.final
        return same and not any(each.right for each in self.candidates)

    @property
    def place(self) -> str:
        """Return the place of ghost text, or that the candidate is a next edit."""
        example = self.example
        if example.task != "infill":
            return NEXT_EDIT
        if example.prediction is None:
            return "not asked"
        return position_of(example.moment.text, example.moment.cursor)


def moments_of(runs: Iterable[Run]) -> list[LabelledMoment]:
    """Return the moments of some runs, of whatever task, with their labelled candidates."""
    return [moment for run in runs for moment in _moments_of(run)]


def _moments_of(run: Run) -> Iterator[LabelledMoment]:
    """Yield the moments of a run, those of steps with the answers about all places, in order."""
    if run.spec.task != "steps":
        yield from (
            LabelledMoment(each, tuple(label_candidates(each))) for each in examples_of(run)
        )
        return
    for example in run.examples.values():
        answers = map(Example.from_json, example.measured["asked"])
        yield LabelledMoment(
            example, tuple(one for each in answers for one in label_candidates(each))
        )


def policies(
    gate: GateScores, others: Sequence[GateScores] = (), control: GateScores | None = None
) -> list[ThresholdPolicy]:
    """Return what is compared; the first is what the others have to beat.

    Args:
        control: put first, at medium; None: the gate itself is.
    """
    medium = _thresholds("medium")
    found = [] if control is None else [ThresholdPolicy("shipped, medium", control.score, medium)]
    for name in ("medium", "low", "high"):
        found.append(ThresholdPolicy(f"gate, {name}", gate.score, _thresholds(name)))
    found.append(ThresholdPolicy("logistic", gate.chance, medium))
    return found + [ThresholdPolicy(f"{each.name}, medium", each.score, medium) for each in others]


def _thresholds(eagerness: Eagerness) -> dict[Task, float]:
    return {task: threshold(eagerness, task) for task in FEATURES}


def rows_of(policy: ThresholdPolicy, moments: Sequence[LabelledMoment]) -> list[Row]:
    """Return what a policy would have shown."""
    return [row_of(policy, each) for each in moments]


def row_of(policy: ThresholdPolicy, moment: LabelledMoment) -> Row:
    """Return a moment by a policy: the candidate shown, else the likeliest."""
    scored = [(policy.score(each), each) for each in moment.candidates if not each.barred]
    shown = next((each for each in scored if each[0] >= policy.least[each[1].task]), None)
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


# --- ranking -------------------------------------------------------------------------------------

Scores = Sequence[float] | NDArray[np.float64]
Rights = Sequence[bool] | NDArray[np.bool_]
Value = tuple[float, float, float]  # with its 95 % interval

BINS = 10  # of the calibration error
_SHOWN_BINS = 5
_DRAWS = 200  # of the error by chance
_RESAMPLES = 1_000

#: Features of a candidate that need no model.
STATIC = (
    *("lines", "removes", "after"),
    *("errors", "unknown", "quoted", "again", "undone"),
)


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
    """Return the least area of any ranking: all that is right comes first."""
    return risk_coverage(np.asarray(right, np.float64), right)


def calibration_error(scores: Scores, right: Rights, bins: int = BINS) -> float:
    """Return the adaptive expected calibration error, in bins of equal size."""
    found = reliability(scores, right, bins)
    return sum(abs(each.predicted - each.observed) * each.n for each in found) / max(len(scores), 1)


def error_by_chance(scores: Scores, seed: int = 0) -> float:
    """Return the calibration error that is expected if every chance is true."""
    said, rng = np.asarray(scores, np.float64), np.random.default_rng(seed)
    drawn = (calibration_error(said, rng.random(len(said)) < said) for _ in range(_DRAWS))
    return float(np.mean([*drawn])) if len(said) else 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """Candidates of about one chance."""

    predicted: float  # mean of the predicted chances
    observed: float  # share that was right
    n: int


def reliability(scores: Scores, right: Rights, bins: int = BINS) -> list[Bin]:
    """Return bins of equal size, by the predicted chance."""
    order = np.argsort(np.asarray(scores), kind="stable")
    said, true = np.asarray(scores, np.float64)[order], np.asarray(right, np.float64)[order]
    parts = zip(np.array_split(said, bins), np.array_split(true, bins), strict=True)
    return [Bin(float(a.mean()), float(b.mean()), len(a)) for a, b in parts if len(a)]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Measures of one score over the candidates of one task."""

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
    """Contribution of a feature to the ranking."""

    task: Task
    feature: str
    weight: float  # of the policy, standardised
    auc_lost: float  # where it is taken for average


def rankings(
    gates: Sequence[GateScores], candidates: Sequence[Labelled], seed: int = 0
) -> list[Ranking]:
    """Return the rankings by each gate's chance and policy, by task."""
    found = []
    for task in FEATURES:
        mine = [each for each in candidates if each.task == task and not each.barred]
        scores: list[tuple[str, Score]] = []
        for gate in gates:
            scores += [(f"{gate.name}, chance", gate.chance), (f"{gate.name}, policy", gate.score)]
        found += [_ranking(task, name, score, mine, seed) for name, score in scores]
    return found


def _ranking(task: Task, name: str, score: Score, mine: Sequence[Labelled], seed: int) -> Ranking:
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
        tuple(reliability(scores, right, _SHOWN_BINS)),
        len(mine),
        int(right.sum()),
    )


def _drawn(blocks: Sequence[str], seed: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the candidates of each resample: whole blocks, or single ones of few blocks."""
    if not blocks:
        return []
    member, every = independent_units(blocks), np.arange(len(blocks))
    drawing = draws(int(member.max()) + 1, seed, _RESAMPLES)
    return [np.repeat(every, times.astype(np.int64)[member]) for times in drawing]


def worths(gate: Gate, candidates: Sequence[Labelled]) -> list[Worth]:
    """Return what each feature adds to the ranking, by task, the most useful ones first."""
    found = []
    for task, head in gate.heads.items():
        mine = [each for each in candidates if each.task == task and not each.barred]
        right = [each.kept for each in mine]
        whole = _area_of(head, mine, right)
        for at, feature in enumerate(head.features, 1):
            policy = (*head.policy[:at], 0.0, *head.policy[at + 1 :])
            rest = _area_of(replace(head, policy=policy), mine, right)
            lost = 0.0 if whole is None or rest is None else whole - rest
            found.append(Worth(task, feature, head.policy[at], lost))
    return sorted(found, key=lambda each: (each.task, -each.auc_lost))


def _area_of(head: Head, mine: Sequence[Labelled], right: Sequence[bool]) -> float | None:
    scores = [head.weigh(head.row(features_of(each.candidate))).score for each in mine]
    return area(scores, right) if mine else None
