"""``GET /openapi.json``: what every route takes and answers, for client generators and for people.

Bodies that are read by dataclasses are described by them; a test compares the paths with the
application's routes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter
from redraft.model.release import RELEASE
from redraft.model.validation import Json

from ..http.bodies import json_response
from .chat import ChatBody
from .decisions import Body as DecisionsBody
from .guided import Guided
from .tools import Tool

routes = web.RouteTableDef()

_TEXT: Json = {"type": "string"}
_WHOLE: Json = {"type": "integer", "minimum": 0}
_ANY: Json = {}


def _body(required: tuple[str, ...] = (), **fields: Json) -> Json:
    found: Json = {"type": "object", "properties": fields}
    return {**found, "required": list(required)} if required else found


_SAMPLING: Json = {
    "model": _TEXT,
    "max_tokens": _WHOLE,
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "seed": {"type": "integer"},
    "stop": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "stream": {"type": "boolean"},
    "diffusing": {"type": "boolean"},
}


def _described(kind: Any) -> Json:
    """A dataclass that reads a body, as a schema."""
    return TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")


@cache
def _parts() -> tuple[Json, Json, Json, Json]:
    """Schemas of the chat's, the grammars', the tools' and the decisions' bodies."""
    chat, guided, tool, decisions = map(_described, (ChatBody, Guided, Tool, DecisionsBody))
    return chat, guided, tool, decisions


#: What is asked for without a body.
_ASKED: dict[str, str] = {
    "/health": "Whether the model answers; needs no key.",
    "/metrics": "Figures for Prometheus.",
    "/openapi.json": "This document.",
    "/v1/models": "The loaded model and what it can do.",
    "/v1/models/{name}": "One of its names.",
    "/v1/fim/completions/models": "Models that infill.",
    "/v1/edit/completions/models": "Models that edit.",
    "/v1/chat/completions/models": "Models that converse.",
    "/v1/decisions/models": "Models that decide.",
    "/api/tags": "Ollama's list of models.",
    "/api/ps": "Models that are loaded, as Ollama.",
    "/api/version": "The release, as Ollama.",
    "/redraft/v1/status": "How far the model is.",
}


def _sent() -> dict[str, tuple[str, Json]]:
    """What is sent a body: what it is for, and the body."""
    chat, guided, _, decisions = _parts()
    guides: Json = guided["properties"]
    tools = {"type": "array", "items": {"$ref": "#/components/schemas/Tool"}}
    messages = {"type": "array"}
    completion = _body(("prompt",), prompt=_TEXT, suffix=_TEXT, **_SAMPLING, **guides)
    talk = _body(("messages",), **chat["properties"], **guides, tools=tools, tool_choice=_ANY)
    edit = _body(("messages",), messages=messages, **_SAMPLING)
    outcome = _body(("request_id", "user_action"), request_id=_TEXT, user_action=_TEXT)
    infill = _body(input_prefix=_TEXT, input_suffix=_TEXT, prompt=_TEXT)
    generate = _body(model=_TEXT, prompt=_TEXT, suffix=_TEXT)
    return {
        "/v1/completions": ("OpenAI's text completions, with a suffix.", completion),
        "/v1/fim/completions": ("Mercury's and Codestral's infill.", completion),
        "/v1/edit/completions": ("Mercury's next edits.", edit),
        "/v1/chat/completions": ("Conversations, as OpenAI and Mercury.", talk),
        "/v1/decisions": ("How likely each given answer is, as Mercury.", decisions),
        "/feedback": ("What became of an answer.", outcome),
        "/infill": ("llama.cpp's infill.", infill),
        "/api/generate": ("Ollama's completion.", generate),
        "/api/chat": ("Ollama's conversation.", _body(("messages",), messages=messages)),
        "/api/show": ("What a model can do, as Ollama.", _body(model=_TEXT)),
        "/redraft/v1/predict": ("Redraft's own records.", _body(("request",), request=_ANY)),
    }


def document(served: frozenset[tuple[str, str]]) -> Json:
    """The OpenAPI document of the routes in ``served``: (path, method in lower case)."""
    described: dict[tuple[str, str], tuple[str, Json | None]] = {
        **{(path, "get"): (summary, None) for path, summary in _ASKED.items()},
        **{(path, "post"): told for path, told in _sent().items()},
    }
    paths: Json = {}
    for path, method in sorted(described.keys() & served):
        paths.setdefault(path, {})[method] = _operation(path, *described[path, method])
    schemas: Json = {}
    for part in _parts():
        schemas |= part.get("$defs", {})
    tool = {key: value for key, value in _parts()[2].items() if key != "$defs"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Redraft", "version": RELEASE},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Tool": tool},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(path: str, summary: str, body: Json | None) -> Json:
    found: Json = {
        "summary": summary,
        "responses": {
            "200": {"description": "The answer."},
            "4XX": {"description": "What is wrong with the request, and with which field."},
        },
    }
    if "{name}" in path:
        found["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": _TEXT}]
    if body is not None:
        plain = {key: value for key, value in body.items() if key != "$defs"}
        content = {"application/json": {"schema": plain}}
        found["requestBody"] = {"required": True, "content": content}
    return found


@routes.get("/openapi.json")
async def openapi(http: web.Request) -> web.Response:
    served = frozenset(
        (route.resource.canonical, route.method.lower())
        for route in http.app.router.routes()
        if route.resource is not None
    )
    return json_response(document(served))
