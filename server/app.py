"""The public HTTP application: its routes, access checks, metrics and limits."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from aiohttp import web
from redraft.model.records import Predictor

from .http.access import ENGINE, SETTINGS, Handler, demand_key
from .http.limits import Limits
from .http.prometheus import CONTENT_TYPE, METRICS, Metrics
from .http.responses import HttpProblem, as_json, translate_errors
from .routes import (
    chat_completions,
    feedback,
    llamacpp,
    mercury,
    models,
    ollama,
    openai,
    openapi,
    own_api,
    playground,
)
from .routes.decisions import decision_routes
from .settings import Settings, is_loopback

#: The modules with routes.
ROUTES = (
    openai,
    models,
    mercury,
    chat_completions,
    decision_routes,
    feedback,
    llamacpp,
    ollama,
    own_api,
    openapi,
    playground,
)

#: Answered without a key: the state alone, for load balancers and start scripts, and the files of
#: the playground, which are the same on every machine.
OPEN_ROUTES = frozenset({"/health", *playground.FILES})


def create_app(engine: Predictor, settings: Settings) -> web.Application:
    """Return the application, not listening yet. The caller closes the engine.

    Raises:
        SettingsError: other machines can reach the address and there is no API key.
    """
    settings.check_exposure()
    app = web.Application(
        client_max_size=settings.max_body_bytes,
        middlewares=[_count, _write_ollamas_errors, translate_errors, _guard],
    )
    app[SETTINGS], app[METRICS] = settings, Metrics()
    app[ENGINE] = Limits(engine, settings, app[METRICS])
    app[feedback.LEDGER] = feedback.Ledger(app[METRICS].registry)
    app.router.add_get("/metrics", metrics)
    app.on_response_prepare.append(decision_routes.name_request)
    for module in ROUTES:
        app.router.add_routes(module.routes)
    return app


async def metrics(http: web.Request) -> web.Response:
    """Return the figures for Prometheus."""
    return web.Response(body=http.app[METRICS].exposition(), headers={"Content-Type": CONTENT_TYPE})


@web.middleware
async def _count(request: web.Request, handler: Handler) -> web.StreamResponse:
    resource = request.match_info.route.resource
    route = resource.canonical if resource is not None else "unknown"
    status = "dropped"  # the handler was cancelled
    try:
        response = await handler(request)
        status = str(response.status)
        if not request.content.at_eof() or request.content.exception() is not None:
            response.force_close()  # the body was not read, and may be of any length
        return response
    finally:
        request.app[METRICS].requests.labels(route, status).inc()


@web.middleware
async def _write_ollamas_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    is_ollamas = response.status >= 400 and request.path.startswith(ollama.ADDRESS)
    if is_ollamas and isinstance(response, web.Response) and response.text:
        response.text = as_json({"error": json.loads(response.text)["error"]["message"]})
    return response


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.app[SETTINGS].key() is None:
        _check_local(request)
    elif request.path not in OPEN_ROUTES:
        return await demand_key(request, handler)
    return await handler(request)


def _check_local(http: web.Request) -> None:
    """Refuse web pages if there is no key, because a page that the user visits can reach loopback.

    The request of a page of another site has its Origin, and one by DNS rebinding has its Host.
    """
    host = _host_of(f"//{http.headers.get('Host', '')}")
    if not is_loopback(host):
        raise HttpProblem(
            403,
            "forbidden",
            f"The Host header names {host[:100]!r}, which is not this machine. Call "
            "http://127.0.0.1 or http://localhost, or give the server an API key.",
        )
    origin = http.headers.get("Origin")
    if origin is not None and not is_loopback(_host_of(origin)):
        raise HttpProblem(
            403,
            "forbidden",
            f"Web pages of {origin[:100]!r} may not call this server. Give it an API key to "
            "allow that.",
        )


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
