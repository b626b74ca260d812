"""One's own gate: the shipped one, moved by what became of one's own suggestions.

Taken into use only where it would have been worth more: of outcomes that it was not fitted on, the
lower bound of the difference in utility has to be above nought. Pure; needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...gate.eagerness import threshold_of
from ...gate.gate import Gate, Head
from ...records import Task
from .chance import Floats, Outcomes, Prior, fit_chance, logit
from .fit import Sample, positive_of, rows_of
from .kto import Objective, fit_kto

#: Outcomes of a task under which only the intercept moves, and of those kept.
_FEW, _FEW_KEPT = 100, 15
#: Outcomes under which nothing is fitted at all.
LEAST = 20
#: Half of what an outcome counts is gone after so many others.
HALF_LIFE = 500.0
_INTERCEPT = 0.5**2  # variance of an intercept that moves alone
_HELD = 1e-9  # of a weight that does not move
#: Within these bounds of the shipped gate's share of shown ones the own one has to stay.
_SHOWN = (0.5, 1.5)
_BLOCKS = 5  # in time, each judged by a gate fitted on the others
_DRAWS = 1_000
_QUANTILE = 0.05  # the lower end of the 90 % interval


@dataclass(frozen=True, slots=True)
class Trial:
    """Is it taken into use?"""

    taken: bool
    outcomes: int
    own: float  # utility of 100 outcomes
    shipped: float
    low: float  # of own - shipped, 90 %
    high: float
    unlearned: tuple[str, ...] = ()  # why nothing was learned, by task

    @property
    def told(self) -> str:
        """For people, with both numbers."""
        sign = ">" if self.own > self.shipped else "<" if self.own < self.shipped else "="
        said = f"yours, {self.outcomes} outcomes: {self.own:.2f} {sign} {self.shipped:.2f}"
        bounds = f"difference {self.low:+.2f} to {self.high:+.2f}"
        used = f"{'yours' if self.taken else 'the shipped one'} is in use"
        return "; ".join((f"{said} ({bounds})", *self.unlearned, used))


def fit_own(
    shipped: Gate, samples: Mapping[Task, Sequence[Sample]], want: Objective, strange: bool = False
) -> tuple[Gate, Trial]:
    """The gate, and whether it is worth using.

    Args:
        samples: by task, oldest first; grouped by session.
        strange: weights or prompt format changed: what shipped is trusted less.
    """
    heads = {
        task: fit_own_head(head, samples.get(task, ()), want, strange)
        for task, head in shipped.heads.items()
    }
    verdict = judge_own(shipped, samples, want, strange)
    return Gate(f"yours, {verdict.outcomes} outcomes", heads), verdict


def fit_own_head(
    head: Head, samples: Sequence[Sample], want: Objective, strange: bool = False
) -> Head:
    """The shipped head moved by some outcomes; the same where these tell nothing."""
    if unlearned(samples):
        return head
    seen = _faded(rows_of(head, samples))
    variance = _variance(head, samples) * (4 if strange else 1)
    bounded = positive_of(head.features)
    chance = fit_chance(seen, Prior(np.array(head.chance), variance), bounded)
    moved = np.minimum(chance.variance * 4, variance)
    policy = fit_kto(seen, Prior(np.array(head.policy), moved), want, bounded).weights
    policy = _within_shown(seen, policy, np.array(head.policy), want)
    return replace(
        head,
        chance=tuple(map(float, chance.weights)),
        policy=tuple(map(float, policy)),
        variance=tuple(map(float, chance.variance)),
    )


def unlearned(samples: Sequence[Sample]) -> str:
    """Why nothing can be learned from these; "" where something can."""
    kept = sum(each.kept for each in samples)
    if len(samples) < LEAST:
        return f"{len(samples)} are too few, {LEAST} are needed"
    if kept in (0, len(samples)):
        return f"{'all' if kept else 'none'} of {len(samples)} were right: nothing to tell apart"
    return ""


def _faded(seen: Outcomes) -> Outcomes:
    """What is long ago counts less."""
    age = np.arange(len(seen))[::-1]
    return replace(seen, weight=seen.weight * 0.5 ** (age / HALF_LIFE))


def _variance(head: Head, samples: Sequence[Sample]) -> Floats:
    kept = sum(each.kept for each in samples)
    count = len(head.features) + 1
    if len(samples) < _FEW or kept < _FEW_KEPT:
        return np.array([_INTERCEPT, *[_HELD] * (count - 1)])
    clipped: Floats = np.clip(np.array(head.variance), 0.01, _INTERCEPT)
    return clipped


def _within_shown(seen: Outcomes, policy: Floats, before: Floats, want: Objective) -> Floats:
    """The policy with its intercept so that it shows neither far more nor far less than before."""
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


# --- is it worth using? -----------------------------------------------------------------------


def judge_own(
    shipped: Gate, samples: Mapping[Task, Sequence[Sample]], want: Objective, strange: bool = False
) -> Trial:
    """Both gates on outcomes that the own one was not fitted on, block by block in time; intervals
    resample sessions, or blocks where there are few.

    What was hidden has an outcome too, by what was written instead, so that the utility of showing
    is known for every candidate, as well as that tells, and nothing has to be weighed by its
    propensity.
    """
    gains: list[tuple[str, float, float]] = []  # session or block, own, shipped
    weight = 0.0
    for task, some in samples.items():
        for mine, ships, sample, block in _decisions(shipped.heads[task], some, want, strange):
            worth = (want.desirable if sample.kept else -want.undesirable) * sample.weight
            gains.append((f"{sample.group} {block}", mine * worth, ships * worth))
            weight += sample.weight
    doubts = tuple(
        f"{task.replace('_', ' ')}: {doubt}"
        for task, some in samples.items()
        if some and (doubt := unlearned(some))
    )
    if not gains or not weight:
        return Trial(False, len(gains), 0.0, 0.0, 0.0, 0.0, doubts)
    scale = 100 / weight
    own, ship = scale * sum(each[1] for each in gains), scale * sum(each[2] for each in gains)
    low, high = _bounds([(name, scale * (a - b)) for name, a, b in gains])
    return Trial(low > 1e-9, len(gains), own, ship, low, high, doubts)


def _decisions(
    head: Head, samples: Sequence[Sample], want: Objective, strange: bool
) -> list[tuple[bool, bool, Sample, int]]:
    """Would each be shown, by one's own gate and by the shipped one; in which block it is."""
    found = []
    blocks = np.array_split(np.arange(len(samples)), _BLOCKS)
    least = threshold_of(want.ratio)
    for number, block in enumerate(blocks):
        inside = set(block.tolist())
        rest = [each for at, each in enumerate(samples) if at not in inside]
        own = fit_own_head(head, rest, want, strange)
        for at in inside:
            row = head.row(samples[at].features)
            mine, ships = (one.weigh(row).score >= least for one in (own, head))
            found.append((mine, ships, samples[at], number))
    return found


def _bounds(gains: Sequence[tuple[str, float]]) -> tuple[float, float]:
    sums: dict[str, float] = {}
    for name, gain in gains:
        sums[name] = sums.get(name, 0.0) + gain
    table, rng = np.array(list(sums.values())), np.random.default_rng(0)
    drawn = table[rng.integers(len(table), size=(_DRAWS, len(table)))].sum(axis=1)
    low, high = np.quantile(drawn, (_QUANTILE, 1 - _QUANTILE))
    return float(low), float(high)
