"""The language server in a real Neovim, headless. Skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lsp_process import SERVER
from neovim_script import NVIM, needs_neovim, run_script

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
    log = drive(tmp_path, "def area(r):\n\nx = 1\n", "str(r)\n    return s", "y = 2")
    assert (log["encoding"], log["provider"]) == ("utf-16", True)
    [item] = log["first"]["result"]["items"]
    assert item["range"]["start"] == {"line": 1, "character": 15}
    assert log["text"] == ["def area(r):", "    s = '😀' + str(r)", "    return s", "x = 1"]
    assert log["second"]["result"]["items"][0]["insertText"] == "y = 2"
    assert log["popups"] == []
    cursors = [json.loads(line) for line in (tmp_path / "model.log").read_text().splitlines()]
    # The engine counts characters: the emoji is one, and what was typed has arrived.
    assert cursors[0] == {"event": "asked", "cursor": 27}


def test_neovim_keeps_dos_line_ends(tmp_path: Path) -> None:
    log = drive(tmp_path, "def area(r):\r\n\r\nx = 1\r\n", "str(r)\n    return s", "y = 2")
    [item] = log["first"]["result"]["items"]
    assert item["insertText"] == "str(r)\r\n    return s"
    assert log["text"] == ["def area(r):", "    s = '😀' + str(r)", "    return s", "x = 1"]


#: Types with the plugin loaded and no server to be found.
WITHOUT_SERVER = """
local client, out = arg[1], arg[2]
vim.opt.runtimepath:append(client)
vim.cmd("runtime plugin/redraft.lua")
vim.lsp.config("redraft", { cmd = { "no-such-redraft", "lsp" } })
local notices = {}
vim.notify = function(message) table.insert(notices, message) end
vim.bo.filetype = "python"
require("redraft").ask()
require("redraft").ask()
vim.fn.writefile({ vim.json.encode({
  notices = notices, status = require("redraft").status,
}) }, out)
"""


def test_a_server_that_is_not_installed_is_said_once(tmp_path: Path) -> None:
    script, out = tmp_path / "script.lua", tmp_path / "out.json"
    script.write_text(WITHOUT_SERVER)
    folder = Path(__file__).parents[1] / "editor-clients" / "neovim"
    assert NVIM is not None
    command = [NVIM, "--clean", "--headless", "-l", str(script), str(folder), str(out)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    log = json.loads(out.read_text())
    assert len(log["notices"]) == 1
    assert "no-such-redraft is not on the PATH" in log["status"]


#: Types with the plugin loaded, waits for the ghost, takes it with Tab.
TYPING = """
vim.opt.runtimepath:append(vim.env.CLIENT)
vim.lsp.config("redraft", { cmd = vim.json.decode(vim.env.SERVER) })
vim.cmd("runtime plugin/redraft.lua")
local log, asked = {}, false
vim.schedule(function() vim.bo.filetype = "python" end)
local function step()
  local client = vim.lsp.get_clients({ name = "redraft" })[1]
  local ghost = require("redraft").visible()
  if not asked and client and client.initialized then
    asked = true
    vim.api.nvim_input("ggA #")
  elseif ghost and not log.ghost then
    log.ghost = ghost
    vim.api.nvim_input("<Tab>")
  elseif log.ghost and not ghost then
    log.lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
    vim.fn.writefile({ vim.json.encode(log) }, vim.env.OUT)
    vim.cmd("qa!")
  end
end
vim.uv.new_timer():start(50, 50, vim.schedule_wrap(step))
vim.defer_fn(function() vim.cmd("cquit") end, 30000)
"""


def test_the_ghost_of_a_file_with_dos_line_ends_leaves_no_carriage_returns(tmp_path: Path) -> None:
    file, script, out = tmp_path / "a.py", tmp_path / "typing.lua", tmp_path / "out.json"
    file.write_bytes(b"x = 1\r\ny = 2\r\n")
    script.write_text(TYPING)
    server = {"answers": [" one\n# two"], "log": str(tmp_path / "model.log")}
    environment = {
        "CLIENT": str(Path(__file__).parents[1] / "editor-clients" / "neovim"),
        "SERVER": json.dumps([sys.executable, str(SERVER), json.dumps(server)]),
        "OUT": str(out),
    }
    assert NVIM is not None
    done = subprocess.run(
        [NVIM, "--clean", "--headless", str(file), "-S", str(script)],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.exists(), done.stdout + done.stderr
    log = json.loads(out.read_text())
    assert log["ghost"] == " one\n# two"
    assert log["lines"] == ["x = 1 # one", "# two", "y = 2"]
