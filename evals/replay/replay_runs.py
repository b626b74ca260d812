"""Recordings replayed into one run: one after the other, in parallel, or on many machines.

Recordings are independent of each other and each is played in order, so the lines of a run are the
same in every mode. A run that is resumed asks only at the moments that it lacks.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from redraft.evals.sources.scripts import sample
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.learning.recorded_moments import Script
from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install
from redraft.model.silence import import_silenced

from ..example import Example
from ..predictors import ReadyPredictor, open_predictor
from ..run import OnDone, Run, quiet
from ..spec import RunSpec
from .player import play
from .scores import Scorer
from .simulated_predictor import ReplayPredictor


@dataclass(frozen=True, slots=True)
class Job:
    """Recording to play, with its chosen moments."""

    script: Script
    chosen: frozenset[str]  # ids of the moments to ask at


def examples_of(job: Job, spec: RunSpec, ready: ReadyPredictor) -> Iterator[Example]:
    """Play one recording; yield its moments."""
    settings = LspSettings(eagerness=spec.eagerness, quality=spec.quality)
    predictor = ReplayPredictor(ready.ask, ready.status, spec.latency_ms)
    yield from map(Scorer(job.script).example, play(job.script, job.chosen, predictor, settings))


def replay_all(
    scripts: Sequence[Script],
    spec: RunSpec,
    run: Run,
    progress: OnDone = quiet,
    processes: int = 1,
    ray_address: str | None = None,
) -> None:
    """Play what ``run`` lacks of the recordings into it.

    Args:
        processes: in parallel on this machine, each with the model in its memory and, unless
            ``spec`` names a number, its share of the processors.
        ray_address: of a Ray cluster that plays them instead; "local" starts one here.

    Raises:
        RedraftError: the model is gone; what is done stays in the run.
    """
    chosen = sample(scripts, spec.limit, spec.seed)
    left = [(s, chosen.intersection(run.find_missing(m.id for m in s.moments))) for s in scripts]
    jobs = [Job(script, frozenset(ids)) for script, ids in left if ids]
    total = len(run.examples.keys() | chosen)
    progress(len(run.examples), total)
    if not jobs:
        return
    with ExitStack() as opened:
        played: Iterator[Sequence[Example]] | Iterator[Iterator[Example]]
        if ray_address is not None:
            mapped = opened.enter_context(_on_ray(len(jobs), ray_address))
            played = mapped(partial(_examples, spec), jobs)
        elif processes > 1 and len(jobs) > 1:
            workers = min(processes, len(jobs))
            share = max(1, (os.cpu_count() or 1) // workers)
            start = multiprocessing.get_context("spawn")  # a fork would lack the threads
            pool = opened.enter_context(ProcessPoolExecutor(workers, start))
            each = replace(spec, threads=spec.threads or share)
            played = pool.map(partial(_examples, each), jobs)
        else:
            ready = open_predictor(spec)
            opened.callback(ready.close)
            played = (examples_of(job, spec, ready) for job in jobs)
        for examples in played:
            for example in examples:
                run.add(example)
                progress(len(run.examples), total)


_ready = cache(open_predictor)  # once in each process


def _examples(spec: RunSpec, job: Job) -> list[Example]:
    return list(examples_of(job, spec, _ready(spec)))


@contextmanager
def _on_ray(jobs: int, address: str) -> Iterator[Callable[..., Any]]:
    """Yield a ``map`` on a cluster, whose machines need Redraft installed and reach the weights.

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
    except Exception as error:  # Ray raises plain Exception
        raise SettingsError(
            f"Ray at {address!r} cannot be used ({error}). Name the address of a running cluster, "
            "'local' to start one on this machine, or leave out --ray."
        ) from error
    try:
        workers = max(1, min(jobs, int(ray.cluster_resources().get("CPU", 1))))
        with util.Pool(workers, ray_remote_args={"num_cpus": 1}) as pool:
            yield pool.imap
    finally:
        ray.shutdown()
