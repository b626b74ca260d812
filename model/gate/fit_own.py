"""Fits the user's own gate to outcomes, from the shipped one.

First the chance that a candidate is kept, then the policy from there (:mod:`.kto`). The user's gate
is taken into use only where it would have been worth more: on outcomes that it was not fitted on,
the lower bound of the difference in utility has to be above 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..records import Task
from .features import POSITIVE
from .gate import Gate, Head
from .kto import Bools, Floats, LabelledOutcomes, Objective, Prior, fit_chance, fit_kto, logit

#: LabelledOutcomes of a task, and of those kept, under which only the intercept moves.
_FEW, _FEW_KEPT = 100, 15
#: LabelledOutcomes under which nothing is fitted at all.
LEAST = 20
#: After so many other outcomes, one counts half.
HALF_LIFE = 500.0
_INTERCEPT = 0.5**2  # variance of an intercept that moves alone
_HELD = 1e-9  # of a weight that does not move
#: The share of shown candidates stays within these factors of that of the shipped gate.
_SHOWN = (0.5, 1.5)
_BLOCKS = 5  # in time, each judged by a gate fitted on the others
_DRAWS = 1_000
_QUANTILE = 0.05  # the lower end of the 90 % interval


@dataclass(frozen=True, slots=True)
class Sample:
    """Features of a candidate, and whether it was right to show it."""

    features: Mapping[str, float]
    kept: bool  # right to show
    weight: float = 1.0  # how much it counts
    group: str = ""  # samples of one group are all fitted on, or none


def rows_of(head: Head, samples: Sequence[Sample]) -> LabelledOutcomes:
    """Return the samples as rows of the features of ``head``."""
    rows = [head.row(each.features) for each in samples]
    return LabelledOutcomes(
        np.array(rows, dtype=np.float64).reshape(len(samples), len(head.features) + 1),
        np.array([float(each.kept) for each in samples]),
        np.array([each.weight for each in samples], dtype=np.float64),
    )


def positive_of(names: Sequence[str]) -> Bools:
    """Return which weights may not be negative; the intercept may."""
    return np.array([False, *(name in POSITIVE for name in names)])


@dataclass(frozen=True, slots=True)
class Trial:
    """Comparison of the user's gate with the shipped one."""

    taken: bool  # into use
    outcomes: int
    own: float  # utility of 100 outcomes
    shipped: float
    low: float  # of own - shipped, 90 %
    high: float
    unlearned: tuple[str, ...] = ()  # why nothing was learned, by task

    @property
    def sentence(self) -> str:
        """The comparison in a sentence, with both numbers."""
        sign = ">" if self.own > self.shipped else "<" if self.own < self.shipped else "="
        both = f"yours, {self.outcomes} outcomes: {self.own:.2f} {sign} {self.shipped:.2f}"
        bounds = f"difference {self.low:+.2f} to {self.high:+.2f}"
        used = f"{'yours' if self.taken else 'the shipped one'} is in use"
        return "; ".join((f"{both} ({bounds})", *self.unlearned, used))


def fit_own(
    shipped: Gate,
    samples: Mapping[Task, Sequence[Sample]],
    want: Mapping[Task, Objective],
    other_model: bool = False,
) -> tuple[Gate, Trial]:
    """Return the user's gate, and whether it is worth using.

    Args:
        samples: by task, oldest first; grouped by session.
        other_model: weights or prompt format changed: the shipped gate is trusted less.
    """
    heads = {
        task: fit_own_head(head, samples.get(task, ()), want[task], other_model)
        for task, head in shipped.heads.items()
    }
    trial = _compare(shipped, samples, want, other_model)
    return Gate(f"yours, {trial.outcomes} outcomes", heads), trial


def fit_own_head(
    head: Head, samples: Sequence[Sample], want: Objective, other_model: bool = False
) -> Head:
    """Return the shipped head moved by some outcomes; the same where they teach nothing."""
    if _unlearned(samples):
        return head
    seen = rows_of(head, samples)
    age = np.arange(len(seen))[::-1]
    seen = replace(seen, weight=seen.weight * 0.5 ** (age / HALF_LIFE))
    variance = _variance(head, samples) * (4 if other_model else 1)
    bounded = positive_of(head.features)
    chance = fit_chance(seen, Prior(np.array(head.chance), variance), bounded)
    moved = np.minimum(chance.variance * 4, variance)
    policy = fit_kto(seen, Prior(np.array(head.policy), moved), want, bounded).weights
    policy = _within_shown(seen, policy, np.array(head.policy), want)
    return replace(
        head,
        chance=tuple(map(float, chance.mean)),
        policy=tuple(map(float, policy)),
        variance=tuple(map(float, chance.variance)),
    )


def _unlearned(samples: Sequence[Sample]) -> str:
    """Return why nothing can be learned from the samples; "" where something can."""
    kept = sum(each.kept for each in samples)
    if len(samples) < LEAST:
        return f"{len(samples)} are too few, {LEAST} are needed"
    if kept in (0, len(samples)):
        return f"{'all' if kept else 'none'} of {len(samples)} were right: nothing to tell apart"
    return ""


def _variance(head: Head, samples: Sequence[Sample]) -> Floats:
    kept = sum(each.kept for each in samples)
    if len(samples) < _FEW or kept < _FEW_KEPT:
        return np.array([_INTERCEPT, *[_HELD] * len(head.features)])
    clipped: Floats = np.clip(np.array(head.variance), 0.01, _INTERCEPT)
    return clipped


def _within_shown(
    seen: LabelledOutcomes, policy: Floats, before: Floats, want: Objective
) -> Floats:
    """Return the policy with an intercept that shows neither far more nor far less than before."""
    level = logit(want.threshold)
    shown = float((seen.rows @ before >= level).mean())
    scores = np.sort(seen.rows @ policy)[::-1]
    low, high = (round(shown * bound * len(scores)) for bound in _SHOWN)
    now = int((scores >= level).sum())
    wanted = min(max(now, low), max(high, 1), len(scores))
    if wanted == now:
        return policy
    moved = policy.copy()
    moved[0] += level - (scores[wanted - 1] if wanted else scores[0] + 1e-6)
    return moved


def _compare(
    shipped: Gate,
    samples: Mapping[Task, Sequence[Sample]],
    wants: Mapping[Task, Objective],
    other_model: bool,
) -> Trial:
    """Compare both gates on outcomes that the user's was not fitted on, block by block in time.

    Intervals resample sessions, or blocks where there are few. Hidden candidates have an outcome,
    too, by what was written instead, so nothing has to be weighed by its propensity.
    """
    gains: dict[str, list[float]] = {}  # by session and block: utility of own and of shipped
    weight, count = 0.0, 0
    for task, some in samples.items():
        head, want = shipped.heads[task], wants[task]
        for number, block in enumerate(np.array_split(np.arange(len(some)), _BLOCKS)):
            inside = set(block.tolist())
            rest = [each for at, each in enumerate(some) if at not in inside]
            own = fit_own_head(head, rest, want, other_model)
            for sample in (some[at] for at in inside):
                worth = (want.desirable if sample.kept else -want.threshold) * sample.weight
                row = head.row(sample.features)
                gain = gains.setdefault(f"{sample.group} {number}", [0.0, 0.0])
                for i, each in enumerate((own, head)):
                    gain[i] += worth * (each.weigh(row).score >= want.threshold)
                weight, count = weight + sample.weight, count + 1
    reasons = tuple(
        f"{task.replace('_', ' ')}: {reason}"
        for task, some in samples.items()
        if some and (reason := _unlearned(some))
    )
    if not weight:
        return Trial(False, count, 0.0, 0.0, 0.0, 0.0, reasons)
    table = np.array(list(gains.values())) * 100 / weight  # [sessions and blocks, 2]
    own_utility, shipped_utility = (float(each) for each in table.sum(0))
    difference, rng = table[:, 0] - table[:, 1], np.random.default_rng(0)
    drawn = difference[rng.integers(len(table), size=(_DRAWS, len(table)))].sum(axis=1)
    low, high = (float(each) for each in np.quantile(drawn, (_QUANTILE, 1 - _QUANTILE)))
    return Trial(low > 1e-9, count, own_utility, shipped_utility, low, high, reasons)
