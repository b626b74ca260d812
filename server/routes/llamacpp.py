"""llama.cpp's infill, ``POST /infill``, which llama.vim and llama.vscode use.

With ``n_predict: 0`` the prompt is only read into the prefix cache. Sampler settings of llama.cpp
that have no meaning here are ignored.
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
from redraft.model.prompts.excerpt import MAX_RELATED, render_related_file
from redraft.model.prompts.fim import Middle
from redraft.model.records import CanvasState, EditRequest, Prediction, Predictor, Stats
from redraft.model.validation import MAX_INTEGER, Exactly, Flag, Json, Number, Text, Whole, read

from ..http.access import ENGINE, SETTINGS
from ..http.bodies import read_body
from ..http.responses import json_response
from ..http.streams import EVENT_STREAM, follow, only, send_stream
from .base import INFILL_TOKENS, Sampling, find_served_model
from .constraints import constrain
from .prompt_questions import Infilling, question
from .respond import HttpQuestion

#: llama.cpp's names for how an answer ended.
STOP_TYPES = {"end": "eos", "stop": "word", "length": "limit", "unsure": "eos"}

routes = web.RouteTableDef()


@routes.post("/infill")
async def infill(http: web.Request) -> web.StreamResponse:
    """Fill a gap."""
    engine, settings = http.app[ENGINE], http.app[SETTINGS]

    def ask(data: Json) -> tuple[InfillBody, Infilling]:
        body = read(InfillBody, data)
        asked = constrain(_question(body, settings.max_tokens), data)
        assert isinstance(asked, Infilling), "its prompt is a middle"
        return body, asked

    body, asked = await read_body(http, ask)
    model = await find_served_model(http, body.model)
    if body.n_predict == 0:
        only_read = await engine.predict(dataclasses.replace(asked.request, max_tokens=1))
        answer = _answer("", "limit", only_read.stats)
    else:
        end = await within(engine, asked.request, body.t_max_predict_ms)
        answer = _answer_of(body, asked, end)
    answer["model"] = model
    if body.response_fields is not None:
        answer = _selected(answer, body.response_fields)
    if not body.stream:
        return json_response(answer)
    return await send_stream(http, EVENT_STREAM, only(answer), lambda piece: (piece,))


@dataclass(frozen=True, slots=True)
class Extra:
    """Another file."""

    text: Text
    filename: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfillBody(Sampling):
    """The body of this route."""

    input_prefix: Text = ""
    prompt: Text = ""  # between prefix and cursor
    input_suffix: Text = ""
    input_extra: tuple[Extra, ...] = ()  # oldest first
    model: Text = ""
    n_predict: Annotated[int, Exactly(-1, MAX_INTEGER)] = INFILL_TOKENS
    n_indent: Whole = 0  # columns; the answer ends before a line indented by less
    t_max_predict_ms: Number = 0.0  # from the first pass on; 0: no limit
    response_fields: tuple[Text, ...] | None = None  # of the answer; None: all
    stream: Flag = False


def _question(body: InfillBody, most_tokens: int) -> HttpQuestion:
    wanted = most_tokens if body.n_predict < 0 else max(body.n_predict, 1)
    newest = body.input_extra[-MAX_RELATED:]
    related = tuple(render_related_file(one.filename, one.text) for one in newest)
    prompt = Middle(body.input_prefix + body.prompt, body.input_suffix, related=related)
    return question(prompt, body.template(wanted))


async def within(
    engine: Predictor,
    request: EditRequest,
    limit_ms: float,
    clock: Callable[[], float] = time.monotonic,
) -> Prediction | CanvasState:
    """Predict within a time limit.

    Args:
        limit_ms: time from the first pass on; 0: no limit.

    Returns:
        The prediction; or, if the time is over, the first state with a complete line.
    """
    if not limit_ms:
        return await engine.predict(request)
    begun_s: float | None = None
    async with aclosing(follow(engine, request)) as events:
        async for event in events:
            if isinstance(event, Prediction):
                return event
            begun_s = clock() if begun_s is None else begun_s
            if (clock() - begun_s) * 1_000 >= limit_ms and "\n" in settle(event):
                return event
    raise AssertionError("a prediction ends the events")


def settle(state: CanvasState) -> str:
    """Return the verified text; of a first canvas, the text up to its first masked position."""
    pieces = state.pieces[: state.sure or None]
    return "".join(piece or "" for piece in takewhile(lambda one: one is not None, pieces))


def _answer_of(body: InfillBody, question: Infilling, end: Prediction | CanvasState) -> Json:
    if isinstance(end, CanvasState):
        lines = settle(end).rpartition("\n")[0]
        return _answer(keep_indented(question.keep_fitting(lines), body.n_indent), "limit", Stats())
    text = question.answers(end)[0].text
    kind = STOP_TYPES[end.candidates[0].finish] if end.candidates else "eos"
    return _answer(keep_indented(text, body.n_indent), kind, end.stats)


def keep_indented(text: str, least: int) -> str:
    """Return ``text`` up to the first further line that is indented by less than ``least``."""
    lines = text.split("\n")
    for i, line in enumerate(lines[1:], 1):
        if line.strip() and len(line) - len(line.lstrip()) < least:
            return "\n".join(lines[:i]).rstrip("\r\n")
    return text


def _answer(text: str, stop_type: str, stats: Stats) -> Json:
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


def _selected(body: Json, names: tuple[str, ...]) -> Json:
    """Return only the named fields. ``timings/prompt_n`` keeps its whole name, as in llama.cpp."""
    flat = {**body, **{f"timings/{key}": value for key, value in body["timings"].items()}}
    return {name: flat[name] for name in names if name in flat}
