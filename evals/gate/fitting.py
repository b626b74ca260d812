"""The shipped gate, fitted on outcomes of commits: ``redraft gate ship``.

What a commit or a replay says of a candidate becomes a sample; the rest is done by
:mod:`redraft.model.training.gate_fit`. Never on commits that judge: the command refuses those that
it knows by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from redraft.model.edits.gate import Gate
from redraft.model.edits.gate_features import GATED
from redraft.model.records import Task
from redraft.model.training.gate_fit import Sample, fit_shipped
from redraft.model.training.kto import Objective

from ..figures.runs import RunFile
from .labels import Judged, judged

#: What is worth a suggestion kept, for each shown in vain, when the policy is tuned.
WANT = Objective(ratio=3.0, most_kl=0.02)

#: Share of moments after which nothing is left to do: 109 of the 426 of recorded sessions of which
#: that can be told. Commits and chains have fewer, as somebody always went on.
DONE = 0.25
_MOST_WEIGHT = 4.0  # of the few there are

#: Sources that judge, and must never be fitted on.
JUDGES = ("dev-commits", "human-eval", "carry-on")


def shown_to_gate(run: RunFile) -> Iterator[Judged]:
    """The candidates of a run of ``redraft gate outcomes`` that no rule keeps from being shown."""
    for episode in run.episodes.values():
        yield from (each for each in judged(episode) if not each.barred)


def newest(runs: Iterable[RunFile]) -> RunFile:
    """All moments of some runs; of one that several hold, what the last of them says."""
    return RunFile({}, episodes={name: one for run in runs for name, one in run.episodes.items()})


def samples_of(candidates: Iterable[Judged]) -> dict[Task, list[Sample]]:
    """By task, grouped by repository or session; what is proposed where nothing is left to do
    counts as if that were :data:`DONE` of the moments."""
    found: dict[Task, list[Sample]] = {task: [] for task in GATED}
    known = list(candidates)
    for task, some in found.items():
        mine = [each for each in known if each.task == task]
        weight = _weight_of_done(mine)
        some += [
            Sample(each.candidate, each.right, weight if each.done else 1.0, each.source)
            for each in mine
        ]
    return found


def _weight_of_done(mine: Sequence[Judged]) -> float:
    done = len({each.moment for each in mine if each.done})
    others = len({each.moment for each in mine}) - done
    return min(max(DONE / (1 - DONE) * others / done, 1.0), _MOST_WEIGHT) if done else 1.0


def fit_gate(
    samples: Mapping[Task, Sequence[Sample]], name: str, without: Sequence[str] = ()
) -> Gate:
    """A gate from nothing.

    Args:
        without: features left out.
    """
    heads = {task: fit_shipped(task, each, WANT, without) for task, each in samples.items()}
    return Gate(name, heads)


def left_out(
    samples: Mapping[Task, Sequence[Sample]], candidates: Iterable[Judged]
) -> Callable[[Judged], Gate]:
    """For each candidate a gate fitted on ``samples`` and on the candidates of all other sources
    than its own."""
    free = [each for each in candidates if not each.barred]
    found: dict[str, Gate] = {}

    def gate_of(judged: Judged) -> Gate:
        if judged.source not in found:
            others = samples_of(each for each in free if each.source != judged.source)
            both = {task: [*samples[task], *some] for task, some in others.items()}
            found[judged.source] = fit_gate(both, f"without {judged.source}")
        return found[judged.source]

    return gate_of


def judges_among(runs: Iterable[RunFile]) -> list[str]:
    """Sources that are not for fitting."""
    named = [str(run.settings.get("source", "")) for run in runs]
    return [name for name in named if any(judge in name for judge in JUDGES)]


def card_of(
    samples: Mapping[Task, Sequence[Sample]], runs: Sequence[RunFile], judged: str
) -> dict[str, Any]:
    """What a gate was fitted on.

    Args:
        judged: what outcomes that it was not fitted on say of it, for people.
    """
    return {
        "made_by": "redraft gate ship",
        "model": sorted({str(run.settings.get("model")) for run in runs}),
        "weights_sha256": sorted({str(run.settings.get("model_sha256")) for run in runs}),
        "sources": sorted({str(run.settings.get("source")) for run in runs}),
        "commits": sorted({str(run.machine.get("commit")) for run in runs}),  # that asked
        "moments": len(newest(runs).episodes),
        "ratio": WANT.ratio,
        "beta": WANT.beta,
        "most_kl": WANT.most_kl,
        "candidates": {task: len(each) for task, each in samples.items()},
        "right": {task: sum(one.kept for one in each) for task, each in samples.items()},
        "repositories": len({one.group for each in samples.values() for one in each}),
        "judged": judged,
    }
