"""The Neovim client with a server that is missing, ends or has no model, and with a large file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest
from support.editors.lsp_process import SERVER
from support.editors.neovim import (
    LOOKS,
    Neovim,
    NeovimDesk,
    edits,
    needs_neovim,
    neovim,
    server_command,
)

pytestmark = needs_neovim

MISSING = "{ 'no-such-redraft', 'lsp' }"


def test_a_server_that_is_not_installed_is_said_once(tmp_path: Path, pictures: Path) -> None:
    note = "_G.notices = {}; vim.notify = function(m) table.insert(_G.notices, m) end\n"
    how = {"init": note, "pictures": pictures, "attached": False}
    with neovim(tmp_path, "x = 1\n", MISSING, **how) as editor:
        editor.until(lambda: "is not on the PATH" in editor.why())
        assert editor.lua("return require('redraft').statusline()").startswith("Redraft waiting: ")
        editor.keys("oname<Esc>")
        editor.has("x = 1", "name")
        told = "Redraft: no-such-redraft is not on the PATH"
        ours = [each for each in editor.notices() if each.startswith(told)]
        assert len(ours) == 1
        editor.command("Redraft trigger")  # asked for, it is said again
        assert len(editor.notices()) > 1 and editor.notices()[-1].startswith(told)
        assert "not on the PATH; see :checkhealth redraft" in ours[0]
        editor.command("checkhealth redraft")
        page = "\n".join(editor.lines())
        assert "ERROR no-such-redraft is not on the PATH" in page
        assert "Install it in a clone of the repository: pip install '.[cpu]'" in page


def test_a_plugin_that_is_loaded_late_says_it_too(tmp_path: Path) -> None:
    late = "vim.g.loaded_redraft = true\nvim.notify = function() end\n"
    with neovim(tmp_path, "x = 1\n", MISSING, init=late, attached=False) as editor:
        editor.sees("x = 1")
        editor.command("unlet g:loaded_redraft | runtime plugin/redraft.lua")
        editor.until(lambda: "is not on the PATH" in editor.why())


def servers(editor: Neovim) -> list[psutil.Process]:
    """Return the language servers that an editor started."""
    found = psutil.Process(editor.process.pid).children(recursive=True)
    return [each for each in found if SERVER.name in " ".join(each.cmdline())]


def test_a_killed_server_comes_back_and_no_key_is_lost(tmp_path: Path, pictures: Path) -> None:
    script = {"answers": ["str(total)"], "log": str(tmp_path / "model.log")}
    command = server_command(script)
    with neovim(tmp_path, "total = 0\n", command, pictures=pictures) as editor:
        editor.keys("oname = ")
        editor.sees("name = str(total)")
        [server] = servers(editor)
        server.kill()
        editor.until(lambda: "str(total)" not in editor.screen.text())
        editor.keys("<CR>more = ")
        editor.has("total = 0", "name = ", "more = ")
        editor.until(lambda: servers(editor) not in ([], [server]))
        editor.attached()
        editor.keys(" ")
        editor.sees("more =  str(total)")
        editor.keys("<Tab>")
        editor.has("total = 0", "name = ", "more =  str(total)")


def test_a_failing_server_is_started_four_times_only(tmp_path: Path) -> None:
    log = tmp_path / "starts.log"
    code = f"open({str(log)!r}, 'a').write('started\\n'); raise SystemExit(3)"
    command = "vim.json.decode([==[" + json.dumps([sys.executable, "-c", code]) + "]==])"
    quiet = "vim.notify = function() end\n"
    with neovim(tmp_path, "x = 1\n", command, init=quiet, attached=False) as editor:
        editor.until(lambda: "4 times; see :Redraft log" in editor.why())
        assert editor.lua("return require('redraft').status()") == "error"
        assert log.read_text().count("started") == 4
        editor.keys("oname<Esc>")
        editor.has("x = 1", "name")


def test_a_large_file_sends_only_its_changes(desk: NeovimDesk) -> None:
    lines = [f"value_{i} = compute({i}, 'some text', value_{i - 1})" for i in range(10_000)]
    lines[0], lines[9_000] = "def total(number, text, last):", "result = total(1, 'a', 2)"
    call = ("result = total(1, 'a', 2)", "result = total(1, 'a', 2, None)")
    editor = desk.open("\n".join(lines) + "\n", edits(call, ghost="written()"))
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
    editor.keys("Goabcdefghij")
    editor.sees("abcdefghijwritten()")
    # What changed, of several keys together where they came quickly: the file has 450,000.
    assert 0 < max(editor.lua("return _G.sent")) < 10_000
    editor.keys("<C-u><Esc>ggf)i, more<Esc>")
    editor.sees("→ line 9001")
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor()[0] == 9_001)
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[9_000] == call[1])


@pytest.mark.parametrize(
    ("state", "said", "level"),
    [("absent", "Redraft waiting: no", "WARNING"), ("failed", "Redraft error: the model", "ERROR")],
)
def test_the_health_page_reports_a_missing_model(
    state: str, said: str, level: str, tmp_path: Path, pictures: Path
) -> None:
    status = {"state": state, "model": "", "message": "run: redraft model pull"}
    script = {"answers": [""], "statuses": [status], "log": str(tmp_path / "log")}
    command = server_command(script)
    with neovim(tmp_path, "x = 1\n", command, init=LOOKS, pictures=pictures) as editor:
        editor.sees(said)
        editor.command("checkhealth redraft")
        page = "\n".join(editor.lines())
        assert f"{level} the model is {state}" in page
        assert "run: redraft model pull" in page
