"""A session in a real project, in a real Neovim: the language server over stdio, a scripted model.

The project is the standard library's ``json``, copied: code nobody wrote for this test.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.neovim import Neovim, server_command
from support.neovim_script import needs_neovim

pytestmark = needs_neovim

FIRST = ["uni = _decode_uXXXX(s, end)", "uni = _decode_uXXXX(s, end, strict)"]
SECOND = ["uni2 = _decode_uXXXX(s, end + 1)", "uni2 = _decode_uXXXX(s, end + 1, strict)"]
NEAR = ["min(value, 10)", "min(value, LIMIT)"]

#: A person's: how it looks, and a status line.
INIT = """
vim.o.termguicolors, vim.o.number, vim.o.laststatus = true, true, 2
vim.o.statusline = " %f %m%=%{%v:lua.require'redraft'.statusline()%} "
vim.cmd("syntax on | filetype plugin indent on")
"""


@contextlib.contextmanager
def opened(
    folder: Path, project: Path, file: str, pictures: Path, ghost: str, *edits: list[str]
) -> Iterator[Neovim]:
    """Neovim in ``project``; the model writes ``ghost`` and makes the first edit it can."""
    script: dict[str, Any] = {
        "answers": [{"ghost": ghost, "edits": list(edits)}],
        "settings": {"delay_ms": 0, "eagerness": "high"},
        "outcomes": str(folder / "outcomes.log"),
        "log": str(folder / "model.log"),
    }
    (project / ".git").mkdir(parents=True, exist_ok=True)
    editor = Neovim(
        folder, project / file, server_command(script), INIT, size=(90, 30), pictures=pictures
    )
    try:
        editor.attached()
        editor.until(lambda: editor.why().startswith("ready"))
        yield editor
    finally:
        editor.close()


def outcomes(folder: Path) -> str:
    return (folder / "outcomes.log").read_text(encoding="utf-8")


def test_a_session_in_a_real_project(tmp_path: Path, pictures: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(Path(json.__file__).parent, project / "json")
    edits = (FIRST, SECOND, NEAR)
    with opened(tmp_path, project, "json/decoder.py", pictures, "min(value, 10)", *edits) as editor:
        # Type, see, take.
        editor.keys("Go<CR><C-u>def limit(value):<CR>return ")
        editor.sees("return min(value, 10)")
        editor.picture("1-ghost")
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines()[-1] == "    return min(value, 10)")

        # An edit that is turned down stays away.
        editor.keys("<Esc>")
        editor.sees("LIMIT")
        assert editor.screen.attributes("LIMIT")["background"] == 0x1F3D2B
        editor.picture("2-edit")
        editor.command("Redraft reject")
        editor.until(lambda: "LIMIT" not in editor.screen.text())
        editor.command("Redraft trigger")
        editor.until(lambda: "rejected" in editor.why())
        editor.picture("3-stays-away")
        assert "LIMIT" not in editor.screen.text()
        editor.until(lambda: "was rejected" in outcomes(tmp_path))

        # Change a signature; Tab goes to each call and changes it.
        editor.keys("gg/def _decode_uXXXX<CR>fpea, strict<Esc>")
        editor.sees("→ edit at line ")
        editor.picture("4-signature")
        for number, (old, new) in enumerate((FIRST, SECOND), start=5):
            editor.until(lambda: editor.showing() == "edit")
            editor.keys("<Tab>")
            editor.until(
                lambda old=old: old in editor.lua("return vim.api.nvim_get_current_line()")
            )
            editor.until(lambda: "→" not in editor.screen.text())
            editor.picture(f"{number}-call")
            editor.keys("<Tab>")
            editor.until(lambda new=new: any(new in line for line in editor.lines()))
        assert outcomes(tmp_path).count("was accepted") >= 2

        # Quiet for a while.
        editor.command("Redraft snooze 5")
        editor.keys("Gox")
        editor.sees("paused for another 5 min")
        editor.picture("7-snoozed")
        editor.command("Redraft snooze off")
        editor.keys(" = ")
        editor.sees("x = min(value, 10)")

        editor.keys("<Esc>")
        editor.command("checkhealth redraft")
        page = "\n".join(editor.lines())
        editor.picture("8-all-well")
        assert "WARNING" not in page
        assert "ERROR" not in page


def test_in_ten_thousand_lines_only_changes_are_sent_and_far_edits_are_reached(
    tmp_path: Path, pictures: Path
) -> None:
    lines = [f"value_{i} = compute({i}, 'some text', value_{i - 1})" for i in range(10_000)]
    lines[0], lines[9_000] = "def total(number, text, last):", "result = total(1, 'a', 2)"
    project = tmp_path / "project"
    project.mkdir()
    (project / "large.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    call = ["result = total(1, 'a', 2)", "result = total(1, 'a', 2, None)"]
    with opened(tmp_path, project, "large.py", pictures, "written()", call) as editor:
        editor.lua(
            """
            _G.sent = {}
            local client = require("redraft.client").get()
            local send = client.rpc.notify
            client.rpc.notify = function(method, params)
              if method == "textDocument/didChange" then
                table.insert(_G.sent, #vim.json.encode(params))
              end
              return send(method, params)
            end
            """
        )
        editor.keys("Go")
        times_ms = []
        for at, key in enumerate("abcdefghij"):
            typed = "abcdefghij"[: at + 1]
            seen, began = editor.screen.await_text(f"\n10001 {typed}"), time.perf_counter()
            editor.keys(key)
            times_ms.append(1000 * (seen.get(timeout=60) - began))
        editor.sees("abcdefghijwritten()")
        editor.picture("ghost")
        report = f"key to screen in 10,000 lines: median {statistics.median(times_ms):.1f} ms\n"
        (pictures / "neovim-key-to-screen.txt").write_text(report, encoding="utf-8")
        # What changed, of several keys together where they came quickly: the file has 450,000.
        assert 0 < max(editor.lua("return _G.sent")) < 10_000
        editor.keys("<C-u><Esc>ggf)i, more<Esc>")
        editor.sees("→ edit at line 9001 · Tab")
        editor.keys("<Tab>")
        editor.until(lambda: editor.cursor()[0] == 9_001)
        editor.picture("edit")
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines()[9_000] == call[1])


@pytest.mark.parametrize("state", ["absent", "failed"])
def test_the_health_page_says_that_the_model_is_missing(
    state: str, tmp_path: Path, pictures: Path
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "a.py").write_text("x = 1\n", encoding="utf-8")
    status = {"state": state, "model": "", "message": "run: redraft model pull"}
    script = {"answers": [""], "statuses": [status], "log": str(tmp_path / "log")}
    command = server_command(script)
    editor = Neovim(tmp_path, project / "a.py", command, INIT, pictures=pictures)
    try:
        editor.attached()
        editor.sees("Redraft waiting: no" if state == "absent" else "Redraft error: the model")
        editor.picture(state)
        editor.command("checkhealth redraft")
        page = "\n".join(editor.lines())
        assert f"{'WARNING' if state == 'absent' else 'ERROR'} the model is {state}" in page
        assert "run: redraft model pull" in page
    finally:
        editor.close()
