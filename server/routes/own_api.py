"""Routes that the engine process and ``redraft serve`` share: ``/redraft/v1`` and ``/health``.

``/redraft/v1`` speaks our records as versioned JSON, for ``RemotePredictor``. With ``steps: true``
the answer is lines of JSON: each intermediate state, then the prediction.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web
from redraft.model.wire import request_from_json, to_json

from ..http.access import ENGINE, has_key
from ..http.bodies import read_body
from ..http.responses import NOT_READY_RETRY_S, json_response
from ..http.streams import LINES, follow, send_stream

routes = web.RouteTableDef()


@routes.post("/redraft/v1/predict")
async def predict(http: web.Request) -> web.StreamResponse:
    """Answer a request with its prediction."""
    request, steps = await read_body(http, request_from_json)
    engine = http.app[ENGINE]
    if steps:
        return await send_stream(http, LINES, follow(engine, request), lambda one: (to_json(one),))
    return json_response(to_json(await engine.predict(request)))


@routes.get("/redraft/v1/status")
async def status(http: web.Request) -> web.Response:
    """Return the status of the model."""
    return json_response(to_json(await http.app[ENGINE].status()))


@routes.get("/health")
async def health(http: web.Request) -> web.Response:
    """Answer 200 once requests are answered, and 503 with its progress before.

    The name of the model and the message, which may name files of this machine, are only for
    clients that may call the other routes.
    """
    status = await http.app[ENGINE].status()
    body: dict[str, Any] = {"status": status.state, "progress": status.progress}
    if has_key(http):
        body |= {"model": status.model, "provider": status.provider, "message": status.message}
    if status.can_answer:
        return json_response(body)
    return json_response(body, status=503, headers={"Retry-After": str(NOT_READY_RETRY_S)})
