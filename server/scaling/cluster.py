"""``redraft serve --ray``: replicas of the service on a Ray cluster, behind Ray Serve's proxy.

A session stays with the replica that has its prompts cached, by a consistent hash of the header
``x-session-id``. Replicas are added under load, up to a limit. A dead replica is replaced, and its
sessions go to the next one. New weights replace the replicas one by one. If all are full, the proxy
answers 503 with Retry-After.

A replica runs the application of ``redraft serve`` on a socket within its process, and passes each
request of the proxy to it.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from redraft.model.errors import InstallError, ModelNotReady, SettingsError
from redraft.model.records import Predictor
from redraft.model.release import how_to_install
from redraft.model.remote import until_ready
from redraft.model.silence import import_silenced

from ..app import create_app
from ..engine_process.host import load_engine
from ..http.listen import listen
from ..settings import Settings

#: The header with the name of the replica that answered.
REPLICA_HEADER = "x-redraft-replica"
#: Headers of a single connection (RFC 9110, 7.6.1).
_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "te"))


class Replica:
    """A server that takes requests once its model is ready.

    Args:
        name: of this replica.
    """

    def __init__(self, settings: Settings, predictor: Predictor, name: str) -> None:
        self._settings, self._predictor = settings, predictor
        self._name = name
        self._stack = AsyncExitStack()
        self._inside: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Wait for the model, and start the application.

        Raises:
            ModelNotReady: the model cannot be loaded; says why.
        """
        await until_ready(self._predictor)
        await self.check_health()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="redraft-"))
        Path(folder).chmod(0o700)
        socket = Path(folder) / "http.sock"
        app = create_app(self._predictor, self._settings)
        await self._stack.enter_async_context(
            listen(app, socket=socket, shutdown_s=self._settings.shutdown_s)
        )
        connector = aiohttp.UnixConnector(str(socket), limit=0)
        self._inside = await self._stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, auto_decompress=False)
        )

    async def check_health(self) -> None:
        """Check that the model can answer.

        Raises:
            ModelNotReady: it cannot; the cluster replaces this replica.
        """
        status = await self._predictor.status()
        if status.state in ("failed", "absent"):
            raise ModelNotReady(status.message or f"The model {status.model} is {status.state}.")

    async def answer(self, request: Any) -> Any:
        """Return the application's response to ``request``; both are objects of Starlette.

        The computation stops when this is cancelled or the response is dropped.
        """
        assert self._inside is not None
        responses = importlib.import_module("starlette.responses")
        path = request.url.path
        query = f"?{request.url.query}" if request.url.query else ""
        answer = await self._inside.request(
            request.method,
            f"http://localhost{path}{query}",
            data=await request.body() or None,
            headers=_passed_on(request.headers.items()),
            allow_redirects=False,
        )
        headers = _passed_on(answer.headers.items())
        return responses.StreamingResponse(
            _pieces(answer), answer.status, {**headers, REPLICA_HEADER: self._name}
        )

    async def stop(self) -> None:
        await self._stack.aclose()
        await self._predictor.close()


def _passed_on(headers: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in headers
        if name.lower() == "content-length" or name.lower() not in _HOP_BY_HOP
    }


async def _pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.content.iter_any():
            yield piece
        answer.release()
    finally:
        answer.close()  # stops the computation if the client has left


def process_name() -> str:
    """Return the name of a replica that was given none."""
    return f"process-{os.getpid()}"


#: Name of the application and of its deployment.
NAME = "redraft"
ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
#: Running requests per replica above which another replica is added.
TARGET = 2.0
#: Seconds of overload after which it is added.
UPSCALE_S = 10.0
#: Seconds between two health checks of a replica, and the time limit of each.
HEALTH_S, HEALTH_PATIENCE_S = 5.0, 10.0
#: Object store of a cluster that is started here: requests and answers are small.
OBJECT_BYTES = 100 * 2**20
#: Seconds in Retry-After of a 503.
RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Number and place of the replicas.

    Args:
        address: of a running cluster; "local" starts one on this machine.
        engine: what a replica runs, as ``module:callable``; tests choose another.
    """

    address: str
    replicas: int = 1
    most: int | None = None  # replicas under load; None: never more
    engine: str = "redraft.server.engine_process.open:open_engine"


class ReplicaActor:
    """The actor of a replica. Its constructor returns once the model is ready."""

    async def __init__(self, settings: str, key: str | None, engine: str) -> None:  # type: ignore[misc]
        chosen = Settings.model_validate_json(settings)
        if key is not None:
            chosen = chosen.with_options(api_key=key)
        predictor = load_engine(engine)(chosen)
        self._replica = Replica(chosen, predictor, _name_here())
        await self._replica.start()

    async def __call__(self, request: Any) -> Any:
        return await self._replica.answer(request)

    async def check_health(self) -> None:
        await self._replica.check_health()

    async def __del__(self) -> None:
        await self._replica.stop()


@contextmanager
def serve_on_cluster(settings: Settings, fleet: Fleet) -> Iterator[str]:
    """Run the service on the cluster, and yield its address.

    A cluster that is started here ends with the block. In another one the service stays, because
    others may use it; 'serve shutdown' ends it.

    Raises:
        InstallError: Ray Serve is not installed.
        SettingsError: the cluster cannot be used, or the replicas cannot be started.
    """
    settings.check_exposure()
    ray, serve = _libraries()
    local = fleet.address == "local"
    try:
        ray.init(
            address=None if local else fleet.address,
            # All at once twice: new weights come in before the old ones go.
            num_cpus=2 * (fleet.most or fleet.replicas) * (settings.threads or 1) + 1
            if local
            else None,
            include_dashboard=False,
            log_to_driver=False,
            ignore_reinit_error=True,
            object_store_memory=OBJECT_BYTES if local else None,
        )
    except Exception as error:  # Ray raises plain Exception
        raise SettingsError(
            f"Ray at {fleet.address!r} cannot be used ({error}). Name the address of a running "
            "cluster, or 'local' to start one on this machine."
        ) from error
    try:
        serve.start(http_options={"host": settings.host, "port": settings.port})
        deploy(settings, fleet)
        yield f"http://{settings.host}:{settings.port}"
    finally:
        if local:
            serve.shutdown()
        ray.shutdown()


def deploy(settings: Settings, fleet: Fleet) -> None:
    """Start the service, or replace its replicas one by one if it runs already.

    Raises:
        SettingsError: the replicas cannot be started; says why.
    """
    _, serve = _libraries()
    config = import_silenced("ray.serve.config")
    known = settings.model_dump_json(exclude={"api_key"})
    deployment = serve.deployment(name=NAME, **_options(settings, fleet, config))(ReplicaActor)
    try:
        serve.run(deployment.bind(known, settings.key(), fleet.engine), name=NAME, route_prefix="/")
    except RuntimeError as error:
        raise SettingsError(f"The replicas cannot be started: {error}") from error


def _options(settings: Settings, fleet: Fleet, config: Any) -> dict[str, Any]:
    number: dict[str, Any] = {"num_replicas": fleet.replicas}
    if fleet.most is not None and fleet.most > fleet.replicas:
        number = {
            "autoscaling_config": config.AutoscalingConfig(
                min_replicas=fleet.replicas,
                max_replicas=fleet.most,
                target_ongoing_requests=TARGET,
                upscale_delay_s=UPSCALE_S,
                look_back_period_s=2 * UPSCALE_S,
            )
        }
    gpus = {"num_gpus": 1} if settings.provider == "CUDA" else {}
    return {
        **number,
        "ray_actor_options": {"num_cpus": settings.threads or 1, **gpus},
        "max_ongoing_requests": settings.queue_length,
        "max_queued_requests": settings.queue_length,
        "backpressure_config": config.BackpressureConfig(
            status_code=503, retry_after_s=RETRY_AFTER_S
        ),
        "request_router_config": config.RequestRouterConfig(
            request_router_class=ROUTER, request_router_kwargs={"num_fallback_replicas": 1}
        ),
        "max_surge_percent": 100,  # the new one first
        "health_check_period_s": HEALTH_S,
        "health_check_timeout_s": HEALTH_PATIENCE_S,
        "graceful_shutdown_timeout_s": settings.shutdown_s + 5.0,
    }


def _libraries() -> tuple[Any, Any]:
    try:
        return import_silenced("ray"), import_silenced("ray.serve")
    except ImportError as error:
        raise InstallError(
            f"Ray Serve is not installed. Run {how_to_install('ray')}, or leave out --ray."
        ) from error


def _name_here() -> str:
    try:
        return str(import_silenced("ray.serve").get_replica_context().replica_id.unique_id)
    except Exception:  # outside of a cluster; Ray raises plain Exception
        return process_name()
