"""The playground in a real browser, and servers of it in this process or another."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.model.records import Predictor
from redraft.server.app import create_app
from redraft.server.http.listen import listen
from redraft.server.settings import Settings

from support.command import RUN
from support.editors.vscode_studio import Browser


@dataclass
class Page:
    """The page, and what it shows."""

    browser: Browser

    def open(self, url: str, **how: Any) -> None:
        self.browser.do("open", url=url, selector="#code", **how)

    def press(self, *keys: str) -> None:
        self.browser.do("press", keys=keys)

    def type(self, text: str, delay_ms: int = 15) -> None:
        self.browser.do("type", text=text, delay=delay_ms)

    def select(self, text: str) -> None:
        """Select the first ``text`` of the field, as with the mouse."""
        start = self.code().index(text)
        script = f"document.getElementById('code').setSelectionRange({start}, {start + len(text)})"
        self.evaluate(f"document.getElementById('code').focus(), {script}")

    def until(self, expression: str, timeout_s: float = 30) -> None:
        """Wait until an expression is true.

        It is asked for again and again, because the page's policy lets no script evaluate texts.
        """
        end = time.monotonic() + timeout_s
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} is not true: {self.text('body')}"
            time.sleep(0.03)

    def evaluate(self, expression: str) -> Any:
        return self.browser.do("evaluate", expression=expression)

    def text(self, selector: str) -> str:
        """Return the text of an element, "" if there is none."""
        return str(self.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''"))

    def code(self) -> str:
        """Return what the field holds."""
        return str(self.evaluate("document.getElementById('code').value"))

    def await_text(self, selector: str, part: str, timeout_s: float = 30) -> None:
        """Wait until an element holds ``part``."""
        text = f"document.querySelector({selector!r})?.textContent"
        self.until(f"{text}?.includes({part!r})", timeout_s)

    def picture(self, path: Path) -> None:
        self.browser.do("screenshot", path=str(path))


@contextmanager
def page() -> Iterator[Page]:
    """Start a browser."""
    browser = Browser(Path(os.environ["REDRAFT_VSCODE_DIR"]))
    try:
        yield Page(browser)
    finally:
        browser.close()


@contextmanager
def served_beside(predictor: Predictor, settings: Settings | None = None) -> Iterator[str]:
    """Serve from another thread, because a browser blocks this one; yield the address."""
    chosen = settings or Settings(shutdown_s=0.1)
    urls: list[str] = []
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        app = create_app(predictor, chosen)
        async with listen(app, host="127.0.0.1", port=0, shutdown_s=chosen.shutdown_s) as url:
            urls.append(url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20), "the server does not listen"
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


@contextmanager
def redraft_serve(**settings: str) -> Iterator[str]:
    """Start ``redraft serve`` on a free port; yield the address of the page that it prints."""
    variables = {f"REDRAFT_{name.upper()}": value for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "serve", "--port", "0"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        printed = (re.search(r"open (http\S+) in a browser", line) for line in process.stderr)
        yield next(found[1] for found in printed if found)
    finally:
        process.terminate()
        process.communicate(timeout=30)
