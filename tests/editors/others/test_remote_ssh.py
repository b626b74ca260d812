"""The recipes of ``editor-clients/remote.md``, typed word for word, with a real ssh to loopback."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.editors.lsp_process import LspProcess
from support.editors.neovim import needs_neovim, neovim
from support.editors.vscode_desk import Open
from support.editors.vscode_studio import missing
from support.ssh import Shell, await_true, free_port, is_open, there

CLIENTS = Path(__file__).parents[3] / "editor-clients"
PAGE = (CLIENTS / "remote.md").read_text("utf-8")
#: The ports of the page: a test has others, as several may run at once.
PORTS = ("7331", "7341")


class Page:
    """The page with free ports in place of those that it names."""

    def __init__(self) -> None:
        self.ports = {name: free_port() for name in PORTS}

    def blocks(self, heading: str, language: str) -> list[str]:
        """Return the examples of a section in one language."""
        section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.M)
        assert section is not None, heading
        found: list[str] = re.findall(rf"```{language}\n(.*?)\n```", section[1], re.DOTALL)
        return [re.sub("|".join(PORTS), lambda p: str(self.ports[p[0]]), each) for each in found]


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def shell(tmp_path: Path, spawn: type[subprocess.Popen[bytes]]) -> Iterator[Shell]:
    with there(tmp_path, spawn) as opened:
        yield opened


Connect = Callable[..., LspProcess]
KEY = "a-key-of-this-test"
THERE, BACK = "The model there", "The files there, the model here"
STDIO = "The language server there"


@pytest.fixture
def connect(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Yield a function that starts a language server by its command, as an editor does."""
    for name, value in shell.environment().items():
        monkeypatch.setenv(name, value)
    started: list[LspProcess] = []

    def start(command: str) -> LspProcess:
        started.append(LspProcess({}, tmp_path, command=command.split()))
        started[-1].initialize(initializationOptions={"timeoutMs": 500})
        started[-1].status("ready")
        started[-1].open("# typed\n")
        return started[-1]

    yield start
    for client in started:
        client.process.kill()
        client.process.communicate()


def serve(shell: Shell, page: Page, command: str, **environment: str) -> subprocess.Popen[bytes]:
    port = page.ports["7331"]
    return shell.listening(command, port, REDRAFT_PORT=str(port), **environment)


def written(client: LspProcess, line: int) -> list[str]:
    return [each["insertText"] for each in client.complete(line, 0)["result"]["items"]]


def reason(client: LspProcess, line: int) -> str:
    told: str = client.complete(line, 0)["result"]["reason"]
    return told


def type_line(client: LspProcess, line: int) -> None:
    client.insert(line, 0, "# typed\n", line + 1)


def ssh_of(starter: subprocess.Popen[bytes]) -> psutil.Process:
    """Return the ssh that a loop of the page, or an editor, has started."""
    found: list[psutil.Process] = []

    def look() -> bool:
        children = psutil.Process(starter.pid).children(recursive=True)
        found[:] = [each for each in children if each.name() == "ssh"]
        return bool(found)

    await_true(look, "no ssh was started")
    return found[0]


def test_the_model_is_there_and_the_editor_here(shell: Shell, page: Page, connect: Connect) -> None:
    server, tunnel, command = page.blocks(THERE, "sh")
    serve(shell, page, server)
    shell.listening(tunnel, page.ports["7341"])
    client = connect(command)
    type_line(client, 1)
    assert written(client, 2) == ["seen(2)"]


def test_files_are_there_and_the_model_here_with_a_key(
    shell: Shell, page: Page, connect: Connect
) -> None:
    server, tunnel = page.blocks(BACK, "sh")
    serve(shell, page, server, REDRAFT_API_KEY=KEY)
    shell.listening(tunnel, page.ports["7341"])
    *_, command = page.blocks(THERE, "sh")
    client = connect(f"ssh there REDRAFT_API_KEY={KEY} {command}")
    type_line(client, 1)
    assert written(client, 2) == ["seen(2)"]


def test_a_tunnels_end_is_said_and_typing_is_not_lost(
    shell: Shell, page: Page, connect: Connect
) -> None:
    server, tunnel, command = page.blocks(THERE, "sh")
    serve(shell, page, server)
    loop, port = shell.listening(tunnel, page.ports["7341"]), page.ports["7341"]
    client = connect(command)
    loop.send_signal(signal.SIGSTOP)  # the loop would build it again
    ssh_of(loop).kill()
    await_true(lambda: not is_open(port), "the tunnel is still there")
    type_line(client, 1)
    told = reason(client, 2)
    assert f"127.0.0.1:{port} does not answer (Connection refused)" in told
    assert "the ssh tunnel" in told
    client.status("does not answer")
    type_line(client, 2)
    loop.send_signal(signal.SIGCONT)
    client.status("ready")  # by itself
    assert written(client, 3) == ["seen(3)"]


def test_a_server_that_ends_is_said_and_comes_back(
    shell: Shell, page: Page, connect: Connect
) -> None:
    command, tunnel, editor = page.blocks(THERE, "sh")
    server = serve(shell, page, command)
    shell.listening(tunnel, page.ports["7341"])
    client = connect(editor)
    shell.end(server)
    type_line(client, 1)
    assert "'redraft serve' runs there, at the other end if this is a tunnel" in reason(client, 2)
    serve(shell, page, command)
    client.status("ready")
    assert written(client, 2) == ["seen(2)"]


def test_a_silent_network_holds_nothing_up_and_goes_on(
    shell: Shell, page: Page, connect: Connect
) -> None:
    server, tunnel, command = page.blocks(THERE, "sh")
    serve(shell, page, server)
    ssh = ssh_of(shell.listening(tunnel, page.ports["7341"]))
    client = connect(command)
    ssh.suspend()
    type_line(client, 1)
    assert "the model took longer than 0.5 s" in reason(client, 2)
    assert client.is_alive()
    ssh.resume()
    assert written(client, 2) == ["seen(2)"]


def test_the_language_server_is_there(shell: Shell, page: Page, connect: Connect) -> None:
    client = connect(*page.blocks(STDIO, "sh"))
    type_line(client, 1)
    assert written(client, 2) == ["seen(2)"]
    assert client.end() == 0


@needs_neovim
def test_neovim_starts_a_language_server_over_ssh(
    shell: Shell, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config,) = page.blocks(STDIO, "lua")
    for name, value in shell.environment().items():
        monkeypatch.setenv(name, value)
    with neovim(tmp_path, "# typed\n", "nil", init=config) as editor:
        editor.keys("o# typed<CR>x = ")
        editor.sees("x = seen(2)")
        ssh_of(editor.process).kill()
        editor.until(lambda: "the server ended" in editor.why())
        editor.keys("<Esc>o# typed")
        editor.until(lambda: "ready" in editor.why())  # the plugin connects again, by itself
        editor.keys("<CR>x = ")
        editor.sees("x = seen(3)")


def test_editor_settings_are_the_commands_of_the_page(page: Page) -> None:
    for section in (THERE, STDIO):
        *_, command = page.blocks(section, "sh")
        settings = json.loads("{" + page.blocks(section, "json")[0] + "}")
        path = settings.get("redraft.server.path", "redraft")
        assert [path, *settings["redraft.server.arguments"]] == command.split()
        (lua,) = page.blocks(section, "lua")
        assert re.findall(r'"([^"]+)"', lua)[1:] == command.split()


def test_the_extension_runs_where_the_files_are() -> None:
    manifest = json.loads((CLIENTS / "vscode" / "package.json").read_text("utf-8"))
    assert manifest["extensionKind"] == ["workspace"]
    (container,) = re.findall(r"^```json\n(\{.*?\n\})\n```", PAGE, re.DOTALL | re.M)
    settings = json.loads(container)["customizations"]["vscode"]["settings"]
    assert set(settings) <= set(manifest["contributes"]["configuration"]["properties"])
    assert settings["redraft.server.arguments"][:2] == ["lsp", "--server"]


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.timeout(1_200)
def test_vscode_starts_a_language_server_over_ssh(shell: Shell, page: Page, project: Open) -> None:
    settings = json.loads("{" + page.blocks(STDIO, "json")[0] + "}")
    assert settings["redraft.server.path"] == "ssh"
    settings["redraft.server.path"] = shell.command("ssh")  # the one that knows ``there``
    with project(settings=settings, files={"a.py": "# typed\n"}) as w:
        w.go_to(2, 1)
        w.type("# typed\n")
        w.type_until_ghost("x = ", "seen(2)")
