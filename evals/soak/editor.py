"""An editor's end of a real language server: process, pipes, and who waits for which answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .tally import Tally

#: Seconds after which an answer counts as lost.
LOST_S = 15.0
#: The same of the first one: before it a process starts, maybe on a machine with much to do.
START_S = 120.0
#: Codes that are answers like any other: cancelled, content modified.
EXPECTED_ERRORS = frozenset((-32800, -32801))

Answer = dict[str, Any]


class Ended(Exception):
    """The process is gone."""


class Editor:
    """One client and its server.

    Args:
        command: runs the server on its stdin.
        said: gets its standard error.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], said: Path, tally: Tally
    ) -> None:
        self._command, self._environment, self._said = command, environment, said
        self._tally = tally
        self._ids = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, folder: Path, **options: Any) -> None:
        with self._said.open("ab") as said:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                env=dict(self._environment),
            )
        self._reading = asyncio.create_task(self._read())
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        params: Answer = {"processId": None, "capabilities": {}, "workspaceFolders": folders}
        await self.request("initialize", params | {"initializationOptions": options}, START_S)
        await self.notify("initialized", {})

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def stop(self, kill: bool = False) -> None:
        """Ends it in good order; with kill -9 if it is asked for, or does not go."""
        if self._process is None:
            return
        if not kill and self.is_running:
            with contextlib.suppress(Ended, TimeoutError, OSError):
                await asyncio.wait_for(self.request("shutdown", None), 5)
                await self.notify("exit", None)
                await asyncio.wait_for(self._process.wait(), 5)
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def notify(self, method: str, params: Any) -> None:
        await self.send({"method": method, "params": params})

    async def request(self, method: str, params: Any, lost_s: float = LOST_S) -> Answer:
        """Its answer, an error included; counted, with its time.

        Raises:
            Ended: the process went before it answered.
            TimeoutError: there was no answer in ``lost_s``; it counts as lost.
        """
        self._ids += 1
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[self._ids] = waiting
        began, tally = self._tally.clock(), self._tally
        try:
            await self.send({"id": self._ids, "method": method, "params": params})
            answer: Answer = await asyncio.wait_for(waiting, lost_s)
        except TimeoutError:
            tally.lost += 1
            tally.breaks(f"{method} was not answered within {lost_s:g} s")
            raise
        tally.answers += 1
        tally.latency_ms.append(1e3 * (tally.clock() - began))
        if "error" in answer and answer["error"].get("code") not in EXPECTED_ERRORS:
            tally.errors += 1
        return answer

    async def send(self, message: dict[str, Any]) -> None:
        await self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def raw(self, body: bytes) -> None:
        """One message, well-formed or not."""
        assert self._process is not None and self._process.stdin is not None
        self._tally.events += 1
        try:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            await self._process.stdin.drain()
        except OSError as error:
            raise Ended(str(error)) from error

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        stream = self._process.stdout
        try:
            while True:
                head = await stream.readuntil(b"\r\n\r\n")
                length = int(head.split(b"Content-Length:")[1].split(b"\r\n")[0])
                await self._take(json.loads(await stream.readexactly(length)))
        except (asyncio.IncompleteReadError, Ended, OSError):
            pass
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(Ended("the language server ended"))
                    waiting.exception()  # looked at, should nobody wait for it

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message:  # a question of the server's: nothing is there
                await self.send({"id": message["id"], "result": None})
            return
        waiting = self._waiting.pop(message.get("id") or 0, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)


def change_of(uri: str, version: int, changes: list[dict[str, Any]]) -> dict[str, Any]:
    """The parameters of ``textDocument/didChange``."""
    return {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}


def ask_at(uri: str, line: int, character: int, invoked: bool) -> dict[str, Any]:
    """The parameters of ``textDocument/inlineCompletion``."""
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": 1 if invoked else 2},
    }
