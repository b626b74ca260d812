"""OpenAI's text completions with ``suffix``, and the list of models.

Prompts are recognised by their markers (``markers.py``); one made for another kind of model is
answered with empty text. A stream carries the text in one piece: all of a canvas's tokens are
denoised together, and none is certain before the last.
"""

from __future__ import annotations

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.records import CanvasState, Prediction
from redraft.model.wire import Fields, Json, check_text, json_type

from ..exchange import EVENT_STREAM, SERVICE, Stream, json_response, read_json
from ..service import Service
from .completion import Ask, Head, answers, check_model, model_names, read_ask, shown, usage
from .markers import Middle, recognise

routes = web.RouteTableDef()


@routes.post("/v1/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    fields = Fields(await read_json(http))
    ask = read_ask(fields, _middle(fields), service.settings)
    status = await service.status()
    check_model(ask.model, status, accepted=lambda name: False)
    head = Head.new(model_names(status)[0])
    if ask.stream:
        return await _stream(http, service, ask, head)
    prediction = await service.predict(ask.request) if ask.request else None
    choices = [
        _choice(index, text, finish)
        for index, (text, finish) in enumerate(answers(prediction, ask.newline))
    ]
    return json_response({**head.body(choices), "usage": usage(prediction)})


@routes.get("/v1/models")
async def models(http: web.Request) -> web.Response:
    names = model_names(await http.app[SERVICE].status())
    return json_response({"object": "list", "data": [_model(name) for name in names]})


@routes.get("/v1/models/{name}")
async def model(http: web.Request) -> web.Response:
    name = http.match_info["name"]
    check_model(name, await http.app[SERVICE].status(), accepted=lambda other: False)
    return json_response(_model(name))


def _model(name: str) -> Json:
    # The weights' age is not known here; clients only sort by it.
    return {"id": name, "object": "model", "created": 0, "owned_by": "redraft"}


def _middle(fields: Fields) -> tuple[str, str] | None:
    """The text before and after the cursor; ``None`` for another kind of model's prompt."""
    if fields.flag("echo", False):
        raise InvalidRequest("'echo' is not available. Leave it out.")
    prompt = _prompt(fields)
    if "suffix" in fields:  # then markers are the user's own text
        return prompt, fields.text("suffix")
    meant = recognise(prompt)
    return (meant.before, meant.after) if isinstance(meant, Middle) else None


def _prompt(fields: Fields) -> str:
    value = fields.raw("prompt")
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], str):
            kind = json_type(value[0]) if value else "nothing"
            raise InvalidRequest(
                f"'prompt' is an array of {len(value)} (first: {kind}). Send one string: token "
                "arrays and several prompts are not available."
            )
        return check_text(value[0], "prompt[0]")
    prompt: str = fields.text("prompt")
    return prompt


def _choice(index: int, text: str, finish: str | None) -> Json:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


async def _stream(http: web.Request, service: Service, ask: Ask, head: Head) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)

    def chunk(choices: list[Json], usage_: Json | None = None) -> Json:
        # With include_usage every chunk has the field, null but in the last.
        return head.body(choices) | ({"usage": usage_} if ask.include_usage else {})

    async def finish(prediction: Prediction | None) -> None:
        for index, (text, reason) in enumerate(answers(prediction, ask.newline)):
            await stream.send(chunk([_choice(index, text, reason)]))
        if ask.include_usage:
            await stream.send(chunk([], usage(prediction)))
        await stream.send("[DONE]")

    async def on_event(event: CanvasState | Prediction) -> None:
        if isinstance(event, Prediction):
            await finish(event)
        elif ask.diffusing:
            await stream.send(chunk([_choice(0, shown(event, ask.newline), None)]))

    if ask.request is None:
        await finish(None)
        return await stream.end()
    return await stream.follow(service, ask.request, on_event)
