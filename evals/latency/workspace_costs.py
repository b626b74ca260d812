"""Cost of a workspace: memory and time of the index, of the context, and of the whole server.

No model is asked: the server runs in a separate process with the address of an engine that answers
nothing.
"""

from __future__ import annotations

import heapq
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import psutil
import zstandard
from redraft.lsp.context.indexer import Indexer
from redraft.lsp.context.listing import read_code
from redraft.lsp.documents.open_documents import ContentChange
from redraft.lsp.documents.positions import Range
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace
from redraft.model.errors import RedraftError, SettingsError
from redraft.model.training.shards import read_records

from ..sources.commits import rank

FILES = 5_000  # of a file of files that make a workspace
_POLL_S = 0.25
_QUIET_S = 8.0  # without work: it has started, the client's settings are there, the index is full
_PATIENCE_S = 900.0
_PLACES = 60  # in files of the workspace at which is gathered
_KEYS = 10  # typed at each
_TICK_S = 0.001


def memory_of(command: Sequence[str], folder: Path) -> dict[str, float]:
    """Measure a language server with nothing open, and with a workspace indexed.

    Args:
        command: runs the server on its stdin.

    Returns:
        MB of 1,000,000 bytes, and the seconds of processor time until it was indexed.
    """
    with tempfile.TemporaryDirectory() as nothing:
        empty, _, _ = _settled(command, Path(nothing).resolve())
    full, private, used_s = _settled(command, folder)
    return {
        "MB of a language server without files": empty / 1e6,
        "MB of a language server with this workspace": full / 1e6,
        "MB of that for itself alone": private / 1e6,
        "MB for the workspace": (full - empty) / 1e6,
        "seconds of processor time until it was read": used_s,
        "load of the machine per core": psutil.getloadavg()[0] / (psutil.cpu_count() or 1),
    }


def _settled(command: Sequence[str], folder: Path) -> tuple[int, int, float]:
    """Start a server in ``folder``, and wait until it rests.

    Returns:
        Resident bytes, bytes that ending it would free (0 where the system does not tell), and
        seconds of processor time.
    """
    nowhere = subprocess.DEVNULL
    server = psutil.Popen([*command], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)
    folders = [{"uri": folder.as_uri(), "name": folder.name}]
    params: dict[str, Any] = {"processId": None, "capabilities": {}, "workspaceFolders": folders}
    try:
        _send(server, {"id": 1, "method": "initialize", "params": params})
        _send(server, {"method": "initialized", "params": {}})
        used_s = _at_rest(server)
        return server.memory_info().rss, _private(server), used_s
    except (OSError, psutil.Error) as error:
        raise RedraftError(
            f"The language server ended with exit code {server.poll()}. Run 'redraft lsp' in a "
            "terminal to see why."
        ) from error
    finally:
        server.kill()
        server.wait()


def _send(server: psutil.Popen, message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def _private(server: psutil.Popen) -> int:
    try:
        return int(server.memory_full_info().uss)
    except (psutil.AccessDenied, AttributeError):
        return 0


def _at_rest(server: psutil.Popen) -> float:
    """Wait until a server does nothing for a while; return its seconds of processor time.

    Raises:
        RedraftError: it never comes to rest.
    """
    began_s = still_since_s = time.monotonic()
    used_s = 0.0
    while time.monotonic() - still_since_s < _QUIET_S:
        time.sleep(_POLL_S)
        times = server.cpu_times()
        now_s = float(times.user + times.system)
        if now_s - used_s > 0.02:  # its timers tick
            still_since_s, used_s = time.monotonic(), now_s
        if time.monotonic() - began_s > _PATIENCE_S:
            raise RedraftError(
                f"The language server still works after {_PATIENCE_S:.0f} s. Measure when the "
                "machine has less to do."
            )
    return used_s


def unpack(source: Path, folder: Path, files: int = FILES) -> int:
    """Write some files of a ``*-files.jsonl.zst`` below ``folder``; return how many there were.

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
    """Return its place below a folder, or "" where that would lie outside."""
    name = PurePosixPath(record["repo"]) / record["path"]
    return "" if name.is_absolute() or ".." in name.parts else name.as_posix()


def workspace_cost(folder: Path) -> dict[str, float]:
    """Return figures by what they are, each with its unit in its name.

    The indexer's thread fills the index while this one only ticks: a tick that comes late is what
    an editor would have to wait. Then context is gathered at places, with the index full.
    """
    memory = psutil.Process().memory_info
    before = memory().rss
    workspace = Workspace(LspSettings(), time.monotonic)
    workspace.folders = [folder.as_uri()]
    indexer = workspace.context.indexer
    indexer.watch([folder])
    started_s = time.perf_counter()
    indexer.start()
    try:
        late_ms = _tick_until_full(indexer)
        filled_s = time.perf_counter() - started_s
        held = memory().rss
        snapshot = indexer.index.generation
        return {
            "files": len(snapshot),
            "definitions": sum(entry.definitions for entry in snapshot.entries),
            "seconds to fill the index": filled_s,
            "MB of the process before": before / 1e6,
            "MB of the process with the index": held / 1e6,
            "MB held by the index itself": indexer.index.bytes_held / 1e6,
            **_quantiles("ms another thread waited meanwhile", late_ms),
            "ms another thread waited meanwhile, most": max(late_ms),
            **_gather(workspace, folder, random.Random(0)),
        }
    finally:
        indexer.stop()


def _tick_until_full(indexer: Indexer) -> list[float]:
    """Return the milliseconds by which each tick came late."""
    late_ms, at_s = [0.0], time.perf_counter()
    while not indexer.is_idle:
        time.sleep(_TICK_S)
        now_s = time.perf_counter()
        late_ms.append(1000 * (now_s - at_s - _TICK_S))
        at_s = now_s
    return late_ms


def _gather(workspace: Workspace, folder: Path, rng: random.Random) -> dict[str, float]:
    """Return milliseconds to gather at a new place, for a key there, and for the next line."""
    entries = workspace.context.indexer.index.generation.entries
    times: dict[str, list[float]] = {"at a new place": [], "per key": [], "for the next line": []}
    for entry in rng.sample(entries, min(_PLACES, len(entries))):
        text = read_code(folder, entry.path)
        if not text:
            continue
        uri = (folder / entry.path).as_uri()
        document = workspace.open(uri, text, 0, entry.language)
        cursor = text.find("\n", rng.randrange(len(text))) + 1
        times["at a new place"].append(_timed(workspace, uri, cursor, None))
        for typed in [*"x" * _KEYS, "\n"]:
            at = document.position(cursor)
            cursor += 1
            key = "per key" if typed == "x" else "for the next line"
            change = ContentChange(typed, Range(at, at))
            times[key].append(_timed(workspace, uri, cursor, change))
        workspace.close(uri)
    found: dict[str, float] = {}
    for what, spent_ms in times.items():
        found |= _quantiles(f"ms to gather {what}", spent_ms)
    return found


def _timed(workspace: Workspace, uri: str, cursor: int, change: ContentChange | None) -> float:
    """Apply a change, gather behind it, and return the milliseconds that both took."""
    started_s = time.perf_counter()
    if change is not None:
        workspace.change(uri, [change], None)
    workspace.context.gather(workspace.snapshot(uri, cursor, RequestFlags()))
    return 1000 * (time.perf_counter() - started_s)


def _quantiles(name: str, values: list[float]) -> dict[str, float]:
    found = np.quantile(values, (0.5, 0.99)) if values else (0.0, 0.0)
    return {f"{name}, p50": float(found[0]), f"{name}, p99": float(found[1])}
