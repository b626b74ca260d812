"""What each kind of context is worth: the same steps, asked with one kind after the other left out.

All ways of asking take turns at every step, so that a run that is stopped has as many of each. Each
way has a run file of its own, which can be gone on with and compared like any other. Knows nothing
of how a table looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from redraft.model.predict import Model

from ..figures.compare import Difference, compare
from ..figures.intervals import Figure
from ..figures.runs import OnDone, RunFile
from .baselines import Policy
from .commit_moments import CommitMoment
from .next_edit import METRICS, EditAsking, ask
from .server_context import KINDS, RELATED, ContextKind

ALL = "with all"
#: What is left out, by what to call it.
ARMS: Mapping[str, frozenset[ContextKind]] = {
    ALL: frozenset(),
    "history": frozenset({"history"}),
    "definitions": frozenset({"definitions"}),
    "imports": frozenset({"imports"}),
    "viewed": frozenset({"viewed"}),
    "related": frozenset(RELATED),
    "region": frozenset({"region"}),
    "far": frozenset({"far"}),
    "everything": frozenset(KINDS),
}
#: Columns of the table, by their names in ``next_edit.METRICS``.
SHOWN = ("exact", "right place", "delta chrF", "nats/token of the true edit")
COMPARED = ("exact", "chrf", "nats")


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking, and how it did."""

    name: str  # what was left out
    n: int
    figures: dict[str, Figure]  # by metric
    prompt_tokens: float | None  # mean
    parts: dict[str, float]  # mean number of edits and of excerpts of each kind in the prompt
    against_all: dict[str, Difference]  # by field; paired, this minus with all


def file_of(out: Path, name: str) -> Path:
    """The run file of one way of asking: ``a.jsonl`` becomes ``a-without-history.jsonl``."""
    return out if name == ALL else out.with_name(f"{out.stem}-without-{name}{out.suffix}")


def ablate(
    model: Model | Policy,
    steps: Sequence[CommitMoment],
    asking: EditAsking,
    open_file: Callable[[str, frozenset[ContextKind]], RunFile],
    progress: OnDone = lambda done, total: None,
) -> dict[str, RunFile]:
    """Ask every step in all ways. Files hold every episode as it comes.

    Args:
        open_file: the run file of a way of asking, by its name and what it leaves out.
    """
    runs: dict[str, RunFile] = {}
    try:
        for name, without in ARMS.items():
            runs[name] = open_file(name, without)
        for done, step in enumerate(steps, 1):
            for name, without in ARMS.items():
                if step.id not in runs[name].episodes:
                    runs[name].add(ask(model, step, replace(asking, without=without)))
            progress(done, len(steps))
    finally:
        for run in runs.values():
            run.__exit__(None, None, None)
    return runs


def arms(runs: Mapping[str, RunFile], seed: int) -> list[Arm]:
    """How each way did, against the one with all."""
    return [_arm(name, run, runs[ALL], seed) for name, run in runs.items()]


def _arm(name: str, run: RunFile, whole: RunFile, seed: int) -> Arm:
    episodes = list(run.episodes.values())
    differences = [] if run is whole else compare(whole, run, seed)[1]
    wanted = [metric for metric in METRICS if metric.name in SHOWN]
    prompts = [each["prompt_tokens"] for each in episodes if "prompt_tokens" in each]
    kinds = sorted({kind for each in episodes for kind in each["parts"]})
    return Arm(
        name=name,
        n=len(episodes),
        figures={metric.name: metric.figure(episodes, 1, seed) for metric in wanted},
        prompt_tokens=sum(prompts) / len(prompts) if prompts else None,
        parts={
            kind: sum(each["parts"][kind] for each in episodes) / len(episodes) for kind in kinds
        },
        against_all={one.field: one for one in differences if one.field in COMPARED},
    )
