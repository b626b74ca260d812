"""The HTTP application: its routes, access checks, and the translation of errors."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from redraft.model.errors import ModelNotReady, Overloaded, RedraftError, Unauthorized
from redraft.model.records import Predictor
from redraft.model.wire import error_to_json

from .http.bodies import SERVICE, BrokenBody, as_json, error_response, fault_body, json_response
from .http.prometheus import CONTENT_TYPE, Metrics
from .http.service import Service
from .routes import (
    chat,
    decisions,
    feedback,
    llamacpp,
    mercury,
    models,
    ollama,
    openai,
    openapi,
    playground,
    predict,
)
from .settings import Settings, is_loopback

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: The modules with routes.
ROUTES = (
    openai,
    models,
    mercury,
    chat,
    decisions,
    feedback,
    llamacpp,
    ollama,
    predict,
    openapi,
    playground,
)

#: Answered without a key: the state alone, for load balancers and start scripts, and the files of
#: the playground, which are the same on every machine.
OPEN_ROUTES = frozenset({"/health", *playground.FILES})

#: Seconds until a client may ask again while the model is loading.
NOT_READY_RETRY_S = 2


def create_app(predictor: Predictor, settings: Settings) -> web.Application:
    """Return the application, not listening yet. The caller closes the predictor.

    Raises:
        SettingsError: other machines can reach the address and there is no API key.
    """
    settings.check_exposure()
    app = web.Application(
        client_max_size=settings.max_body_bytes,
        middlewares=[_count, _translate_errors, _guard],
    )
    metrics_ = Metrics()
    app[SERVICE] = Service(predictor, settings, metrics_)
    app[feedback.LEDGER] = feedback.Ledger(metrics_.registry)
    app.router.add_get("/health", health)
    app.router.add_get("/metrics", metrics)
    for module in ROUTES:
        app.router.add_routes(module.routes)
    return app


async def health(http: web.Request) -> web.Response:
    """Answer 200 once requests are answered, and 503 with its progress before.

    The name of the model and the message, which may name files of this machine, are only for
    clients that may call the other routes.
    """
    status = await http.app[SERVICE].status()
    body: dict[str, Any] = {"status": status.state, "progress": status.progress}
    key = http.app[SERVICE].settings.key()
    if key is None or _has_key(http, key):
        body |= {"model": status.model, "provider": status.provider, "message": status.message}
    if status.can_answer:
        return json_response(body)
    return json_response(body, status=503, headers={"Retry-After": str(NOT_READY_RETRY_S)})


async def metrics(http: web.Request) -> web.Response:
    """Return the figures for Prometheus."""
    return web.Response(
        body=http.app[SERVICE].metrics.exposition(), headers={"Content-Type": CONTENT_TYPE}
    )


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
        request.app[SERVICE].metrics.requests.labels(route, status).inc()


@web.middleware
async def _translate_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (ConnectionResetError, asyncio.CancelledError):
        raise  # the client has left
    except Exception as error:
        response = _translated(request, error)
    if request.path.startswith(ollama.ADDRESS) and response.text:
        response.text = as_json({"error": json.loads(response.text)["error"]["message"]})
    return response


def _translated(http: web.Request, error: Exception) -> web.Response:
    if isinstance(error, RedraftError):
        return json_response(error_to_json(error), error.http_status, _headers(error))
    if isinstance(error, web.HTTPException):
        return _http_error(http, error)
    if isinstance(error, web.RequestPayloadError | BrokenBody):
        log.info("%s: %s", http.path, error)
        response = error_response(
            400,
            "invalid_body",
            "The body is not what its headers say: it is cut off, or its encoding is broken. "
            "Send it again, best without Content-Encoding.",
        )
        response.force_close()  # the next request may begin anywhere
        return response
    return json_response(fault_body(http, error), status=500)


def _headers(error: RedraftError) -> dict[str, str]:
    if isinstance(error, Overloaded):
        return {"Retry-After": str(math.ceil(error.retry_after_s))}
    if isinstance(error, ModelNotReady):
        return {"Retry-After": str(NOT_READY_RETRY_S)}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="redraft"'}
    return {}


def _http_error(http: web.Request, error: web.HTTPException) -> web.Response:
    if error.status == 404:
        known = sorted({r.canonical for r in http.app.router.resources()})
        message = f"There is no route {http.path[:200]!r}. The routes are {', '.join(known)}."
        return error_response(404, "not_found", message)
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"{http.path[:200]} does not answer {http.method[:20]}. Use {allowed}."
        return error_response(405, "method_not_allowed", message, {"Allow": allowed})
    codes = {
        403: "forbidden",
        408: "body_timeout",
        413: "body_too_large",
        415: "unsupported_encoding",
    }
    code, text = codes.get(error.status, "http_error"), error.text or error.reason
    accepts = {"Accept-Encoding": error.headers["Accept-Encoding"]} if error.status == 415 else None
    return error_response(error.status, code, text, accepts)


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    key = request.app[SERVICE].settings.key()
    if key is None:
        _check_local(request)
    elif request.path not in OPEN_ROUTES and not _has_key(request, key):
        raise Unauthorized(
            "This server demands its API key. Send it as 'Authorization: Bearer KEY'."
        )
    return await handler(request)


def _has_key(http: web.Request, key: str) -> bool:
    scheme, _, given = http.headers.get("Authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), key.encode())
    return scheme.lower() == "bearer" and right


def _check_local(http: web.Request) -> None:
    """Refuse web pages if there is no key, because a page that the user visits can reach loopback.

    The request of a page of another site has its Origin, and one by DNS rebinding has its Host.
    """
    host = _host_of(f"//{http.headers.get('Host', '')}")
    if not is_loopback(host):
        raise web.HTTPForbidden(
            text=f"The Host header names {host[:100]!r}, which is not this machine. Call "
            "http://127.0.0.1 or http://localhost, or give the server an API key."
        )
    origin = http.headers.get("Origin")
    if origin is not None and not is_loopback(_host_of(origin)):
        raise web.HTTPForbidden(
            text=f"Web pages of {origin[:100]!r} may not call this server. Give it an API key to "
            "allow that."
        )


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
