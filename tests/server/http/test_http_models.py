"""Names of models over HTTP: which are answered by the loaded one, and which are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import CHATTY, ScriptedPredictor
from support.served import post, served

INFILL = {"prompt": "x = ", "suffix": "\n"}
OLLAMA = {"prompt": "x = ", "stream": False}
EDIT = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", INFILL),
    ("/v1/completions", {"prompt": "x = "}),
    ("/v1/fim/completions", INFILL),
    ("/v1/edit/completions", EDIT),
    ("/infill", {"input_prefix": "x = "}),
    ("/api/generate", OLLAMA),
]


@pytest.mark.parametrize(("path", "body"), ASKED)
@pytest.mark.parametrize(
    "name", ["", None, "gpt-9", "mercury-coder", "codestral-latest", "fake-1m"]
)
def test_other_names_mean_the_loaded_one(path: str, body: dict[str, Any], name: str | None) -> None:
    status, answer = post(path, {**body, "model": name})
    assert (status, answer["model"]) == (200, "fake-1m")


@pytest.mark.parametrize(("path", "body"), [*ASKED, ("/api/show", {})])
def test_a_model_of_ours_not_loaded_is_an_error(path: str, body: dict[str, Any]) -> None:
    predictor = ScriptedPredictor()
    status, answer = post(path, {**body, "model": "redraft-9b"}, predictor)
    assert status == 404
    assert "'redraft-9b'" in str(answer["error"])
    assert "fake-1m, fake-1m-int8" in str(answer["error"])
    assert predictor.requests == []


async def test_an_unknown_models_error_lists_the_models() -> None:
    status = replace(CHATTY, chat_model="chatter-1b")
    async with (
        served(ScriptedPredictor(statuses=[status])) as (_, client),
        client.get("/v1/models") as listed,
        client.get("/v1/models/nope") as refused,
    ):
        names = [each["id"] for each in (await listed.json())["data"]]
        code, message = refused.status, (await refused.json())["error"]["message"]
    assert code == 404
    assert f"The models are {', '.join(names)}." in message
    assert len(names) > 2, "the model for conversations, too"


@pytest.mark.parametrize("name", ["my-coder", "my-coder-int8"])
def test_unloaded_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert post("/v1/completions", {**INFILL, "model": name})[0] == 200
    shipped = Path(__file__).parents[3] / "model" / "shipped" / "redraft-0.5b.json"
    folder = tmp_path / "my-coder"
    folder.mkdir()
    described = json.loads(shipped.read_text(encoding="utf-8"))
    imported = {
        **described,
        "name": "my-coder",
        "base": None,
        "adapter": None,
        "prebuilt": ["int8"],
    }
    imported["default_variant"] = "int8"
    (folder / "model.json").write_text(json.dumps(imported), encoding="utf-8")
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    status, answer = post("/v1/completions", {**INFILL, "model": name})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert "--model" in answer["error"]["message"]


def test_a_removed_model_is_refused_with_another() -> None:
    status, answer = post("/v1/completions", {**INFILL, "model": "redraft-135m"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert "use redraft-0.5b (redraft model pull redraft-0.5b)" in answer["error"]["message"]
