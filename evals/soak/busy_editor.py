"""Somebody who types and asks all the time, whatever happens to the processes: what chaos is
measured by."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from .editor import Editor, Ended, ask_at, change_of
from .installation import Installation, resident
from .tally import Tally

#: Seconds in which suggestions come again, at the latest.
READY_S = 60.0
URI = "file:///soak/chaos.py"
_LINE = "def f{0}(a, b):\n    return \n\n"


class BusyEditor:
    """One editor with one document; recording is on."""

    def __init__(self, installation: Installation, chance: random.Random, tally: Tally) -> None:
        self.installation, self.chance, self.tally = installation, chance, tally
        self.editor = self._new_editor()
        self._version = 0
        self._typed = 0  # changes sent to this server
        self.confirmed = 0  # of them, those it answered a question after
        self.asked_ms: list[float] = []  # until each answer

    def _new_editor(self) -> Editor:
        installation = self.installation
        return Editor(
            installation.commands.lsp,
            installation.environment(),
            installation.root / "lsp.log",
            self.tally,
        )

    async def open(self) -> None:
        self._typed = self.confirmed = 0
        await self.editor.start(self.installation.project, prefetch=False)
        await self.editor.request(
            "workspace/executeCommand", {"command": "redraft.record", "arguments": ["on"]}
        )
        text = _LINE.format(self.chance.randrange(10**6))
        item = {"uri": URI, "languageId": "python", "version": self._version, "text": text}
        await self.editor.notify("textDocument/didOpen", {"textDocument": item})

    async def close(self) -> None:
        await self.editor.stop()

    async def anew(self) -> None:
        """A new language server in place of the one that ended."""
        self.editor = self._new_editor()
        await self.open()

    async def typing(self, changes: int) -> None:
        for _ in range(changes):
            await self.type()
        await self.ask_or_fail()

    async def type(self) -> None:
        self._version += 1
        self._typed += 1
        at = {"line": 0, "character": 0}
        put = _LINE.format(self.chance.randrange(10**6)) if self._version % 50 else "#"
        change: dict[str, Any] = {"text": put}
        if self._version % 50:  # else the whole text, so that it stays short
            change["range"] = {"start": at, "end": at}
        await self.editor.notify("textDocument/didChange", change_of(URI, self._version, [change]))

    async def ask(self) -> dict[str, Any]:
        typed, began = self._typed, self.tally.clock()
        answer = await self.editor.request(
            "textDocument/inlineCompletion", ask_at(URI, 1, 11, invoked=True)
        )
        self.asked_ms.append(1e3 * (self.tally.clock() - began))
        self.confirmed = max(self.confirmed, typed)
        engine = self.installation.engine()
        self.tally.sample(resident(self.editor.pid, engine.pid if engine else None))
        result: dict[str, Any] = answer.get("result") or {}
        return result

    async def ask_or_fail(self) -> None:
        """A question of which only matters that it is over."""
        with contextlib.suppress(TimeoutError, Ended):
            await self.ask()

    async def until_suggested(self) -> bool:
        """Whether the model answers within :data:`READY_S`: what it says may be nothing."""
        began = self.tally.clock()
        while self.tally.clock() - began < READY_S:
            with contextlib.suppress(TimeoutError, Ended):
                await self.type()
                if _is_of_the_model(await self.ask()):
                    return True
            await asyncio.sleep(0.05)
        return False


def _is_of_the_model(result: dict[str, Any]) -> bool:
    """Did the model answer, be it that there is nothing to suggest?"""
    reason = str(result.get("reason", ""))
    troubles = (
        *("load", "engine", "does not answer", "written to"),
        *("slow", "not yet", "no model", "the model cannot"),
    )
    return bool(result.get("items")) or not any(word in reason.lower() for word in troubles)
