"""Detection of an engine process that hangs.

The engine answers a status request at once, also while it computes. A process that does not answer
hangs, unless the machine is too busy to run it.
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

#: Seconds without an answer after which a process counts as hung: if it does nothing; and if it
#: computes, or waits for the disk or for processor time.
HUNG_S, BUSY_S = 5.0, 20.0

POLL_S = 0.05


def connect(endpoint: Endpoint) -> RemotePredictor:
    """Return a predictor for the engine at ``endpoint``. It connects at the first request."""
    address = Path(endpoint.address) if endpoint.socket else endpoint.address
    return RemotePredictor(address, endpoint.token)


async def reach(endpoint: Endpoint, *, end_hung: bool) -> RemotePredictor | None:
    """Return the engine at ``endpoint``, or None if it does not answer.

    Args:
        end_hung: end a process that hangs, instead of waiting for it.
    """
    remote = connect(endpoint)
    try:
        if not end_hung:
            await remote.status()
            return remote
        if await _answers(remote, endpoint):
            return remote
    except (EngineGone, Unauthorized):  # it crashed and left its record
        pass
    except BaseException:
        await remote.close()
        raise
    await remote.close()
    return None


async def end_if_hung(remote: RemotePredictor, endpoint: Endpoint) -> bool:
    """End the process if it hangs; return whether it did."""
    with suppress(RedraftError):
        return not await _answers(remote, endpoint)
    return False  # the connection is broken: the process is gone


def end_process(endpoint: Endpoint, end: Callable[[psutil.Process], None]) -> None:
    """Call ``end`` with the engine's process, if it still runs."""
    process = endpoint.process()
    with suppress(psutil.Error):
        if process is not None:
            end(process)


async def _answers(remote: RemotePredictor, endpoint: Endpoint) -> bool:
    """Return whether the process answers. If it hangs, it is killed.

    Raises:
        EngineGone, Unauthorized: there is no engine at the address, or another one.
    """
    process = endpoint.process()
    begun_s, used_s = time.monotonic(), _processor_s(process)
    while True:
        try:
            async with asyncio.timeout(POLL_S if _is_stopped(process) else HUNG_S):
                await remote.status()
            return True
        except TimeoutError:
            is_busy = _processor_s(process) > used_s or _is_waiting(process)
        if not is_busy or _is_stopped(process) or time.monotonic() - begun_s > BUSY_S:
            log.warning("the engine process %d hangs; ending it", endpoint.pid)
            end_process(endpoint, psutil.Process.kill)
            return False


def _is_stopped(process: psutil.Process | None) -> bool:
    """Return whether a signal stopped the process, so that it cannot answer."""
    return _status(process) == psutil.STATUS_STOPPED


def _is_waiting(process: psutil.Process | None) -> bool:
    """Return whether the process waits for processor time or for the disk."""
    return _status(process) in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)


def _status(process: psutil.Process | None) -> str:
    with suppress(psutil.Error):
        return str(process.status()) if process is not None else ""
    return ""


def _processor_s(process: psutil.Process | None) -> float:
    """Return the seconds of processor time that the process has used."""
    with suppress(psutil.Error):
        if process is not None:
            times = process.cpu_times()
            return float(times.user + times.system)
    return 0.0
