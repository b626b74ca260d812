"""Measure each kind of context: run the same examples with one kind at a time left out.

All ways of asking take turns at every example, so that a run that is stopped has as many of each.
Each way has its run file, which can be continued and compared like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .compare import Difference, compare
from .example import Example
from .figures import Figure
from .gather import KINDS, RELATED, ContextKind
from .pipeline import answer, judge
from .predictors import ReadyPredictor
from .run import OnDone, Run, quiet
from .scorers.next_edit import METRICS

ALL = "with all"
#: What is left out, by what to call it.
ARMS: Mapping[str, tuple[ContextKind, ...]] = {
    ALL: (),
    "history": ("history",),
    "definitions": ("definitions",),
    "imports": ("imports",),
    "viewed": ("viewed",),
    "related": RELATED,
    "region": ("region",),
    "far": ("far",),
    "everything": KINDS,
}
#: Columns of the table, by their names in ``next_edit.METRICS``.
SHOWN = ("exact", "right place", "delta chrF", "nats of the true edit")
COMPARED = ("exact", "chrf", "nats")


@dataclass(frozen=True, slots=True)
class Arm:
    """The results of a run with one kind of context left out."""

    name: str  # what was left out
    n: int
    figures: dict[str, Figure]  # by metric
    prompt_tokens: float | None  # mean
    parts: dict[str, float]  # mean number of edits and of excerpts of each kind in the prompt
    against_all: dict[str, Difference]  # by field; paired, this minus with all


def file_of(out: Path, name: str) -> Path:
    """Return the run file of one way: ``a.jsonl`` becomes ``a-without-history.jsonl``."""
    return out if name == ALL else out.with_name(f"{out.stem}-without-{name}{out.suffix}")


def ablate(
    examples: Sequence[Example],
    predictor: ReadyPredictor,
    open_file: Callable[[str, tuple[ContextKind, ...]], Run],
    progress: OnDone = quiet,
) -> dict[str, Run]:
    """Ask every example in all ways, and return the runs by way.

    Args:
        open_file: the run of a way of asking, by its name and what it leaves out.
    """
    runs: dict[str, Run] = {}
    try:
        for name, without in ARMS.items():
            runs[name] = open_file(name, without)
        for done, example in enumerate(examples, 1):
            for run in runs.values():
                if example.id not in run.examples:
                    run.add(judge(answer(example, predictor, run.spec), run.spec))
            progress(done, len(examples))
    finally:
        for run in runs.values():
            run.__exit__(None, None, None)
    return runs


def arms(runs: Mapping[str, Run], seed: int) -> list[Arm]:
    """Return how each way did, against the one with all."""
    return [_arm(name, run, runs[ALL], seed) for name, run in runs.items()]


def _arm(name: str, run: Run, whole: Run, seed: int) -> Arm:
    rows = run.rows()
    differences = [] if run is whole else compare(whole, run, seed)[1]
    wanted = [metric for metric in METRICS if metric.name in SHOWN]
    prompts = [each["prompt_tokens"] for each in rows if "prompt_tokens" in each]
    kinds = sorted({kind for each in rows for kind in each["parts"]})
    return Arm(
        name=name,
        n=len(rows),
        figures={metric.name: metric.figure(rows, 1, seed) for metric in wanted},
        prompt_tokens=sum(prompts) / len(prompts) if prompts else None,
        parts={kind: sum(each["parts"][kind] for each in rows) / len(rows) for kind in kinds},
        against_all={one.field: one for one in differences if one.field in COMPARED},
    )
