"""Redraft's own format: the records as versioned JSON, for ``RemotePredictor``.

``steps: true`` answers with lines of JSON: each canvas state as it comes, then the prediction.
"""

from __future__ import annotations

from aiohttp import web
from redraft.model.records import CanvasState, Prediction
from redraft.model.wire import request_from_json, to_json

from ..http.bodies import LINES, SERVICE, Stream, json_response, read_question

routes = web.RouteTableDef()


@routes.post("/redraft/v1/predict")
async def predict(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    request, steps = await read_question(http, request_from_json)
    if not steps:
        return json_response(to_json(await service.predict(request)))
    stream = Stream(http, LINES)

    async def finish(prediction: Prediction) -> None:
        await stream.send(to_json(prediction))

    async def on_state(state: CanvasState) -> None:
        await stream.send(to_json(state))

    return await stream.follow(service, request, finish, on_state)


@routes.get("/redraft/v1/status")
async def status(http: web.Request) -> web.Response:
    return json_response(to_json(await http.app[SERVICE].status()))
