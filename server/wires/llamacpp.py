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

from aiohttp import web
from redraft.model.engine.record_json import Fields, Json, check_text
from redraft.model.records import (
    MAX_STOPS,
    CanvasState,
    EditRequest,
    Prediction,
    RelatedFile,
    Stats,
)

from ..http.bodies import EVENT_STREAM, SERVICE, Stream, json_response, read_body
from ..http.service import Service
from .answers import Infilling, question
from .completion import INFILL_TOKENS, check_model, loaded, read_sampling, read_stop
from .guided import guided
from .prompts.markers import Middle
from .prompts.regions import MAX_RELATED, related_file

#: How a prediction ended, as llama.cpp calls it.
STOP_TYPES = {"end": "eos", "stop": "word", "length": "limit", "unsure": "eos"}

routes = web.RouteTableDef()


@routes.post("/infill")
async def infill(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    ask = await read_body(
        http, lambda body: guided(_read(Fields(body), service.settings.max_tokens), body)
    )
    status = await service.status()
    check_model(ask.model, status)
    request = ask.question.request
    if ask.only_warm:
        warmed = await service.predict(dataclasses.replace(request, max_tokens=1))
        body = _body("", "limit", warmed.stats)
    else:
        body = _answer(ask, await within(service, request, ask.limit_ms))
    body["model"] = loaded(status)
    if ask.chosen is not None:
        body = _chosen(body, ask.chosen)
    if not ask.stream:
        return json_response(body)
    stream = Stream(http, EVENT_STREAM)
    await stream.send(body)
    return await stream.end()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of this route, understood."""

    question: Infilling
    model: str
    only_warm: bool  # read the other files into the prefix cache, answer nothing
    indent: int  # columns; the answer ends before a line that is indented by less
    limit_ms: float  # from the first denoise step on; 0: none
    chosen: tuple[str, ...] | None  # fields of the answer; None: all
    stream: bool


def _read(fields: Fields, most_tokens: int) -> Ask:
    wanted = fields.integer("n_predict", -1, default=INFILL_TOKENS)
    template = read_sampling(
        fields,
        max_tokens=most_tokens if wanted < 0 else max(wanted, 1),
        stop=read_stop(fields, MAX_STOPS),
    )
    before = fields.text("input_prefix", "") + fields.text("prompt", "")
    middle = Middle(before, fields.text("input_suffix", ""), related=_extra(fields))
    asked = question(middle, template)
    assert isinstance(asked, Infilling), "it is a middle"
    return Ask(
        question=asked,
        model=fields.text("model", ""),
        only_warm=wanted == 0,
        indent=fields.integer("n_indent", 0, default=0),
        limit_ms=fields.number("t_max_predict_ms", 0, default=0.0),
        chosen=fields.array("response_fields", check_text, None),
        stream=fields.flag("stream", False),
    )


def _extra(fields: Fields) -> tuple[RelatedFile, ...]:
    def chunk(value: object, where: str) -> RelatedFile:
        one = Fields(value, where)
        return related_file(one.text("filename", ""), one.text("text"))

    found = fields.array("input_extra", chunk)  # oldest first, so the last ones count most
    return found[-MAX_RELATED:]


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


def _answer(ask: Ask, end: Prediction | CanvasState) -> Json:
    if isinstance(end, CanvasState):
        whole = settled(end).rpartition("\n")[0]
        text = ask.question.settled(whole)
        return _body(keep_indented(text, ask.indent), "limit", Stats())
    text = ask.question.answers(end)[0].text
    kind = STOP_TYPES[end.candidates[0].finish] if end.candidates else "eos"
    return _body(keep_indented(text, ask.indent), kind, end.stats)


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
