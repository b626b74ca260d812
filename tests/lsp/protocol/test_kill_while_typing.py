"""Type while the engine process and the language server are killed with SIGKILL.

A change counts as confirmed when the server has answered a request that was sent after it. Every
confirmed change must be in the recording, and answers must come back after each kill.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.editors.lsp import URI, insert_texts
from support.editors.lsp_process import LspProcess
from support.editors.recordings import replayed

#: A language server with recording, in front of an engine process that answers with its process id.
SERVER = """
from redraft.lsp.protocol.stdio import run_stdio
from redraft.lsp.editor_settings import LspSettings
from redraft.server.engine_process.client import EngineClient
from redraft.server.settings import load_settings

engine = EngineClient(load_settings(), engine="support.models.engines:process_engine")
run_stdio(engine, LspSettings())
"""
START = "def total(prices):\n    return \n"
#: Every kind of kill, in an order that the seed decides.
KILLS = (("engine",), ("server",), ("server",), ("engine", "server"))
KEYS = 40  # typed in each round, at most
ANSWER_S = 30.0  # within which an answer must come back after a kill


pytestmark = pytest.mark.usefixtures("spawn")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tests = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    chosen = {
        "PYTHONPATH": tests,
        "REDRAFT_RUNTIME_DIR": str(tmp_path / "run"),
        "REDRAFT_LOG_DIR": str(tmp_path / "log"),
        "REDRAFT_RECORDINGS_DIR": str(tmp_path / "recordings"),
        "REDRAFT_BACKOFF_S": "0.02",
        "REDRAFT_SHUTDOWN_S": "0.2",
        "REDRAFT_IDLE_EXIT_S": "120",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    for engine in engines(tmp_path):
        with contextlib.suppress(psutil.Error):
            engine.kill()
            engine.wait(10)


def engines(folder: Path) -> list[psutil.Process]:
    """Return the living engine processes of this test."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if str(folder / "run") in line and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


class TypingEditor:
    """An editor with one document, which restarts its language server after a kill."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self._text, self._version = START, 0
        self.start()

    def start(self) -> None:
        """Start a language server, turn recording on and open the document."""
        self.client = LspProcess({}, self._folder, command=[sys.executable, "-c", SERVER])
        self.client.initialize()
        params = {"command": "redraft.record", "arguments": ["on"]}
        self.client.request("workspace/executeCommand", params)
        self._version += 1
        self.client.open(self._text, version=self._version)
        self.texts = {self._version: self._text}  # by version, since this server was started
        self.asked: dict[int, int] = {}  # request ids: the version each was sent after

    def type(self) -> None:
        """Insert a letter at a random place of the last line."""
        line = self._text.count("\n")
        last = self._text.rpartition("\n")[2]
        at, letter = self._rng.randrange(len(last) + 1), self._rng.choice("abc é😀")
        self._version += 1
        units = len(last[:at].encode("utf-16-le")) // 2
        self.client.insert(line, units, letter, self._version)
        start = len(self._text) - len(last) + at
        self._text = self._text[:start] + letter + self._text[start:]
        self.texts[self._version] = self._text

    def ask(self) -> int:
        """Request ghost text behind ``return`` and return the id of the request."""
        id_ = self.client.ask_completion(1, 11, uri=URI)
        self.asked[id_] = self._version
        return id_

    def call(self) -> int:
        """Send a request that is answered at once and not recorded, and return its id."""
        params = {"command": "redraft.accept", "arguments": ["nothing"]}
        id_ = self.client.ask("workspace/executeCommand", params)
        self.asked[id_] = self._version
        return id_

    def type_for_a_while(self) -> None:
        """Type and send requests at random, mostly without waiting for answers."""
        for _ in range(self._rng.randrange(5, KEYS)):
            self.type()
            if self._rng.random() < 0.6:
                id_ = self.ask() if self._rng.random() < 0.3 else self.call()
                if self._rng.random() < 0.2:
                    self.client.answer(id_)
            time.sleep(self._rng.random() * 0.01)

    def answered_by(self, gone: int | None) -> int:
        """Return the id of the engine process that answers once ``gone`` no longer does."""
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            self.type()
            for text in insert_texts(self.client.answer(self.ask())):
                if int(text) != gone:
                    return int(text)
            time.sleep(0.05)
        raise AssertionError(f"no answer within {ANSWER_S:g} s: {self.client.messages[-5:]}")

    def confirmed(self) -> int:
        """Return the last version that an answer confirmed. The server must have ended."""
        with pytest.raises(AssertionError, match="ended"):
            while True:
                self.client.next_message()
        answered = {m.get("id") for m in self.client.messages if "method" not in m}
        return max((v for id_, v in self.asked.items() if id_ in answered), default=0)

    def check_recording(self) -> int:
        """Assert that the recording holds every confirmed change; return their number."""
        confirmed, first = self.confirmed(), min(self.texts)
        newest = max(
            (self._folder / "recordings").glob("*.jsonl"), key=lambda f: f.stat().st_ctime_ns
        )
        [recorded] = replayed(newest).values()
        kept = [version for version, text in self.texts.items() if text == recorded]
        assert kept, f"the recording leads to a text that was never typed: {recorded!r}"
        assert kept[-1] >= confirmed, f"changes after {kept[-1]} are lost, {confirmed} is confirmed"
        assert "Traceback" not in self.client.stderr_file.read_text()
        return max(0, confirmed - first)


def test_kills_lose_no_change_and_answers_return(folder: Path) -> None:
    rng = random.Random(7)
    editor = TypingEditor(folder, rng)
    confirmed = 0
    try:
        engine = editor.answered_by(None)
        for killed in rng.sample(KILLS, len(KILLS)):
            editor.type_for_a_while()
            if "engine" in killed:
                psutil.Process(engine).kill()
            if "server" in killed:
                editor.client.process.kill()
                editor.client.process.wait()
                confirmed += editor.check_recording()
                editor.start()
            else:
                editor.type_for_a_while()
            engine = editor.answered_by(engine if "engine" in killed else None)
            assert [process.pid for process in engines(folder)] == [engine]
        editor.type_for_a_while()
    finally:
        editor.client.process.kill()
        editor.client.process.wait()
    confirmed += editor.check_recording()
    assert confirmed > 20, "too little was confirmed to show anything"
