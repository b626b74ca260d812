"""Messages of other projects' clients, replayed against the language server.

One file in ``sequences/`` per client, written from the protocol; each says whether the client was
seen to send the same. Answers have to hold at least what a file expects; "$any" is any value,
"$name" is what a step kept.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from redraft.model.records import EditRequest
from redraft.server.settings import Settings
from support.editors.lsp import LspClient, lsp_client
from support.editors.predictor import WRITTEN, Answer, ScriptedPredictor, rewrite
from support.served import served

FOLDER = Path(__file__).parents[2] / "sequences"
PAGES = Path(__file__).parents[3] / "editor-clients"


def sequence(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read


ORIGINS = {
    "reconstructed from the protocol facts, not captured",
    "reconstructed; checked against what the client's own code sent in Neovim 0.11.4",
}
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
OVER_LSP = [name for name in NAMES if "model" in sequence(name)]
OVER_HTTP = [name for name in NAMES if "model" not in sequence(name)]


def filled(value: Any, kept: dict[str, Any]) -> Any:
    """``value`` with what earlier steps kept in place of "$name"."""
    if isinstance(value, dict):
        return {key: filled(each, kept) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, kept) for each in value]
    return kept.get(value[1:], value) if isinstance(value, str) and value[:1] == "$" else value


def assert_holds(found: Any, wanted: Any, where: str) -> None:
    """``found`` has at least what is wanted; lists have exactly as many entries."""
    if wanted == "$any":
        assert found is not None, where
    elif isinstance(wanted, dict):
        assert isinstance(found, dict), f"{where}: {found}"
        for key, each in wanted.items():
            assert key in found, f"{where} has no {key}: {found}"
            assert_holds(found[key], each, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list), f"{where}: {found}"
        assert len(found) == len(wanted), f"{where}: {found}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_holds(one, other, f"{where}.{number}")
    else:
        assert found == wanted, where


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def play(client: LspClient, steps: list[dict[str, Any]]) -> None:
    kept: dict[str, Any] = {}
    for number, step in enumerate(steps):
        where, params = f"step {number}", filled(step.get("params"), kept)
        if "notify" in step:
            client.notify(step["notify"], params)
        elif "cancelled" in step:
            id_ = client.ask(step["cancelled"], params)
            client.notify("$/cancelRequest", {"id": id_})
            answer = client.answer(id_)  # whichever came first
            assert "result" in answer or answer["error"]["code"] == -32800, f"{where}: {answer}"
        elif "error" in step:
            answer = client.request(step["request"], params)
            assert answer["error"]["code"] == step["error"], f"{where}: {answer}"
        else:
            answer = client.request(step["request"], params)
            assert "result" in answer, f"{where} ({step['request']}): {answer}"
            assert_holds(answer["result"], filled(step["result"], kept), where)
            for name, path in step.get("keep", {}).items():
                kept[name] = at(answer["result"], path)
    assert client.is_alive()


@pytest.mark.parametrize("name", OVER_LSP)
def test_a_client_gets_its_answer_and_no_popup(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "redraft.lsp.session")
    told = sequence(name)
    model = told["model"]
    with lsp_client(*model["answers"], settings=model["settings"]) as client:
        play(client, told["steps"])
        assert client.popups() == []
    assert "unknown method" not in caplog.text
    if told["outcomes"] is not None:
        wanted = [f"suggestion {outcome}" for outcome in told["outcomes"]]
        assert [line for line in caplog.messages if "redraft-" in line] == wanted


@pytest.mark.parametrize("name", OVER_HTTP)
async def test_a_client_over_http_gets_what_it_asks_for(name: str) -> None:
    told = sequence(name)

    def answer(request: EditRequest) -> Answer:
        return WRITTEN if request.task == "infill" else rewrite(request, *told["edit"])

    predictor = ScriptedPredictor([answer])
    async with served(predictor, None) as (_, client):
        for number, step in enumerate(told["steps"]):
            async with client.post(step["post"], json=step["body"]) as answer:
                assert answer.status == 200, await answer.text()
                assert_holds(await answer.json(), step["result"], f"step {number}")


def test_every_documented_client_is_replayed() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.rglob("*.md"))
    assert len(NAMES) >= 10
    for name in NAMES:
        assert sequence(name)["origin"] in ORIGINS
        assert f"sequences/{name}.json" in pages, f"no page names sequences/{name}.json"


def test_the_settings_for_zed_are_answered() -> None:
    settings = json.loads((PAGES / "zed" / "settings.json").read_text(encoding="utf-8"))
    predictions = settings["edit_predictions"]
    chosen = predictions[predictions["provider"]]
    url, steps = chosen["api_url"], sequence("zed")["steps"]
    assert url == f"http://127.0.0.1:{Settings().port}{steps[0]['post']}"
    assert chosen["prompt_format"] == "zeta2"
    assert "<[fim-suffix]>" in steps[0]["body"]["prompt"]  # what that format's prompts begin with
