"""JSON responses, and errors as responses."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Mapping

from aiohttp import web
from redraft.model.errors import ModelNotReady, Overloaded, RedraftError, Unauthorized
from redraft.model.validation import Json
from redraft.model.wire import error_to_json

from .access import Handler

log = logging.getLogger(__name__)

#: Seconds until a client may ask again while the model is loading.
NOT_READY_RETRY_S = 2
#: Bounds of the time after which a refused client may retry, seconds.
MIN_RETRY_S, MAX_RETRY_S = 1, 10


class HttpProblem(RedraftError):
    """A request that HTTP itself refuses, or a fault of ours.

    Args:
        ends_connection: the next request on it may begin anywhere.
    """

    def __init__(
        self,
        http_status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        ends_connection: bool = False,
    ) -> None:
        super().__init__(message)
        self.http_status, self.code = http_status, code
        self.headers, self.ends_connection = dict(headers or {}), ends_connection


def as_json(body: object) -> str:
    """Return JSON without spaces, because llama.vim looks for the text ``"content":"``."""
    return json.dumps(body, separators=(",", ":"))


def json_response(
    body: Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a response with a JSON body."""
    return web.json_response(body, status=status, headers=headers, dumps=as_json)


@web.middleware
async def translate_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors of a handler as JSON."""
    try:
        return await handler(request)
    except (ConnectionResetError, asyncio.CancelledError):
        raise  # the client has left
    except Exception as error:
        found = to_redraft_error(request, error)
    response = json_response(error_to_json(found), found.http_status, _headers(found))
    if isinstance(found, HttpProblem) and found.ends_connection:
        response.force_close()
    return response


def to_redraft_error(http: web.Request, error: Exception) -> RedraftError:
    """Return an error that can be answered. A fault of ours is logged."""
    if isinstance(error, RedraftError):
        return error
    if isinstance(error, web.HTTPException):
        return _http_problem(http, error)
    if isinstance(error, web.RequestPayloadError):
        return describe_bad_body(http, error)
    log.error("internal error while answering %s", http.path, exc_info=error)
    return HttpProblem(
        500,
        "internal_error",
        f"Redraft failed ({type(error).__name__}); the details are in its log. "
        "Please report it with them.",
    )


def describe_bad_body(http: web.Request, error: Exception) -> HttpProblem:
    """Return the error for a body that is cut off, or not in the encoding of its headers."""
    log.info("%s: %s", http.path, error)
    return HttpProblem(
        400,
        "invalid_body",
        "The body is not what its headers say: it is cut off, or its encoding is broken. "
        "Send it again, best without Content-Encoding.",
        ends_connection=True,
    )


def _http_problem(http: web.Request, error: web.HTTPException) -> HttpProblem:
    if error.status == 404:
        known = sorted({r.canonical for r in http.app.router.resources()})
        message = f"There is no route {http.path[:200]!r}. The routes are {', '.join(known)}."
        return HttpProblem(404, "not_found", message)
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"{http.path[:200]} does not answer {http.method[:20]}. Use {allowed}."
        return HttpProblem(405, "method_not_allowed", message, {"Allow": allowed})
    return HttpProblem(error.status, "http_error", error.text or error.reason)


def _headers(error: RedraftError) -> dict[str, str]:
    if isinstance(error, HttpProblem):
        return error.headers
    if isinstance(error, Overloaded):
        retry_s = math.ceil(min(max(error.retry_after_s, MIN_RETRY_S), MAX_RETRY_S))
        return {"Retry-After": str(retry_s)}
    if isinstance(error, ModelNotReady):
        return {"Retry-After": str(NOT_READY_RETRY_S)}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="redraft"'}
    return {}
