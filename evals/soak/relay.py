"""Stands between a language server and the real server and remembers what text the model was asked
about: what the language server believes is in the editor."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web


class Relay:
    """Passes everything on.

    Args:
        url: of the real server.
    """

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url, self._http = url, http
        self.texts: list[str] = []  # asked about since this was last cleared

    async def pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == "/redraft/v1/predict":
            asked = json.loads(body)["request"]
            self.texts.append(asked["text"])
        async with self._http.request(
            request.method,
            f"{self._url}{request.path}",
            data=body or None,
            headers={"Content-Type": "application/json"},
        ) as answer:
            return web.Response(
                body=await answer.read(), status=answer.status, content_type=answer.content_type
            )


@asynccontextmanager
async def spying(url: str) -> AsyncIterator[tuple[Relay, str]]:
    """A relay before the server at ``url``, and its own URL."""
    async with aiohttp.ClientSession() as http:
        relay = Relay(url, http)
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", relay.pass_on)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield relay, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
