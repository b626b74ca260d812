"""A gate out of outcomes: the shipped one anew, or one's own from the shipped one.

First the chance (:mod:`.chance`), then the policy from there (:mod:`.kto`). Pure; needs numpy
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...gate.features import FEATURES, POSITIVE
from ...gate.gate import Head
from ...records import Task
from .chance import Bools, Chance, Floats, Outcomes, Prior, fit_chance
from .kto import Objective, fit_kto

FOLDS = 5
#: What counts as average, and as much more, of what outcomes of commits do not tell.
_UNTOLD = {
    "undone": (0.0, 1.0),
    "rested": (7.0, 1.5),  # log ms: about a second
    "speed": (1.4, 0.7),  # log keys a second: about three
    "previous": (0.0, 1.0),
    "acceptance": (0.25, 0.25),
}
_FREE = 100.0  # variance of an intercept nothing is known of
#: Variance of the weights: how sure the model is tells most, anything else has to prove itself.
_FREEDOM = dict.fromkeys(("mean", "minimum", "first", "text", "repeat", "not_nothing"), 1.0)
_FREEDOM_ELSE = 0.1
#: Where a weight begins, if not at nought: commits hold nothing that was taken back, and who takes
#: something back does not want it again.
_EXPECTED = {"undone": -3.0}


@dataclass(frozen=True, slots=True)
class Sample:
    """A candidate's features, and whether it was right to show it."""

    features: Mapping[str, float]
    kept: bool  # right to show
    weight: float = 1.0  # how much it counts
    group: str = ""  # samples of one group are all fitted on, or none


def rows_of(head: Head, samples: Sequence[Sample]) -> Outcomes:
    rows = [head.row(each.features) for each in samples]
    return Outcomes(
        np.array(rows, dtype=np.float64).reshape(len(samples), len(head.features) + 1),
        np.array([float(each.kept) for each in samples]),
        np.array([each.weight for each in samples], dtype=np.float64),
    )


# --- the shipped one ---------------------------------------------------------------------------


def fit_shipped(
    task: Task, samples: Sequence[Sample], want: Objective, without: Sequence[str] = ()
) -> Head:
    """A head from nothing.

    Args:
        without: features left out, to see what they are worth.
    """
    names = tuple(name for name in FEATURES[task] if name not in without)
    blank = _standards(names, samples)
    seen = rows_of(blank, samples)
    prior = Prior(
        np.array([0.0, *(_EXPECTED.get(name, 0.0) for name in names)]),
        np.array([_FREE, *(_FREEDOM.get(name, _FREEDOM_ELSE) for name in names)]),
    )
    found = fit_chance(seen, prior, positive_of(names))
    slope, shift = _calibration(seen, [each.group for each in samples], prior, positive_of(names))
    weights = found.weights * slope
    weights[0] += shift
    head = replace(blank, chance=_told(weights), variance=_told(found.variance))
    return replace(head, policy=_told(_tuned(head, seen, found, weights, want)))


def _tuned(head: Head, seen: Outcomes, found: Chance, chance: Floats, want: Objective) -> Floats:
    reference = Prior(chance, found.variance)
    return fit_kto(seen, reference, want, positive_of(head.features)).weights


def _standards(names: tuple[str, ...], samples: Sequence[Sample]) -> Head:
    """A head without weights: what counts as average."""
    centre, scale = [], []
    for name in names:
        known = [each.features[name] for each in samples if name in each.features]
        values = np.array(known, dtype=np.float64)
        usual, spread = _UNTOLD.get(name, (0.0, 1.0))
        if len(values) and name not in _UNTOLD:
            usual, spread = float(values.mean()), float(values.std())
        centre.append(usual)
        scale.append(spread if spread > 1e-6 else 1.0)
    none = tuple(0.0 for _ in range(len(names) + 1))
    return Head(names, tuple(centre), tuple(scale), none, none, none)


def _calibration(
    seen: Outcomes, groups: Sequence[str], prior: Prior, positive: Bools
) -> tuple[float, float]:
    """By how much the log-odds have to be drawn in, and moved, to be true of groups that were not
    fitted on."""
    folds = fold_of(groups)
    told = np.zeros(len(seen))
    for fold in range(FOLDS):
        rest = seen.where(folds != fold)
        told[folds == fold] = seen.rows[folds == fold] @ fit_chance(rest, prior, positive).weights
    rows = np.column_stack([np.ones(len(seen)), told])
    line = Prior(np.array([0.0, 1.0]), np.array([1.0, 0.25]))
    shift, slope = fit_chance(Outcomes(rows, seen.kept, seen.weight), line).weights
    return float(max(slope, 0.1)), float(shift)


def fold_of(groups: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which fold each sample is in, whole groups together, by size: the same on every machine."""
    sizes = {name: groups.count(name) for name in dict.fromkeys(groups)}
    filled, place = [0] * FOLDS, {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        place[name] = min(range(FOLDS), key=lambda fold: (filled[fold], fold))
        filled[place[name]] += sizes[name]
    return np.array([place[name] for name in groups], dtype=np.int64)


def positive_of(names: Sequence[str]) -> Bools:
    """Which weights may not be negative, the intercept's among them not."""
    return np.array([False, *(name in POSITIVE for name in names)])


def _told(weights: Floats) -> tuple[float, ...]:
    return tuple(round(float(each), 5) for each in weights)
