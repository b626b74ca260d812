"""The whole language server as an editor runs it: a process of its own, fed over its stdin.

Tells what memory it takes with a workspace indexed, and what processor time a keystroke costs it,
framing and JSON included. No model is behind it: the address it is given answers nothing, so it
never gets further than asking. Knows nothing of how the command is made.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from redraft.model.errors import RedraftError

_POLL_S = 0.25
_QUIET_S = 8.0  # without work: it has started, the client's settings are there, the index is full
_PATIENCE_S = 900.0


def memory_of(command: Sequence[str], folder: Path) -> dict[str, float]:
    """MB (of 1,000,000 bytes) that a language server takes with nothing open, and with a workspace
    indexed; and the seconds of processor time that this took it.

    Args:
        command: runs the server on its stdin.
    """
    with tempfile.TemporaryDirectory() as nothing:
        empty, _ = _settled(command, Path(nothing).resolve())
    full, used_s = _settled(command, folder)
    return {
        "MB of a language server without files": empty.resident / 1e6,
        "MB of a language server with this workspace": full.resident / 1e6,
        "MB of that for itself alone": full.own / 1e6,
        "MB for the workspace": (full.resident - empty.resident) / 1e6,
        "seconds of processor time until it was read": used_s,
        "load of the machine per core": psutil.getloadavg()[0] / (psutil.cpu_count() or 1),
    }


def _settled(command: Sequence[str], folder: Path) -> tuple[ProcessMemory, float]:
    with Process(command, os.environ) as process:
        process.begin(folder)
        used_s = process.settle()
        return process.held(), used_s


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory of a process, bytes."""

    resident: int  # everything mapped and present, shared libraries included
    own: int  # what would come free if it ended; 0 where the system does not tell


class Process:
    """A running server and the client's end of its pipes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._running = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # nothing that is asked needs its answer
            stderr=subprocess.DEVNULL,
            env=dict(environment),
        )
        self._process = psutil.Process(self._running.pid)
        self._ids = count(1)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *raised: object) -> None:
        assert self._running.stdin is not None
        try:
            self.notify("exit", None)
            self._running.stdin.close()
            self._running.wait(10)
        except (OSError, subprocess.TimeoutExpired, RedraftError):
            self._running.kill()
            self._running.wait()

    # --- messages --------------------------------------------------------------------------

    def request(self, method: str, params: Any) -> None:
        """Ask without waiting for the answer."""
        self._send({"id": next(self._ids), "method": method, "params": params})

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def begin(self, folder: Path) -> None:
        """Open a workspace."""
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        params: dict[str, Any] = {"processId": None, "capabilities": {}}
        self.request("initialize", params | {"workspaceFolders": folders})
        self.notify("initialized", {})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._running.stdin is not None
        try:
            self._running.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._running.stdin.flush()
        except OSError as error:
            raise RedraftError(
                f"The language server ended with exit code {self._running.poll()}. Run 'redraft "
                "lsp' in a terminal to see why."
            ) from error

    # --- what it takes ---------------------------------------------------------------------

    def settle(self) -> float:
        """Wait until it has done nothing for a while; seconds of processor time used so far.

        Raises:
            RedraftError: it never comes to rest, or has ended.
        """
        deadline = time.monotonic() + _PATIENCE_S
        still_since, used = time.monotonic(), self._used_s()
        while time.monotonic() - still_since < _QUIET_S:
            time.sleep(_POLL_S)
            now = self._used_s()
            if now - used > 0.02:  # its timers tick
                still_since, used = time.monotonic(), now
            if time.monotonic() > deadline:
                raise RedraftError(
                    f"The language server still works after {_PATIENCE_S:.0f} s. Measure when the "
                    "machine has less to do."
                )
        return used

    def _used_s(self) -> float:
        try:
            times = self._process.cpu_times()
        except psutil.Error as error:
            raise RedraftError(
                "The language server ended by itself. Run 'redraft lsp' in a terminal to see why."
            ) from error
        return float(times.user + times.system)

    def held(self) -> ProcessMemory:
        try:
            own = int(self._process.memory_full_info().uss)
        except (psutil.Error, AttributeError):
            own = 0
        return ProcessMemory(int(self._process.memory_info().rss), own)
