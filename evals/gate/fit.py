"""The shipped gate, fitted on outcomes of commits: ``redraft gate ship``.

Labelled candidates become samples of :mod:`redraft.model.training.gate.fit`. Held-out sources are
never fitted on: the command refuses those that it knows by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from redraft.model.gate.eagerness import RATIOS
from redraft.model.gate.features import FEATURES, features_of
from redraft.model.gate.gate import Gate, shipped
from redraft.model.records import Task
from redraft.model.training.gate.fit import Sample, fit_shipped, fold_of
from redraft.model.training.gate.kto import Objective

from ..run import Run
from .curves import area, calibration_error, error_by_chance
from .samples import Labelled, newest

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
    return Gate(name, {**shipped().heads, **heads})


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


def left_out(
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
