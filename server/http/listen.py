"""Sockets and signals of an HTTP server."""

from __future__ import annotations

import asyncio
import errno
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web
from redraft.model.errors import SettingsError

from .connections import ConnectionLimits, Connections

#: Connections that the system keeps until they are accepted.
BACKLOG = 128
#: Seconds between two requests after which a connection is closed, as nginx has it.
IDLE_S = 75.0


@asynccontextmanager
async def listen(
    app: web.Application,
    *,
    host: str = "",
    port: int = 0,
    socket: Path | None = None,
    shutdown_s: float,
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[str]:
    """Listen on a Unix domain socket or else on ``host:port``, and yield the address.

    A handler is cancelled when its client leaves. At the end, running requests get
    ``shutdown_s`` seconds to finish.

    Args:
        limits: of connections; None: any number, and their first request may take any time.

    Raises:
        SettingsError: the port is in use, or the address is not one of this machine's.
    """
    connections = Connections(limits, time.monotonic) if limits else None
    if connections:
        app.middlewares.insert(0, connections.note)
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        shutdown_timeout=shutdown_s,
        access_log=None,
        auto_decompress=False,  # see bodies.py
        keepalive_timeout=IDLE_S,
    )
    await runner.setup()
    handlers = runner.server
    assert handlers is not None, "it is set up"
    accept: Callable[[], web.RequestHandler] = handlers
    loop, server = asyncio.get_running_loop(), None
    watching: asyncio.Task[None] | None = None
    if connections:
        accept = connections.protocol_factory(handlers)
        watching = asyncio.create_task(connections.watch(lambda: handlers.connections))
    # Not aiohttp's sites: they do not say when a connection opens, and to look for silent ones at
    # intervals wakes an idle process.
    try:
        if socket is not None:
            server = await loop.create_unix_server(accept, socket, backlog=BACKLOG)
            yield str(socket)
        else:
            try:
                server = await loop.create_server(accept, host, port, backlog=BACKLOG)
            except OSError as error:
                raise _cannot_listen(host, port, error) from error
            yield _url(host, server.sockets[0].getsockname()[1])
    finally:
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        if server is not None:
            server.close()
        await runner.cleanup()


async def check_free(host: str, port: int) -> None:
    """Refuse a port in use before a model is loaded for it.

    Raises:
        SettingsError: as :func:`listening` does.
    """
    loop = asyncio.get_running_loop()
    try:
        (await loop.create_server(asyncio.Protocol, host, port, start_serving=False)).close()
    except OSError as error:
        raise _cannot_listen(host, port, error) from error


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _cannot_listen(host: str, port: int, error: OSError) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return SettingsError(
            f"Port {port} on {host} is in use by another program, maybe another 'redraft serve'. "
            "Stop that one, or choose another port with --port."
        )
    if error.errno == errno.EACCES:
        return SettingsError(
            f"This user may not listen on port {port}. Choose one above 1023 with --port."
        )
    why = str(error.strerror or error).rpartition("): ")[2]  # behind asyncio's own words
    return SettingsError(
        f"Cannot listen on {host}, port {port}: {why}. "
        "Choose an address of this machine with --host."
    )


async def until_told_to_stop() -> None:
    """Wait for SIGINT or SIGTERM (Ctrl-C or Ctrl-Break on Windows)."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    names = (signal.SIGINT, signal.SIGTERM)
    try:
        for name in names:
            loop.add_signal_handler(name, stop.set)
    except NotImplementedError:  # Windows' loop
        for name in names:
            signal.signal(name, lambda *_: loop.call_soon_threadsafe(stop.set))
    await stop.wait()
