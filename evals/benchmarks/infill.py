"""Infill, asked for as an editor asks, and judged: ``redraft eval infill``.

The prompt is rendered from a gap's prefix and suffix alone, by the path that serves; the completion
is the first candidate's text as it fits there, as clients that insert are given it. Gaps with tests
are tried in the sandbox (pass@1); all are compared with what really stood there, and parsed in its
place. Who fills the gaps is a model or a rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from redraft.model.decode.completion import Plan
from redraft.model.gate.decide import inserted
from redraft.model.gate.reasons import Abstain
from redraft.model.predict import Model, predict
from redraft.model.prompts.tokenizer import Tokenizer
from redraft.model.records import Candidate, EditRequest, Prediction

from ..figures.drafts import columns, fields_of
from ..figures.metrics import errors_added, exact, first_line_exact, length_class
from ..figures.runs import Episode, OnDone, RunFile, said_of
from ..figures.tables import Metric, Table, overall, parted
from ..sandbox.sandbox import ProgramResult, run_program
from .baselines import Policy
from .infill_gaps import Problem

METRICS = (
    Metric("pass@1", "share", "passed", better="more"),
    Metric("exact", "share", "exact", better="more"),
    Metric("first line exact", "share", "first_line", better="more"),
    Metric("parses as well as the truth", "share", "parse_ok", better="more"),
    Metric("answered", "share", "shown"),
    Metric("ended by itself, of those", "share", "ended"),
    Metric("tokens/step", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("steps", "mean", "steps", better="less"),
    Metric("denoise ms", "mean", "denoise_ms", digits=0, better="less"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
#: Fields shown for each part.
BY_PART = ("passed", "exact", "first_line", "parse_ok", "tokens")
PARTS: tuple[tuple[str, Callable[[Episode], str]], ...] = (
    ("by kind", lambda each: str(each["kind"])),
    ("by language", lambda each: str(each["language"])),
    ("by length of the true answer", lambda each: length_class(each["answer_tokens"])),
)


@dataclass(frozen=True, slots=True)
class InfillAsking:
    """How every problem is asked."""

    plan: Plan
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Writer:
    """Who fills the gaps."""

    ask: Callable[[EditRequest, Plan], Prediction]
    tokenizer: Tokenizer  # counts how long the true answers are


def by_model(model: Model) -> Writer:
    return Writer(
        lambda request, plan: predict(model, request, time.perf_counter, plan=plan), model.tokenizer
    )


def by_rule(policy: Policy, tokenizer: Tokenizer) -> Writer:
    return Writer(lambda request, plan: policy.ask(request), tokenizer)


def request_for(problem: Problem, asking: InfillAsking) -> EditRequest:
    return EditRequest(
        "infill",
        problem.path,
        problem.text,
        problem.cursor,
        language=problem.language,
        max_tokens=asking.max_tokens,
        min_tokens=1,  # no gap of the benchmarks is empty
        seed=asking.seed,
    )


def solve(
    writer: Writer,
    problems: Sequence[Problem],
    asking: InfillAsking,
    run: RunFile,
    jobs: int = 1,
    progress: OnDone = lambda done, total: None,
    judge: Callable[[str], ProgramResult] = run_program,
) -> list[Episode]:
    """Ask for every problem that ``run`` does not hold yet; episodes in the problems' order.

    Answers are written in this thread; ``jobs`` programs are tried beside it.
    """
    todo = [problem for problem in problems if problem.id not in run.episodes]
    done = len(problems) - len(todo)
    with ThreadPoolExecutor(jobs) as pool:
        trials: set[Future[Episode]] = set()
        for problem in todo:
            said = writer.ask(request_for(problem, asking), asking.plan)
            length = len(writer.tokenizer.encode(problem.middle))
            trials.add(pool.submit(episode, problem, said, length, judge))
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


def episode(
    problem: Problem, said: Prediction, answer_tokens: int, judge: Callable[[str], ProgramResult]
) -> Episode:
    """What came of one problem."""
    first = said.candidates[0] if said.candidates else None
    completion = _given(problem, first) if first is not None else ""
    true = problem.filled(problem.middle)
    found = problem.filled(completion)
    verdict = judge(problem.program(completion)) if problem.test else None
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
        "parse_ok": _parses(true, found, problem.language) if first is not None else None,
        "shown": first is not None,
        **said_of(said, "infill"),
        **fields_of(said.stats),
    }


def _given(problem: Problem, candidate: Candidate) -> str:
    """Return what HTTP clients are given of an answer; "" if it is refused.

    A gap of whole lines takes its last line end with it, which an editor's user does not delete: an
    answer that lacks it is decided on as if it were there.
    """
    written = candidate.text
    lacking = "\n" if problem.middle.endswith("\n") and not written.endswith("\n") else ""
    request = EditRequest("infill", problem.path, problem.text, problem.cursor, problem.language)
    made = inserted(replace(candidate, text=written + lacking), request)
    return "" if isinstance(made, Abstain) else made.edit.new.removesuffix(lacking)


def _parses(true: str, found: str, language: str) -> bool | None:
    """Whether an answer leaves no more syntax errors than the truth; None: no grammar."""
    added = errors_added(true, found, language)
    return None if added is None else added <= 0


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """Overall, by kind of gap, by language and by length of the true answer."""
    tested = any(each["passed"] is not None for each in episodes)
    metrics = [metric for metric in METRICS if tested or metric.field != "passed"]
    metrics += columns(episodes)
    yield overall("infill", metrics, episodes, seed)
    for title, label in PARTS:
        if len({label(each) for each in episodes}) > 1:
            quality = [metric for metric in metrics if metric.field in BY_PART]
            yield parted(title, quality, episodes, label, seed)
