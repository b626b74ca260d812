"""The engine process: one engine for all editors of a user, on a local socket with a private token.

``client.py`` starts it: ``python -P -m redraft.server.engine_process.host --settings JSON``. It
ends ``idle_exit_s`` after its last client and request. The process that holds the rendezvous' lock
is the engine; another that was started at the same time ends at once.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import logging.handlers
import os
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil
from filelock import BaseFileLock
from redraft.model.errors import RedraftError, SettingsError
from redraft.model.records import Predictor
from redraft.model.release import BUILD, RELEASE

from ..http.listen import listen, until_told_to_stop
from ..settings import Settings
from .engine_app import Activity, engine_app
from .rendezvous import DEFAULT_ENGINE, Endpoint, Rendezvous, when_started

log = logging.getLogger(__name__)

#: Seconds to wait for the lock: a client that checks it holds it for an instant.
LOCK_PATIENCE_S = 1.0

LOG_BYTES, LOG_FILES = 1_000_000, 3


def load_engine(name: str) -> Callable[[Settings], Predictor]:
    """Return the function that ``module:callable`` names.

    Raises:
        SettingsError: there is no such function.
    """
    module, _, attribute = name.partition(":")
    try:
        factory: Callable[[Settings], Predictor] = getattr(
            importlib.import_module(module), attribute
        )
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"The engine {name!r} cannot be loaded: {error}. Name it as module:callable."
        ) from error
    return factory


def main(arguments: list[str] | None = None) -> int:
    """Run the engine process until it is idle or a signal stops it; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="redraft.server.engine_process.host", description="engine process"
    )
    parser.add_argument("--settings", required=True, help="settings as JSON")
    parser.add_argument("--build", default=BUILD, help="build of the client")
    parser.add_argument("--engine", default=DEFAULT_ENGINE, help="module:callable")
    options = parser.parse_args(arguments)
    settings = Settings.model_validate_json(options.settings)
    meeting = Rendezvous.of(settings)
    log_to(meeting)
    if options.build != BUILD:  # the client would look for this engine in another folder
        return _fail("Redraft was upgraded while the editor was open. Restart the editor.")
    lock = _take(meeting)
    if lock is None:
        log.info("another engine process was faster; leaving")
        return 0
    try:
        asyncio.run(_run(meeting, settings, options.engine))
    except RedraftError as error:
        return _fail(str(error))
    except Exception:
        log.exception("the engine process failed")
        raise  # also into the start log
    finally:
        lock.release()
    return 0


def _fail(why: str) -> int:
    log.error("%s", why)
    print(why, file=sys.stderr)  # noqa: T201 - the client shows it
    return 1


def _take(meeting: Rendezvous) -> BaseFileLock | None:
    """Return the held lock, or None if another engine holds it."""
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while (lock := meeting.take()) is None and time.monotonic() < deadline:
        if meeting.read() is not None:
            return None
        time.sleep(0.02)
    return lock


async def _run(meeting: Rendezvous, settings: Settings, engine: str) -> None:
    meeting.withdraw()  # what a crashed engine left
    predictor = load_engine(engine)(settings)
    token = secrets.token_urlsafe(32)
    activity = Activity()
    app = engine_app(predictor, token, activity)
    os.umask(0o077)  # the socket, too, is for this user alone
    try:
        async with listen(
            app,
            host="127.0.0.1",
            port=0,
            socket=meeting.socket,
            shutdown_s=settings.shutdown_s,
        ) as address:
            me = psutil.Process()
            has_socket = meeting.socket is not None
            meeting.publish(
                Endpoint(
                    address, has_socket, token, me.pid, when_started(me), RELEASE, settings.model
                )
            )
            log.info("engine process %d, release %s, at %s", me.pid, RELEASE, address)
            try:
                log.info("leaving: %s", await _reason_to_leave(activity, settings.idle_exit_s))
            finally:
                meeting.withdraw()  # before the socket closes, so that no client joins any more
    finally:
        await predictor.close()


async def _reason_to_leave(activity: Activity, idle_exit_s: float) -> str:
    """Return once the engine is idle for ``idle_exit_s`` or a signal stops it."""
    signalled = asyncio.create_task(until_told_to_stop())
    idle = asyncio.create_task(activity.until_idle(idle_exit_s))
    try:
        done, _ = await asyncio.wait((signalled, idle), return_when=asyncio.FIRST_COMPLETED)
        return "told to stop by a signal" if signalled in done else f"idle for {idle_exit_s:g} s"
    finally:
        signalled.cancel()
        idle.cancel()


def log_to(meeting: Rendezvous) -> None:
    """Log to the engine's file, which never grows without end."""
    handler: logging.Handler = logging.NullHandler()
    with suppress(OSError):  # the engine runs without a log on a full or read-only disk
        handler = logging.handlers.RotatingFileHandler(
            meeting.log_file,
            maxBytes=LOG_BYTES,
            backupCount=LOG_FILES,
            encoding="utf-8",
            errors="backslashreplace",  # a name of a file need not be Unicode
        )
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.raiseExceptions = False  # its standard error is discarded


if __name__ == "__main__":
    raise SystemExit(main())
