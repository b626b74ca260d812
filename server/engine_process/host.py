"""The engine process: one engine for all editors of a user, on a local socket with a private token.

Started by ``client.py``, never by hand: ``python -P -m redraft.server.engine_process.host
--settings JSON``. Lives as long as it is used, plus ``idle_exit_s``. Whoever holds the rendezvous'
lock is the engine; a second one started in a race finds the lock taken and leaves at once.
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
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psutil
from aiohttp import web
from filelock import BaseFileLock
from redraft.model.errors import RedraftError, SettingsError
from redraft.model.records import Predictor
from redraft.model.release import RELEASE

from ..app import create_app
from ..http.bodies import json_response
from ..http.connections import ConnectionLimits
from ..http.listen import listening, until_told_to_stop
from ..settings import SERVE_LIMITS, Settings
from .rendezvous import DEFAULT_ENGINE, Endpoint, Rendezvous, began

log = logging.getLogger(__name__)

#: Seconds to wait for the lock: a client that looks whether it is taken holds it for an instant.
LOCK_PATIENCE_S = 1.0

LOG_BYTES, LOG_FILES = 1_000_000, 3


class Activity:
    """When the engine was last wanted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._running = 0

    def begin(self) -> None:
        self._running += 1

    def end(self) -> None:
        self._running -= 1
        self._last = self._clock()

    def idle_s(self) -> float:
        return 0.0 if self._running else self._clock() - self._last


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="redraft.server.engine_process.host", description="engine process"
    )
    parser.add_argument("--settings", required=True, help="settings as JSON")
    parser.add_argument("--engine", default=DEFAULT_ENGINE, help="module:callable")
    options = parser.parse_args(arguments)
    settings = Settings.model_validate_json(options.settings)
    meeting = Rendezvous.of(settings)
    _log_to(meeting)
    lock = _take(meeting)
    if lock is None:
        log.info("another engine process was faster; leaving")
        return 0
    try:
        asyncio.run(_run(meeting, settings, options.engine))
    except RedraftError as error:
        log.error("%s", error)
        print(error, file=sys.stderr)  # noqa: T201 - the starter shows it
        return 1
    except Exception:
        log.exception("the engine process failed")
        raise  # also into the start log
    finally:
        lock.release()
    return 0


def _take(meeting: Rendezvous) -> BaseFileLock | None:
    """The lock, unless its holder turns out to be an engine or stays for long."""
    give_up = time.monotonic() + LOCK_PATIENCE_S
    while (lock := meeting.take()) is None and time.monotonic() < give_up:
        if meeting.read() is not None:
            return None
        time.sleep(0.02)
    return lock


async def _run(meeting: Rendezvous, settings: Settings, engine: str) -> None:
    meeting.withdraw()  # what a crashed engine left; ours is the lock, so nobody uses it
    predictor = load_engine(engine)(settings)
    token = secrets.token_urlsafe(32)
    limits = {name: Settings.model_fields[name].default for name in SERVE_LIMITS}
    settings = settings.with_options(host="127.0.0.1", port=0, api_key=token, **limits)
    app = create_app(predictor, settings)
    activity, leave = Activity(), asyncio.Event()
    _add_engine_routes(app, activity, leave)
    os.umask(0o077)  # the socket as well is for this user alone
    try:
        async with listening(
            app,
            host="127.0.0.1",
            port=0,
            socket=meeting.socket,
            shutdown_s=settings.shutdown_s,
            limits=ConnectionLimits(settings.max_connections),
        ) as address:
            meeting.publish(_endpoint(address, meeting, token))
            log.info("engine process %d, release %s, at %s", os.getpid(), RELEASE, address)
            try:
                log.info("leaving: %s", await _reason_to_leave(activity, leave, settings))
            finally:
                meeting.withdraw()  # before the socket closes: nobody shall join a leaving engine
    finally:
        await predictor.close()


def _endpoint(address: str, meeting: Rendezvous, token: str) -> Endpoint:
    """Where this process is found."""
    me = psutil.Process()
    return Endpoint(
        address=address,
        socket=meeting.socket is not None,
        token=token,
        pid=me.pid,
        started=began(me),
        release=RELEASE,
    )


async def _reason_to_leave(activity: Activity, leave: asyncio.Event, settings: Settings) -> str:
    async def idle() -> str:
        while (rest_s := settings.idle_exit_s - activity.idle_s()) > 0:
            await asyncio.sleep(min(rest_s, 5.0) + 0.01)
        return f"idle for {settings.idle_exit_s:g} s"

    async def asked() -> str:
        await leave.wait()
        return "asked to, for a newer release"

    async def told() -> str:
        await until_told_to_stop()
        return "told to stop by a signal"

    reasons = [asyncio.create_task(reason()) for reason in (idle, asked, told)]
    done, _ = await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
    for reason in reasons:
        reason.cancel()
    return done.pop().result()


def _add_engine_routes(app: web.Application, activity: Activity, leave: asyncio.Event) -> None:
    @web.middleware
    async def note_use(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        activity.begin()
        try:
            return await handler(request)
        finally:
            activity.end()

    async def leave_now(request: web.Request) -> web.Response:
        leave.set()
        return json_response({"leaving": True})

    app.middlewares.append(note_use)  # innermost: a caller without the token is no use
    app.router.add_post("/redraft/v1/leave", leave_now)


def load_engine(name: str) -> Callable[[Settings], Predictor]:
    """The factory that ``module:callable`` names.

    Raises:
        SettingsError: there is none.
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


def _log_to(meeting: Rendezvous) -> None:
    handler: logging.Handler = logging.NullHandler()
    with suppress(OSError):  # a full or read-only disk must not keep the engine from running
        handler = logging.handlers.RotatingFileHandler(
            meeting.log_file, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.raiseExceptions = False  # nobody reads stderr


if __name__ == "__main__":
    raise SystemExit(main())
