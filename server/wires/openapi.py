"""``GET /openapi.json``: what every route takes and answers, for client generators and for people.

Bodies that are read by dataclasses are described by them; a test compares the paths with the
application's routes.
"""

from __future__ import annotations

import importlib.metadata
from functools import cache
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter
from redraft.model.reading import Json

from ..http.bodies import json_response
from .chat_body import ChatBody
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


def _paths() -> dict[str, dict[str, tuple[str, Json | None]]]:
    """Path, method: what it is for, and its body."""
    chat, guided, _, decisions = _parts()
    guides: Json = guided["properties"]
    completion = _body(("prompt",), prompt=_TEXT, suffix=_TEXT, **_SAMPLING, **guides)
    talk: Json = {
        "type": "object",
        "required": ["messages"],
        "properties": {
            **chat["properties"],
            **guides,
            "tools": {"type": "array", "items": {"$ref": "#/components/schemas/Tool"}},
            "tool_choice": _ANY,
        },
    }
    edit = _body(("messages",), messages={"type": "array"}, **_SAMPLING)
    return {
        "/health": {"get": ("Whether the model answers; needs no key.", None)},
        "/metrics": {"get": ("Figures for Prometheus.", None)},
        "/openapi.json": {"get": ("This document.", None)},
        "/v1/models": {"get": ("The loaded model and what it can do.", None)},
        "/v1/models/{name}": {"get": ("One of its names.", None)},
        "/v1/completions": {"post": ("OpenAI's text completions, with a suffix.", completion)},
        "/v1/fim/completions": {"post": ("Mercury's and Codestral's infill.", completion)},
        "/v1/fim/completions/models": {"get": ("Models that infill.", None)},
        "/v1/edit/completions": {"post": ("Mercury's next edits.", edit)},
        "/v1/edit/completions/models": {"get": ("Models that edit.", None)},
        "/v1/chat/completions": {"post": ("Conversations, as OpenAI and Mercury.", talk)},
        "/v1/chat/completions/models": {"get": ("Models that converse.", None)},
        "/v1/decisions": {"post": ("How likely each given answer is, as Mercury.", decisions)},
        "/v1/decisions/models": {"get": ("Models that decide.", None)},
        "/feedback": {
            "post": (
                "What became of an answer.",
                _body(("request_id", "user_action"), request_id=_TEXT, user_action=_TEXT),
            )
        },
        "/infill": {
            "post": (
                "llama.cpp's infill.",
                _body(input_prefix=_TEXT, input_suffix=_TEXT, prompt=_TEXT),
            )
        },
        "/api/generate": {
            "post": ("Ollama's completion.", _body(model=_TEXT, prompt=_TEXT, suffix=_TEXT))
        },
        "/api/chat": {
            "post": ("Ollama's conversation.", _body(("messages",), messages={"type": "array"}))
        },
        "/api/tags": {"get": ("Ollama's list of models.", None)},
        "/api/show": {"post": ("What a model can do, as Ollama.", _body(model=_TEXT))},
        "/api/ps": {"get": ("Models that are loaded, as Ollama.", None)},
        "/api/version": {"get": ("The release, as Ollama.", None)},
        "/redraft/v1/predict": {
            "post": ("Redraft's own records.", _body(("request",), request=_ANY))
        },
        "/redraft/v1/status": {"get": ("How far the model is.", None)},
    }


def document(served: frozenset[tuple[str, str]]) -> Json:
    """The OpenAPI document of the routes in ``served``: (path, method in lower case)."""
    paths: Json = {}
    for path, methods in _paths().items():
        for method, (summary, body) in methods.items():
            if (path, method) in served:
                paths.setdefault(path, {})[method] = _operation(path, summary, body)
    schemas: Json = {}
    for part in _parts():
        schemas |= part.get("$defs", {})
    tool = {key: value for key, value in _parts()[2].items() if key != "$defs"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Redraft", "version": importlib.metadata.version("redraft")},
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
