"""Infill, asked for as an editor asks, and judged: ``redraft eval infill``.

A problem is a text with a gap whose true middle is known. HumanEval-Infilling
(https://github.com/openai/human-eval-infilling, all its files) has tests, run in the sandbox:
pass@1. Gaps in held-out commits have none: exact match and similarity. The prompt is rendered from
prefix and suffix alone; the completion is the first candidate's text, nothing cut by the benchmark.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.model.answering import Model, answer
from redraft.model.errors import SettingsError
from redraft.model.plan import Plan
from redraft.model.records import EditRequest, Prediction

from .runs import Episode, Progress, RunFile
from .sandbox import Verdict, run_program
from .scoring import exact, first_line_exact, length_class, similarity
from .tables import Metric, Table, overall, parted

METRICS = (
    Metric("pass@1", "share", "passed"),
    Metric("exact", "share", "exact"),
    Metric("first line exact", "share", "first_line"),
    Metric("similarity", "mean", "similarity", digits=3),
    Metric("ended by itself", "share", "ended"),
    Metric("tokens/step", "ratio", "tokens", by="steps", digits=2),
    Metric("steps", "mean", "steps"),
    Metric("denoise ms", "mean", "denoise_ms", digits=0),
    Metric("total ms", "mean", "total_ms", digits=0),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A gap."""

    id: str
    group: str  # gaps of one group stand or fall together
    path: str  # as shown to the model
    language: str
    kind: str
    prefix: str
    suffix: str
    middle: str  # the truth
    test: str = ""  # what follows the program to try it; "": not to be run


@dataclass(frozen=True, slots=True)
class Asking:
    """How every problem is asked."""

    plan: Plan
    max_tokens: int
    max_lines: int | None
    seed: int


def human_eval(path: Path) -> list[Problem]:
    """The problems of one official file.

    Raises:
        SettingsError: it cannot be read as one.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [_human_eval(json.loads(line)) for line in file if line.strip()]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is not a file of HumanEval-Infilling ({type(error).__name__}: {error}). Name "
            "one such as HumanEval-SingleLineInfilling.jsonl.gz."
        ) from error


def _human_eval(record: dict[str, Any]) -> Problem:
    kind, *rest = record["task_id"].split("/")  # SingleLineInfilling/HumanEval/0/L5
    return Problem(
        id=record["task_id"],
        group="/".join(rest[:2]),
        path="solution.py",
        language="python",
        kind=kind,
        prefix=record["prompt"],
        suffix=record["suffix"],
        middle=record["canonical_solution"],
        test=f"\n{record['test']}\ncheck({record['entry_point']})\n",
    )


def request_for(problem: Problem, asking: Asking) -> EditRequest:
    return EditRequest(
        "infill",
        problem.path,
        problem.prefix + problem.suffix,
        len(problem.prefix),
        language=problem.language,
        max_tokens=asking.max_tokens,
        max_lines=asking.max_lines,
        seed=asking.seed,
    )


def solve(
    model: Model,
    problems: Sequence[Problem],
    asking: Asking,
    run: RunFile,
    jobs: int = 1,
    progress: Progress = lambda done, total: None,
    judge: Callable[[str], Verdict] = run_program,
) -> list[Episode]:
    """Ask for every problem that ``run`` does not hold yet; episodes in the problems' order.

    The model writes in this thread; ``jobs`` programs are tried beside it.
    """
    todo = [problem for problem in problems if problem.id not in run.episodes]
    done = len(problems) - len(todo)
    with ThreadPoolExecutor(jobs) as pool:
        trials: set[Future[Episode]] = set()
        for problem in todo:
            said = answer(model, request_for(problem, asking), time.perf_counter, plan=asking.plan)
            trials.add(pool.submit(episode, problem, said, _tokens(model, problem), judge))
            done += _keep(run, trials, most_open=2 * jobs)
            progress(done, len(problems))
        while trials:
            done += _keep(run, trials, most_open=0)
            progress(done, len(problems))
    return [run.episodes[problem.id] for problem in problems]


def _keep(run: RunFile, trials: set[Future[Episode]], most_open: int) -> int:
    """Write down the trials that are over; waits for one where too many are open."""
    timeout = None if len(trials) > most_open else 0
    over = wait(trials, timeout, FIRST_COMPLETED).done
    for trial in over:
        run.add(trial.result())
    trials -= over
    return len(over)


def _tokens(model: Model, problem: Problem) -> int:
    return len(model.tokenizer.encode(problem.middle))


def episode(
    problem: Problem, said: Prediction, answer_tokens: int, judge: Callable[[str], Verdict]
) -> Episode:
    """What came of one problem."""
    first = said.candidates[0] if said.candidates else None
    completion = first.text if first is not None else ""
    verdict = judge(program(problem, completion)) if problem.test else None
    return {
        "id": problem.id,
        "group": problem.group,
        "language": problem.language,
        "kind": problem.kind,
        "answer_tokens": answer_tokens,
        "expected": problem.middle,
        "completion": completion,
        "passed": verdict.passed if verdict else None,
        "outcome": verdict.outcome if verdict else None,
        "detail": verdict.detail if verdict else None,
        "exact": exact(completion, problem.middle),
        "first_line": first_line_exact(completion, problem.middle),
        "similarity": round(similarity(completion, problem.middle), 4),
        "ended": first is not None and first.finish == "end",
        "confidence": first.confidence.mean if first is not None else None,
        "reason": said.reason,
        "tokens": said.stats.canvas_tokens,
        "steps": said.stats.denoise_steps,
        "prompt_tokens": said.stats.prompt_tokens,
        "cut": said.stats.cut,
        "denoise_ms": round(said.stats.denoise_ms, 1),
        "total_ms": round(said.stats.total_ms, 1),
    }


def program(problem: Problem, completion: str) -> str:
    """The program that decides, as the official harness puts it together."""
    return problem.prefix + completion + problem.suffix + problem.test


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """Overall, by kind of gap, by language and by length of the true answer."""
    metrics = [m for m in METRICS if any(each.get(m.field) is not None for each in episodes)]
    yield overall("infill", metrics, episodes, seed)
    yield parted("by kind", metrics, episodes, lambda each: each["kind"], seed)
    yield parted("by language", metrics, episodes, lambda each: each["language"], seed)
    yield parted(
        "by true length", metrics, episodes, lambda each: length_class(each["answer_tokens"]), seed
    )
