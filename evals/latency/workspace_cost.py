"""What the index and the context cost on a workspace: memory, time, and how long others wait.

``redraft bench --workspace FOLDER`` prints it. Nothing here asks a model.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import psutil
from redraft.lsp.context.gather import Context, View
from redraft.lsp.context.indexer import Indexer
from redraft.lsp.context.workspace import read_code

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
