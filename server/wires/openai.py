"""OpenAI's text completions with ``suffix``.

Prompts are recognised by their markers (``model/prompts/registry.py``), infill and region rewrites
alike; one made for another kind of model is answered with empty text. A stream carries the text
line by line once it is whole: none of a canvas's tokens is certain before the last, but clients
that read streams (cursortab.nvim) take what comes at once for one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated

from aiohttp import web
from pydantic import AfterValidator, BeforeValidator
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import recognise
from redraft.model.prompts.zeta import ZETA1_END, ZETA1_START
from redraft.model.records import CanvasState, Prediction
from redraft.model.validation import Flag, Json, Text, brief, json_type, objection, read

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_question
from ..http.service import Service
from ..settings import Settings
from .answers import Answer
from .completion import (
    CompletionAsk,
    CompletionRequest,
    Head,
    answered,
    ask_for,
    behind_gap,
    check_model,
    loaded,
    usage,
    why,
)
from .feedback import LEDGER
from .guided import guided

routes = web.RouteTableDef()


@routes.post("/v1/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    ask = await read_question(
        http, lambda body: guided(_ask(read(Body, body), service.settings), body)
    )
    status = await service.status()
    check_model(ask.body.model, status)
    head = Head.new(loaded(status))
    if ask.body.stream:
        return await _stream(http, service, ask, head)
    request = ask.question.request
    prediction = await service.predict(request) if request else None
    answers = _choices(service, ask, prediction)
    http.app[LEDGER].given(head.id)
    choices = [_choice(index, one.text, one.finish) for index, one in enumerate(answers)]
    body = {**head.body(choices), "usage": usage(prediction), **why(answers[0])}
    return json_response(body)


def _one(prompt: object) -> object:
    if not isinstance(prompt, list) or (len(prompt) == 1 and isinstance(prompt[0], str)):
        return prompt[0] if isinstance(prompt, list) else prompt
    kind = json_type(prompt[0]) if prompt else "nothing"
    raise objection(
        f"is an array of {len(prompt)} (first: {kind}). Send one string: token arrays and several "
        "prompts are not available."
    )


def _no_echo(echo: bool) -> bool:
    if echo:
        raise objection("is not available. Leave it out.")
    return echo


def _no_logprobs(logprobs: object) -> object:
    if logprobs is not False:  # 0 asks for some as well
        raise objection(
            f"is {brief(logprobs)}, but probabilities of single tokens are not available. "
            "Leave it out."
        )
    return logprobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(CompletionRequest):
    prompt: Annotated[Text, BeforeValidator(_one)]
    suffix: Text | None = None
    echo: Annotated[Flag, AfterValidator(_no_echo)] = False
    logprobs: Annotated[object, AfterValidator(_no_logprobs)] = False


def _ask(body: Body, settings: Settings) -> CompletionAsk:
    if body.suffix is None:
        return ask_for(body, recognise(body.prompt), settings)
    return ask_for(body, Middle(body.prompt, behind_gap(body.suffix)), settings)  # no markers there


def _choices(service: Service, ask: CompletionAsk, prediction: Prediction | None) -> list[Answer]:
    """As many as were asked for. Where the model knows fewer, they come again from the first on:
    clients count on their number, and other servers repeat themselves at temperature 0 as well."""
    return [*islice(cycle(answered(service, ask.question, prediction)), ask.body.n)]


def _choice(index: int, text: str, finish: str | None) -> Json:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


def _lines(text: str, stop: Sequence[str]) -> list[str]:
    """The pieces of a stream: what stands before the first of ``stop``, line by line. Whoever stops
    at the end of a zeta 1 region shows the lines before as they come: its first mark is none."""
    ends = [at for word in stop if (at := text.find(word)) >= 0]
    text = text[: min(ends, default=len(text))]
    if any(ZETA1_END in word for word in stop):
        text = text.removeprefix(f"{ZETA1_START}\n")
    return text.splitlines(keepends=True) or [""]


async def _stream(
    http: web.Request, service: Service, ask: CompletionAsk, head: Head
) -> web.StreamResponse:
    stream = Stream(http, EVENT_STREAM)
    counted = ask.body.stream_options.include_usage

    def chunk(choices: list[Json], usage_: Json | None = None) -> Json:
        # With include_usage every chunk has the field, null but in the last.
        return head.body(choices) | ({"usage": usage_} if counted else {})

    async def finish(prediction: Prediction | None) -> None:
        http.app[LEDGER].given(head.id)
        for index, one in enumerate(_choices(service, ask, prediction)):
            *lines, last = [one.text] if ask.body.diffusing else _lines(one.text, ask.body.stop)
            for line in lines:
                await stream.send(chunk([_choice(index, line, None)]))
            await stream.send({**chunk([_choice(index, last, one.finish)]), **why(one)})
        if counted:
            await stream.send(chunk([], usage(prediction)))
        await stream.send("[DONE]")

    async def on_state(state: CanvasState) -> None:
        if ask.body.diffusing and (text := ask.question.state(state)) is not None:
            await stream.send(chunk([_choice(0, text, None)]))

    return await stream.answer(service, ask.question.request, finish, on_state)
