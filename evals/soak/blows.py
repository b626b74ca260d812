"""What chaos does to the processes and to what they stand on, one blow at a time.

A blow may leave something behind that is to be put right once suggestions have come again: it
returns how. What cannot be done on this machine is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil

from .busy_editor import BusyEditor
from .editor import Ended
from .installation import check_log

Undo = Callable[[], None]
Blow = Callable[[], Awaitable[Undo | None]]

#: Kills come so many times as often as any other blow.
KILLS = 8
#: Where the clock may jump to, seconds from the true time: a look at another time server, a laptop
#: that slept, a date set wrong.
CLOCKS = (-86_400 * 400, -3_600, -40, 40, 3_600, 86_400 * 400)
#: Seconds until a server that cannot have its port says so.
REFUSAL_S = 60.0


class Blows:
    """
    Args:
        busy: what goes on meanwhile.
    """

    def __init__(self, busy: BusyEditor) -> None:
        self._busy, self._installation = busy, busy.installation
        self._tally, self._chance = busy.tally, busy.chance

    def found(self) -> dict[str, tuple[int, Blow]]:
        """What can be done here: how often, beside the others, and how."""
        blows: dict[str, tuple[int, Blow]] = {
            "engine killed": (KILLS, self._kill_engine),
            "language server killed": (KILLS, self._kill_editor),
            "port taken": (1, self._take_port),
        }
        if sys.platform != "win32":
            blows["engine stopped"] = (1, self._stop_engine)
            blows["socket taken"] = (1, self._take_socket)
        if hasattr(psutil.Process, "rlimit"):
            blows["disk full"] = (1, self._fill_disk)
        if self._installation.bits_hold and self._installation.cache is not None:
            blows["cache read-only"] = (1, self._lock_cache)
        if self._installation.clock is not None:
            blows["clock jumps"] = (1, self._move_clock)
        if self._weights():
            blows["weights truncated"] = (1, lambda: self._harm(0))
            blows["weights overwritten"] = (1, lambda: self._harm(64))
        return blows

    # --- processes -----------------------------------------------------------------------------

    async def _kill_engine(self) -> None:
        self._tally.counts["kills"] += 1
        await self._strike(psutil.Process.kill)

    async def _stop_engine(self) -> None:
        await self._strike(psutil.Process.suspend)

    async def _strike(self, how: Callable[[psutil.Process], None]) -> None:
        """Before a question, or while it is answered."""
        engine = self._installation.engine()
        asking = None
        if self._chance.random() < 0.5:
            asking = asyncio.create_task(self._busy.ask_or_fail())
        await asyncio.sleep(self._chance.random() * 0.02)
        if engine is not None and engine.process is not None:
            with contextlib.suppress(psutil.Error):
                how(engine.process)
        if asking is not None:
            await asking

    async def _kill_editor(self) -> None:
        """The language server records: what it confirmed must be on the disk."""
        busy, tally, confirmed = self._busy, self._tally, self._busy.confirmed
        with contextlib.suppress(Ended):
            await busy.type()
        await busy.editor.stop(kill=True)
        kept = _changes_of_newest(self._installation.recordings)
        lost = max(0, confirmed - kept)
        tally.counts["kills"] += 1
        tally.counts["kills of the recorder"] += 1
        tally.counts["confirmed changes lost"] += lost
        if lost > 1:
            tally.breaks(f"{lost} of {confirmed} confirmed changes are not in the recording")
        await busy.anew()

    # --- what they stand on --------------------------------------------------------------------

    async def _fill_disk(self) -> None:
        """No file of either process may grow any more, for a while."""
        engine = self._installation.engine()
        with contextlib.ExitStack() as stack:
            for pid in (self._busy.editor.pid, engine.pid if engine else None):
                stack.enter_context(_no_room(pid))
            await self._busy.typing(3)
        # Recording has ended, and the status says why; it goes on with a server of its own.
        await self._busy.editor.stop()
        await self._busy.anew()

    async def _lock_cache(self) -> Undo:
        """The next engine finds folders that it may only read."""
        assert self._installation.cache is not None
        roots = [
            root
            for root in (self._installation.cache, self._installation.models)
            if root is not None
        ]
        folders = [one for root in roots for one in (root, *root.rglob("*")) if one.is_dir()]

        def writable(yes: bool) -> None:
            for folder in folders:
                if folder.exists():
                    folder.chmod(0o700 if yes else 0o500)

        writable(False)
        await self._kill_engine()
        return lambda: writable(True)

    async def _move_clock(self) -> None:
        """The wall clock of all processes; what measures durations goes on."""
        assert self._installation.clock is not None
        moved = self._installation.clock.with_suffix(".new")
        moved.write_text(f"{self._chance.choice(CLOCKS)}")
        moved.replace(self._installation.clock)
        await self._busy.typing(3)

    async def _take_socket(self) -> Undo:
        """A stranger sits where the engine listened, and says nothing."""
        engine = self._installation.engine()
        await self._kill_engine()
        stranger = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            if engine is not None and engine.is_socket:
                Path(engine.address).unlink(missing_ok=True)
                stranger.bind(engine.address)
                stranger.listen(8)
        return stranger.close

    async def _take_port(self) -> None:
        """``redraft serve`` where somebody else is: it says so and ends."""
        log = self._installation.root / "taken.log"
        with socket.socket() as other, log.open("wb") as said:
            other.bind(("127.0.0.1", 0))
            other.listen(1)
            command = [*self._installation.commands.serve, "--port", str(other.getsockname()[1])]
            environment = self._installation.environment()
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
            try:
                code = await asyncio.to_thread(process.wait, REFUSAL_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        told = log.read_text(encoding="utf-8", errors="replace")
        if code <= 0 or "in use" not in " ".join(told.split()):
            self._tally.breaks(f"with its port taken 'serve' ends with {code}: {told[-200:]}")
        check_log(log, self._tally)

    def _weights(self) -> list[Path]:
        models = self._installation.models
        return sorted(models.rglob("weights.bin")) if models is not None else []

    async def _harm(self, put: int) -> None:
        """Write into the weights while they are in use; put them back whole after a moment."""
        file = self._weights()[0]
        kept = file.with_suffix(".kept")
        shutil.copy2(file, kept)
        with file.open("r+b") as opened:
            opened.write(b"\1" * put) if put else opened.truncate(1024)
        with contextlib.suppress(Ended):
            await self._busy.type()
        await self._busy.ask_or_fail()
        kept.replace(file)


@contextlib.contextmanager
def _no_room(pid: int | None) -> Iterator[None]:
    try:
        process = psutil.Process(pid) if pid else None
        before = process.rlimit(psutil.RLIMIT_FSIZE) if process else (0, 0)
        if process:
            process.rlimit(psutil.RLIMIT_FSIZE, (0, before[1]))
    except psutil.Error:
        process = None
    try:
        yield
    finally:
        with contextlib.suppress(psutil.Error):
            if process:
                process.rlimit(psutil.RLIMIT_FSIZE, before)


def _changes_of_newest(folder: Path) -> int:
    """Changes in the recording that was begun last; torn lines do not count."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_ctime_ns)
    found = 0
    for line in files[-1].read_bytes().split(b"\n") if files else ():
        with contextlib.suppress(ValueError):
            found += json.loads(line).get("kind") == "changed"
    return found
