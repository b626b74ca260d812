"""A language server over stdio with a scripted model (``scripted_server.py``), and a raw client."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("scripted_server.py")
URI = "file:///w/project/a.py"


class LspProcess:
    """A client that says exactly what a test wants, well-formed or not.

    Args:
        folder: of the log of the scripted model, and of what the server says on standard error.
        start: ``subprocess.Popen``, or what starts a process under a guard.
        command: None: the scripted server.
    """

    def __init__(
        self,
        script: dict[str, Any],
        folder: Path,
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
        command: list[str] | None = None,
    ) -> None:
        self.log = folder / "model.log"
        self.stderr_file = folder / "stderr.txt"
        scripted = [sys.executable, str(SERVER), json.dumps({**script, "log": str(self.log)})]
        with self.stderr_file.open("wb") as stderr:
            self.process = start(
                command or scripted, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )
        self.messages: list[dict[str, Any]] = []  # everything that came, in order
        self._incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._ids = 0
        self._looked_at = 0  # how many of the messages until() has been through
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            self._incoming.put(json.loads(stream.read(length)))
        self._incoming.put(None)

    # --- sending ---------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def body(self, body: bytes) -> None:
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send(self, **message: Any) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: Any = None) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, params: Any = None) -> int:
        self._ids += 1
        self.send(id=self._ids, method=method, params=params)
        return self._ids

    # --- receiving -------------------------------------------------------------------------

    def next_message(self, timeout_s: float = 60) -> dict[str, Any]:
        try:
            message = self._incoming.get(timeout=timeout_s)
        except queue.Empty:
            raise AssertionError(f"the server said nothing; so far {self.messages}") from None
        if message is None:
            raise AssertionError(f"the server ended: {self.stderr_file.read_text()}")
        self.messages.append(message)
        return message

    def answer(self, id_: int | None) -> dict[str, Any]:
        """The response to ``id_``, result or error."""
        for message in self.messages:
            if "method" not in message and message.get("id") == id_:
                return message
        while True:
            message = self.next_message()
            if "method" not in message and message.get("id") == id_:
                return message

    def next_answer(self) -> dict[str, Any]:
        """The next response, whatever request it belongs to."""
        while "method" in (message := self.next_message()):
            pass
        return message

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.answer(self.ask(method, params))

    def until(self, method: str) -> dict[str, Any]:
        """The next message of this method after the one returned before."""
        while True:
            while self._looked_at < len(self.messages):
                message = self.messages[self._looked_at]
                self._looked_at += 1
                if message.get("method") == method:
                    return message
            self.next_message()

    def status(self, part: str) -> dict[str, Any]:
        """The next status whose message holds ``part``."""
        while True:
            params: dict[str, Any] = self.until("didChangeStatus")["params"]
            if part in params["message"]:
                return params

    def statuses(self) -> list[str]:
        told = [m for m in self.messages if m.get("method") == "didChangeStatus"]
        return [m["params"]["message"] for m in told]

    def popups(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if m.get("method", "").startswith("window/showMessage")]

    # --- the usual steps -------------------------------------------------------------------

    def initialize(self, **params: Any) -> dict[str, Any]:
        fields = {"processId": None, "rootUri": "file:///w/project", "capabilities": {}, **params}
        result: dict[str, Any] = self.request("initialize", fields)["result"]
        self.notify("initialized", {})
        return result

    def open(self, text: str, uri: str = URI, version: int | None = 1, **item: Any) -> None:
        document = {"uri": uri, "languageId": "python", "version": version, "text": text, **item}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def insert(self, line: int, character: int, text: str, version: int, uri: str = URI) -> None:
        at = {"line": line, "character": character}
        change = {"range": {"start": at, "end": at}, "text": text}
        document = {"uri": uri, "version": version}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
        )

    def complete(self, line: int, character: int, **fields: Any) -> dict[str, Any]:
        return self.answer(self.ask_completion(line, character, **fields))

    def ask_completion(self, line: int, character: int, uri: str = URI, **fields: Any) -> int:
        document = {"uri": uri, **fields.pop("document", {})}
        params = {
            "textDocument": document,
            "position": {"line": line, "character": character},
            "context": {"triggerKind": 1},
            **fields,
        }
        return self.ask("textDocument/inlineCompletion", params)

    def ask_edit(self, line: int, character: int, version: int, **fields: Any) -> int:
        """The next edit, as clients written for another server ask for it."""
        method = fields.pop("method", "textDocument/copilotInlineEdit")
        document = {"uri": fields.pop("uri", URI), "version": version}
        position = {"line": line, "character": character}
        return self.ask(method, {"textDocument": document, "position": position, **fields})

    def edits(self, line: int, character: int, version: int, **fields: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.answer(
            self.ask_edit(line, character, version, **fields)
        )["result"]["edits"]
        return found

    def asked(self) -> list[dict[str, Any]]:
        """What the model was asked and what became of it, so far."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def await_event(self, event: str, times: int = 1) -> None:
        end = time.monotonic() + 60
        while sum(entry["event"] == event for entry in self.asked()) < times:
            if time.monotonic() > end:
                raise AssertionError(f"no {event!r} in {self.asked()}")
            time.sleep(0.02)

    def is_alive(self) -> bool:
        """Does it still answer? A request that needs no document shows it."""
        params = {"command": "redraft.accept", "arguments": ["nothing"]}
        return "result" in self.request("workspace/executeCommand", params)

    def end(self) -> int:
        """Shut down in good order; returns the exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def lsp_process(folder: Path, *answers: Any, **script: Any) -> Iterator[LspProcess]:
    """A started server whose model gives ``answers``; ended however the test ends."""
    client = LspProcess({"answers": list(answers), **script}, folder)
    try:
        yield client
    finally:
        client.process.kill()
        client.process.wait()
        for stream in (client.process.stdin, client.process.stdout):
            with contextlib.suppress(OSError):
                stream and stream.close()


def insert_texts(response: dict[str, Any]) -> list[str]:
    return [item["insertText"] for item in response["result"]["items"]]
