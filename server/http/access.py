"""Engine, settings and key of an application."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web
from redraft.model.errors import Unauthorized
from redraft.model.records import Predictor

from ..settings import Settings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ENGINE: web.AppKey[Predictor] = web.AppKey("engine")
SETTINGS: web.AppKey[Settings] = web.AppKey("settings", Settings)


def has_key(http: web.Request) -> bool:
    """Return whether a request has the key of its application, if there is one."""
    key = http.app[SETTINGS].key()
    if key is None:
        return True
    scheme, _, given = http.headers.get("Authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), key.encode())
    return scheme.lower() == "bearer" and right


@web.middleware
async def demand_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests without the key.

    Raises:
        Unauthorized: the key is missing or another.
    """
    if not has_key(request):
        raise Unauthorized(
            "This server demands its API key. Send it as 'Authorization: Bearer KEY'."
        )
    return await handler(request)
