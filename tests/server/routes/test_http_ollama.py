"""Ollama's ``/api/generate`` as Zed and others send it, and the list of models."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from redraft.model.errors import ModelNotReady, Overloaded
from redraft.model.records import ModelStatus
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ready_variants
from support.editors.predictor import CHATTY, ScriptedPredictor
from support.served import got, post, served

#: The ends of every model Zed knows, sent for any of them.
STOPS = [
    *("<|endoftext|>", "<|file_separator|>", "<|fim_pad|>", "<|fim_prefix|>", "<|fim_middle|>"),
    *("<|fim_suffix|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<PRE>", "<SUF>", "<MID>"),
    *("[PREFIX]", "[SUFFIX]"),
]


def zed(prompt: str, **fields: Any) -> dict[str, Any]:
    options = {"num_predict": 64, "temperature": 0.2, "stop": STOPS}
    body = {"model": "qwen2.5-coder:3b-base", "prompt": prompt, "raw": True, "stream": False}
    return {**body, "options": options, **fields}


def test_infill_by_markers() -> None:
    predictor = ScriptedPredictor()
    prompt = "<|fim_prefix|>def f(a, b):\n    <|fim_suffix|>\n<|fim_middle|>"
    status, body = post("/api/generate", zed(prompt), predictor)
    assert status == 200
    assert body["response"] == "return a + b"
    assert body["model"] == "fake-1m"
    assert (body["done"], body["done_reason"]) == (True, "stop")
    assert datetime.fromisoformat(body["created_at"]).utcoffset() is not None
    assert body["prompt_eval_count"] == 40
    assert body["eval_count"] == 5
    assert body["eval_duration"] == 20_000_000
    assert body["total_duration"] == 33_000_000
    [request] = predictor.requests
    assert request.text == "def f(a, b):\n    \n"
    assert (request.max_tokens, request.temperature) == (64, 0.2)
    assert len(request.stop) == len(STOPS)


def test_files_of_the_repository_in_front_are_related() -> None:
    predictor = ScriptedPredictor()
    prompt = (
        "<|repo_name|>demo\n<|file_sep|>a.py\nA = 1\n<|file_sep|>context/diagnostics\nbad\n"
        "<|file_sep|>b.py.diff\n@@ -1 +1 @@\n<|file_sep|>c.py\n"
        "<|fim_prefix|>import a\n<|fim_suffix|>\n<|fim_middle|>"
    )
    post("/api/generate", zed(prompt), predictor)
    [request] = predictor.requests
    assert request.path == "c.py"
    assert [(one.path, one.text) for one in request.related] == [("a.py", "A = 1\n")]
    assert request.text == "import a\n\n"


def test_prompts_of_other_models_get_only_a_reason() -> None:
    predictor = ScriptedPredictor()
    status, body = post("/api/generate", zed("<|im_start|>user\nhello"), predictor)
    assert (status, body["response"], body["done"]) == (200, "", True)
    assert "<|im_start|>" in body["redraft"]["reason"]
    assert predictor.requests == []


async def test_it_streams_unless_told_otherwise() -> None:
    async with (
        served(ScriptedPredictor()) as (_, client),
        client.post("/api/generate", json={"model": "m", "prompt": "a = "}) as answer,
    ):
        kind, text = answer.content_type, await answer.text()
    assert kind == "application/x-ndjson"
    [line] = text.splitlines()
    assert json.loads(line)["response"] == "return a + b"
    assert json.loads(line)["done"] is True


@pytest.mark.parametrize(
    ("error", "status"), [(ModelNotReady("still loading"), 503), (Overloaded("full", 3.0), 429)]
)
def test_errors_are_strings_as_in_ollama(error: Exception, status: int) -> None:
    found, body = post("/api/generate", zed("a"), ScriptedPredictor([error]))
    assert found == status
    assert body == {"error": str(error)}


def test_tags_tell_of_the_model() -> None:
    models = got("/api/tags", ScriptedPredictor())["models"]
    assert [one["name"] for one in models] == ["fake-1m", "fake-1m-int8"]
    assert models[0]["details"]["quantization_level"] == "int8"


def test_without_a_prompt_a_model_is_only_loaded() -> None:
    predictor = ScriptedPredictor()
    for body in ({"model": "fake-1m", "stream": False}, zed("", keep_alive="5m")):
        status, answer = post("/api/generate", body, predictor)
        assert status == 200
        assert (answer["response"], answer["done"], answer["done_reason"]) == ("", True, "load")
    assert predictor.requests == []


def test_what_is_in_memory_is_told_once_it_is_there() -> None:
    [model] = got("/api/ps", ScriptedPredictor())["models"]
    assert (model["name"], model["context_length"], model["size_vram"]) == ("fake-1m", 4096, 0)
    loading = ModelStatus("loading", "fake-1m int8", "", 0.4)
    assert got("/api/ps", ScriptedPredictor(statuses=[loading])) == {"models": []}


def test_what_a_model_can_is_told_before_it_is_offered() -> None:
    _, plain = post("/api/show", {"model": "fake-1m"}, ScriptedPredictor())
    assert plain["capabilities"] == ["completion", "insert"]
    assert plain["model_info"]["redraft.context_length"] == 4096
    _, talks = post("/api/show", {"model": "fake-1m"}, ScriptedPredictor(statuses=[CHATTY]))
    assert talks["capabilities"] == ["completion", "insert", "tools"]


def test_the_version_is_that_of_the_release() -> None:
    assert got("/api/version", ScriptedPredictor())["version"][0].isdigit()


def test_sizes_and_digests_are_those_on_disk() -> None:
    name = "redraft-0.5b"
    described = info(name)
    if described.default_variant not in ready_variants(described):
        pytest.skip(f"the weights of {name} are not here")
    ready = ModelStatus("ready", f"{name} {described.default_variant}", "CPU", None, "", 4096)
    [model, _] = got("/api/tags", ScriptedPredictor(statuses=[ready]))["models"]
    assert model["size"] > 100_000_000
    assert len(bytes.fromhex(model["digest"])) == 32
    assert datetime.fromisoformat(model["modified_at"]).year >= 2026
    elsewhere = got("/api/tags", ScriptedPredictor())["models"][0]
    assert (elsewhere["size"], elsewhere["digest"]) == (0, "")
