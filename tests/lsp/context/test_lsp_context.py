"""Parts of the workspace that the language server gives to the model."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from redraft.lsp import server
from redraft.lsp.context.gatherer import BUDGET
from redraft.lsp.server import create_server
from redraft.server.commands import show_context as command
from redraft.server.commands.complete import FilePlace
from support.editors.lsp import LspClient, lsp_client
from support.editors.predictor import READY, ScriptedPredictor
from support.editors.shop import CART, MAIN

pytestmark = pytest.mark.usefixtures("spawn")

SHOP = MAIN.replace(
    "    cart = Cart(customer)\n",
    "    cart = Cart(customer)\n    vault = Vault(cart)\n    ledger = Ledger(vault)\n",
)
AT = SHOP[: SHOP.index("    ledger")].count("\n")
FILES = {
    ".gitignore": "scratch/\n",
    "shop/main.py": SHOP,
    "shop/cart.py": CART,
    "shop/secrets.py": "class Vault:\n    combination = 4711\n",
    "scratch/ledger.py": "class Ledger:\n    pages = 12\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "space"
    (folder / ".git").mkdir(parents=True)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    return folder


class Editor:
    """A user who writes in ``shop/main.py`` of a workspace."""

    def __init__(self, client: LspClient, folder: Path, **options: Any) -> None:
        self.client = client
        self.uri = (folder / "shop" / "main.py").as_uri()
        self.version = 0
        client.initialize(rootUri=folder.as_uri(), initializationOptions=options)
        self.open()

    def open(self) -> None:
        self.client.open(SHOP, uri=self.uri, version=self.version)

    def related(self) -> dict[str, str]:
        """Type something, now in one line and now in another, and see what goes with it."""
        self.version += 1
        self.client.insert(AT + self.version % 2, 0, " ", self.version, uri=self.uri)
        return self.asked(AT + self.version % 2)

    def asked(self, line: int) -> dict[str, str]:
        self.client.complete(line, 0, uri=self.uri)
        return dict(self.client.asked()[-1].get("related", ()))

    def until(self, *paths: str) -> dict[str, str]:
        """Go on until these and no others are shown to the model."""
        end = time.monotonic() + 60
        while set(found := self.related()) != set(paths):
            assert time.monotonic() < end, f"{sorted(found)} in place of {paths}"
            time.sleep(0.05)
        return found


def test_definitions_elsewhere_reach_the_model(workspace: Path) -> None:
    (workspace / "zoo").mkdir()  # read last: what is ignored or secret would be there by then
    (workspace / "zoo" / "vault.py").write_text("class Vault:\n    lions = 3\n")
    with lsp_client() as client:
        editor = Editor(client, workspace)
        found = editor.until("shop/cart.py", "zoo/vault.py")
        assert "class Cart:" in found["shop/cart.py"]
        assert client.end() == 0
    told = str(client.asked())
    assert "lions = 3" in told
    assert "4711" not in told
    assert "pages = 12" not in told


def test_what_becomes_secret_is_taken_out_at_once(workspace: Path) -> None:
    (workspace / "shop" / "secrets.py").rename(workspace / "shop" / "vault.py")
    with lsp_client() as client:
        editor = Editor(client, workspace, secretGlobs=["*.vault"])
        editor.until("shop/cart.py", "shop/vault.py")
        settings = {"secretGlobs": ["vault.*"]}
        client.notify("workspace/didChangeConfiguration", {"settings": {"redraft": settings}})
        assert set(editor.related()) == {"shop/cart.py"}


def test_a_file_that_was_saved_is_read_again(workspace: Path) -> None:
    with lsp_client() as client:
        editor = Editor(client, workspace)
        editor.until("shop/cart.py")
        ledger = workspace / "shop" / "ledger.py"
        ledger.write_text("class Ledger:\n    pages = 12\n")
        client.notify("textDocument/didSave", {"textDocument": {"uri": ledger.as_uri()}})
        editor.until("shop/cart.py", "shop/ledger.py")


def test_another_folder_of_the_workspace_is_read_too(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "ledger.py").write_text("class Ledger:\n    pages = 12\n")
    with lsp_client() as client:
        editor = Editor(client, workspace)
        editor.until("shop/cart.py")
        event = {"added": [{"uri": other.as_uri(), "name": "other"}], "removed": []}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        editor.until("shop/cart.py", "ledger.py")


def test_the_command_shows_what_the_server_chooses(workspace: Path) -> None:
    file = workspace / "shop" / "main.py"
    place = FilePlace(file, AT + 1, 1)
    snapshot, gathered, _ = command.gather_at(place, BUDGET, lambda done, total: None)
    request = command.request_for(snapshot, gathered, "next_edit")
    with lsp_client() as client:
        editor = Editor(client, workspace)
        editor.until("shop/cart.py")
        document = {"textDocument": {"uri": editor.uri}}
        client.notify("textDocument/didClose", document)  # and with it what was chosen for it
        editor.open()
        params = {**document, "position": {"line": AT, "character": 0}}
        client.request("redraft/nextEdit", {**params, "context": {"triggerKind": 1}})
        asked = client.asked()[-1]
    assert asked["region"] == list(request.region or ())
    assert asked["related"] == [[each.path, each.text] for each in request.related]


def test_diagnostics_go_with_the_next_edit_question(workspace: Path) -> None:
    def told(line: Any, message: Any) -> dict[str, Any]:
        place = {"line": line, "character": 0}
        return {"range": {"start": place, "end": place}, "message": message, "severity": 1}

    with lsp_client() as client:
        editor = Editor(client, workspace)
        nonsense = ["", None, {}, told("1", "no line"), told(-1, "before"), told(AT, ["no text"])]
        params = {
            "textDocument": {"uri": editor.uri, "version": 0},
            "position": {"line": AT - 2, "character": 0},
            "diagnostics": [*nonsense, told(AT, "Ledger is not defined")],
            "context": {"triggerKind": 1},
        }
        client.request("textDocument/copilotInlineEdit", params)
        related = client.asked()[-1]["related"]
        row = "Ledger is not defined: ledger = Ledger(vault)"
        assert ["shop/main.py", row] in related


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "redraft-index"]


@pytest.mark.parametrize("ending", ["shutdown", "leave"])
async def test_the_index_ends_with_the_connection(workspace: Path, ending: str) -> None:
    client = create_server(ScriptedPredictor())
    client.session.workspace.folders = [workspace.as_uri()]
    before = set(threads())
    client.session.workspace.context.start()
    (thread,) = set(threads()) - before
    if ending == "shutdown":
        client.protocol.fm.features["shutdown"](None)
        await asyncio.to_thread(thread.join, 60)
    else:
        await client.leave()
    assert not thread.is_alive()
    client.session.workspace.context.start()  # settings that come too late
    assert set(threads()) == before
    await client.leave()


async def test_the_budget_is_the_models_once_it_told(workspace: Path) -> None:
    client = create_server(ScriptedPredictor(statuses=[READY]))
    assert client.session.workspace.context_tokens is None
    client.watch.start()
    while client.session.workspace.context_tokens is None:
        await asyncio.sleep(0)
    assert client.session.workspace.context_tokens == READY.context_tokens
    await client.leave()


async def test_no_reading_before_settings(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = create_server(ScriptedPredictor())
    client.session.workspace.folders, client.pulls_settings = [workspace.as_uri()], True
    told = asyncio.get_running_loop().create_future()
    asked = asyncio.Event()

    async def ask(params: Any) -> Any:
        asked.set()
        return await told

    monkeypatch.setattr(client, "workspace_configuration_async", ask)
    before = set(threads())
    starting = asyncio.ensure_future(server.HANDLERS["initialized"](client, {}))
    await asked.wait()
    assert set(threads()) == before
    told.set_result([{"secretGlobs": ["cart.*"]}])
    await starting
    assert len(set(threads()) - before) == 1
    assert client.session.workspace.settings.secret_globs[-1] == "cart.*"
    await client.leave()
