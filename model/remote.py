"""A ``Predictor`` whose engine runs in another process or on another machine.

Speaks ``/redraft/v1`` over aiohttp's client, on a TCP port or a Unix domain socket. Dropping the
connection cancels the request. ``redraft.server.engine_process.client`` starts engines and retries.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

from .errors import EngineGone, InvalidRequest, SettingsError
from .records import CanvasState, EditRequest, ModelStatus, Prediction, Predictor, StepCallback
from .validation import parse_json
from .wire import error_from_json, from_json, request_to_json

T = TypeVar("T")

#: Seconds to reach the server: on this machine or in this network it answers at once or never.
CONNECT_TIMEOUT_S = 5.0

#: Seconds without a single byte before the server counts as gone: longer than a cold prefill of
#: the largest context behind a full queue on a slow CPU.
SILENCE_TIMEOUT_S = 300.0

#: Groups requests for a load balancer: they continue one another's prompts, which only one server
#: has in its prefix cache. Random, so that it identifies no user.
SESSION_HEADER = "x-session-id"

#: Longest line of a stream, bytes.
MAX_LINE_BYTES = 2**26

#: Seconds a status may take; it never waits for a computation.
STATUS_TIMEOUT_S = 10.0
#: Seconds between two looks at a model that is loading.
LOOK_S = 0.03
_QUICK = aiohttp.ClientTimeout(total=STATUS_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S)


async def until_ready(
    predictor: Predictor,
    on_status: Callable[[ModelStatus], None] = lambda _: None,
    deadline_s: float = math.inf,
) -> ModelStatus:
    """Wait while the model is fetched or loaded, and return its last status.

    Args:
        on_status: called with each status.
        deadline_s: monotonic seconds from which a model that still loads is not waited for.
    """
    while True:
        status = await predictor.status()
        on_status(status)
        is_coming = status.state in ("downloading", "loading")
        if not is_coming or time.monotonic() >= deadline_s:
            return status
        await asyncio.sleep(LOOK_S)


class RemotePredictor:
    """Predictions from the Redraft server at ``address``.

    Args:
        address: ``http(s)://host[:port][/prefix]`` or the path of a Unix domain socket.
        token: the server's API key; ``None`` where it has none.
        session: name for load balancers; None: a new one.
    """

    def __init__(
        self, address: str | Path, token: str | None = None, session: str | None = None
    ) -> None:
        self._socket = address if isinstance(address, Path) else None
        self._base = "http://localhost" if self._socket else _checked_url(str(address))
        self._headers = {SESSION_HEADER: session or secrets.token_hex(8)}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    @property
    def address(self) -> str:
        return str(self._socket or self._base)

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        body = json.dumps(request_to_json(request, steps=on_step is not None)).encode()
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=SILENCE_TIMEOUT_S
        )
        async with self._response("POST", "/redraft/v1/predict", timeout, body) as response:
            if on_step is not None and response.status == 200:
                return await _follow(response, on_step)
            return _read(await _answer(response), Prediction)

    async def status(self) -> ModelStatus:
        async with self._response("GET", "/redraft/v1/status", _QUICK) as response:
            return _read(await _answer(response), ModelStatus)

    async def attend(self) -> None:
        """Stay connected until the engine process leaves. Until then it does not end when idle.

        Raises:
            EngineGone: the connection broke.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        async with self._response("GET", "/redraft/v1/attend", timeout) as response:
            await response.read()

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, timeout: aiohttp.ClientTimeout, body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; whatever fails until its answer is read means that the engine is gone."""
        if self._closed:
            raise EngineGone("This connection to the engine was closed. Open a new one.")
        if self._session is None:  # made late: a session belongs to the loop that uses it
            connector = aiohttp.UnixConnector(str(self._socket)) if self._socket else None
            self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        headers = {"Content-Type": "application/json"} if body else None
        try:
            async with self._session.request(
                method,
                f"{self._base}{path}",
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                read_bufsize=MAX_LINE_BYTES,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, _UnreadableError) as error:
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> EngineGone:
        """Return what to do where nothing listens at the address, or where it does not answer."""
        why = str(error) or type(error).__name__
        if self._socket is not None:
            advice = "Check with 'redraft doctor' that it runs."
            return EngineGone(
                f"The Redraft engine at {self.address} does not answer ({why}). {advice}"
            )
        where = urlsplit(self._base)
        is_near = where.hostname in ("127.0.0.1", "::1", "localhost")
        if isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error
            is_os = (cause.errno or 0) > 0  # else of the name server
            why = os.strerror(cause.errno or 0) if is_os else cause.strerror or str(cause)
            advice = f"Check the address, and that 'redraft serve' runs on {where.hostname}."
            if is_near:
                start = f"redraft serve --port {where.port or 80}"
                advice = f"Start '{start}', or the ssh tunnel to another machine's"
        else:  # something accepts connections: a server that ends, another program, or a tunnel
            advice = "Check that 'redraft serve' runs there"
            advice += ", at the other end if this is a tunnel." if is_near else "."
        return EngineGone(f"The Redraft server at {self.address} does not answer ({why}). {advice}")


class _UnreadableError(Exception):
    """The answer is not one of a Redraft server."""


def _read_json(body: bytes, status: int) -> Any:
    try:
        return parse_json(body)
    except InvalidRequest:
        start = body[:60].decode("utf-8", "replace")
        raise _UnreadableError(
            f"HTTP {status} with {start!r} is no Redraft answer; is another program there?"
        ) from None


def _read(data: object, kind: type[T]) -> T:
    try:
        return from_json(data, kind)
    except InvalidRequest as error:
        raise _UnreadableError(str(error)) from None


async def _answer(response: aiohttp.ClientResponse) -> Any:
    data = _read_json(await response.read(), response.status)
    if response.status != 200:
        raise error_from_json(data)
    return data


async def _follow(response: aiohttp.ClientResponse, on_step: StepCallback) -> Prediction:
    async for line in response.content:
        data = _read_json(line, response.status)
        if "error" in data:
            raise error_from_json(data)
        if "state" not in data:
            return _read(data, Prediction)
        on_step(_read(data, CanvasState))
    raise _UnreadableError("the stream ended before the prediction")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises where it is no number
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"{url!r} is not a server's address. Write it like http://127.0.0.1:7331."
        )
    return url.rstrip("/")
