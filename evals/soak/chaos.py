"""*Chaos*: kill -9 at random moments, weights that change underfoot, a disk without room.

An editor types and asks all the time. After each blow its questions must be answered, or failed
with a reason, in :data:`ANSWER_S`; suggestions must come again within the time that a load takes;
never may two engines answer; and what the server had confirmed must be in the recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..figures.spread import Spread
from .editor import Editor, Ended, ask_at, change_of
from .house import House, resident
from .tally import Tally

#: Seconds in which a question is answered or failed with a reason, whatever happens meanwhile.
ANSWER_S = 2.0
#: Seconds in which suggestions come again, at the latest.
READY_S = 60.0
URI = "file:///soak/chaos.py"
_LINE = "def f{0}(a, b):\n    return \n\n"


@dataclass(frozen=True, slots=True)
class Amount:
    blows: int
    seconds: float


async def chaos(house: House, amount: Amount, seed: int, tally: Tally) -> None:
    desk = _Desk(house, random.Random(seed), tally)
    await desk.open()
    if not await desk.until_suggested():
        tally.breaks("there are no suggestions even before the first blow")
        return
    blows = desk.blows()
    until = tally.clock() + amount.seconds
    try:
        for number in range(amount.blows):
            if tally.clock() > until:
                break
            name = desk.chance.choice(list(blows))
            await desk.typing(desk.chance.randrange(1, 6))
            tally.counts[f"blows: {name}"] += 1
            await blows[name]()
            if not await desk.recovers(name):
                tally.breaks(f"blow {number}, {name}: no suggestion within {READY_S:g} s")
                break
    finally:
        await desk.close()
    ready, answers = Spread.of(desk.ready_ms), Spread.of(desk.after_ms)
    tally.figures |= {
        "suggestions again, p50 ms": ready.p50,
        "suggestions again, p99 ms": ready.p99,
        "answers after a blow, p50 ms": answers.p50,
        "answers after a blow, p99 ms": answers.p99,
        "answers after a blow beyond 2 s": sum(one > 1e3 * ANSWER_S for one in desk.after_ms),
    }


class _Desk:
    """An editor that goes on whatever happens."""

    def __init__(self, house: House, chance: random.Random, tally: Tally) -> None:
        self._house, self.chance, self._tally = house, chance, tally
        self._editor = self._new_editor()
        self._version = 0
        self._typed = 0  # changes sent to this server
        self._confirmed = 0  # of them, those it answered a question after
        self.ready_ms: list[float] = []
        self.after_ms: list[float] = []  # answers from a blow until suggestions came again

    def blows(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What can be done here."""
        found: dict[str, Callable[[], Awaitable[None]]] = {
            "engine killed": self._kill_engine,
            "language server killed": self._kill_editor,
        }
        if sys.platform != "win32":
            found["engine stopped"] = self._stop_engine
        if hasattr(psutil.Process, "rlimit"):
            found["disk full"] = self._fill_disk
        if self._weights():
            found["weights truncated"] = lambda: self._harm(0)
            found["weights overwritten"] = lambda: self._harm(64)
        return found

    # --- the editor ----------------------------------------------------------------------------

    def _new_editor(self) -> Editor:
        house = self._house
        return Editor(house.commands.lsp, house.environment(), house.root / "lsp.log", self._tally)

    async def open(self) -> None:
        self._typed = self._confirmed = 0
        await self._editor.start(self._house.project, prefetch=False)
        await self._editor.request(
            "workspace/executeCommand", {"command": "redraft.record", "arguments": ["on"]}
        )
        text = _LINE.format(self.chance.randrange(10**6))
        item = {"uri": URI, "languageId": "python", "version": self._version, "text": text}
        await self._editor.notify("textDocument/didOpen", {"textDocument": item})

    async def close(self) -> None:
        await self._editor.stop()

    async def typing(self, changes: int) -> None:
        for _ in range(changes):
            await self._type()
        with contextlib.suppress(TimeoutError, Ended):
            await self._ask()

    async def _type(self) -> None:
        self._version += 1
        self._typed += 1
        at = {"line": 0, "character": 0}
        put = _LINE.format(self.chance.randrange(10**6)) if self._version % 50 else "#"
        change: dict[str, Any] = {"text": put}
        if self._version % 50:  # else the whole text, so that it stays short
            change["range"] = {"start": at, "end": at}
        await self._editor.notify("textDocument/didChange", change_of(URI, self._version, [change]))

    async def _ask(self) -> dict[str, Any]:
        typed = self._typed
        answer = await self._editor.request(
            "textDocument/inlineCompletion", ask_at(URI, 1, 11, invoked=True)
        )
        self._confirmed = max(self._confirmed, typed)
        engine = self._house.engine()
        self._tally.sample(resident(self._editor.pid, engine.pid if engine else None))
        result: dict[str, Any] = answer.get("result") or {}
        return result

    async def until_suggested(self) -> bool:
        """Whether the model answers within :data:`READY_S`: what it says may be nothing."""
        began = self._tally.clock()
        while self._tally.clock() - began < READY_S:
            asked = self._tally.clock()
            with contextlib.suppress(TimeoutError, Ended):
                await self._type()
                result = await self._ask()
                self.after_ms.append(1e3 * (self._tally.clock() - asked))
                if _is_of_the_model(result):
                    return True
            await asyncio.sleep(0.05)
        return False

    async def recovers(self, name: str) -> bool:
        began = self._tally.clock()
        if not await self.until_suggested():
            return False
        took_ms = 1e3 * (self._tally.clock() - began)
        self.ready_ms.append(took_ms)
        longest = f"longest after '{name}', ms"
        known = self._tally.figures.get(longest, 0.0)
        self._tally.figures[longest] = max(known, round(took_ms, 1))
        living = [one for one in self._house.engines() if _answers(one)]
        if len(living) > 1:
            await asyncio.sleep(1.0)  # one that lost a race is leaving
            living = [one for one in self._house.engines() if _answers(one)]
        if len(living) > 1:
            self._tally.breaks(f"{name}: {len(living)} engines")
        return True

    # --- blows ---------------------------------------------------------------------------------

    async def _kill_engine(self) -> None:
        await self._strike(psutil.Process.kill)

    async def _stop_engine(self) -> None:
        await self._strike(psutil.Process.suspend)

    async def _strike(self, how: Callable[[psutil.Process], None]) -> None:
        """Before a question, or while it is answered."""
        engine = self._house.engine()
        asking = asyncio.create_task(self._ask()) if self.chance.random() < 0.5 else None
        await asyncio.sleep(self.chance.random() * 0.02)
        if engine is not None and engine.process is not None:
            with contextlib.suppress(psutil.Error):
                how(engine.process)
        if asking is not None:
            with contextlib.suppress(TimeoutError, Ended):
                await asking

    async def _kill_editor(self) -> None:
        """The language server records: what it confirmed must be on the disk."""
        confirmed = self._confirmed
        await self._type()
        await self._editor.stop(kill=True)
        kept = _changes_of_newest(self._house.recordings)
        lost = max(0, confirmed - kept)
        self._tally.counts["kills of the recorder"] += 1
        self._tally.counts["confirmed changes lost"] += lost
        if lost > 1:
            self._tally.breaks(f"{lost} of {confirmed} confirmed changes are not in the recording")
        self._editor = self._new_editor()
        await self.open()

    async def _fill_disk(self) -> None:
        """No file of the language server may grow any more, for a while."""
        process = psutil.Process(self._editor.pid)
        before = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (0, before[1]))
        try:
            await self.typing(3)
        finally:
            process.rlimit(psutil.RLIMIT_FSIZE, before)
        # Recording has ended, and the status says why; it goes on with a server of its own.
        await self._editor.stop()
        self._editor = self._new_editor()
        await self.open()

    def _weights(self) -> list[Path]:
        models = self._house.models
        return sorted(models.rglob("weights.bin")) if models is not None else []

    async def _harm(self, put: int) -> None:
        """Write into the weights while they are in use; put them back whole after a moment."""
        file = self._weights()[0]
        kept = file.with_suffix(".kept")
        shutil.copy2(file, kept)
        with file.open("r+b") as opened:
            opened.write(b"\1" * put) if put else opened.truncate(1024)
        with contextlib.suppress(TimeoutError, Ended):
            await self._type()
            await self._ask()
        kept.replace(file)


def _is_of_the_model(result: dict[str, Any]) -> bool:
    """Did the model answer, be it that there is nothing to suggest?"""
    reason = str(result.get("reason", ""))
    troubles = ("load", "engine", "does not answer", "written to", "slow", "model", "not yet")
    return bool(result.get("items")) or not any(word in reason.lower() for word in troubles)


def _answers(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
    return False


def _changes_of_newest(folder: Path) -> int:
    """Changes in the recording that was written to last; torn lines do not count."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    found = 0
    for line in files[-1].read_bytes().split(b"\n") if files else ():
        with contextlib.suppress(ValueError):
            found += json.loads(line).get("kind") == "changed"
    return found
