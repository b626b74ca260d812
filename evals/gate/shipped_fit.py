"""The shipped gate, fitted on outcomes of commits: ``redraft gate ship``.

Labelled candidates become samples of a head, fitted from nothing. Held-out sources are
never fitted on: the command refuses those that it knows by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from redraft.model.gate.eagerness import RATIOS
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.fit_own import Sample, positive_of, rows_of
from redraft.model.gate.gate import Gate, Head, load_shipped
from redraft.model.gate.kto import (
    Bools,
    Floats,
    LabelledOutcomes,
    Objective,
    Prior,
    fit_chance,
    fit_kto,
)
from redraft.model.records import Task

from ..run import Run
from .curves import area, calibration_error, error_by_chance
from .samples import Labelled, newest

FOLDS = 5
#: Mean and spread of features that outcomes of commits do not have.
_UNKNOWN = {
    "undone": (0.0, 1.0),
    "rested": (7.0, 1.5),  # log ms: about a second
    "speed": (1.4, 0.7),  # log keys a second: about three
    "previous": (0.0, 1.0),
    "acceptance": (0.25, 0.25),
}
_FREE = 100.0  # variance of an intercept of which nothing is known
#: Variance of the weights: confidence of the model says most, other features have to prove it.
_FREEDOM = dict.fromkeys(("mean", "minimum", "first", "text", "repeat", "not_nothing"), 1.0)
_FREEDOM_ELSE = 0.1
#: Where a weight begins, if not at 0: commits hold nothing that was undone, and a user does not
#: want again what they undid.
_EXPECTED = {"undone": -3.0}
#: Weights of the policy's tuning, those of medium eagerness.
WANT = {task: Objective(ratios["medium"], most_kl=0.02) for task, ratios in RATIOS.items()}

#: Parts of the names of sources that judge and are never fitted on, in lower case.
JUDGES = ("dev-commits", "human-eval", "humaneval", "carry-on")


def samples_of(candidates: Iterable[Labelled]) -> dict[Task, list[Sample]]:
    """Return samples by task, grouped by repository or session."""
    found: dict[Task, list[Sample]] = {task: [] for task in FEATURES}
    for each in candidates:
        found[each.task].append(Sample(features_of(each.candidate), each.kept, group=each.source))
    return found


def fit_gate(
    samples: Mapping[Task, Sequence[Sample]], name: str, without: Sequence[str] = ()
) -> Gate:
    """Return a gate fitted from nothing. A task without samples keeps its shipped head.

    Args:
        without: features left out.
    """
    heads = {
        task: fit_shipped(task, each, WANT[task], without) for task, each in samples.items() if each
    }
    return Gate(name, {**load_shipped().heads, **heads})


def fit_shipped(
    task: Task, samples: Sequence[Sample], want: Objective, without: Sequence[str] = ()
) -> Head:
    """Return a head fitted from nothing.

    Args:
        without: features left out, to see what they are worth.
    """
    names = tuple(name for name in FEATURES[task] if name not in without)
    blank, bounded = _standards(names, samples), positive_of(names)
    seen = rows_of(blank, samples)
    prior = Prior(
        np.array([0.0, *(_EXPECTED.get(name, 0.0) for name in names)]),
        np.array([_FREE, *(_FREEDOM.get(name, _FREEDOM_ELSE) for name in names)]),
    )
    found = fit_chance(seen, prior, bounded)
    slope, shift = _calibration(seen, [each.group for each in samples], prior, bounded)
    chance = found.mean * slope
    chance[0] += shift
    policy = fit_kto(seen, Prior(chance, found.variance), want, bounded).weights
    return replace(
        blank, chance=_rounded(chance), variance=_rounded(found.variance), policy=_rounded(policy)
    )


def _standards(names: tuple[str, ...], samples: Sequence[Sample]) -> Head:
    """Return a head without weights: mean and spread of each feature."""
    centre, scale = [], []
    for name in names:
        known = [each.features[name] for each in samples if name in each.features]
        values = np.array(known, dtype=np.float64)
        mean, spread = _UNKNOWN.get(name, (0.0, 1.0))
        if len(values) and name not in _UNKNOWN:
            mean, spread = float(values.mean()), float(values.std())
        centre.append(mean)
        scale.append(spread if spread > 1e-6 else 1.0)
    none = tuple(0.0 for _ in range(len(names) + 1))
    return Head(names, tuple(centre), tuple(scale), none, none, none)


def _calibration(
    seen: LabelledOutcomes, groups: Sequence[str], prior: Prior, positive: Bools
) -> tuple[float, float]:
    """Return the factor and the shift of log-odds that make them true of groups not fitted on."""
    folds = fold_of(groups)
    predicted = np.zeros(len(seen))
    for fold in range(FOLDS):
        rest = seen.where(folds != fold)
        predicted[folds == fold] = seen.rows[folds == fold] @ fit_chance(rest, prior, positive).mean
    rows = np.column_stack([np.ones(len(seen)), predicted])
    line = Prior(np.array([0.0, 1.0]), np.array([1.0, 0.25]))
    shift, slope = fit_chance(LabelledOutcomes(rows, seen.kept, seen.weight), line).mean
    return float(max(slope, 0.1)), float(shift)


def fold_of(groups: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the fold of each sample: whole groups together, by size, the same on every machine."""
    sizes = {name: groups.count(name) for name in dict.fromkeys(groups)}
    filled, place = [0] * FOLDS, {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        place[name] = min(range(FOLDS), key=lambda fold: (filled[fold], fold))
        filled[place[name]] += sizes[name]
    return np.array([place[name] for name in groups], dtype=np.int64)


def _rounded(weights: Floats) -> tuple[float, ...]:
    return tuple(round(float(each), 5) for each in weights)


@dataclass(frozen=True, slots=True)
class OnOthers:
    """Measures of a gate on repositories that it was not fitted on."""

    auc: float | None
    error: float  # calibration
    by_chance: float  # error to be expected were every chance true


def on_others(task: Task, samples: Sequence[Sample]) -> OnOthers | None:
    """Fit on four fifths of the repositories at a time, and measure on the rest.

    None where there is only one repository.
    """
    if len({each.group for each in samples}) < 2:
        return None
    folds = fold_of([each.group for each in samples])
    said = np.zeros(len(samples))
    for fold in set(folds.tolist()):
        rest = [each for each, one in zip(samples, folds, strict=True) if one != fold]
        head = fit_shipped(task, rest, WANT[task])
        for at in map(int, np.flatnonzero(folds == fold)):
            said[at] = head.weigh(head.row(samples[at].features)).chance
    right = [each.kept for each in samples]
    return OnOthers(area(said, right), calibration_error(said, right), error_by_chance(said))


def leave_source_out(
    samples: Mapping[Task, Sequence[Sample]], candidates: Iterable[Labelled]
) -> Callable[[Labelled], Gate]:
    """Return a function from a candidate to a gate that was not fitted on its source.

    It is fitted on ``samples`` and on the candidates of all other sources.
    """
    free = [each for each in candidates if not each.barred]
    found: dict[str, Gate] = {}

    def gate_of(one: Labelled) -> Gate:
        if one.source not in found:
            others = samples_of(each for each in free if each.source != one.source)
            both = {task: [*samples[task], *some] for task, some in others.items()}
            found[one.source] = fit_gate(both, f"without {one.source}")
        return found[one.source]

    return gate_of


def judges_among(runs: Iterable[Run]) -> list[str]:
    """Return the sources that are not for fitting."""
    named = [run.spec.source for run in runs]
    return [name for name in named if any(judge in name.lower() for judge in JUDGES)]


def card_of(
    samples: Mapping[Task, Sequence[Sample]], labels: Iterable[Labelled], runs: Sequence[Run]
) -> dict[str, Any]:
    """Return what the head of each task was fitted on; tasks without samples are left out."""
    exact = Counter(each.task for each in labels if each.right)
    shared = {
        "model": sorted({run.spec.model for run in runs}),
        "weights_sha256": sorted({run.spec.model_sha256 for run in runs}),
        "sources": sorted({run.spec.source for run in runs}),
        "commits": sorted({each for run in runs if (each := run.machine.get("commit"))}),
        "moments": len(newest(runs).examples),
    }
    return {
        task: {
            **shared,
            "ratio": WANT[task].ratio,
            "beta": WANT[task].beta,
            "most_kl": WANT[task].most_kl,
            "candidates": len(each),
            "kept": sum(one.kept for one in each),
            "exact": exact[task],
            "repositories": len({one.group for one in each}),
            "on_others": asdict(told) if (told := on_others(task, each)) is not None else None,
        }
        for task, each in samples.items()
        if each
    }
