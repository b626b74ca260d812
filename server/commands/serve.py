"""``redraft serve``: an engine in this process behind HTTP, or engines on a Ray cluster.

And ``redraft stop``, which ends the engine processes that editors share.
"""

from __future__ import annotations

import asyncio
import time

import psutil
from redraft.model.choice import explain_answers, is_declined, usual_model
from redraft.model.records import Predictor
from redraft.model.weights.store import check_known

from ..app import create_app
from ..engine_process.liveness import end_process
from ..engine_process.open import open_engine
from ..engine_process.rendezvous import find_running_engines
from ..http.connections import ConnectionLimits
from ..http.listen import check_free, listen, until_told_to_stop
from ..settings import Settings
from .console import err, out

#: Seconds between two checks of a model that is loading.
LOOK_S = 0.5

#: Seconds that an engine process gets to end, besides the time its running requests get.
STOP_PATIENCE_S = 2.0


async def run_server(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        SettingsError: the address needs a key, is in use, or is not this machine's; or there is
            no such variant.
        UnknownModel: there is no such model.
    """
    settings.check_exposure()
    check_known(usual_model(settings.model), settings.variant)
    await check_free(settings.host, settings.port)
    predictor = open_engine(settings)
    try:
        app = create_app(predictor, settings)
        async with listen(
            app,
            host=settings.host,
            port=settings.port,
            shutdown_s=settings.shutdown_s,
            limits=ConnectionLimits(settings.max_connections),
        ) as url:
            _print_address(url)
            telling = asyncio.create_task(tell_when_ready(predictor))
            try:
                await until_told_to_stop()
            finally:
                telling.cancel()
            err.print("stopping", markup=False)
    finally:
        await predictor.close()


async def run_cluster(settings: Settings, address: str, replicas: int, most: int | None) -> None:
    """Serve on a Ray cluster until SIGINT or SIGTERM.

    Raises:
        InstallError: Ray Serve is not installed.
        SettingsError, UnknownModel: as :func:`run_server`; or the cluster cannot be used.
    """
    from ..scaling.cluster import Fleet, serve_on_cluster

    settings.check_exposure()
    check_known(usual_model(settings.model), settings.variant)
    await check_free(settings.host, settings.port)
    err.print(f"starting {replicas} on Ray, {address}", markup=False)
    with serve_on_cluster(settings, Fleet(address, replicas, most)) as url:
        _print_address(url)
        await until_told_to_stop()
        err.print("stopping", markup=False)


def stop_engines(settings: Settings) -> int:
    """End this user's engine processes of any model and build; return how many there were."""
    engines = list(find_running_engines(settings))
    for engine in engines:
        end_process(engine, psutil.Process.terminate)
    deadline = time.monotonic() + settings.shutdown_s + STOP_PATIENCE_S
    for engine in engines:
        process = engine.process()
        if process is not None:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except psutil.TimeoutExpired:  # it hangs
                end_process(engine, psutil.Process.kill)
        name = engine.model or "unknown model"
        out.print(f"stopped engine process {engine.pid} ({name})", markup=False)
    return len(engines)


def _print_address(url: str) -> None:
    err.print(f"Redraft listens at {url} (Ctrl-C stops it)", markup=False)
    err.print(f"To try it, open {url}/ in a browser", markup=False)


async def tell_when_ready(predictor: Predictor) -> None:
    """Print each change of the model's state, and once each what there is to say of a larger one.

    A request may retry a failed load.
    """
    printed, about_larger = "", ""
    while True:
        status = await predictor.status()
        provider = f" on {status.provider}" if status.provider else ""
        detail = f": {status.message}" if status.message and status.state == "failed" else ""
        line = f"{status.model}{provider}: {status.state}{detail}"
        if line != printed:
            err.print(line, markup=False)
            printed = line
        if status.about_larger not in ("", about_larger):
            about_larger = status.about_larger  # a declined one too: the disk is asked once
            if not is_declined(status.larger):
                answers = explain_answers(status.larger) if status.larger else ""
                err.print(f"{about_larger} {answers}".rstrip(), markup=False)
        await asyncio.sleep(LOOK_S)
