"""``redraft serve --ray``: replicas of the service on a Ray cluster, behind Ray Serve's proxy.

A session stays with the replica that has its prompts cached: Ray Serve's consistent hash over the
header ``x-session-id``. Replicas are added while there is more to do than they should have, up to a
number; a dead one is replaced, and its sessions go to the next on the ring. New weights are brought
in replica by replica, each before the one it replaces goes. Where all are full, the proxy says 503
with Retry-After. Knows nothing of HTTP; see ``replica.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redraft.model.errors import InstallError, SettingsError
from redraft.model.release import how_to_install
from redraft.model.silence import import_silenced

from ..engine_process.host import load_engine
from ..engine_process.rendezvous import DEFAULT_ENGINE
from ..settings import Settings
from .replica import Replica, process_name

#: Of the application and of its one deployment in the cluster.
NAME = "redraft"
ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
#: Requests that one replica should have under way; with more, another is added.
TARGET = 2.0
#: Seconds of too much to do after which it is: less than people take to notice.
UPSCALE_S = 10.0
#: Seconds: between two looks at a replica's health, and how long it may take to say so.
HEALTH_S, HEALTH_PATIENCE_S = 5.0, 10.0
#: Of a cluster that is started here: requests and answers are small.
OBJECT_BYTES = 100 * 2**20
#: Seconds after which a client comes again that was told 503.
RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many replicas, and where.

    Args:
        address: of a running cluster; "local" starts one on this machine.
        engine: what a replica runs, as ``module:callable``; other than the default in tests.
    """

    address: str
    replicas: int = 1
    most: int | None = None  # replicas under load; None: never more
    engine: str = DEFAULT_ENGINE


class ReplicaActor:
    """What Ray Serve makes of each replica: its constructor returns once the model answers."""

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
def deployed(settings: Settings, fleet: Fleet) -> Iterator[str]:
    """The service on the cluster: where it listens. A cluster that was started here ends with the
    block; in another one the service stays, for others may use it ('serve shutdown' ends it).

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
    except Exception as error:  # of no class of its own
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
    """Put the service there, or change it replica by replica where it runs already.

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
    except Exception:  # outside of a cluster; of no class of its own
        return process_name()
