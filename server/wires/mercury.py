"""Mercury's fill-in-the-middle completions, ``POST /v1/fim/completions``.

Every choice has both ``text`` and ``message``, so that clients of Codestral's format, which has the
same route, are served as well. ``diffusing`` streams the whole answer after each denoise step.
"""

from __future__ import annotations

from aiohttp import web
from redraft.model.records import CanvasState, Prediction
from redraft.model.wire import Fields, Json

from ..exchange import EVENT_STREAM, SERVICE, Stream, json_response, read_json
from ..service import Service
from .completion import Ask, Head, answers, check_model, model_names, read_ask, shown, usage

#: Names that clients of this route have built in and their users cannot change.
FOREIGN_NAMES = ("mercury", "codestral")

routes = web.RouteTableDef()


@routes.post("/v1/fim/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    fields = Fields(await read_json(http))
    middle = (fields.text("prompt"), fields.text("suffix", ""))
    ask = read_ask(fields, middle, service.settings)
    status = await service.status()
    check_model(ask.model, status, accepted=lambda name: name.startswith(FOREIGN_NAMES))
    head = Head.new(ask.model or model_names(status)[0])
    assert ask.request is not None, "there is always a middle on this route"
    if ask.stream:
        return await _stream(http, service, ask, head)
    prediction = await service.predict(ask.request)
    choices = [
        _choice(index, text, finish)
        for index, (text, finish) in enumerate(answers(prediction, ask.newline))
    ]
    return json_response({**head.body(choices), "usage": usage(prediction)})


def _choice(index: int, text: str, finish: str | None) -> Json:
    return {
        "index": index,
        "text": text,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
    }


def _piece(index: int, text: str, finish: str | None) -> Json:
    """A choice of a stream; clients of chat streams look for ``delta``."""
    return {**_choice(index, text, finish), "delta": {"role": "assistant", "content": text}}


async def _stream(http: web.Request, service: Service, ask: Ask, head: Head) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)

    async def on_event(event: CanvasState | Prediction) -> None:
        if isinstance(event, CanvasState):
            if ask.diffusing:
                await stream.send(head.body([_piece(0, shown(event, ask.newline), None)]))
            return
        choices = [
            _piece(index, text, finish)
            for index, (text, finish) in enumerate(answers(event, ask.newline))
        ]
        await stream.send({**head.body(choices), "usage": usage(event)})
        await stream.send("[DONE]")

    assert ask.request is not None, "there is always a middle on this route"
    return await stream.follow(service, ask.request, on_event)
