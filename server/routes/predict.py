"""Redraft's own routes, ``/redraft/v1``: its records as versioned JSON, for ``RemotePredictor``.

With ``steps: true`` the answer is lines of JSON: each intermediate state, then the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web
from redraft.model.records import CanvasState, EditRequest, Prediction
from redraft.model.validation import Json
from redraft.model.wire import request_from_json, to_json

from ..http.bodies import SERVICE, json_response, read_question
from .respond import LINES, Dialect, Reply, respond

routes = web.RouteTableDef()


@routes.post("/redraft/v1/predict")
async def predict(http: web.Request) -> web.StreamResponse:
    """Answer a request with its prediction."""
    request, steps = await read_question(http, request_from_json)
    return await respond(http, AsItIs(request), Records(), steps)


@routes.get("/redraft/v1/status")
async def status(http: web.Request) -> web.Response:
    """Return the status of the model."""
    return json_response(to_json(await http.app[SERVICE].status()))


@dataclass(frozen=True, slots=True)
class AsItIs:
    """A request whose prediction is the answer, without filters."""

    request: EditRequest

    def answers(self, prediction: Prediction | None) -> list[Reply]:  # noqa: ARG002
        """Return a single empty answer: the dialect writes the prediction."""
        return [Reply("", "stop")]


class Records(Dialect):
    """Predictions and states as JSON."""

    media_type = LINES

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:  # noqa: ARG002
        """Return the prediction."""
        assert prediction is not None
        return to_json(prediction)

    def state(self, state: CanvasState) -> Json | None:
        """Return the state."""
        return to_json(state)

    def last(self, answers: list[Reply], prediction: Prediction | None) -> Iterator[Json | str]:
        """Yield the prediction."""
        yield self.whole(answers, prediction)
