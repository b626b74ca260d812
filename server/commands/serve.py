"""``redraft serve``: the engine of this process behind HTTP, or engines of a Ray cluster, until a
signal stops it."""

from __future__ import annotations

import asyncio

from redraft.model.choice import usual_model
from redraft.model.records import Predictor
from redraft.model.weights.provide import check_known

from ..app import create_app
from ..engine_process.open import open_engine
from ..http.connections import ConnectionLimits
from ..http.listen import check_free, listening, until_told_to_stop
from ..settings import Settings
from .console import err

#: Seconds between two looks at a model that is loading.
LOOK_S = 0.5


async def run_server(settings: Settings) -> None:
    """Serves until SIGINT or SIGTERM.

    Raises:
        SettingsError: the address demands a key, is in use, or is not this machine's; or there is
            no such variant.
        UnknownModel: there is no such model.
    """
    settings.check_exposure()
    check_known(usual_model(settings.model), settings.variant)
    check_free(settings.host, settings.port)
    predictor = open_engine(settings)
    try:
        app = create_app(predictor, settings)
        async with listening(
            app,
            host=settings.host,
            port=settings.port,
            shutdown_s=settings.shutdown_s,
            limits=ConnectionLimits(settings.max_connections),
        ) as url:
            err.print(f"Redraft listens at {url} (Ctrl-C stops it)", markup=False)
            telling = asyncio.create_task(_tell_when_ready(predictor))
            try:
                await until_told_to_stop()
            finally:
                telling.cancel()
            err.print("stopping", markup=False)
    finally:
        await predictor.close()


async def run_cluster(settings: Settings, address: str, replicas: int, most: int | None) -> None:
    """The same on a Ray cluster.

    Raises:
        InstallError: Ray Serve is not installed.
        SettingsError, UnknownModel: as :func:`run_server`; or the cluster cannot be used.
    """
    from ..scaling.cluster import Fleet, deployed

    settings.check_exposure()
    check_known(usual_model(settings.model), settings.variant)
    check_free(settings.host, settings.port)
    err.print(f"starting {replicas} on Ray, {address}", markup=False)
    with deployed(settings, Fleet(address, replicas, most)) as url:
        err.print(f"Redraft listens at {url} (Ctrl-C stops it)", markup=False)
        await until_told_to_stop()
        err.print("stopping", markup=False)


async def _tell_when_ready(predictor: Predictor) -> None:
    """Each change of the model's state, once; a failed load may be tried again by a request."""
    told = ""
    while True:
        status = await predictor.status()
        provider = f" on {status.provider}" if status.provider else ""
        detail = f": {status.message}" if status.message and status.state == "failed" else ""
        line = f"{status.model}{provider}: {status.state}{detail}"
        if line != told:
            err.print(line, markup=False)
            told = line
        await asyncio.sleep(LOOK_S)
