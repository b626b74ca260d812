"""The models there are and what each can do: ``/v1/models`` and its kin, as OpenAI and Mercury.

Pure but for its routes.
"""

from __future__ import annotations

from aiohttp import web
from redraft.model.reading import Json
from redraft.model.records import MAX_ANSWER_TOKENS, ModelStatus

from ..http.bodies import SERVICE, json_response
from .completion import model_names, unknown_model

routes = web.RouteTableDef()

#: What edits' models and conversations' are called on, as Mercury names its endpoints.
WRITING = ("completions", "fim.completions", "edit.completions")
TALKING = ("chat.completions", "decisions")
#: Endpoints with lists of their own, by their paths.
LISTS = {
    "/v1/chat/completions/models": "chat.completions",
    "/v1/edit/completions/models": "edit.completions",
    "/v1/fim/completions/models": "fim.completions",
    "/v1/decisions/models": "decisions",
}
SAMPLING = ("temperature", "top_p", "seed", "stop", "max_tokens")
CONSTRAINTS = ("json_mode", "structured_outputs")


@routes.get("/v1/models")
async def models(http: web.Request) -> web.Response:
    found = described(await http.app[SERVICE].status())
    return json_response({"object": "list", "data": found})


@routes.get("/v1/models/{name}")
async def model(http: web.Request) -> web.Response:
    name = http.match_info["name"]
    status = await http.app[SERVICE].status()
    for each in described(status):
        if each["id"] == name:
            return json_response(each)
    raise unknown_model(name, status)


async def listed(http: web.Request) -> web.Response:
    endpoint = LISTS[http.path]
    found = described(await http.app[SERVICE].status())
    data = [each for each in found if endpoint in each["supported_endpoints"]]
    return json_response({"object": "list", "data": data})


for _path in LISTS:
    routes.get(_path)(listed)


def described(status: ModelStatus) -> list[Json]:
    """The loaded model, by each of its names, and the one that holds conversations in its place."""
    names, talks = model_names(status), status.chat_model
    both = (*WRITING, *TALKING) if talks == names[0] else WRITING
    found = [_model(name, status, both) for name in names]
    if talks and talks not in names:
        found.append(_model(talks, status, TALKING))
    return found


def _model(name: str, status: ModelStatus, endpoints: tuple[str, ...]) -> Json:
    talks = "chat.completions" in endpoints
    context = max(status.context_tokens, status.longest_tokens if talks else 0)
    features = [*CONSTRAINTS, "diffusing", *(("tools", "reasoning_effort") if talks else ())]
    return {
        "id": name,
        "object": "model",
        "created": 0,  # the weights' age is not known here; clients only sort by it
        "owned_by": "redraft",
        "name": name,
        "context_length": context,
        "max_output_length": MAX_ANSWER_TOKENS,
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "pricing": {"prompt": "0", "completion": "0"},
        "supported_endpoints": [*endpoints],
        "supported_features": features,
        "supported_sampling_parameters": [*SAMPLING],
    }
