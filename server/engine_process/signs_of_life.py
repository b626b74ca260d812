"""Does the engine process live? One that hangs is ended, so that another can take its place.

No computation holds up a sign of life, so one that gives none hangs, unless the machine has no time
for it: that shows in the process itself, and it gets longer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from redraft.model.errors import EngineGone, RedraftError, Unauthorized
from redraft.model.remote import RemotePredictor

from .rendezvous import Endpoint

log = logging.getLogger(__name__)

#: Seconds without a sign after which a process hangs: one that does nothing; and one that computes,
#: waits for the disk or for its turn on a busy machine.
HUNG_S, BUSY_S = 5.0, 20.0

POLL_S = 0.05


async def reach(endpoint: Endpoint) -> RemotePredictor | None:
    """The engine at ``endpoint``, or ``None`` where it does not answer."""
    remote = _remote(endpoint)
    try:
        await remote.status()
    except (EngineGone, Unauthorized):
        await remote.close()
        return None  # it crashed and left its record
    except BaseException:
        await remote.close()
        raise
    return remote


async def reach_living(endpoint: Endpoint) -> RemotePredictor | None:
    """The same; one that hangs is ended."""
    remote = _remote(endpoint)
    try:
        if await _answers(remote, endpoint):
            return remote
    except (EngineGone, Unauthorized):
        pass
    except BaseException:
        await remote.close()
        raise
    await remote.close()
    return None


async def end_if_hung(remote: RemotePredictor, endpoint: Endpoint) -> bool:
    """Whether the process lived, showed no sign of it and was ended. One that is gone shows that by
    itself."""
    with suppress(RedraftError):
        return not await _answers(remote, endpoint)
    return False


async def _answers(remote: RemotePredictor, endpoint: Endpoint) -> bool:
    """Whether it shows a sign of life; it is ended where it does not.

    Raises:
        EngineGone, Unauthorized: it is another one, or none.
    """
    process = endpoint.process()
    began_s, used_s = time.monotonic(), _used_s(process)
    while True:
        try:
            async with asyncio.timeout(POLL_S if _is_stopped(process) else HUNG_S):
                await remote.status()
            return True
        except TimeoutError:
            busy = _used_s(process) > used_s or _waits_for_its_turn(process)
        if not busy or _is_stopped(process) or time.monotonic() - began_s > BUSY_S:
            log.warning("the engine process %d hangs; ending it", endpoint.pid)
            end_process(endpoint, psutil.Process.kill)
            return False


def end_process(endpoint: Endpoint, end: Callable[[psutil.Process], None]) -> None:
    process = endpoint.process()
    with suppress(psutil.Error):
        if process is not None:
            end(process)


def _remote(endpoint: Endpoint) -> RemotePredictor:
    address = Path(endpoint.address) if endpoint.socket else endpoint.address
    return RemotePredictor(address, endpoint.token)


def _is_stopped(process: psutil.Process | None) -> bool:
    """Whether a signal stopped it, so that it cannot answer however long one waits."""
    return _status(process) == psutil.STATUS_STOPPED


def _waits_for_its_turn(process: psutil.Process | None) -> bool:
    """Of the processor or of the disk."""
    return _status(process) in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)


def _status(process: psutil.Process | None) -> str:
    with suppress(psutil.Error):
        return str(process.status()) if process is not None else ""
    return ""


def _used_s(process: psutil.Process | None) -> float:
    """Seconds of processor time since its start."""
    with suppress(psutil.Error):
        if process is not None:
            used = process.cpu_times()
            return float(used.user + used.system)
    return 0.0
