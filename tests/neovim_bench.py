"""What a key costs in Neovim: from the key to the screen that shows it, in a file of 10,000 lines.

    python tests/neovim_bench.py [--keys 200] [--lines 10000] [--json FILE]

Types the same keys with the client and without it, and prints the quantiles of both. A scripted
model answers at once, so asking and drawing are measured and no model; also from the key to the
ghost text that it brings, and Neovim's own processor time, which a busy machine does not blur.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import queue
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from neovim import Neovim, server_command

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
GHOST = "ghost_text()"


def quantiles(times_ms: list[float]) -> dict[str, float]:
    cut = statistics.quantiles(times_ms, n=100)
    named = {"p50": cut[49], "p95": cut[94], "p99": cut[98], "worst": max(times_ms)}
    return {name: round(value, 2) for name, value in named.items()}


def type_keys(editor: Neovim, keys: int, ghost: str) -> dict[str, list[float]]:
    """Milliseconds from each key to its character on the screen and to the ghost text behind it,
    and of Neovim's processor time per key, all it does for it included."""
    found: dict[str, list[float]] = {"key to screen": [], "key to ghost text": [], "processor": []}
    process = neovim_process(editor)
    started = editor.screen.await_text("\n#")
    editor.keys("Go# ")
    started.get(timeout=60)
    typed = "# "
    editor.lua(WATCH)
    for number in range(keys):
        key = "abcdefghij"[number % 10]
        fresh = len(typed) > 50
        typed = f"# {key}" if fresh else typed + key
        used_s, began = sum(process.cpu_times()[:2]), time.perf_counter()
        seen = editor.screen.await_text(typed)
        editor.keys(f"<C-u># {key}" if fresh else key)
        found["key to screen"].append(1000 * (seen.get(timeout=60) - began))
        if ghost:
            drawn = editor.screen.await_text(typed + ghost)
            editor.request("nvim__redraw", {"flush": True})  # it may be there already
            with contextlib.suppress(queue.Empty):
                found["key to ghost text"].append(1000 * (drawn.get(timeout=5) - began))
        time.sleep(PAUSE_S)
        found["processor"].append(1000 * (sum(process.cpu_times()[:2]) - used_s))
    found["key to drawn, within Neovim"] = editor.lua("return _G.drawn_ms")
    editor.keys("<Esc>")
    return found


def neovim_process(editor: Neovim) -> psutil.Process:
    """Neovim itself: what was started may be a script that starts it."""
    started = psutil.Process(editor.process.pid)
    editors = [each for each in started.children(recursive=True) if "nvim" in each.name()]
    return editors[-1] if editors else started


def measure(lines: int, keys: int) -> dict[str, dict[str, float]]:
    text = "".join(f"value_{i} = compute({i}, 'some text', value_{i - 1})\n" for i in range(lines))
    found = {}
    settings = {"delay_ms": 0, "eagerness": "high", "prefetch": False}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "large.py"
        file.write_text(text, encoding="utf-8")
        script = {"answers": [GHOST], "log": str(Path(folder) / "log"), "settings": settings}
        bare = "vim.g.loaded_redraft = true\n"
        for name, init in (("without the client", bare), ("with the client", "")):
            editor = Neovim(Path(folder), file, server_command(script), init)
            try:
                if not init:
                    editor.attached()
                times = type_keys(editor, keys, "" if init else GHOST)
            finally:
                editor.close()
            used_ms = times.pop("processor")
            found |= {f"{each}, {name}": quantiles(ms) for each, ms in times.items() if len(ms) > 1}
            found[f"Neovim's processor time, {name}"] = {"mean": round(sum(used_ms) / keys, 2)}
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = measure(given.lines, given.keys)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    sys.stdout.write(f"{given.lines:,} lines, {given.keys} keys, ms; {machine}\n")
    for name, values in found.items():
        cells = "  ".join(f"{key} {value:8.2f}" for key, value in values.items())
        sys.stdout.write(f"{name:46} {cells}\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
