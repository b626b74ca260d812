"""OpenAI's text completions with ``suffix``.

Prompts are recognised by their markers (``wires/prompts/markers.py``), infill and region rewrites
alike; one made for another kind of model is answered with empty text. A stream carries the text in
one piece: all of a canvas's tokens are denoised together, and none is certain before the last.
"""

from __future__ import annotations

from itertools import cycle, islice

from aiohttp import web
from redraft.model.engine.record_json import Fields, Json, brief, check_text, json_type
from redraft.model.errors import InvalidRequest
from redraft.model.records import CanvasState, Prediction

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_body
from ..http.service import Service
from ..settings import Settings
from .answers import Answer
from .completion import (
    Ask,
    Head,
    answered,
    check_model,
    loaded,
    read_ask,
    read_suffix,
    usage,
    why,
)
from .feedback import LEDGER
from .guided import guided
from .prompts.markers import Middle, Rewrite, Unknown, recognise

routes = web.RouteTableDef()


@routes.post("/v1/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    ask = await read_body(http, lambda body: guided(_ask(Fields(body), service.settings), body))
    status = await service.status()
    check_model(ask.model, status)
    head = Head.new(loaded(status))
    if ask.stream:
        return await _stream(http, service, ask, head)
    request = ask.question.request
    prediction = await service.predict(request) if request else None
    answers = _choices(service, ask, prediction)
    http.app[LEDGER].given(head.id)
    choices = [_choice(index, one.text, one.finish) for index, one in enumerate(answers)]
    body = {**head.body(choices), "usage": usage(prediction), **why(answers[0])}
    return json_response(body)


def _ask(fields: Fields, settings: Settings) -> Ask:
    if fields.flag("echo", False):
        raise InvalidRequest("'echo' is not available. Leave it out.")
    if "logprobs" in fields and fields.raw("logprobs") is not False:  # 0 asks for some as well
        raise InvalidRequest(
            f"'logprobs' is {brief(fields.raw('logprobs'))}, but probabilities of single tokens "
            "are not available. Leave it out."
        )
    return read_ask(fields, _meaning(fields), settings)


def _meaning(fields: Fields) -> Middle | Rewrite | Unknown:
    prompt = _prompt(fields)
    if "suffix" in fields:  # then markers are the user's own text
        return Middle(prompt, read_suffix(fields))
    return recognise(prompt)


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


def _choices(service: Service, ask: Ask, prediction: Prediction | None) -> list[Answer]:
    """As many as were asked for. Where the model knows fewer, they come again from the first on:
    clients count on their number, and other servers repeat themselves at temperature 0 as well."""
    return [*islice(cycle(answered(service, ask.question, prediction)), ask.choices)]


def _choice(index: int, text: str, finish: str | None) -> Json:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


async def _stream(http: web.Request, service: Service, ask: Ask, head: Head) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)

    def chunk(choices: list[Json], usage_: Json | None = None) -> Json:
        # With include_usage every chunk has the field, null but in the last.
        return head.body(choices) | ({"usage": usage_} if ask.include_usage else {})

    async def finish(prediction: Prediction | None) -> None:
        http.app[LEDGER].given(head.id)
        for index, one in enumerate(_choices(service, ask, prediction)):
            choices = [_choice(index, one.text, one.finish)]
            await stream.send({**chunk(choices), **why(one)})
        if ask.include_usage:
            await stream.send(chunk([], usage(prediction)))
        await stream.send("[DONE]")

    async def on_event(event: CanvasState | Prediction) -> None:
        if isinstance(event, Prediction):
            await finish(event)
        elif ask.diffusing and (text := ask.question.state(event)) is not None:
            await stream.send(chunk([_choice(0, text, None)]))

    if ask.question.request is None:
        await finish(None)
        return await stream.end()
    return await stream.follow(service, ask.question.request, on_event)
