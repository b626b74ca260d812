"""Ollama's ``/api/generate`` for raw prompts, ``/api/chat``, and its lists of models.

Raw prompts are recognised by their markers, as on ``/v1/completions``. Conversations are read like
those of ``/v1/chat/completions``. Errors have Ollama's form, ``{"error": "message"}``.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from aiohttp import web
from redraft.model.gate.eagerness import Eagerness
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import recognise
from redraft.model.records import CanvasState, ModelStatus, Prediction
from redraft.model.release import RELEASE
from redraft.model.validation import MAX_INTEGER, Exactly, Flag, Json, Text, read
from redraft.model.weights.store import find_stored

from ..http.access import ENGINE, SETTINGS
from ..http.bodies import read_body
from ..http.responses import json_response
from ..http.streams import LINES, only, send_stream
from ..settings import Settings
from .base import (
    Sampling,
    check_model,
    default_tokens,
    edit_threshold,
    find_served_model,
    model_names,
    why,
)
from .chat_completions import Chat, FinalText, Turn, chat_model, read_chat
from .prompt_questions import question
from .respond import Dialect, HttpQuestion, Reply, respond

routes = web.RouteTableDef()

#: Errors under this address have Ollama's form.
ADDRESS = "/api/"

NS_PER_MS = 1_000_000

#: Options of ``/api/chat``, and the fields of ``/v1/chat/completions`` with the same meaning.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
}
NumPredict = Annotated[int, Exactly(-2, MAX_INTEGER)]
NO_LIMIT = (0, -1, -2)  # values of num_predict


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaChatBody:
    """The body of ``/api/chat``; messages and tools are read as in ``/v1/chat/completions``."""

    messages: tuple[Turn, ...] = ()
    model: Text = ""
    options: dict[str, object] = field(default_factory=dict)
    format: object = None  # "json", or a JSON schema
    stream: Flag = True


OPTION_FIELDS = ("options", "stream")


@routes.post("/api/chat")
async def chat(http: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    settings = http.app[SETTINGS]
    asked, streamed = await read_body(http, lambda data: read_ollama(data, settings))
    model = await chat_model(http, asked.body.model)
    return await respond(http, asked, OllamaChat(model, asked), streamed)


def read_ollama(data: Json, settings: Settings) -> tuple[Chat, bool]:
    """Return the question, and whether its answer is streamed.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    fields = read(OllamaChatBody, {key: data[key] for key in OPTION_FIELDS if key in data})
    options, format_ = fields.options, data.get("format")
    if options.get("num_predict") is not None:
        read(NumPredict, options["num_predict"], "options.num_predict")
    body: Json = {key: data[key] for key in ("messages", "model", "tools") if data.get(key)}
    body |= {
        name: options[option]
        for option, name in _OPTIONS.items()
        if options.get(option) is not None
        and not (option == "num_predict" and options[option] in NO_LIMIT)
    }
    if format_ == "json":
        body["response_format"] = {"type": "json_object"}
    elif format_:
        schema = {"name": "format", "schema": format_}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return read_chat(body, settings), fields.stream


class Ollama(Dialect):
    """Ollama's answers: lines of JSON, and short errors."""

    media_type = LINES

    def __init__(self, model: str) -> None:
        self._model = model

    def error(self, body: Json) -> Json:
        """Return the message alone."""
        return {"error": body["error"]["message"]}

    def _head(self) -> Json:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return {"model": self._model, "created_at": now}


class OllamaChat(Ollama):
    """Conversations."""

    def __init__(self, model: str, asked: Chat) -> None:
        super().__init__(model)
        self._asked = asked
        self._sent = FinalText(asked.request.stop)

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return the rest of the answer. Arguments of calls are objects."""
        answer = answers[0]
        message: Json = {
            "role": "assistant",
            "content": answer.text.removeprefix(self._sent.text),
        }
        if answer.calls:
            message["tool_calls"] = [
                {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
                for call in answer.calls
            ]
        # Ollama has no finish reason for calls.
        reason = "stop" if answer.finish == "tool_calls" else answer.finish
        end = {"message": message, "done": True, "done_reason": reason}
        return {**self._head(), **end, **_durations(prediction)}

    def state(self, state: CanvasState) -> Json | None:
        """Return the new final text."""
        if self._asked.is_indivisible or not (text := self._sent.more(state)):
            return None
        message = {"role": "assistant", "content": text}
        return {**self._head(), "message": message, "done": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Sampling):
    """``options`` of ``/api/generate``."""

    num_predict: NumPredict | None = None  # see NO_LIMIT


@dataclass(frozen=True, slots=True)
class GenerateBody:
    """The body of ``/api/generate``."""

    prompt: Text = ""
    suffix: Text = ""
    model: Text = ""
    options: Options = Options()
    stream: Flag = True  # as in Ollama
    raw: Flag = False  # every prompt is raw: there are no templates here
    eagerness: Eagerness | None = None


@dataclass(frozen=True, slots=True)
class ModelNameBody:
    """A body that names a model."""

    model: Text = ""


@routes.post("/api/generate")
async def generate(http: web.Request) -> web.StreamResponse:
    """Fill a gap or rewrite a region. Without a prompt, only say that the model is loaded."""
    settings = http.app[SETTINGS]

    def ask(data: Json) -> tuple[GenerateBody, HttpQuestion | None]:
        body = read(GenerateBody, data)
        return body, _question(body, settings)

    body, asked = await read_body(http, ask)
    dialect = OllamaText(await find_served_model(http, body.model))
    if asked is not None:
        return await respond(http, asked, dialect, body.stream)
    if not body.stream:
        return json_response(dialect.load_answer())
    return await send_stream(http, LINES, only(dialect.load_answer()), lambda piece: (piece,))


def _question(body: GenerateBody, settings: Settings) -> HttpQuestion | None:
    if not body.prompt and not body.suffix:
        return None
    prompt = Middle(body.prompt, body.suffix) if body.suffix else recognise(body.prompt)
    wanted = body.options.num_predict
    if wanted is None:
        wanted = default_tokens(prompt)
    template = body.options.template(
        wanted if wanted > 0 else settings.max_tokens, where="options."
    )
    return question(prompt, template, edit_threshold(body.eagerness, settings))


class OllamaText(Ollama):
    """Completions."""

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return the whole answer."""
        answer = answers[0]
        end = {"response": answer.text, "done": True, "done_reason": answer.finish}
        return {**self._head(), **end, **_durations(prediction), **why(answer)}

    def load_answer(self) -> Json:
        """Return the answer to a request without a prompt."""
        return {**self._head(), "response": "", "done": True, "done_reason": "load"}


def _durations(prediction: Prediction | None) -> Json:
    """Return what an answer cost, in Ollama's units."""
    if prediction is None:
        return {}
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
async def version(_: web.Request) -> web.Response:
    """Return our release. Clients show it, or check that the server answers."""
    return json_response({"version": RELEASE})


@routes.get("/api/tags")
async def tags(http: web.Request) -> web.Response:
    """List the model."""
    return json_response({"models": await _listed(await http.app[ENGINE].status())})


@routes.get("/api/ps")
async def list_running_models(http: web.Request) -> web.Response:
    """List the model once it is loaded. It stays loaded until the server ends."""
    status = await http.app[ENGINE].status()
    models = await _listed(status) if status.state == "ready" else []
    end = {"expires_at": "9999-12-31T23:59:59Z", "context_length": status.context_tokens}
    on_gpu = status.provider == "CUDA"
    running = [{**each, **end, "size_vram": each["size"] if on_gpu else 0} for each in models[:1]]
    return json_response({"models": running})


@routes.post("/api/show")
async def show(http: web.Request) -> web.Response:
    """Describe the model. Clients read it before they offer completion."""
    name = await read_body(http, lambda data: read(ModelNameBody, data).model)
    status = await http.app[ENGINE].status()
    check_model(name, status)
    info = {"general.architecture": "redraft", "redraft.context_length": status.context_tokens}
    capabilities = _capabilities(status)
    return json_response(
        {"details": _details(status), "model_info": info, "capabilities": capabilities}
    )


async def _listed(status: ModelStatus) -> list[Json]:
    """Describe the model by each of its names.

    Its size and digest are 0 and "" if the engine runs on another machine.
    """
    name, _, variant = status.model.partition(" ")
    files = await asyncio.to_thread(find_stored, name, variant)
    weights: Json = {
        "modified_at": files.modified.isoformat() if files else "1970-01-01T00:00:00Z",
        "size": files.size if files else 0,
        "digest": files.digest if files else "",
        "details": _details(status),
    }
    return [{"name": each, "model": each, **weights} for each in model_names(status)]


def _capabilities(status: ModelStatus) -> list[str]:
    """Return the abilities in Ollama's terms. Another model may answer conversations."""
    capabilities = ["completion"]
    capabilities += ["insert"] if "infill" in status.abilities else []
    capabilities += ["tools"] if status.chat_model and "tools" in status.chat_abilities else []
    return capabilities


def _details(status: ModelStatus) -> Json:
    return {
        "format": "onnx",
        "family": "redraft",
        "families": ["redraft"],
        "parameter_size": "",
        "quantization_level": status.model.partition(" ")[2],
    }
