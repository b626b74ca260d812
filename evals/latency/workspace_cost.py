"""Cost of a workspace: memory and time of the index, of the context, and of the whole server.

``redraft bench --workspace FOLDER`` prints it. Nothing here asks a model: the server runs in
a separate process, fed over its stdin, with the address of an engine that answers nothing.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import psutil
import zstandard
from redraft.lsp.context.gather import Context, View
from redraft.lsp.context.indexer import Indexer
from redraft.lsp.context.workspace import read_code
from redraft.model.errors import RedraftError, SettingsError
from redraft.model.training.shards import read_records

from ..sources.commits import rank

_POLL_S = 0.25
_QUIET_S = 8.0  # without work: it has started, the client's settings are there, the index is full
_PATIENCE_S = 900.0


def memory_of(command: Sequence[str], folder: Path) -> dict[str, float]:
    """Measure a language server with nothing open, and with a workspace indexed.

    MB are of 1,000,000 bytes; besides, the seconds of processor time until it was indexed.

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


FILES = 5_000


def unpack(source: Path, folder: Path, files: int = FILES) -> int:
    """Write some files of a ``*-files.jsonl.zst`` below ``folder``; how many there were.

    Raises:
        SettingsError: ``source`` is no such file.
    """
    try:
        records = read_records(source)
        named = ((rank(0, name), name, each["text"]) for each in records if (name := _name(each)))
        chosen = heapq.nsmallest(files, named, key=lambda each: each[0])
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{source} is not a file of files ({type(error).__name__}: {error}). Name one such as "
            "train-files.jsonl.zst, or a folder."
        ) from error
    for _, name, text in chosen:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return len(chosen)


def _name(record: dict[str, str]) -> str:
    """Its place below a folder; "" where that would lie outside."""
    name = PurePosixPath(record["repo"]) / record["path"]
    return "" if name.is_absolute() or ".." in name.parts else name.as_posix()


_PLACES = 60  # in files of the workspace at which is gathered
_KEYS = 10  # typed at each
_TICK_S = 0.001


def workspace_cost(folder: Path) -> dict[str, float]:
    """Figures by what they are, each with its unit in its name.

    The thread fills the index while this one only ticks: a tick that comes late is what an editor
    would have to wait. Then places in the workspace are gathered for, with the index full.
    """
    memory = psutil.Process().memory_info
    before = memory().rss
    indexer = Indexer(lambda path: "")
    indexer.watch([folder])
    started = time.perf_counter()
    indexer.start()
    try:
        late_ms = _tick_until_full(indexer)
        filled_s = time.perf_counter() - started
        held = memory().rss
        snapshot = indexer.index.snapshot
        return {
            "files": len(snapshot),
            "definitions": sum(entry.definitions for entry in snapshot.entries),
            "seconds to fill the index": filled_s,
            "MB of the process before": before / 1e6,
            "MB of the process with the index": held / 1e6,
            "MB held by the index itself": indexer.index.bytes_held / 1e6,
            "ms another thread waited meanwhile, p50": _quantile(late_ms, 0.5),
            "ms another thread waited meanwhile, p99": _quantile(late_ms, 0.99),
            "ms another thread waited meanwhile, most": max(late_ms),
            **_gather(indexer, folder, random.Random(0)),
        }
    finally:
        indexer.stop()


def _tick_until_full(indexer: Indexer) -> list[float]:
    """Milliseconds by which each tick came late."""
    late_ms, at = [0.0], time.perf_counter()
    while not indexer.is_idle:
        time.sleep(_TICK_S)
        now = time.perf_counter()
        late_ms.append(1000 * (now - at - _TICK_S))
        at = now
    return late_ms


def _gather(indexer: Indexer, folder: Path, rng: random.Random) -> dict[str, float]:
    """Milliseconds to gather at a new place, for a key typed there, and for the next line."""
    entries = indexer.index.snapshot.entries
    times: dict[str, list[float]] = {"at a new place": [], "per key": [], "for the next line": []}
    context = Context(indexer)
    for entry in rng.sample(entries, min(_PLACES, len(entries))):
        text = read_code(folder, entry.path)
        if not text:
            continue
        view = View(f"file:///{entry.path}", entry.path, entry.language, text, 0)
        view = replace(view, cursor=text.find("\n", rng.randrange(len(text))) + 1)
        times["at a new place"].append(_timed(context, view))
        for typed in [*"x" * _KEYS, "\n"]:
            at = view.cursor
            view = replace(view, text=text[:at] + typed + text[at:], cursor=at + 1)
            text = view.text
            times["per key" if typed == "x" else "for the next line"].append(_timed(context, view))
    return {
        f"ms to gather {what}, {name}": _quantile(spent, share)
        for what, spent in times.items()
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }


def _timed(context: Context, view: View) -> float:
    started = time.perf_counter()
    context.gather(view)
    return 1000 * (time.perf_counter() - started)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0
