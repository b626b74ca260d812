"""A project in a real VS Code with a scripted model: user actions, and what the page shows."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.editors.lsp_process import SERVER
from support.editors.vscode_studio import PATIENCE_S, Studio

#: The text in the status item of the extension, as screen readers get it.
STATUS = "document.querySelector('[id=\"redraft.redraft.redraft\"] a')?.getAttribute('aria-label')"


#: What the status item shows.
ITEM = "(document.querySelector('[id=\"redraft.redraft.redraft\"] a')?.textContent ?? '')"

#: Where the cursor is: "Ln 4, Col 11".
POSITION = "(document.querySelector('[id=\"status.editor.selection\"]')?.textContent.trim() ?? '')"


#: A file, and edits that follow when ``area`` gets another parameter.
CODE = """import math


def area(r):
    return 3.14 * r * r


def ratio(x):
    y = x + 1
    return y


print(area(2))
"""
CALL = ["area(2)", "area(2, 3.14)"]
BODY = ["    y = x + 1\n", "    y = x + math.pi\n    print(y)\n"]


@dataclass
class Window:
    """A project opened in VS Code, with a scripted model behind its language server."""

    studio: Studio
    folder: Path  # the project
    log: Path  # of the model
    outcomes_log: Path
    name: str  # of the test

    def press(self, *keys: str) -> None:
        self.studio.browser.do("press", keys=keys)

    def type(self, text: str, delay_ms: int = 15) -> None:
        self.studio.browser.do("type", text=text, delay=delay_ms)

    def go_to(self, line: int, column: int) -> None:
        """1-based."""
        self.press("Control+g")
        self.until("document.activeElement?.closest('.quick-input-widget')")
        self.type(f"{line}:{column}", 0)
        self.press("Enter")
        self.until("!document.activeElement?.closest('.quick-input-widget')")

    def open(self, name: str) -> None:
        """Open a file from the explorer.

        While VS Code starts, it redraws the explorer and loses clicks, so the click is repeated.
        """
        row = f'.explorer-folders-view .monaco-list-row[aria-label^="{name}"]'
        opened = f"document.querySelector('.tab.active[data-resource-name=\"{name}\"]') !== null"
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(opened):
            assert time.monotonic() < end, f"{name} does not open"
            self.studio.browser.do("click", selector=row, count=2)
            with suppress(AssertionError):
                self.until(opened, 5.0)

    def command(self, title: str) -> None:
        """Run a command of the palette."""
        self.press("F1")
        self.until("document.activeElement?.closest('.quick-input-widget')")
        self.type(title, 0)
        self.until(f"{_ROWS}[0]?.includes({json.dumps(title)})")
        self.press("Enter")

    def choose(self, label: str) -> None:
        """Choose an entry of an open menu."""
        self.until(f"{_ROWS}.some(row => row.includes({json.dumps(label)}))")
        self.type(label, 0)
        self.until(f"{_ROWS}[0]?.includes({json.dumps(label)})")
        self.press("Enter")

    def answer(self, button: str) -> None:
        """Answer a notification."""
        selector = f".notification-toast a.monaco-button:text-is({json.dumps(button)})"
        self.studio.browser.do("click", selector=selector)

    def picture(self, what: str) -> Path:
        path = self.studio.pictures / f"{self.name}-{what}.png".replace("-.", ".")
        self.studio.browser.do("screenshot", path=str(path))
        return path

    def keep_log(self) -> None:
        """Write the messages between VS Code and the server beside the pictures."""
        logs = self.studio.tools.parent.glob("data/logs/*/exthost*/redraft.redraft/*.log")
        newest = max(logs, key=lambda log: log.stat().st_mtime, default=None)
        if newest is not None:
            shutil.copy(newest, self.studio.pictures / f"{self.name}-failed.log")

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

    def await_reason(self, text: str) -> None:
        """Open the list of the latest suggestions until a row says ``text``.

        The status bar has room for one of two reasons, and the answers come in any order.
        """
        end = time.monotonic() + PATIENCE_S
        while True:
            self.command("Redraft: Why Is Nothing Shown?")
            with suppress(AssertionError):
                self.until(f"{_ROWS}.some(row => row.includes({json.dumps(text)}))", 3.0)
                self.press("Escape")
                return
            assert time.monotonic() < end, f"no reason {text!r} in {self.evaluate(_ROWS)}"
            self.press("Escape")

    def await_ready(self) -> None:
        """Wait until the server runs and has its model.

        Later messages may have replaced "ready", so any message but those of a start counts.
        """
        self.until(f"/^Redraft: (?!the server |model still|no model)/.test({STATUS})")

    def await_toast(self, text: str) -> None:
        self.until(f"{TOASTS}.some(toast => toast.includes({json.dumps(text)}))")

    def toasts(self) -> list[str]:
        found: list[str] = self.evaluate(TOASTS)
        return found

    def saved(self, name: str) -> str:
        """Save, and return the text of the file."""
        file = self.folder / name
        written_ns = file.stat().st_mtime_ns
        if self.evaluate("document.querySelector('.tab.active.dirty') !== null"):
            self.press("Control+s")
            self.until("!document.querySelector('.tab.active.dirty')")
            _wait(lambda: file.stat().st_mtime_ns != written_ns, f"{name} is not written")
        return file.read_text(encoding="utf-8")

    def asked(self) -> list[dict[str, Any]]:
        """Return the requests to the model so far."""
        if not self.log.exists():
            return []
        entries = map(json.loads, self.log.read_text().splitlines())
        return [entry for entry in entries if entry["event"] == "asked"]

    def outcomes(self) -> list[str]:
        return self.outcomes_log.read_text().splitlines() if self.outcomes_log.exists() else []

    def await_outcome(self, text: str, times: int = 1) -> None:
        """Wait for an outcome of any suggestion; which one depends on the timing."""
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
    """Open the first of ``files`` in a new project; the cursor is at its beginning."""
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


def change_signature(w: Window) -> None:
    """Add a parameter to ``area`` of ``CODE``."""
    w.await_ready()
    w.go_to(4, 11)
    w.type(", pi")


Open = Callable[..., AbstractContextManager[Window]]
