"""The commands of the pages, typed against a scripted model and against real weights."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redraft.model.records import ModelStatus
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ready_variants
from redraft.server.app import create_app
from redraft.server.commands.console import until_ready
from redraft.server.engine_process.open import open_engine
from redraft.server.http.listen import listen
from redraft.server.settings import Settings
from support.editors.neovim import NVIM, needs_neovim
from support.editors.predictor import ScriptedPredictor, chatting, editing
from support.playground import served_beside
from support.served import post

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "editor-clients" / "http.md", ROOT / "server" / "README.md"]
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(r"^curl .*?(?=\n```)", page.read_text("utf-8"), re.DOTALL | re.M)
]
#: Programs of the pages, by the package that they import.
PROGRAMS = {
    program.split()[1]: program
    for program in re.findall(r"(?<=```python\n).*?(?=```)", PAGES[0].read_text("utf-8"), re.DOTALL)
}
SETTINGS = PAGES[0].read_text("utf-8").split("## Settings of known clients")[1].split("\n## ")[0]
DEFAULT = "redraft-0.5b"
FEEDBACK = "/feedback"
INFILL = ("/v1/fim/completions", "/v1/completions", "/infill", "/api/generate")


def asked(example: str) -> tuple[str, dict[str, Any]]:
    path = re.search(r"http://127\.0\.0\.1:7331(\S+)", example)
    body = re.search(r"-d '(.*)'", example, re.DOTALL)
    assert path and body, example
    return path[1], json.loads(body[1])


def test_the_pages_show_every_route() -> None:
    assert {asked(example)[0] for example in EXAMPLES} == {
        *INFILL,
        *("/v1/edit/completions", "/feedback"),
        *("/v1/chat/completions", "/v1/systemone", "/api/chat"),
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_answered_by_a_scripted_model(example: str) -> None:
    path, body = asked(example)
    if "chat" in path or "systemone" in path:
        status, answer = post(path, body, chatting("Hello."))
        assert status == 200 and ("Hello." in json.dumps(answer) or "answers" in answer)
        return
    predictor = editing((4, 4, ["print(area(3, 4))"]))
    predictor.statuses = [ModelStatus("ready", str(body.get("model", DEFAULT)), "CPU")]
    status, answer = post(path, body, predictor)
    if path == FEEDBACK:  # the id on the page is only an example
        assert (status, answer["error"]["code"]) == (404, "unknown_request_id")
        return
    assert (status, len(predictor.requests)) == (200, 1)
    written = "print(area(3, 4))" if is_edit(path, body) else "return a + b"
    assert written in json.dumps(answer)


@pytest.mark.parametrize("package", PROGRAMS)
def test_a_program_runs_word_for_word(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(package, reason=f"the dev extra installs {package}")
    with served_beside(chatting("x")) as url:
        exec(PROGRAMS[package].replace("http://127.0.0.1:7331", url), {})
    chance, label = capsys.readouterr().out.split()
    assert 0 < float(chance) < 1 and label == "bug"


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", SETTINGS, re.DOTALL)


def test_settings_in_json_and_yaml_can_be_read() -> None:
    for snippet in snippets("json"):
        json.loads(snippet if snippet.startswith("{") else f"{{{snippet}}}")
    yaml: Any = pytest.importorskip("yaml")
    [continues] = map(yaml.safe_load, snippets("yaml"))
    assert [each["roles"] for each in continues["models"]] == [["autocomplete"]]


@needs_neovim
@pytest.mark.parametrize("snippet", snippets("lua"))
def test_settings_in_lua_can_be_read(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "snippet.lua").write_text(snippet, "utf-8")
    (tmp_path / "check.lua").write_text("assert(loadfile(arg[1]))", "utf-8")
    command = [str(NVIM), "-u", "NONE", "-l", "check.lua", "snippet.lua"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


async def test_addresses_in_settings_exist() -> None:
    app = create_app(ScriptedPredictor(), Settings())
    routes = {route.resource.canonical for route in app.router.routes() if route.resource}
    paths = set(re.findall(r"http://127\.0\.0\.1:7331([\w/]*)", SETTINGS))
    assert paths - routes == {"", "/v1"} and len(paths) > 3
    assert re.findall(r"127\.0\.0\.1:(?!7331)", SETTINGS) == []


def needs_weights() -> None:
    described = info(DEFAULT)
    if described.default_variant not in ready_variants(described):
        pytest.skip(f"no weights of {DEFAULT} here; 'redraft model pull {DEFAULT}' gets them")


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    """(path, body, status, answer) of every example in the pages' order."""
    needs_weights()
    return asyncio.run(_all())


async def _all() -> list[Any]:
    settings = Settings(model=DEFAULT, shutdown_s=0.1)
    engine, found = open_engine(settings), []
    try:
        assert (await until_ready(engine)).state == "ready"
        app = create_app(engine, settings)
        async with (
            listen(app, host="127.0.0.1", port=0, shutdown_s=0.1) as url,
            aiohttp.ClientSession(base_url=url) as client,
        ):
            for path, body in map(asked, EXAMPLES):
                if path == FEEDBACK:  # the id on the page is only an example
                    body["request_id"] = next(a["id"] for p, _, _, a in found if "v1" in p)
                async with client.post(path, json=body) as answer:
                    found.append((path, body, answer.status, await answer.json()))
    finally:
        await engine.close()
    return found


def text_of(answer: Any) -> str:
    """Return what is suggested, in any format."""
    if "choices" not in answer:
        return str(answer.get("content", answer.get("response")))
    choice = answer["choices"][0]
    return str(choice.get("text", choice.get("message", {}).get("content")))


def is_edit(path: str, body: dict[str, Any]) -> bool:
    return "edit" in path or "<[fim-" in str(body.get("prompt"))


@pytest.mark.usefixtures("spawn")
def test_every_example_is_answered(answers: list[Any]) -> None:
    assert len(answers) >= 9
    assert [(body, answer) for _, body, status, answer in answers if status != 200] == []


@pytest.mark.usefixtures("spawn")
def test_the_gaps_are_filled_with_what_belongs_there(answers: list[Any]) -> None:
    gaps = [(b, a) for p, b, _, a in answers if p in INFILL and not is_edit(p, b)]
    assert len(gaps) >= 5
    for body, answer in gaps:
        wanted = "sum(values)" if "mean" in str(body) else "a + b"
        assert text_of(answer).startswith(wanted), body


@pytest.mark.usefixtures("spawn")
def test_the_edits_add_an_argument_and_repeat_no_line(answers: list[Any]) -> None:
    edits = [(body, answer) for path, body, _, answer in answers if is_edit(path, body)]
    assert len(edits) == 3
    hidden = [answer for _, answer in edits if (answer.get("redraft") or {}).get("abstained")]
    assert len(hidden) < 2, "a busy machine ends one search too early at most"
    for body, answer in edits:
        if answer in hidden:
            continue
        written = text_of(answer)
        code = [line for line in written.splitlines() if re.search(r"^(def|    return) ", line)]
        assert len(code) == len(set(code)), (body, written)
        assert re.search(r"^(<.*>)?print\(area\(3, \w+\)\)", written, re.M), (body, answer)


@pytest.mark.usefixtures("spawn")
def test_the_readmes_command_writes_what_it_shows() -> None:
    needs_weights()
    readme = (ROOT / "README.md").read_text("utf-8")
    place = re.search(r"redraft complete (\S+)", readme)
    shown = re.search(r"^step +\d+ +'(.*)'\nredraft-0\.5b", readme, re.M)
    assert place and shown
    command = ["-c", "from redraft.server.commands.main import main; main()", "complete", place[1]]
    done = subprocess.run(
        [sys.executable, *command, "--model", DEFAULT, "--quiet"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (0, f"{shown[1]}\n"), done.stderr
