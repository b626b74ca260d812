"""The HTTP application of the engine process: our own records, for this user's clients alone.

It has no limits of connections: who can reach it has its token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web
from redraft.model.records import Predictor

from ..http.access import ENGINE, SETTINGS, Handler, demand_key
from ..http.responses import translate_errors
from ..routes import own_api
from ..settings import Settings


def engine_app(engine: Predictor, token: str, activity: Activity) -> web.Application:
    """Return the application, not listening yet.

    Args:
        token: what clients send as their key.
        activity: counts the requests of clients with the token.
    """
    # Not the user's settings: limits for clients of ``redraft serve`` do not bind the editors.
    limits = Settings.model_validate({"api_key": token})
    app = web.Application(
        client_max_size=limits.max_body_bytes,
        middlewares=[translate_errors, demand_key, activity.count],
    )
    app[ENGINE], app[SETTINGS] = engine, limits
    app.router.add_routes(own_api.routes)
    app.router.add_get("/redraft/v1/attend", activity.attend)
    app.on_shutdown.append(activity.leave)
    return app


class Activity:
    """The time for which the engine has had neither requests nor attending clients."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = clock()
        self._running = 0
        self._changed = asyncio.Event()  # the first request began, or the last one ended
        self._leaving = asyncio.Event()

    def idle_s(self) -> float:
        """Return the seconds since the last request ended; 0 while one runs."""
        return 0.0 if self._running else self._clock() - self._last_s

    async def until_idle(self, idle_s: float) -> None:
        """Wait until there was no request for ``idle_s`` seconds. Nothing else wakes it."""
        while (rest_s := idle_s - self.idle_s()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._running else rest_s):
                    await self._changed.wait()

    @web.middleware
    async def count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count a request while it runs."""
        self._running += 1
        self._changed.set()
        try:
            return await handler(request)
        finally:
            self._running -= 1
            self._last_s = self._clock()
            self._changed.set()

    async def attend(self, _request: web.Request) -> web.Response:
        """Answer when the engine leaves. An open request keeps it from leaving when idle."""
        await self._leaving.wait()
        return web.Response()

    async def leave(self, _app: web.Application) -> None:
        """Answer the clients that attend."""
        self._leaving.set()
