"""A Lua script run in a real, headless Neovim against the language server with a scripted model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.lsp_process import SERVER

NVIM = shutil.which("nvim") or shutil.which("nvim", path=str(Path(sys.executable).parent))

needs_neovim = pytest.mark.usefixtures("neovim")

#: A Python file makes Neovim look for Python plugins, by processes that take seconds.
QUICKLY = ("--cmd", "let g:loaded_python3_provider = 0")

#: Opens the file and starts the server by the name that the test gives; ``log`` is what comes back.
_BEGIN = """
local command, file, out, name = vim.json.decode(arg[1]), arg[2], arg[3], arg[4]
local log = { popups = {}, statuses = {} }
vim.lsp.handlers["window/showMessage"] = function(_, result) table.insert(log.popups, result) end
vim.lsp.handlers["didChangeStatus"] = function(_, result)
  table.insert(log.statuses, result.message)
end

vim.cmd.edit(vim.fn.fnameescape(file))
local buffer = vim.api.nvim_get_current_buf()
vim.bo[buffer].filetype = "python"
local root = vim.fs.dirname(file)
local id = assert(vim.lsp.start({ name = name, cmd = command, root_dir = root }))
assert(vim.wait(50000, function()
  local client = vim.lsp.get_client_by_id(id)
  return client ~= nil and client.initialized
end), "the server did not start")
local client = vim.lsp.get_client_by_id(id)
"""

_END = """
log.lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
vim.fn.writefile({ vim.json.encode(log) }, out)
client:stop()
vim.wait(5000, function() return client:is_stopped() end)
"""


def run_script(
    folder: Path, text: str, script: str, server: dict[str, Any], name: str, *arguments: str
) -> dict[str, Any]:
    """What ``script`` left in its table ``log``, with the buffer's ``lines`` at the end.

    Args:
        server: the scripted model's answers and files; see ``scripted_server.py``.
        name: of the language client.
        arguments: ``arg[5]`` and on of the script.
    """
    file, out, lua = folder / "a.py", folder / "out.json", folder / "drive.lua"
    file.write_bytes(text.encode())
    lua.write_text(_BEGIN + script + _END, encoding="utf-8")
    model = {"log": str(folder / "model.log"), **server}
    command = json.dumps([sys.executable, str(SERVER), json.dumps(model)])
    assert NVIM is not None
    done = subprocess.run(
        [
            *(NVIM, *QUICKLY, "--clean", "--headless", "-l", str(lua)),
            *(command, str(file), str(out), name, *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        check=False,
    )
    assert out.exists(), done.stdout + done.stderr
    log: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return log
