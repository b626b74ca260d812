"""The models and their abilities: ``/v1/models`` of OpenAI and the lists of Mercury."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aiohttp import web
from redraft.model.records import MAX_ANSWER_TOKENS, Ability, ModelStatus
from redraft.model.validation import Json

from ..http.access import ENGINE
from ..http.responses import json_response
from .base import model_names, no_such_model

routes = web.RouteTableDef()

#: Mercury's endpoints of each ability.
ENDPOINTS: Mapping[Ability, tuple[str, ...]] = MappingProxyType(
    {
        "infill": ("completions", "fim.completions"),
        "next_edit": ("edit.completions",),
        "decide": ("decisions",),
    }
)
#: Endpoints with a separate list of models, by the path of the list.
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
    """List the loaded model, for OpenAI's clients as ``data``, for TypeSafe's as ``models``."""
    found = describe_model(await http.app[ENGINE].status())
    decides = [each["id"] for each in found if "decisions" in each["supported_endpoints"]]
    typesafe = [
        # The date is unknown, and the client demands one.
        {"name": name, "description": "answers typed questions", "release_date": "1970-01-01"}
        for name in decides
    ]
    return json_response({"object": "list", "data": found, "models": typesafe})


@routes.get("/v1/models/{name}")
async def model(http: web.Request) -> web.Response:
    """Describe the loaded model by one of its names."""
    name = http.match_info["name"]
    found = {each["id"]: each for each in describe_model(await http.app[ENGINE].status())}
    if name not in found:
        raise no_such_model(name, [*found])
    return json_response(found[name])


async def list_models(http: web.Request) -> web.Response:
    """List the models of one endpoint."""
    endpoint = LISTS[http.path]
    found = describe_model(await http.app[ENGINE].status())
    data = [
        each | {"supported_features": each["redraft"]["features"][endpoint]}
        for each in found
        if endpoint in each["supported_endpoints"]
    ]
    return json_response({"object": "list", "data": data})


for _path in LISTS:
    routes.get(_path)(list_models)


def describe_model(status: ModelStatus) -> list[Json]:
    """Describe the loaded model by each of its names, and the model that answers conversations.

    Abilities are known once a model is loaded; until then it has no endpoints.
    """
    names, talks = model_names(status), status.chat_model
    found = [_model(name, status, True, talks == names[0]) for name in names]
    if talks and talks not in names:
        found.append(_model(talks, status, False, True))
    return found


def _model(name: str, status: ModelStatus, writes: bool, talks: bool) -> Json:
    """Describe a model.

    Args:
        writes: it answers outside conversations.
        talks: it answers conversations.
    """
    features: dict[str, list[str]] = {}
    if talks:
        features["chat.completions"] = _features("chat.completions", status.chat_abilities)
    for can in (status.abilities if writes else (), status.chat_abilities if talks else ()):
        for ability, endpoints in ENDPOINTS.items():
            if ability in can:
                features |= {endpoint: _features(endpoint, can) for endpoint in endpoints}
    context = max(status.context_tokens if writes else 0, status.longest_tokens if talks else 0)
    return {
        "id": name,
        "object": "model",
        "created": 0,  # unknown; clients only sort by it
        "owned_by": "redraft",
        "name": name,
        "context_length": context,
        "max_output_length": MAX_ANSWER_TOKENS,
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "pricing": {"prompt": "0", "completion": "0"},
        "supported_endpoints": [*features],
        "supported_features": list(
            dict.fromkeys(one for each in features.values() for one in each)
        ),
        "supported_sampling_parameters": [*SAMPLING],
        "redraft": {"prompt_format": status.prompt_format if writes else "", "features": features},
    }


def _features(endpoint: str, can: Sequence[Ability]) -> list[str]:
    """Return the features of an endpoint for a model with these abilities."""
    if endpoint == "decisions":
        return []
    talks = endpoint == "chat.completions"
    found = [*CONSTRAINTS] if "grammar" in can and endpoint != "edit.completions" else []
    found.append("diffusing")
    found += ["tools"] if talks and "tools" in can else []
    return found + (["reasoning_effort"] if talks else [])
