"""The language server in a real Neovim, headless. Skipped where there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
from support.lsp_process import SERVER
from support.neovim import Neovim, neovim, server_command
from support.neovim_script import needs_neovim, run_script

pytestmark = needs_neovim

#: Opens a file, types, asks, takes the suggestion as Neovim 0.12 does, and asks again.
SCRIPT = """
vim.o.virtualedit = "onemore"  -- the cursor may stand after the last character, as when inserting
log.encoding = client.offset_encoding
log.provider = client.server_capabilities.inlineCompletionProvider ~= nil

local function ask(line, column)
  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = 2 }
  local answer
  client:request("textDocument/inlineCompletion", params, function(err, result)
    answer = { err = err, result = result }
  end, buffer)
  assert(vim.wait(20000, function() return answer ~= nil end), "no answer")
  return answer
end

vim.api.nvim_buf_set_text(buffer, 1, 0, 1, 0, { "    s = '😀' + " })
log.first = ask(1, #"    s = '😀' + ")
local item = log.first.result.items[1]
vim.lsp.util.apply_text_edits(
  { { range = item.range, newText = item.insertText } }, buffer, client.offset_encoding)
client:exec_cmd(item.command, { bufnr = buffer })
client:notify("textDocument/didFocus", { textDocument = { uri = vim.uri_from_bufnr(buffer) } })
log.text = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)

local last = vim.api.nvim_buf_line_count(buffer) - 1
log.second = ask(last, 0)
"""


def drive(folder: Path, text: str, *answers: str) -> dict[str, Any]:
    return run_script(folder, text, SCRIPT, {"answers": list(answers)}, "redraft")


def test_neovim_gets_suggestions_and_takes_them(tmp_path: Path) -> None:
    log = drive(tmp_path, "def area(r):\n\nx = 1\n", "str(r)\n    return s", "y = 2\n")
    assert (log["encoding"], log["provider"]) == ("utf-16", True)
    [item] = log["first"]["result"]["items"]
    assert item["range"]["start"] == {"line": 1, "character": 15}
    assert log["text"] == ["def area(r):", "    s = '😀' + str(r)", "    return s", "x = 1"]
    assert log["second"]["result"]["items"][0]["insertText"] == "y = 2\n"
    assert log["popups"] == []
    cursors = [json.loads(line) for line in (tmp_path / "model.log").read_text().splitlines()]
    # The engine counts characters: the emoji is one, and what was typed has arrived.
    assert cursors[0] == {"event": "asked", "cursor": 27}


def test_neovim_keeps_dos_line_ends(tmp_path: Path) -> None:
    log = drive(tmp_path, "def area(r):\r\n\r\nx = 1\r\n", "str(r)\n    return s", "y = 2\n")
    [item] = log["first"]["result"]["items"]
    assert item["insertText"] == "str(r)\r\n    return s"
    assert log["text"] == ["def area(r):", "    s = '😀' + str(r)", "    return s", "x = 1"]


def test_a_server_that_is_not_installed_is_said_once(tmp_path: Path, pictures: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n", encoding="utf-8")
    note = "_G.notices = {}; vim.notify = function(m) table.insert(_G.notices, m) end\n"
    editor = Neovim(tmp_path, file, "{ 'no-such-redraft', 'lsp' }", note, pictures=pictures)
    try:
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
        editor.picture("health")
    finally:
        editor.close()


def test_a_plugin_that_is_loaded_late_says_it_too(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n", encoding="utf-8")
    late = "vim.g.loaded_redraft = true\nvim.notify = function() end\n"
    editor = Neovim(tmp_path, file, "{ 'no-such-redraft', 'lsp' }", late)
    try:
        editor.sees("x = 1")
        editor.command("unlet g:loaded_redraft | runtime plugin/redraft.lua")
        editor.until(lambda: "is not on the PATH" in editor.why())
    finally:
        editor.close()


def servers(editor: Neovim) -> list[psutil.Process]:
    """The language servers that an editor started."""
    found = psutil.Process(editor.process.pid).children(recursive=True)
    return [each for each in found if SERVER.name in " ".join(each.cmdline())]


def test_a_server_that_is_killed_comes_back_and_no_key_is_lost(
    tmp_path: Path, pictures: Path
) -> None:
    script = {"answers": ["str(total)"], "log": str(tmp_path / "model.log")}
    command = server_command(script)
    with neovim(tmp_path, "total = 0\n", command, pictures=pictures) as editor:
        editor.keys("oname = ")
        editor.sees("name = str(total)")
        [server] = servers(editor)
        server.kill()
        editor.until(lambda: "str(total)" not in editor.screen.text())
        editor.picture("ended")
        editor.keys("<CR>more = ")
        editor.has("total = 0", "name = ", "more = ")
        editor.until(lambda: servers(editor) not in ([], [server]))
        editor.attached()
        editor.keys(" ")
        editor.sees("more =  str(total)")
        editor.picture("back")
        editor.keys("<Tab>")
        editor.has("total = 0", "name = ", "more =  str(total)")


def test_a_server_that_cannot_live_is_not_started_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n", encoding="utf-8")
    log = tmp_path / "starts.log"
    code = f"open({str(log)!r}, 'a').write('started\\n'); raise SystemExit(3)"
    command = "vim.json.decode([==[" + json.dumps([sys.executable, "-c", code]) + "]==])"
    editor = Neovim(tmp_path, file, command, init="vim.notify = function() end\n")
    try:
        editor.until(lambda: "4 times; see :Redraft log" in editor.why())
        assert editor.lua("return require('redraft').status()") == "error"
        assert log.read_text().count("started") == 4
        editor.keys("oname<Esc>")
        editor.has("x = 1", "name")
    finally:
        editor.close()
