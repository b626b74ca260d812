"""Measurement of the time from a key to the screen in Neovim, with the client and without it.

    python editor-clients/neovim/tools/bench.py [--keys 200] [--lines 10000] [--json FILE]

Three Neovims run side by side on a file of 10,000 lines: two without the client and one with it.
They get the same keys in turns, so that load slows all of them alike. The difference between the
two bare ones is due to chance. A scripted model answers at once, so only requests and drawing are
measured. The table also shows the clock and the processor time of Neovim, the empty round trip that
each measured key contains, and the time until ghost text is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import queue
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))

from support.editors.neovim import Neovim, server_command

#: From the moment Neovim reads a key to the end of drawing what it did, by Neovim's own clock.
WATCH = """
local began
_G.drawn_ms = {}
vim.on_key(function() began = began or vim.uv.hrtime() end)
vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace("bench"), {
  on_end = function()
    if began then
      table.insert(_G.drawn_ms, (vim.uv.hrtime() - began) / 1e6)
      began = nil
    end
  end,
})
"""

PAUSE_S = 0.06  # between keys; a quick typist
GHOST = "written()"  # begins with no key that is typed: typing along would bring nothing new
OFF = "vim.g.loaded_redraft = true\n"
OURS, BARE, AGAIN = "with the client", "without", "without, once more"
KEY, DRAWN, EMPTY, USED = "key to screen", "by its own clock", "empty round trip", "processor time"
SUGGESTED = "key to ghost text"

Times = dict[str, list[float]]


class Typist:
    """A typist in one Neovim, with the time that each key takes in milliseconds."""

    def __init__(self, editor: Neovim, ghost: str) -> None:
        self.editor, self._ghost = editor, ghost
        self.times: Times = defaultdict(list)
        started = psutil.Process(editor.process.pid)  # which may be a script that starts Neovim
        found = [each for each in started.children(recursive=True) if "nvim" in each.name()]
        self._process = found[-1] if found else started
        begun = editor.screen.await_text("\n#")
        editor.keys("Go# ")
        begun.get(timeout=60)
        self._typed = "# "
        editor.lua(WATCH)

    def _used_s(self) -> float:
        return sum(self._process.cpu_times()[:2])

    def press(self, number: int) -> None:
        """Press one key and wait until the screen shows it and its suggestion."""
        screen, key = self.editor.screen, "abcdefghij"[number % 10]
        fresh = len(self._typed) > 50
        self._typed = f"# {key}" if fresh else self._typed + key
        began = time.perf_counter()
        self.editor.request("nvim_get_mode")
        self.times[EMPTY].append(1000 * (time.perf_counter() - began))
        used_s, began = self._used_s(), time.perf_counter()
        seen = screen.await_text(self._typed)
        self.editor.keys(f"<C-u># {key}" if fresh else key)
        self.times[KEY].append(1000 * (seen.get(timeout=60) - began))
        if self._ghost:
            drawn = screen.await_text(self._typed + self._ghost)
            self.editor.request("nvim__redraw", {"flush": True})  # it may be there already
            with contextlib.suppress(queue.Empty):
                self.times[SUGGESTED].append(1000 * (drawn.get(timeout=5) - began))
        time.sleep(PAUSE_S)
        self.times[USED].append(1000 * (self._used_s() - used_s))

    def close(self) -> None:
        self.times[DRAWN] = self.editor.lua("return _G.drawn_ms")
        self.editor.keys("<Esc>")


def take_times(lines: int, keys: int) -> dict[str, Times]:
    """Return the times of the same keys in each of the three."""
    text = "".join(f"value_{i} = compute({i}, 'some text', value_{i - 1})\n" for i in range(lines))
    settings = {"delay_ms": 0, "eagerness": "high", "prefetch": False}
    typists: dict[str, Typist] = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        contextlib.ExitStack() as open_ones,
    ):
        for name, init in ((BARE, OFF), (AGAIN, OFF), (OURS, "")):
            folder = Path(root) / name.replace(" ", "-")
            folder.mkdir()
            file = folder / "large.py"
            file.write_text(text, encoding="utf-8")
            script = {"answers": [GHOST], "log": str(folder / "log"), "settings": settings}
            editor = Neovim(folder, file, server_command(script), init)
            open_ones.callback(editor.close)
            if name == OURS:
                editor.attached()
            typists[name] = Typist(editor, GHOST if name == OURS else "")
        order = list(typists.values())
        for number in track(range(keys), "keys", console=Console(stderr=True), transient=True):
            random.shuffle(order)
            for typist in order:
                typist.press(number)
        for typist in order:
            typist.close()
    return {name: typist.times for name, typist in typists.items()}


def quantiles(times_ms: list[float]) -> dict[str, float]:
    cut = statistics.quantiles(times_ms, n=100)
    named = {"p50": cut[49], "p95": cut[94], "p99": cut[98], "worst": max(times_ms)}
    return {name: round(value, 2) for name, value in named.items()}


def more(times: Times, other: Times, draws: int = 2_000) -> dict[str, list[float]]:
    """Return how much longer a key takes in ``times`` than in ``other``.

    These are the differences of the medians and of the 95th percentiles, each with the 95 %
    interval over pairs of keys drawn again.
    """
    pairs = list(zip(times[KEY], other[KEY], strict=True))

    def differences(drawn: list[tuple[float, float]]) -> tuple[float, float]:
        ours, theirs = (statistics.quantiles(each, n=20) for each in zip(*drawn, strict=True))
        return ours[9] - theirs[9], ours[18] - theirs[18]

    chance = random.Random(0)
    again = [differences(chance.choices(pairs, k=len(pairs))) for _ in range(draws)]
    found = {}
    for number, name in enumerate(("p50", "p95")):
        spread = statistics.quantiles((each[number] for each in again), n=40)
        values = (differences(pairs)[number], spread[0], spread[-1])
        found[name] = [round(value, 2) for value in values]
    return found


def report(taken: dict[str, Times]) -> dict[str, dict[str, float] | dict[str, list[float]]]:
    found: dict[str, dict[str, float] | dict[str, list[float]]] = {}
    for name, times in taken.items():
        for what in (KEY, EMPTY, DRAWN, SUGGESTED):
            if len(times[what]) > 1:
                found[f"{what}, {name}"] = quantiles(times[what])
        found[f"{USED}, {name}"] = {"mean": round(statistics.fmean(times[USED]), 2)}
    found["the client adds to a key"] = more(taken[OURS], taken[BARE])
    found["chance adds to a key"] = more(taken[AGAIN], taken[BARE])
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.keys < 20 or given.lines < 1:
        parser.error("at least 20 keys and one line: fewer say nothing about quantiles")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    found = report(take_times(given.lines, given.keys))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start"
    sys.stdout.write(f"{given.lines:,} lines, {given.keys} keys each, ms; {machine}\n")
    for name, values in found.items():
        cells = "  ".join(
            f"{key} {value[0]:+8.2f} [{value[1]:+.2f}, {value[2]:+.2f}]"
            if isinstance(value, list)
            else f"{key} {value:8.2f}"
            for key, value in values.items()
        )
        sys.stdout.write(f"{name:40} {cells}\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
