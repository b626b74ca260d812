"""A raw client of the language server, and the server in this process with a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.protocol.jsonrpc import RedraftServer
from redraft.lsp.protocol.stdio import MessageReader, converse
from redraft.lsp.recording.counts import StatisticsFolder
from redraft.lsp.recording.recordings_folder import Recordings
from redraft.lsp.server import create_server
from redraft.lsp.session import Session
from redraft.model.records import Predictor

from support.editors.scripted_server import LoggedPredictor


def unconnected(predictor: Predictor, clock: Callable[[], float]) -> RedraftServer:
    """Return a server without a connection, in a clock's time, without an index."""
    return RedraftServer(Session(predictor, LspSettings(), clock, reads=False), predictor)


URI = "file:///w/project/a.py"
CODE = "def area(r):\n    \n"
_PATIENCE_S = 60.0
_HEADER = re.compile(rb"Content-Length: (\d+)\r\n(?:[^\r\n]+\r\n)*\r\n")


class LspClient:
    """A client that sends exactly the messages of a test, well-formed or not."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []  # everything received, in order
        self._incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._received = b""  # the start of a message of which the rest is missing
        self._ids = 0
        self._looked_at = 0  # the number of messages that until() has examined

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Close the client's end of the connection."""
        raise NotImplementedError

    def wait(self) -> int:
        """Wait until the server has ended and return its exit code."""
        raise NotImplementedError

    def log_text(self) -> str:
        """Return the warnings and errors that the server has logged."""
        raise NotImplementedError

    def asked(self) -> list[dict[str, Any]]:
        """Return each question to the model and its outcome, so far."""
        raise NotImplementedError

    def _receive(self, data: bytes) -> None:
        """Take bytes of the server in; b"" is the end of the connection."""
        self._received += data
        while header := _HEADER.match(self._received):
            end = header.end() + int(header[1])
            if len(self._received) < end:
                return
            body, self._received = self._received[header.end() : end], self._received[end:]
            self._incoming.put(json.loads(body))
        if not data:
            self._incoming.put(None)
        if self._received[:8] not in (b"", b"Content-"[: len(self._received)]):
            self._incoming.put(None)  # no message: what follows cannot be read

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

    def next_message(self) -> dict[str, Any]:
        """Wait for the next message of the server."""
        try:
            message = self._incoming.get(timeout=_PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"no message came; so far {self.messages}") from None
        if message is None:
            raise AssertionError(f"the connection ended: {self.log_text()}")
        self.messages.append(message)
        return message

    def answer(self, id_: int | None) -> dict[str, Any]:
        """Return the response to ``id_``, result or error."""
        for message in self.messages:
            if "method" not in message and message.get("id") == id_:
                return message
        while True:
            message = self.next_message()
            if "method" not in message and message.get("id") == id_:
                return message

    def next_answer(self) -> dict[str, Any]:
        """Return the next response to any request."""
        while "method" in (message := self.next_message()):
            pass
        return message

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.answer(self.ask(method, params))

    def until(self, method: str) -> dict[str, Any]:
        """Return the next message of this method after the one returned before."""
        while True:
            while self._looked_at < len(self.messages):
                message = self.messages[self._looked_at]
                self._looked_at += 1
                if message.get("method") == method:
                    return message
            self.next_message()

    def status(self, part: str) -> dict[str, Any]:
        """Return the next status whose message contains ``part``."""
        while True:
            params: dict[str, Any] = self.until("didChangeStatus")["params"]
            if part in params["message"]:
                return params

    def statuses(self) -> list[str]:
        told = [m for m in self.messages if m.get("method") == "didChangeStatus"]
        return [m["params"]["message"] for m in told]

    def popups(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if m.get("method", "").startswith("window/showMessage")]

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
        """Ask for the next edit as clients written for another server do."""
        method = fields.pop("method", "textDocument/copilotInlineEdit")
        document = {"uri": fields.pop("uri", URI), "version": version}
        position = {"line": line, "character": character}
        return self.ask(method, {"textDocument": document, "position": position, **fields})

    def edits(self, line: int, character: int, version: int, **fields: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.answer(
            self.ask_edit(line, character, version, **fields)
        )["result"]["edits"]
        return found

    def command(self, name: str, *arguments: Any) -> dict[str, Any]:
        """Execute a command and return the answer, result or error."""
        return self.request(
            "workspace/executeCommand", {"command": name, "arguments": list(arguments)}
        )

    def await_event(self, event: str, times: int = 1) -> None:
        """Wait until the model has had ``times`` events of this kind."""
        end = time.monotonic() + _PATIENCE_S
        while sum(entry["event"] == event for entry in self.asked()) < times:
            if time.monotonic() > end:
                raise AssertionError(f"no {event!r} in {self.asked()}")
            time.sleep(0.005)

    def is_alive(self) -> bool:
        """Return true if the server answers a request that needs no document."""
        return "result" in self.command("redraft.accept", "nothing")

    def end(self) -> int:
        """Shut the server down in good order and return its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.wait()


class LspHere(LspClient):
    """A client and its server, which runs in a thread of this process.

    Args:
        script: the answers of the model and the settings, see ``scripted_server.py``.
    """

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__()
        self._asked: list[dict[str, Any]] = []
        self._code: int | None = None
        self._log = io.StringIO()
        self._loop = asyncio.new_event_loop()
        self._sent = asyncio.StreamReader(loop=self._loop)
        self._predictor = LoggedPredictor(script, self._note)
        self._settings = LspSettings(**script.get("settings", {}))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._handler = logging.StreamHandler(self._log)
        self._handler.setLevel(logging.WARNING)
        logging.getLogger().addHandler(self._handler)
        self._thread.start()

    def _note(self, entry: dict[str, Any]) -> None:
        self._asked.append(json.loads(json.dumps(entry)))

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                self._code = runner.run(self._serve())
            finally:
                self._receive(b"")

    async def _serve(self) -> int:
        server = create_server(
            self._predictor,
            settings=self._settings,
            recordings=Recordings(),
            statistics=StatisticsFolder(),
        )
        try:
            return await converse(server, MessageReader(self._sent), self)
        finally:
            await self._predictor.close()
            self._note({"event": "closed", "cursor": 0})

    def write(self, data: bytes) -> None:
        self._receive(data)

    def close(self) -> None:
        pass  # the end of the thread is the end of the connection

    def raw(self, data: bytes) -> None:
        self._loop.call_soon_threadsafe(self._sent.feed_data, data)

    def hang_up(self) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended already
            self._loop.call_soon_threadsafe(self._sent.feed_eof)

    def wait(self) -> int:
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive(), "the server does not end"
        assert self._code is not None, self.log_text()
        return self._code

    def log_text(self) -> str:
        return self._log.getvalue()

    def asked(self) -> list[dict[str, Any]]:
        return list(self._asked)

    def release(self) -> None:
        """End the server and stop listening to the log."""
        self.hang_up()
        self._thread.join(_PATIENCE_S)
        logging.getLogger().removeHandler(self._handler)
        assert not self._thread.is_alive(), "the server does not end"


@contextlib.contextmanager
def lsp_client(*answers: Any, **script: Any) -> Iterator[LspHere]:
    """Yield a client of a server in this process whose model gives ``answers``."""
    client = LspHere({"answers": list(answers), **script})
    try:
        yield client
    finally:
        client.release()


@contextlib.contextmanager
def opened(*answers: Any, **script: Any) -> Iterator[LspHere]:
    """Yield such a client with ``CODE`` open."""
    with lsp_client(*answers, **script) as client:
        client.initialize()
        client.open(CODE)
        yield client


def insert_texts(response: dict[str, Any]) -> list[str]:
    return [item["insertText"] for item in response["result"]["items"]]
