"""A language server over stdio with a scripted model: the process and a raw client for it.

Run as a script, this is the server: ``python lsp_process.py '{"answers": ["text"]}'``. What the
model is asked and what becomes of it goes to the file named by ``log``, one JSON object a line.
Imported, it gives the client.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SERVER = Path(__file__)
URI = "file:///w/project/a.py"


class LspProcess:
    """A client that says exactly what a test wants, well-formed or not.

    Args:
        folder: of the log of the scripted model, and of what the server says on standard error.
        start: ``subprocess.Popen``, or what starts a process under a guard.
        command: None: the server of this file, with the script.
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


def main() -> int:
    """The server side."""
    sys.path.insert(0, str(SERVER.parent))
    from fakes import FakePredictor, infill, rewrite
    from redraft.lsp.connection.server import run_stdio
    from redraft.lsp.settings import LspSettings
    from redraft.model import errors
    from redraft.model.records import ModelStatus

    script = json.loads(sys.argv[1])
    log = Path(script["log"])
    if "outcomes" in script:
        logging.basicConfig(filename=script["outcomes"], format="%(message)s")
        logging.getLogger("redraft.lsp.connection.client").setLevel(logging.DEBUG)

    def answer(entry: Any) -> Any:
        if isinstance(entry, str):
            return entry
        if "text" in entry:
            return lambda request: infill(request, entry["text"], confidence=entry["confidence"])
        if "edit" in entry:  # next edits change text, questions for ghost text get nothing
            return lambda request: (
                infill(request)
                if request.task == "infill"
                else rewrite(request, *entry["edit"], confidence=entry.get("confidence", 0.9))
            )
        if "ghost" in entry:  # whatever is asked, in any order
            return lambda request: by_rules(request, **entry)
        return getattr(errors, entry["error"], RuntimeError)(entry["message"])

    def by_rules(request: Any, ghost: str, edits: list[list[str]], confidence: float = 0.99) -> Any:
        """``ghost`` at the cursor; the first of ``edits`` that can be made."""
        if request.task == "infill":
            return infill(request, ghost, confidence=confidence)
        made = (rewrite(request, *edit, confidence=confidence) for edit in edits)
        return next((each for each in made if each.candidates), rewrite(request, "", ""))

    def note(event: str, cursor: int, **more: Any) -> None:
        with log.open("a") as file:
            file.write(json.dumps({"event": event, "cursor": cursor, **more}) + "\n")

    class LoggedPredictor(FakePredictor):
        async def predict(self, request: Any, on_step: Any = None) -> Any:
            more: dict[str, Any] = {}
            if request.task != "infill":
                more |= {"task": request.task, "region": request.region}
            if request.related:
                more["related"] = [[each.path, each.text] for each in request.related]
            if request.edits:
                more["edits"] = [[edit.path, edit.diff] for edit in request.edits]
            note("asked", request.cursor, **more)
            os.write(1, b"a stray line, as native libraries write them\n")
            known = len(self.cancelled)
            if delays := script.get("delays_s"):  # before each answer, the last one ever after
                self.delay_s = delays[min(len(self.requests), len(delays) - 1)]
            try:
                return await super().predict(request, on_step)
            finally:
                if len(self.cancelled) > known:
                    note("cancelled", request.cursor)

    predictor = LoggedPredictor(
        answers=[answer(entry) for entry in script["answers"]],
        delay_s=script.get("delay_s", 0.0),
        statuses=[ModelStatus(**s) for s in script.get("statuses", [])],
    )
    code = run_stdio(predictor, LspSettings(**script.get("settings", {})))
    note("closed" if predictor.closed else "left open", 0)
    return code


if __name__ == "__main__":
    sys.exit(main())
