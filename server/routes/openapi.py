"""``GET /openapi.json``: the document of all routes, made from the routes and their body types."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter
from redraft.model.release import RELEASE
from redraft.model.validation import Json

from ..http.responses import json_response
from .chat_completions import ChatBody
from .constraints import Constraints
from .decisions.decision_bodies import OpenAIBody, TypeSafeBody
from .feedback import Feedback
from .llamacpp import InfillBody
from .mercury import EditBody, Infill
from .ollama import GenerateBody, ModelNameBody, OllamaChatBody
from .openai import TextBody
from .tools import ToolFields

routes = web.RouteTableDef()

#: Types that read the body of a route; several read different fields of one body. The records of
#: ``/redraft/v1/predict`` are not described, because they change with each release.
BODIES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "/v1/completions": (TextBody, Constraints),
        "/v1/fim/completions": (Infill, Constraints),
        "/v1/edit/completions": (EditBody,),
        "/v1/chat/completions": (ChatBody, Constraints, ToolFields),
        "/v1/systemone": (TypeSafeBody | OpenAIBody,),
        "/v1/decisions": (TypeSafeBody | OpenAIBody,),
        "/feedback": (Feedback,),
        "/infill": (InfillBody, Constraints),
        "/api/generate": (GenerateBody,),
        "/api/chat": (OllamaChatBody, ToolFields),
        "/api/show": (ModelNameBody,),
        "/redraft/v1/predict": (),
    }
)
_REFERENCE = "#/components/schemas/{model}"


def _schema(types: tuple[Any, ...], definitions: Json) -> Json:
    """Return one schema of an object with the fields of ``types``; add to ``definitions``."""
    properties: Json = {}
    required: list[str] = []
    for kind in types:
        found = TypeAdapter(kind).json_schema(ref_template=_REFERENCE)
        definitions |= found.pop("$defs", {})
        if "anyOf" in found:
            return {"anyOf": found["anyOf"]}  # either body
        properties |= found.get("properties", {})
        required += found.get("required", [])
    return {"type": "object", "properties": properties, "required": required}


def _operation(route: web.AbstractRoute, path: str, definitions: Json) -> Json:
    """Return the description of a route: the first line of its handler's docstring, its body."""
    lines = (inspect.getdoc(route.handler) or "").splitlines()
    found: Json = {
        "summary": lines[0] if lines else "",
        "responses": {
            "200": {"description": "The answer."},
            "4XX": {"description": "What is wrong with the request, and with which field."},
        },
    }
    if "{name}" in path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        found["parameters"] = [name]
    if path in BODIES:
        content = {"application/json": {"schema": _schema(BODIES[path], definitions)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _served(app: web.Application) -> Iterator[tuple[str, str, web.AbstractRoute]]:
    """Yield path, method in lower case, and route, in order."""
    found = (
        (route.resource.canonical, route.method.lower(), route)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    )
    yield from sorted(found, key=lambda each: each[:2])


def document(app: web.Application) -> Json:
    """Return the OpenAPI document of the routes of ``app``."""
    paths: Json = {}
    definitions: Json = {}
    for path, method, route in _served(app):
        paths.setdefault(path, {})[method] = _operation(route, path, definitions)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Redraft", "version": RELEASE},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


@routes.get("/openapi.json")
async def openapi(http: web.Request) -> web.Response:
    """Describe every route."""
    return json_response(document(http.app))
