"""One replica of the service on a Ray cluster: the engine, and our application before it.

The application is the one of ``redraft serve``, with all its formats, limits and errors. It listens
on a socket of this process alone, and what the cluster's proxy brings is passed on to it, piece by
piece. Imports nothing of Ray: a replica is made by ``cluster.py``.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
from redraft.model.errors import ModelNotReady
from redraft.model.records import Predictor

from ..app import create_app
from ..http.connections import ConnectionLimits
from ..http.listen import listening
from ..settings import Settings

#: Seconds between two looks at a model that is loading.
LOOK_S = 0.1
#: Names the replica that answered, for tests and for whoever reads logs.
REPLICA_HEADER = "x-redraft-replica"
#: Of one connection alone, not of what it carries (RFC 9110, 7.6.1).
_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "te"))


class Replica:
    """Takes requests once its model is ready.

    Args:
        name: of this replica.
    """

    def __init__(self, settings: Settings, predictor: Predictor, name: str) -> None:
        self._settings, self._predictor = settings, predictor
        self._name = name
        self._stack = AsyncExitStack()
        self._inside: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """
        Raises:
            ModelNotReady: the model cannot be loaded; says why.
        """
        while (await self._predictor.status()).state in ("loading", "downloading"):
            await asyncio.sleep(LOOK_S)
        await self.check_health()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="redraft-"))
        Path(folder).chmod(0o700)
        socket = Path(folder) / "http.sock"
        app = create_app(self._predictor, self._settings)
        settings = self._settings
        await self._stack.enter_async_context(
            listening(
                app,
                socket=socket,
                shutdown_s=settings.shutdown_s,
                limits=ConnectionLimits(settings.max_connections),
            )
        )
        connector = aiohttp.UnixConnector(str(socket), limit=0)
        self._inside = await self._stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, auto_decompress=False)
        )

    async def check_health(self) -> None:
        """
        Raises:
            ModelNotReady: nothing can be answered here; the cluster puts another in its place.
        """
        status = await self._predictor.status()
        if status.state in ("failed", "absent"):
            raise ModelNotReady(status.message or f"The model {status.model} is {status.state}.")

    async def answer(self, request: Any) -> Any:
        """What the application answers to ``request``, both as Starlette has them. Cancelling this,
        or giving the answer up, stops the computation."""
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
        answer.close()  # where nobody wants the rest: the computation stops


def process_name() -> str:
    """Of a replica that nobody named."""
    return f"process-{os.getpid()}"
