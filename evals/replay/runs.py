"""Many recordings replayed into one run: one after the other, side by side, or on many machines.

Recordings are independent of each other and each is played in order, so the lines of a run are the
same however it was spread. A run that was broken off is played again with the answers it has, which
costs no model. Knows nothing of what a line means.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redraft.lsp.settings import LspSettings
from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install
from redraft.model.silence import import_silenced

from ..example import Example
from ..predictors import ReadyPredictor, open_predictor
from ..run import OnDone, Run, quiet
from ..spec import RunSpec
from .player import MomentResult, play
from .scores import Scorer
from .script import Script, read_script, sample
from .timed_predictor import ReplayPredictor

SUFFIXES = (".json", ".jsonl")

OnExample = Callable[[Example], None]
Lines = Generator[list[Example], None, None]  # of one recording after the other


@dataclass(frozen=True, slots=True)
class Job:
    """One recording to play, with all that it takes."""

    script: Script
    chosen: frozenset[str]  # ids of the moments to ask at
    settings: LspSettings
    latency_ms: float | None  # None: as measured
    known: tuple[dict[str, Any], ...] = field(default=())  # answers of the run so far


def read_scripts(paths: Iterable[Path]) -> list[Script]:
    """The recordings of files and folders, each with a name of its own.

    Raises:
        SettingsError: there is none.
        InvalidRequest: a file is no recording.
    """
    files = [file for path in paths for file in _files(path)]
    names = _names(files)
    if not files:
        raise SettingsError(
            "There is no recording here. Name files or folders that hold recordings "
            f"({', '.join(SUFFIXES)}); 'redraft record list' says where yours are."
        )
    return [read_script(file, names[at]) for at, file in enumerate(files)]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    return [path]


def _names(files: Sequence[Path]) -> list[str]:
    """The first part of each file's name; where two would be the same, with a number."""
    seen: dict[str, int] = {}
    names = []
    for file in files:
        name = file.name.partition(".")[0]
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return names


def jobs_of(
    scripts: Sequence[Script],
    run: Run,
    settings: LspSettings,
    limit: int | None = None,
    latency_ms: float | None = None,
    seed: int = 0,
) -> list[Job]:
    """What is left to play, and how."""
    chosen = sample(scripts, limit, seed)
    jobs = []
    for script in scripts:
        mine = [moment.id for moment in script.moments if moment.id in chosen]
        if run.missing(mine):
            made = [run.examples[id_] for id_ in mine if id_ in run.examples]
            known = [answer for each in made for answer in each.measured["answers"]]
            jobs.append(Job(script, frozenset(mine), settings, latency_ms, tuple(known)))
    return jobs


def replay_job(job: Job, ready: ReadyPredictor, on_example: OnExample) -> None:
    """Play one recording; ``on_example`` hears of each moment, of those that the run has too."""
    predictor = ReplayPredictor(ready.ask, ready.status, job.latency_ms)
    predictor.remember(job.known)
    scorer = Scorer(job.script, job.settings)

    def score(outcome: MomentResult) -> None:
        on_example(scorer.example(outcome))

    play(job.script, job.chosen, predictor, job.settings, score)


def replay_all(
    jobs: Sequence[Job],
    who: RunSpec,
    run: Run,
    progress: OnDone = quiet,
    processes: int = 1,
    ray_address: str | None = None,
) -> None:
    """Play them all into ``run``.

    Args:
        processes: side by side on this machine, each with the model in its memory and, unless
            ``who`` says otherwise, its share of the processors.
        ray_address: of a Ray cluster that plays them instead; "local" starts one here.

    Raises:
        RedraftError: the model is gone; what is done stays in the run.
    """
    asked = {id_ for job in jobs for id_ in job.chosen}
    total = len(run.examples.keys() | asked)
    progress(len(run.examples), total)

    def on_example(example: Example) -> None:
        if example.id not in run.examples:
            run.add(example)
            progress(len(run.examples), total)

    if not jobs:
        return
    if ray_address is None and (processes == 1 or len(jobs) == 1):
        with _opened(who) as ready:
            for job in jobs:
                replay_job(job, ready, on_example)
        return
    spread = _on_ray(jobs, who, ray_address) if ray_address else _in_processes(jobs, who, processes)
    with closing(spread):
        for lines in spread:
            for line in lines:
                on_example(line)


@contextmanager
def _opened(who: RunSpec) -> Iterator[ReadyPredictor]:
    ready = open_predictor(who)
    try:
        yield ready
    finally:
        ready.close()


# --- side by side --------------------------------------------------------------------------------

_READY_HERE: list[ReadyPredictor] = []  # of this process, where it is one of several


def _in_processes(jobs: Sequence[Job], who: RunSpec, processes: int) -> Lines:
    """The lines of each recording, in the order of the jobs."""
    start = multiprocessing.get_context("spawn")  # a fork would copy threads that are not there
    workers = min(processes, len(jobs))
    if who.threads is None:
        who = replace(who, threads=max(1, (os.cpu_count() or 1) // workers))
    with ProcessPoolExecutor(workers, start, initializer=_begin, initargs=(who,)) as pool:
        yield from pool.map(_lines, jobs)


def _begin(who: RunSpec) -> None:
    _READY_HERE.append(open_predictor(who))


def _lines(job: Job) -> list[Example]:
    return lines_of(job, _READY_HERE[0])


def lines_of(job: Job, ready: ReadyPredictor) -> list[Example]:
    """All lines of a recording."""
    lines: list[Example] = []
    replay_job(job, ready, lines.append)
    return lines


# --- on many machines ----------------------------------------------------------------------------


def _on_ray(jobs: Sequence[Job], who: RunSpec, address: str) -> Lines:
    """The same on a Ray cluster, whose machines need Redraft installed and reach the weights by
    themselves: one actor a job at most, as many at once as the cluster has processors for."""
    try:
        ray, util = import_silenced("ray"), import_silenced("ray.util")
    except ImportError as error:
        raise InstallError(
            f"Ray is not installed. Run {how_to_install('ray')}, or leave out --ray."
        ) from error

    try:
        ray.init(
            address=None if address == "local" else address,
            include_dashboard=False,
            log_to_driver=False,
        )
    except Exception as error:  # of no class of its own
        raise SettingsError(
            f"Ray at {address!r} cannot be used ({error}). Name the address of a running cluster, "
            "'local' to start one on this machine, or leave out --ray."
        ) from error
    try:
        at_once = max(1, int(ray.cluster_resources().get("CPU", 1)))
        made = ray.remote(_Actor)
        actors = [made.remote(who) for _ in range(min(at_once, len(jobs)))]
        pool = util.ActorPool(actors)
        yield from pool.map(lambda actor, job: actor.lines.remote(job), list(jobs))
    finally:
        ray.shutdown()


class _Actor:
    """A process somewhere, with the model in its memory."""

    def __init__(self, who: RunSpec) -> None:
        self._mind = open_predictor(who)

    def lines(self, job: Job) -> list[Example]:
        return lines_of(job, self._mind)
