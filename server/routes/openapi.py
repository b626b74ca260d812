"""``GET /openapi.json``: the bodies and answers of all routes, for people and client generators.

Bodies that dataclasses read are described by those. A test compares the paths with the routes.
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
from .constraints import Constraints
from .decisions import DecisionsBody
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
    """Return the schema of a dataclass that reads a body."""
    return TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")


@cache
def _parts() -> tuple[Json, Json, Json, Json]:
    """Return the schemas of conversations, constraints, tools and decisions."""
    chat, guided, tool, decisions = map(_described, (ChatBody, Constraints, Tool, DecisionsBody))
    return chat, guided, tool, decisions


#: Routes without a body.
_ASKED: dict[str, str] = {
    "/health": "Whether the model is ready; needs no key.",
    "/metrics": "Figures for Prometheus.",
    "/openapi.json": "This document.",
    "/v1/models": "The loaded model and its abilities.",
    "/v1/models/{name}": "The model of this name.",
    "/v1/fim/completions/models": "Models that infill.",
    "/v1/edit/completions/models": "Models that edit.",
    "/v1/chat/completions/models": "Models that converse.",
    "/v1/decisions/models": "Models that decide.",
    "/api/tags": "Ollama's list of models.",
    "/api/ps": "Ollama's list of loaded models.",
    "/api/version": "The release, in Ollama's form.",
    "/redraft/v1/status": "The status of the model.",
}


def _sent() -> dict[str, tuple[str, Json]]:
    """Return the routes with a body: a summary and the schema."""
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
        "/v1/chat/completions": ("OpenAI's and Mercury's conversations.", talk),
        "/v1/decisions": ("Mercury's decisions: the probability of each given answer.", decisions),
        "/feedback": ("The outcome of an answer.", outcome),
        "/infill": ("llama.cpp's infill.", infill),
        "/api/generate": ("Ollama's completion.", generate),
        "/api/chat": ("Ollama's conversation.", _body(("messages",), messages=messages)),
        "/api/show": ("Ollama's description of a model.", _body(model=_TEXT)),
        "/redraft/v1/predict": ("Redraft's own records.", _body(("request",), request=_ANY)),
    }


def document(served: frozenset[tuple[str, str]]) -> Json:
    """Return the OpenAPI document.

    Args:
        served: path and method, in lower case, of each route.
    """
    described: dict[tuple[str, str], tuple[str, Json | None]] = {
        **{(path, "get"): (summary, None) for path, summary in _ASKED.items()},
        **{(path, "post"): entry for path, entry in _sent().items()},
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
    """Return the OpenAPI document."""
    served = frozenset(
        (route.resource.canonical, route.method.lower())
        for route in http.app.router.routes()
        if route.resource is not None
    )
    return json_response(document(served))
