"""Ollama's ``/api/generate`` for raw prompts, ``/api/chat``, and its list of models.

Raw prompts are recognised by their markers, as on ``/v1/completions``. Conversations are those of
``/v1/chat/completions``; ``format`` is "json" or a schema, and arguments of calls are objects.
Errors are Ollama's: ``{"error": "message"}``.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.gate.eagerness import Eagerness
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import recognise
from redraft.model.records import MAX_STOPS, CanvasState, ModelStatus, Prediction
from redraft.model.release import RELEASE
from redraft.model.validation import MAX_INTEGER, Exactly, Flag, Json, Text, read
from redraft.model.weights.provide import stored

from ..http.bodies import LINES, SERVICE, Stream, json_response, read_body, read_question
from ..http.service import Service
from ..settings import Settings
from .answers import FINISH_REASONS, Question, question
from .chat import Chat, StreamedText, check_chats, read_chat
from .completion import (
    Sampling,
    answered,
    check_model,
    default_tokens,
    edit_threshold,
    loaded,
    model_names,
    why,
)
from .tools import read_calls

routes = web.RouteTableDef()

#: Ollama's options, and what they are called where they are read.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
}


@routes.post("/api/chat")
async def chat(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    asked, streamed = await read_body(http, lambda data: read_ollama(data, service.settings))
    status = await service.status()
    check_chats(asked.body.model, status)
    name = status.chat_model or loaded(status)
    if not streamed:
        return json_response(_last_turn(name, asked, await service.predict(asked.request), ""))
    stream, told = Stream(http, LINES, plain_errors=True), StreamedText(asked.request.stop)

    async def finish(prediction: Prediction) -> None:
        await stream.send(_last_turn(name, asked, prediction, told.text))

    async def on_state(state: CanvasState) -> None:
        if not asked.whole and (text := told.more(state)):
            message = {"role": "assistant", "content": text}
            head = {"model": name, "created_at": now()}
            await stream.send({**head, "message": message, "done": False})

    return await stream.follow(service, asked.request, finish, on_state)


def read_ollama(data: Json, settings: Settings) -> tuple[Chat, bool]:
    """The question, and whether its answer is streamed.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    options, format_ = data.get("options") or {}, data.get("format")
    if not isinstance(options, dict):
        raise InvalidRequest("'options' must be an object. Send one, or none.")
    body: Json = {key: data[key] for key in ("messages", "model", "tools") if data.get(key)}
    body |= {
        theirs: options[ours]
        for ours, theirs in _OPTIONS.items()
        if options.get(ours) is not None
        and not (ours == "num_predict" and options[ours] in (-1, -2))
    }
    if format_ == "json":
        body["response_format"] = {"type": "json_object"}
    elif format_:
        schema = {"name": "format", "schema": format_}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    streamed = data.get("stream", True)
    if not isinstance(streamed, bool):
        raise InvalidRequest("'stream' must be true or false.")
    return read_chat(body, settings), streamed


def _last_turn(name: str, asked: Chat, prediction: Prediction, told: str) -> Json:
    candidate = prediction.candidates[0]
    text, calls = read_calls(candidate.text, asked.tools.names)
    message: dict[str, Any] = {"role": "assistant", "content": text.removeprefix(told)}
    if calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
            for call in calls
        ]
    return {
        "model": name,
        "created_at": now(),
        "message": message,
        "done": True,
        "done_reason": FINISH_REASONS[candidate.finish],
        **durations(prediction),
    }


#: Under this address errors are Ollama's.
ADDRESS = "/api/"

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Sampling):
    num_predict: Annotated[int, Exactly(-2, MAX_INTEGER)] | None = None  # -1, -2: no limit


@dataclass(frozen=True, slots=True)
class Body:
    prompt: Text = ""
    suffix: Text = ""
    model: Text = ""
    options: Options = Options()
    stream: Flag = True  # as in Ollama
    raw: Flag = False  # there are no templates here: every prompt is raw
    eagerness: Eagerness | None = None


@dataclass(frozen=True, slots=True)
class Named:
    model: Text = ""


@routes.post("/api/generate")
async def generate(http: web.Request) -> web.StreamResponse:
    service = http.app[SERVICE]
    body, asked = await read_question(http, lambda data: _ask(read(Body, data), service.settings))
    status = await service.status()
    check_model(body.model, status)
    name = loaded(status)
    if asked is None:
        return await _load(http, name, body.stream)
    if not body.stream:
        prediction = await service.predict(asked.request) if asked.request else None
        return json_response(_last(service, name, asked, prediction))
    stream = Stream(http, LINES, plain_errors=True)

    async def finish(prediction: Prediction | None) -> None:
        await stream.send(_last(service, name, asked, prediction))

    return await stream.answer(service, asked.request, finish)


async def _load(http: web.Request, name: str, streamed: bool) -> web.StreamResponse:
    """Without a prompt a model is only to be loaded, which it is."""
    body = {"model": name, "created_at": now(), "response": "", "done": True, "done_reason": "load"}
    if not streamed:
        return json_response(body)
    stream = Stream(http, LINES, plain_errors=True)
    await stream.send(body)
    return await stream.end()


def _ask(body: Body, settings: Settings) -> tuple[Body, Question | None]:
    """What was sent, and what is asked, if anything is."""
    if not body.prompt and not body.suffix:
        return body, None
    meant = Middle(body.prompt, body.suffix) if body.suffix else recognise(body.prompt)
    wanted = body.options.num_predict
    if wanted is None:
        wanted = default_tokens(meant)
    # Clients of many models list the ends of all.
    template = body.options.template(
        wanted if wanted > 0 else settings.max_tokens, MAX_STOPS, where="options."
    )
    return body, question(meant, template, edit_threshold(body.eagerness, settings))


def _last(service: Service, name: str, asked: Question, prediction: Prediction | None) -> Json:
    answer = answered(service, asked, prediction)[0]
    body: Json = {
        "model": name,
        "created_at": now(),
        "response": answer.text,
        "done": True,
        "done_reason": answer.finish,
    }
    if prediction is not None:
        body |= durations(prediction)
    return {**body, **why(answer)}


def durations(prediction: Prediction) -> Json:
    """What an answer cost, as Ollama counts it."""
    stats = prediction.stats
    return {
        "total_duration": round(stats.total_ms * NS_PER_MS),
        "load_duration": 0,
        "prompt_eval_count": stats.prompt_tokens,
        "prompt_eval_duration": round(stats.prefill_ms * NS_PER_MS),
        "eval_count": stats.canvas_tokens,
        "eval_duration": round(stats.denoise_ms * NS_PER_MS),
    }


@routes.get("/api/version")
async def version(http: web.Request) -> web.Response:
    """Ours: clients only show it, or look whether anything answers."""
    return json_response({"version": RELEASE})


@routes.get("/api/tags")
async def tags(http: web.Request) -> web.Response:
    return json_response({"models": await _listed(await http.app[SERVICE].status())})


@routes.get("/api/ps")
async def running(http: web.Request) -> web.Response:
    """What is in memory: the model, once it is loaded; it stays until the server ends."""
    status = await http.app[SERVICE].status()
    listed = await _listed(status) if status.state == "ready" else []
    there: Json = {
        "expires_at": "9999-12-31T23:59:59Z",
        "context_length": status.context_tokens,
    }
    on_gpu = status.provider == "CUDA"
    models = [{**each, **there, "size_vram": each["size"] if on_gpu else 0} for each in listed[:1]]
    return json_response({"models": models})


async def _listed(status: ModelStatus) -> list[Json]:
    """The model by each of its names, with what it takes on disk; 0 and "" where that is elsewhere:
    the engine may run on another machine."""
    name, _, variant = status.model.partition(" ")
    lies = await asyncio.to_thread(stored, name, variant)
    weights: Json = {
        "modified_at": lies.modified.isoformat() if lies else "1970-01-01T00:00:00Z",
        "size": lies.size if lies else 0,
        "digest": lies.digest if lies else "",
        "details": _details(status),
    }
    return [{"name": each, "model": each, **weights} for each in model_names(status)]


@routes.post("/api/show")
async def show(http: web.Request) -> web.Response:
    """What clients look up before they offer a model for completion."""
    name = await read_body(http, lambda data: read(Named, data).model)
    status = await http.app[SERVICE].status()
    check_model(name, status)
    info = {"general.architecture": "redraft", "redraft.context_length": status.context_tokens}
    return json_response(
        {
            "details": _details(status),
            "model_info": info,
            "capabilities": _capabilities(status),
        }
    )


def _capabilities(status: ModelStatus) -> list[str]:
    """As Ollama calls them; conversations may be another model's, answered under this name too."""
    found = ["completion"]
    found += ["insert"] if "infill" in status.abilities else []
    found += ["tools"] if status.chat_model and "tools" in status.chat_abilities else []
    return found


def _details(status: ModelStatus) -> Json:
    return {
        "format": "onnx",
        "family": "redraft",
        "families": ["redraft"],
        "parameter_size": "",
        "quantization_level": status.model.partition(" ")[2],
    }


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
