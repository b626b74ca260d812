"""A real VS Code (code-server) with our extension, in a real browser (Chromium).

``editor-clients/vscode/e2e/install.sh DIR`` installs them; ``REDRAFT_VSCODE_DIR`` names the folder.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).parents[3] / "editor-clients" / "vscode"
CODE_SERVER = Path("node_modules/code-server/out/node/entry.js")
_NODE = shutil.which("node")
_CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
INSTALL = "editor-clients/vscode/e2e/install.sh DIR installs it"
#: What ``build.mjs --native`` adds to the manifest.
PROPOSALS = ["inlineCompletionsAdditions"]
PATIENCE_S = 240.0  # with what takes a second where the machine has nothing else to do


def no_browser() -> str:
    """Return why a browser cannot be driven here, or ""."""
    if _CHROMIUM is None:
        return "no chromium on the PATH and none named by CHROMIUM"
    if _NODE is None:
        return "no node on the PATH"
    folder = os.environ.get("REDRAFT_VSCODE_DIR")
    if not folder:
        return f"REDRAFT_VSCODE_DIR is not set; {INSTALL}"
    if not (Path(folder) / "node_modules" / "playwright-core").exists():
        return f"no playwright-core in REDRAFT_VSCODE_DIR={folder}; {INSTALL}"
    return ""


def missing() -> str:
    """Return why VS Code cannot be driven here, or ""."""
    if reason := no_browser():
        return reason
    folder = os.environ["REDRAFT_VSCODE_DIR"]
    if not (Path(folder) / CODE_SERVER).exists():
        return f"no code-server in REDRAFT_VSCODE_DIR={folder}; {INSTALL}"
    if not (CLIENT / "node_modules" / "esbuild").exists():
        return f"'npm ci' was not run in {CLIENT}"
    return ""


class Browser:
    """The page, driven by ``e2e/driver.mjs``."""

    def __init__(self, folder: Path) -> None:
        assert _NODE is not None
        assert _CHROMIUM is not None
        command = [_NODE, str(CLIENT / "e2e" / "driver.mjs"), str(folder), _CHROMIUM]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def do(self, command: str, **options: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **options}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line or '{"error": "the browser ended"}')
        if "error" in answer:
            raise AssertionError(f"{command} {options}: {answer['error']}")
        return answer["value"]

    def close(self) -> None:
        try:
            self.do("close")
            self._process.wait(timeout=20)
        finally:
            self._process.kill()
            self._process.wait()


@dataclass
class Studio:
    """code-server and a browser, shared by all tests of a module."""

    port: int
    browser: Browser
    pictures: Path  # where screenshots are kept
    tools: Path  # first on the PATH of VS Code; where a test may put commands


@contextmanager
def studio(folder: Path, pictures: Path, native: bool = False) -> Iterator[Studio]:
    """Build the extension, start VS Code with it, and a browser.

    Args:
        native: the extension asks for the proposed API, as ``npm run package:native`` makes it;
            code-server grants it.
    """
    installed = Path(os.environ["REDRAFT_VSCODE_DIR"])
    extensions = folder / "extensions"
    _install_extension(extensions, native)
    _install_renamer(extensions)
    port, tools = _free_port(), folder / "tools"
    tools.mkdir()
    process = _start(installed, folder, extensions, port)
    browser = None
    try:
        _await_server(port, process)
        browser = Browser(installed)
        pictures.mkdir(parents=True, exist_ok=True)
        yield Studio(port, browser, pictures, tools)
    finally:
        if browser is not None:
            browser.close()
        process.terminate()
        process.wait(timeout=30)


def _install_extension(extensions: Path, native: bool) -> None:
    assert _NODE is not None
    subprocess.run([_NODE, "build.mjs"], cwd=CLIENT, check=True, timeout=120)
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    if native:
        manifest["enabledApiProposals"] = PROPOSALS
    target = extensions / f"redraft.redraft-{manifest['version']}"
    (target / "dist").mkdir(parents=True)
    (target / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    shutil.copy(CLIENT / "dist" / "extension.js", target / "dist")
    shutil.copytree(CLIENT / "media", target / "media")


def _install_renamer(extensions: Path) -> None:
    """Install an extension that renames in files of one name; see ``renamer.js``."""
    target = extensions / "test.renamer-1.0.0"
    target.mkdir()
    manifest = {
        "name": "renamer",
        "publisher": "test",
        "version": "1.0.0",
        "engines": {"vscode": "^1.91.0"},
        "main": "renamer.js",
        "activationEvents": ["onLanguage:python"],
    }
    (target / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("renamer.js"), target)


USER_SETTINGS = {
    "files.autoSave": "off",
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.enableExperiments": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.ignoreRecommendations": True,
    "git.enabled": False,
    "editor.minimap.enabled": False,
    "editor.cursorBlinking": "solid",
    "workbench.reduceMotion": "on",
    "editor.fontFamily": "monospace",
    "editor.wordBasedSuggestions": "off",
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "workbench.colorTheme": "Default Dark Modern",
}


def _start(installed: Path, folder: Path, extensions: Path, port: int) -> subprocess.Popen[bytes]:
    assert _NODE is not None
    user = folder / "data" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps(USER_SETTINGS))
    home = folder / "home"
    home.mkdir()
    # No server but those of the tests. VS Code asks a login shell for the PATH.
    path = [each for each in os.get_exec_path() if not (Path(each) / "redraft").exists()]
    joined = os.pathsep.join([str(folder / "tools"), *path])
    (home / ".profile").write_text(f"export PATH={shlex.quote(joined)}\n")
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": joined,
        "SHELL": "/bin/sh",
        "EXTENSIONS_GALLERY": "{}",
    }
    command = [
        *(_NODE, str(installed / CODE_SERVER), "--auth", "none", "--disable-telemetry"),
        *("--bind-addr", f"127.0.0.1:{port}", "--disable-update-check"),
        *("--user-data-dir", str(folder / "data"), "--extensions-dir", str(extensions)),
    ]
    with (folder / "code-server.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_server(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        assert process.poll() is None, "code-server ended; see code-server.log"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"code-server does not answer at port {port}")
