"""A real VS Code in a real browser, with our extension in it and a scripted model behind it.

VS Code is code-server, the browser is Chromium; ``editor-clients/vscode/e2e/install.sh DIR`` puts
them where ``REDRAFT_VSCODE_DIR`` says. Knows VS Code's page, nothing of what tests expect of it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lsp_process import SERVER

CLIENT = Path(__file__).parents[1] / "editor-clients" / "vscode"
CODE_SERVER = Path("node_modules/code-server/out/node/entry.js")
_NODE = shutil.which("node")
_CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
#: What ``build.mjs --native`` adds to the manifest.
PROPOSALS = ["inlineCompletionsAdditions"]
PATIENCE_S = 240.0  # with what takes a second where the machine has nothing else to do


def missing() -> str:
    """Why VS Code cannot be driven here, "" where it can."""
    if _NODE is None:
        return "no node on the PATH"
    folder = os.environ.get("REDRAFT_VSCODE_DIR")
    how = "editor-clients/vscode/e2e/install.sh DIR installs code-server"
    if not folder:
        return f"REDRAFT_VSCODE_DIR is not set; {how}"
    if not (Path(folder) / CODE_SERVER).exists():
        return f"no code-server in REDRAFT_VSCODE_DIR={folder}; {how}"
    if _CHROMIUM is None:
        return "no chromium on the PATH and none named by CHROMIUM"
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


# --- one test's window -----------------------------------------------------------------------

#: The text in the status item of the extension, as screen readers get it.
STATUS = "document.querySelector('[id=\"redraft.redraft.redraft\"] a')?.getAttribute('aria-label')"


#: Where the cursor is: "Ln 4, Col 11".
POSITION = "(document.querySelector('[id=\"status.editor.selection\"]')?.textContent.trim() ?? '')"


@dataclass
class Window:
    """A project opened in VS Code, with a scripted model behind its language server."""

    studio: Studio
    folder: Path  # the project
    log: Path  # of the model
    outcomes_log: Path
    name: str  # of the test

    # --- doing ---------------------------------------------------------------------------------

    def press(self, *keys: str) -> None:
        self.studio.browser.do("press", keys=keys)

    def type(self, text: str, delay_ms: int = 15) -> None:
        self.studio.browser.do("type", text=text, delay=delay_ms)

    def measure(self, text: str, delay_ms: int) -> list[float]:
        """Type; ms from each key to the frame that shows it."""
        found: list[float] = self.studio.browser.do("measure", text=text, delay=delay_ms)
        return found

    def go_to(self, line: int, column: int) -> None:
        """1-based."""
        self.press("Control+g")
        self.until("document.activeElement?.closest('.quick-input-widget')")
        self.type(f"{line}:{column}", 0)
        self.press("Enter")
        self.until("!document.activeElement?.closest('.quick-input-widget')")

    def open(self, name: str) -> None:
        """From the explorer, to stay. While VS Code starts it draws the explorer anew, and a click
        in between is lost: whoever clicks then clicks again."""
        row = f'.explorer-folders-view .monaco-list-row[aria-label^="{name}"]'
        opened = f"document.querySelector('.tab.active[data-resource-name=\"{name}\"]') !== null"
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(opened):
            assert time.monotonic() < end, f"{name} does not open"
            self.studio.browser.do("click", selector=row, count=2)
            with suppress(AssertionError):
                self.until(opened, 5.0)

    def command(self, title: str) -> None:
        """By the palette."""
        self.press("F1")
        self.until("document.activeElement?.closest('.quick-input-widget')")
        self.type(title, 0)
        self.until(f"{_ROWS}[0]?.includes({json.dumps(title)})")
        self.press("Enter")

    def choose(self, label: str) -> None:
        """In an open menu."""
        self.until(f"{_ROWS}.some(row => row.includes({json.dumps(label)}))")
        self.type(label, 0)
        self.until(f"{_ROWS}[0]?.includes({json.dumps(label)})")
        self.press("Enter")

    def answer(self, button: str) -> None:
        """A notification."""
        selector = f".notification-toast a.monaco-button:text-is({json.dumps(button)})"
        self.studio.browser.do("click", selector=selector)

    def picture(self, what: str) -> Path:
        path = self.studio.pictures / f"{self.name}-{what}.png".replace("-.", ".")
        self.studio.browser.do("screenshot", path=str(path))
        return path

    def keep_log(self) -> None:
        """The messages between VS Code and the server, beside the pictures."""
        logs = self.studio.tools.parent.glob("data/logs/*/exthost*/redraft.redraft/*.log")
        newest = max(logs, key=lambda log: log.stat().st_mtime, default=None)
        if newest is not None:
            shutil.copy(newest, self.studio.pictures / f"{self.name}-failed.log")

    # --- looking -------------------------------------------------------------------------------

    def until(self, expression: str, timeout_s: float = PATIENCE_S) -> Any:
        return self.studio.browser.do("until", expression=expression, timeout=1000 * timeout_s)

    def evaluate(self, expression: str) -> Any:
        return self.studio.browser.do("evaluate", expression=expression)

    def ghost(self) -> str:
        return str(self.evaluate(GHOST))

    def await_ghost(self, text: str, first: bool = False) -> None:
        """Until there is ghost text that holds ``text``, or ``first`` begins with it."""
        holds = "trim().startsWith" if first else "includes"
        self.until(f"{GHOST}.{holds}({json.dumps(text)})")

    def type_until_ghost(self, piece: str, text: str) -> None:
        """Type the same again and again, as long as no ghost text holds ``text``."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.ghost():
            assert time.monotonic() < end, f"no ghost text {text!r}"
            self.type(piece)
            with suppress(AssertionError):
                self.until(f"{GHOST}.includes({json.dumps(text)})", 5.0)

    def await_no_ghost(self) -> None:
        self.until(f"{GHOST} === ''")

    def hints(self) -> str:
        return str(self.evaluate(HINTS))

    def await_hint(self, text: str) -> None:
        self.until(f"{HINTS}.includes({json.dumps(text)})")

    def await_near(self) -> None:
        """Until the shown edit is in sight, so that Tab takes it."""
        self.until(f"{HINTS} === 'Tab'")

    def await_no_hint(self) -> None:
        self.until(f"{HINTS} === ''")

    def status(self) -> str:
        return str(self.evaluate(STATUS))

    def await_status(self, text: str, timeout_s: float = PATIENCE_S) -> None:
        self.until(f"{STATUS}?.includes({json.dumps(text)})", timeout_s)

    def await_ready(self) -> None:
        """Until the server runs and has its model. It may have said more since it said "ready":
        whoever waits for that word alone waits in vain on a slow machine."""
        self.until(f"/^Redraft: (?!not started|the server |model still|no model)/.test({STATUS})")

    def await_toast(self, text: str) -> None:
        self.until(f"{TOASTS}.some(toast => toast.includes({json.dumps(text)}))")

    def toasts(self) -> list[str]:
        found: list[str] = self.evaluate(TOASTS)
        return found

    def saved(self, name: str) -> str:
        """What is in the editor, by way of the disk."""
        file = self.folder / name
        written_ns = file.stat().st_mtime_ns
        if self.evaluate("document.querySelector('.tab.active.dirty') !== null"):
            self.press("Control+s")
            self.until("!document.querySelector('.tab.active.dirty')")
            _wait(lambda: file.stat().st_mtime_ns != written_ns, f"{name} is not written")
        return file.read_text(encoding="utf-8")

    def asked(self) -> list[dict[str, Any]]:
        """What the model was asked so far."""
        if not self.log.exists():
            return []
        entries = map(json.loads, self.log.read_text().splitlines())
        return [entry for entry in entries if entry["event"] == "asked"]

    def outcomes(self) -> list[str]:
        return self.outcomes_log.read_text().splitlines() if self.outcomes_log.exists() else []

    def await_outcome(self, text: str, times: int = 1) -> None:
        """Which suggestion it was depends on how often the typist was overtaken on the way."""
        _wait(
            lambda: sum(text in line for line in self.outcomes()) >= times,
            f"no {text!r} in the outcomes",
        )


def _wait(holds: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


#: Ghost text: what stands in the cursor's line, then the lines below it.
GHOST = (
    "[[...document.querySelectorAll('.editor-instance span.ghost-text-decoration')]"
    ".map(e => e.textContent).join(''),"
    " ...[...document.querySelectorAll('.editor-instance .suggest-preview-text .view-line')]"
    ".map(e => e.textContent)]"
    ".join('\\n').replaceAll('\\u00a0', ' ')"
)

#: What our decorations say: words of ours are set as the content of pseudo-elements.
HINTS = (
    "[...document.querySelectorAll('.editor-instance .view-line span[class*=\"ced-\"]')]"
    ".map(e => getComputedStyle(e, '::after').content)"
    ".filter(c => c.startsWith('\"')).map(c => JSON.parse(c)).join('\\n')"
    ".replaceAll('\\u00a0', ' ')"
)

#: What notifications say.
TOASTS = "[...document.querySelectorAll('.notification-toast')].map(e => e.textContent)"

_ROWS = (
    "[...document.querySelectorAll('.quick-input-list .monaco-list-row')]"
    ".map(e => e.getAttribute('aria-label') ?? '')"
)


@contextmanager
def window(
    studio: Studio,
    folder: Path,
    name: str,
    files: dict[str, str],
    script: dict[str, Any],
    settings: dict[str, Any] | None = None,
    size: tuple[int, int] = (1280, 800),
) -> Iterator[Window]:
    """Open the first of ``files`` in a project of its own; the cursor is at its beginning."""
    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    (project / ".vscode").mkdir(parents=True)
    for path, text in files.items():
        (project / path).write_text(text, encoding="utf-8")
    log, outcomes = folder / "model.log", folder / "outcomes.log"
    told = {**script, "log": str(log), "outcomes": str(outcomes)}
    server = {
        "redraft.server.path": sys.executable,
        "redraft.server.arguments": [str(SERVER), json.dumps(told)],
        "redraft.trace.server": "messages",
    }
    configured = json.dumps({**server, **(settings or {})})
    (project / ".vscode" / "settings.json").write_text(configured)
    opened = Window(studio, project, log, outcomes, name)
    _open(studio, project, next(iter(files)), size)
    try:
        yield opened
    except BaseException:
        opened.picture("failed")
        opened.keep_log()
        raise


def _open(studio: Studio, project: Path, file: str, size: tuple[int, int]) -> None:
    host = f"127.0.0.1:{studio.port}"
    payload = json.dumps([["openFile", f"vscode-remote://{host}{project / file}"]])
    url = f"http://{host}/?folder={quote(str(project))}&payload={quote(payload)}"
    studio.browser.do("open", url=url, width=size[0], height=size[1])
