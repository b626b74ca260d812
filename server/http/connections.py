"""Closes silent connections, so that there is room for clients with requests.

A connection with a running request is never closed. A connection is closed if its first request is
not whole in time, or if there are too many and it has been silent longest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from .access import Handler

#: Seconds from a change to the check that it causes; more changes meanwhile cause no other one.
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a server's connections."""

    connections: int = 512
    header_s: float = 10.0  # until the headers of the first request are whole


class Connection(Protocol):
    """aiohttp's, one for each socket."""

    def force_close(self) -> None: ...


class Connections:
    """The open connections, and since when each is silent."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._busy: Counter[object] = Counter()  # requests under way
        self._silent: dict[object, tuple[float, bool]] = {}  # since when; was there a request?
        self._changed = asyncio.Event()

    def protocol_factory(self, handlers: web.Server) -> Callable[[], web.RequestHandler]:
        """Return what accepts a connection, and notes it."""

        def accept() -> web.RequestHandler:
            self._changed.set()
            return handlers()

        return accept

    @web.middleware
    async def note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.protocol
        self._busy[connection] += 1
        try:
            return await handler(request)
        finally:
            self._busy[connection] -= 1
            if not self._busy[connection]:
                del self._busy[connection]
            self._silent[connection] = self._clock(), True
            self._changed.set()

    async def watch(self, connected: Callable[[], Iterable[Connection]]) -> None:
        """Close silent connections until cancelled. Without connections nothing wakes it."""
        while True:
            self._changed.clear()
            for connection in self.to_close(connected()):
                connection.force_close()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s()):
                    await self._changed.wait()
            await asyncio.sleep(LOOK_S)

    def _rest_s(self) -> float | None:
        """Return the seconds until a silent connection has to go; None: there is none."""
        now = self._clock()
        rests = [
            since + self._limits.header_s - now
            for connection, (since, has_asked) in self._silent.items()
            if not has_asked and connection not in self._busy
        ]
        return min(rests, default=None)

    def to_close(self, connected: Iterable[Connection]) -> list[Connection]:
        """Return the connections to close."""
        now, limits = self._clock(), self._limits
        known: dict[object, tuple[float, bool]] = {}
        idle: list[tuple[float, bool, Connection]] = []
        for connection in connected:
            since, asked = known[connection] = self._silent.get(connection, (now, False))
            if connection not in self._busy:
                idle.append((since, asked, connection))
        idle.sort(key=lambda one: one[0])
        self._silent = known  # closed connections are dropped
        excess = len(known) - limits.connections
        return [
            connection
            for order, (since, asked, connection) in enumerate(idle)
            if order < excess or (not asked and now - since > limits.header_s)
        ]
