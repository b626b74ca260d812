"""Recordings replayed into one run: one after the other, side by side, or on many machines.

Recordings are independent of each other and each is played in order, so the lines of a run are the
same however it was spread. An interrupted run is played again with the answers it has, which costs
no model.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from redraft.lsp.settings import LspSettings
from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install
from redraft.model.silence import import_silenced

from ..example import Example
from ..predictors import ReadyPredictor, open_predictor
from ..run import OnDone, Run, quiet
from ..sources.recorded_moments import Script, sample
from ..spec import RunSpec
from .answers import ReplayPredictor
from .player import play
from .scores import Scorer

Examples = Generator[Example, None, None]


@dataclass(frozen=True, slots=True)
class Job:
    """One recording to play, with all that it takes."""

    script: Script
    chosen: frozenset[str]  # ids of the moments to ask at
    settings: LspSettings
    latency_ms: float | None  # None: as measured
    known: tuple[dict[str, Any], ...] = ()  # answers of the run so far


def jobs_of(
    scripts: Sequence[Script],
    run: Run,
    settings: LspSettings,
    limit: int | None = None,
    latency_ms: float | None = None,
    seed: int = 0,
) -> list[Job]:
    """Return what is left to play.

    Args:
        limit: moments at most, of all recordings.
        seed: of the sample.
    """
    chosen = sample(scripts, limit, seed)
    jobs = []
    for script in scripts:
        mine = [moment.id for moment in script.moments if moment.id in chosen]
        if run.missing(mine):
            done = [run.examples[id_] for id_ in mine if id_ in run.examples]
            known = [answer for each in done for answer in each.measured["answers"]]
            jobs.append(Job(script, frozenset(mine), settings, latency_ms, tuple(known)))
    return jobs


def examples_of(job: Job, ready: ReadyPredictor) -> Iterator[Example]:
    """Play one recording; yield its moments, those that the run has included."""
    predictor = ReplayPredictor(ready.ask, ready.status, job.latency_ms)
    predictor.remember(job.known)
    scorer = Scorer(job.script, job.settings)
    yield from map(scorer.example, play(job.script, job.chosen, predictor, job.settings))


def replay_all(
    jobs: Sequence[Job],
    spec: RunSpec,
    run: Run,
    progress: OnDone = quiet,
    processes: int = 1,
    ray_address: str | None = None,
) -> None:
    """Play all jobs into ``run``.

    Args:
        processes: side by side on this machine, each with the model in its memory and, unless
            ``spec`` names a number, its share of the processors.
        ray_address: of a Ray cluster that plays them instead; "local" starts one here.

    Raises:
        RedraftError: the model is gone; what is done stays in the run.
    """
    total = len(run.examples.keys() | {id_ for job in jobs for id_ in job.chosen})
    progress(len(run.examples), total)
    if not jobs:
        return
    if ray_address is None and (processes == 1 or len(jobs) == 1):
        played = _in_this_process(jobs, spec)
    else:
        played = _spread(jobs, spec, min(processes, len(jobs)), ray_address)
    with closing(played):
        for example in played:
            if example.id not in run.examples:
                run.add(example)
                progress(len(run.examples), total)


def _in_this_process(jobs: Sequence[Job], spec: RunSpec) -> Examples:
    ready = open_predictor(spec)
    try:
        for job in jobs:
            yield from examples_of(job, ready)
    finally:
        ready.close()


# --- side by side --------------------------------------------------------------------------------

_ready = cache(open_predictor)  # once in each process


def _examples(task: tuple[Job, RunSpec]) -> list[Example]:
    job, spec = task
    return list(examples_of(job, _ready(spec)))


def _spread(jobs: Sequence[Job], spec: RunSpec, workers: int, ray_address: str | None) -> Examples:
    """Yield the examples of each recording, in the order of the jobs."""
    if ray_address is not None:
        with _ray_pool(len(jobs), ray_address) as pool:
            for examples in pool.imap(_examples, [(job, spec) for job in jobs]):
                yield from examples
        return
    if spec.threads is None:
        spec = replace(spec, threads=max(1, (os.cpu_count() or 1) // workers))
    start = multiprocessing.get_context("spawn")  # a fork would copy threads that are not there
    with ProcessPoolExecutor(workers, start) as processes:
        for examples in processes.map(_examples, [(job, spec) for job in jobs]):
            yield from examples


@contextmanager
def _ray_pool(jobs: int, address: str) -> Iterator[Any]:
    """Open Ray's pool on a cluster, whose machines need Redraft installed and reach the weights.

    Its processes are as many as the cluster has processors for, and at most one for each job.
    """
    try:
        ray, util = import_silenced("ray"), import_silenced("ray.util.multiprocessing")
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
        workers = min(jobs, max(1, int(ray.cluster_resources().get("CPU", 1))))
        with util.Pool(workers, ray_remote_args={"num_cpus": 1}) as pool:
            yield pool
    finally:
        ray.shutdown()
