"""A place of its own for the processes under test: folders, environment, and who runs there.

Nothing of the user's is touched: runtime folder, logs, recordings and a copy of the model lie in a
temporary folder. Knows nothing of what is done there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from .tally import Tally

#: Moves the wall clock of a Python process as far as a file says, at any time: what NTP, a sleep or
#: a date set by hand do. Imported at its start from the first folder of PYTHONPATH.
_MOVED_CLOCK = """
import os, time

def _moved_s(file=os.environ["REDRAFT_SOAK_CLOCK"]):
    try:
        with open(file) as told:
            return float(told.read())
    except (OSError, ValueError):
        return 0.0

_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _moved_s()
time.time_ns = lambda: _time_ns() + int(_moved_s() * 10**9)
"""
#: Starts a process to whom modes of files apply although root starts it.
_HELD = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
#: Seconds that an engine process stays without a client: a soak leaves none behind.
IDLE_S = 20.0


@dataclass(frozen=True, slots=True)
class Commands:
    """How the processes are started; the soak knows nothing of the package they come from."""

    lsp: Sequence[str]  # on its stdin
    serve: Sequence[str]  # takes ``--port``


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine process, as its record tells."""

    pid: int
    address: str
    is_socket: bool
    token: str

    @property
    def process(self) -> psutil.Process | None:
        try:
            return psutil.Process(self.pid)
        except psutil.Error:
            return None


@dataclass(frozen=True, slots=True)
class Installation:
    """Where everything is.

    Args:
        models: as ``REDRAFT_MODELS`` has it; the chaos writes into its files.
        cache: as ``REDRAFT_CACHE_DIR`` has it; None: the user's.
        clock: how far the processes' wall clock is off, which may change at any time; None: never.
        bits_hold: does the mode of a folder keep these processes out of it?
    """

    root: Path
    commands: Commands
    models: Path | None
    model: str
    cache: Path | None = None
    clock: Path | None = None
    bits_hold: bool = False

    @property
    def recordings(self) -> Path:
        return self.root / "recordings"

    @property
    def project(self) -> Path:
        folder = self.root / "project"
        folder.mkdir(exist_ok=True)
        return folder

    def environment(self, **more: str) -> dict[str, str]:
        own = {
            "REDRAFT_RUNTIME_DIR": str(self.root / "run"),
            "REDRAFT_LOG_DIR": str(self.root / "log"),
            "REDRAFT_RECORDINGS_DIR": str(self.recordings),
            "REDRAFT_IDLE_EXIT_S": str(IDLE_S),
            "REDRAFT_BACKOFF_S": "0.02",
            "REDRAFT_SHUTDOWN_S": "0.5",
            "REDRAFT_MODEL": self.model,
        }
        if self.models is not None:
            own["REDRAFT_MODELS"] = str(self.models)
        if self.cache is not None:
            own["REDRAFT_CACHE_DIR"] = str(self.cache)
        if self.clock is not None:
            path = [str(self.clock.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
            own |= {"REDRAFT_SOAK_CLOCK": str(self.clock), "PYTHONPATH": os.pathsep.join(path)}
        return {**os.environ, **own, **more}

    def engine(self) -> Engine | None:
        """The one that runs, or ran last."""
        for record in sorted((self.root / "run").glob("*/engine.json")):
            with contextlib.suppress(OSError, ValueError, KeyError):
                told = json.loads(record.read_text(encoding="utf-8"))
                return Engine(told["pid"], told["address"], told["socket"], told["token"])
        return None

    def engines(self) -> list[psutil.Process]:
        """All engine processes of this place; there should never be two that answer."""
        mark, found = str(self.root / "run"), []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if mark in line and "engine_process.host" in line:
                    found.append(process)
        return found

    def clear(self) -> None:
        """End what is left."""
        for process in self.engines():
            with contextlib.suppress(psutil.Error):
                process.kill()
                process.wait(5)


def that_may_be_harmed(installation: Installation) -> Installation:
    """The same with a cache and a clock of its own, and with processes whom permissions hold back
    even where root starts them."""
    cache, clock = installation.root / "cache", installation.root / "clock" / "seconds"
    for folder in (cache, clock.parent):
        folder.mkdir()
    clock.write_text("0")
    (clock.parent / "sitecustomize.py").write_text(_MOVED_CLOCK)
    commands, is_root = installation.commands, hasattr(os, "geteuid") and os.geteuid() == 0
    holds = shutil.which("setpriv") is not None
    if is_root and holds:
        commands = Commands((*_HELD, *commands.lsp), (*_HELD, *commands.serve))
    bits_hold = os.name == "posix" and (holds or not is_root)
    return replace(installation, commands=commands, cache=cache, clock=clock, bits_hold=bits_hold)


def check_log(log: Path, tally: Tally) -> None:
    """A fault of ours is told in what a process said."""
    said = log.read_text(encoding="utf-8", errors="replace")
    at = said.find("Traceback (most recent call last)")
    if at >= 0:
        lines = said[at : at + 20_000].splitlines()
        ends = next((n for n, line in enumerate(lines) if n and line[:1].strip()), len(lines) - 1)
        tally.breaks(
            f"{log.name} has a traceback: {' / '.join(lines[max(0, ends - 4) : ends + 1])}"
        )


def resident(*pids: int | None) -> int:
    """Bytes of memory that these processes take together."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss if pid else 0
    return total
