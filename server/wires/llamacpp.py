"""llama.cpp's infill, ``POST /infill``, as llama.vim and llama.vscode ask for it.

``n_predict: 0`` only warms the prefix cache with the other files. Sampler settings of llama.cpp
that mean nothing here are passed over.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated

from aiohttp import web
from redraft.model.prompts.excerpt import MAX_RELATED, related_file
from redraft.model.prompts.fim import Middle
from redraft.model.records import MAX_STOPS, CanvasState, EditRequest, Prediction, Stats
from redraft.model.validation import MAX_INTEGER, Exactly, Flag, Json, Number, Text, Whole, read

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_question
from ..http.service import Service
from .answers import Infilling, question
from .completion import INFILL_TOKENS, Sampling, check_model, loaded
from .guided import guided

#: How a prediction ended, as llama.cpp calls it.
STOP_TYPES = {"end": "eos", "stop": "word", "length": "limit", "unsure": "eos"}

routes = web.RouteTableDef()


@routes.post("/infill")
async def infill(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    ask = await read_question(
        http, lambda body: guided(_read(read(Body, body), service.settings.max_tokens), body)
    )
    status = await service.status()
    check_model(ask.body.model, status)
    request = ask.question.request
    if ask.body.n_predict == 0:
        warmed = await service.predict(dataclasses.replace(request, max_tokens=1))
        body = _body("", "limit", warmed.stats)
    else:
        body = _answer(ask, await within(service, request, ask.body.t_max_predict_ms))
    body["model"] = loaded(status)
    if ask.body.response_fields is not None:
        body = _chosen(body, ask.body.response_fields)
    if not ask.body.stream:
        return json_response(body)
    stream = Stream(http, EVENT_STREAM)
    await stream.send(body)
    return await stream.end()


@dataclass(frozen=True, slots=True)
class Extra:
    text: Text
    filename: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(Sampling):
    input_prefix: Text = ""
    prompt: Text = ""  # between prefix and cursor
    input_suffix: Text = ""
    input_extra: tuple[Extra, ...] = ()  # oldest first
    model: Text = ""
    n_predict: Annotated[int, Exactly(-1, MAX_INTEGER)] = INFILL_TOKENS
    n_indent: Whole = 0  # columns; the answer ends before a line that is indented by less
    t_max_predict_ms: Number = 0.0  # from the first denoise step on; 0: no limit
    response_fields: tuple[Text, ...] | None = None  # of the answer; None: all
    stream: Flag = False


@dataclass(frozen=True, slots=True)
class InfillAsk:
    """A request of this route, understood."""

    question: Infilling
    body: Body


def _read(body: Body, most_tokens: int) -> InfillAsk:
    wanted = most_tokens if body.n_predict < 0 else max(body.n_predict, 1)
    before, last = body.input_prefix + body.prompt, body.input_extra[-MAX_RELATED:]
    related = tuple(related_file(one.filename, one.text) for one in last)
    middle = Middle(before, body.input_suffix, related=related)
    asked = question(middle, body.template(wanted, MAX_STOPS))
    assert isinstance(asked, Infilling), "it is a middle"
    return InfillAsk(asked, body)


async def within(
    service: Service,
    request: EditRequest,
    limit_ms: float,
    clock: Callable[[], float] = time.monotonic,
) -> Prediction | CanvasState:
    """The prediction; or, once the time since the first denoise step is over and a line is whole,
    what is written by then. 0: no limit."""
    if not limit_ms:
        return await service.predict(request)
    begun_s: float | None = None
    async with aclosing(service.follow(request)) as events:
        async for event in events:
            if isinstance(event, Prediction):
                return event
            begun_s = clock() if begun_s is None else begun_s
            if (clock() - begun_s) * 1_000 >= limit_ms and "\n" in settled(event):
                return event
    raise AssertionError("a prediction ends the events")


def settled(state: CanvasState) -> str:
    """What is written up to the first masked position."""
    return "".join(piece or "" for piece in takewhile(lambda one: one is not None, state.pieces))


def _answer(ask: InfillAsk, end: Prediction | CanvasState) -> Json:
    if isinstance(end, CanvasState):
        whole = settled(end).rpartition("\n")[0]
        text = ask.question.settled(whole)
        return _body(keep_indented(text, ask.body.n_indent), "limit", Stats())
    text = ask.question.answers(end)[0].text
    kind = STOP_TYPES[end.candidates[0].finish] if end.candidates else "eos"
    return _body(keep_indented(text, ask.body.n_indent), kind, end.stats)


def keep_indented(text: str, least: int) -> str:
    """``text`` up to the first line, after its first, that is indented by less than ``least``."""
    lines = text.split("\n")
    for i, line in enumerate(lines[1:], 1):
        if line.strip() and len(line) - len(line.lstrip()) < least:
            return "\n".join(lines[:i]).rstrip("\r\n")
    return text


def _body(text: str, stop_type: str, stats: Stats) -> Json:
    new = stats.prompt_tokens - stats.reused_tokens
    read_ms = stats.prompt_ms + stats.prefill_ms
    return {
        "index": 0,
        "content": text,
        "stop": True,
        "stop_type": stop_type,
        "truncated": bool(stats.cut),  # of the context, not of the answer
        "tokens_cached": stats.reused_tokens,
        "tokens_evaluated": stats.prompt_tokens,
        "tokens_predicted": stats.canvas_tokens,
        "timings": {
            **_timings("prompt", new, read_ms),
            **_timings("predicted", stats.canvas_tokens, stats.denoise_ms),
        },
    }


def _timings(name: str, tokens: int, ms: float) -> Json:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": ms,
        f"{name}_per_token_ms": ms / tokens if tokens else 0.0,
        f"{name}_per_second": tokens / ms * 1_000 if ms else 0.0,
    }


def _chosen(body: Json, names: tuple[str, ...]) -> Json:
    """Only the fields of these names; ``timings/prompt_n`` keeps its whole name, as in llama.cpp,
    and a field that is not there is left out."""
    flat = {**body, **{f"timings/{key}": value for key, value in body["timings"].items()}}
    return {name: flat[name] for name in names if name in flat}
