"""Whole renames in the Neovim client: the label, one Tab, and other language servers."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest
from support.editors.neovim import Neovim, NeovimDesk, needs_neovim

pytestmark = needs_neovim

SHAPES = "def area(width):\n    return width\n\n\nprint(area(2), area(3))\n"
MAIN = "from a import area\n\nprint(area(1), 'area')\n"
LABEL = "rename area → surface in 4 places (2 files)"
RENAMED = SHAPES.replace("area", "surface").splitlines()

PYRIGHT = shutil.which("basedpyright-langserver", path=str(Path(sys.executable).parent))

#: A server that renames the uses of a name in its buffer, if the name at the cursor is "area": uses
#: of another name do not lead to it. It keeps the texts that it was sent.
OTHER = r"""
_G.texts, _G.forgets = {}, false
local function rename(params, text)
  local edits, row = {}, 0
  for line in (text .. "\n"):gmatch("(.-)\n") do
    for column in line:gmatch("()area") do
      local from = { line = row, character = column - 1 }
      local range = { start = from, ["end"] = { line = row, character = column + 3 } }
      edits[#edits + 1] = { range = range, newText = params.newName }
    end
    row = row + 1
  end
  local at = vim.split(text, "\n")[params.position.line + 1]:sub(params.position.character + 1)
  local found = vim.startswith(at, "area") and edits or {}
  if _G.forgets then
    table.remove(found)
  end
  return { changes = { [params.textDocument.uri] = found } }
end
vim.lsp.start({ name = "other", cmd = function(dispatchers)
  local text
  return {
    request = function(method, params, answer)
      local abilities = { renameProvider = true, textDocumentSync = 1 }
      local results = { initialize = { capabilities = abilities } }
      if method == "textDocument/rename" then
        results[method] = rename(params, text)
      end
      vim.schedule(function() answer(nil, results[method]) end)
      return true, 1
    end,
    notify = function(method, params)
      local changes = params and params.contentChanges
      text = changes and changes[1].text or params and params.textDocument
        and params.textDocument.text or text
      table.insert(_G.texts, text)
      return true
    end,
    is_closing = function() return false end,
    terminate = function() dispatchers.on_exit(0, 0) end,
  }
end })
"""


def offered(desk: NeovimDesk, label: str = LABEL, before: str = "", **files: str) -> Neovim:
    """Rename the function and wait for the label.

    Args:
        before: Lua that runs before the rename.
        files: texts of other files, by name without suffix.
    """
    beside = {f"{name}.py": text for name, text in files.items()}
    editor = desk.open(SHAPES, beside=beside)
    editor.lua(before)
    rename(editor, "surface", label)
    return editor


def rename(editor: Neovim, name: str, label: str) -> None:
    """Rename what the first line defines, and wait for the label."""
    editor.keys(f"ggwciw{name}<Esc>")

    def sees() -> bool:
        editor.keys("hl")  # asks again: the index may not be ready
        time.sleep(0.1)
        return f"{label} · Tab" in editor.screen.text()

    editor.until(sees)


def text_of(editor: Neovim, name: str) -> str:
    code = "return table.concat(vim.fn.getbufline(vim.fn.bufnr(...), 1, '$'), '\\n')"
    found: str = editor.lua(code, name)
    return f"{found}\n"


def test_one_tab_renames_in_all_files_and_undo_reverts(
    desk: NeovimDesk,
) -> None:
    editor = offered(desk, main=MAIN)
    editor.picture("offered")
    assert editor.lines() == SHAPES.replace("def area", "def surface").splitlines()
    editor.keys("<Tab>")
    editor.has(*RENAMED)
    assert text_of(editor, "main.py") == MAIN.replace("area", "surface").replace(
        "'surface'", "'area'"
    )
    assert editor.notices()[-1] == "Redraft: renamed in 2 files; :wall writes them"
    editor.keys("u")
    editor.has(*SHAPES.replace("def area", "def surface").splitlines())


def test_a_label_is_cut_so_that_its_key_is_seen(desk: NeovimDesk) -> None:
    comment = "  # of a wide and flat shape"
    wide = f"vim.api.nvim_buf_set_text(0, 0, 16, 0, 16, {{ '{comment}' }})"
    offered(desk, "rename area → surfac…", wide)


def test_a_rename_is_hidden_and_rejected_as_any_edit(desk: NeovimDesk) -> None:
    editor = offered(desk, main=MAIN)
    editor.keys("<Esc>")
    editor.until(lambda: LABEL not in editor.screen.text())
    assert "hidden" in editor.why()


def test_a_file_that_changed_meanwhile_is_not_touched(desk: NeovimDesk) -> None:
    editor = offered(desk, main=MAIN)
    folder = Path(editor.lua("return vim.fn.expand('%:p:h')"))
    (folder / "main.py").write_text("import os\n" + MAIN, encoding="utf-8")
    editor.keys("<Tab>")
    editor.until(lambda: "has changed" in "".join(editor.notices()))
    assert editor.lines() == SHAPES.replace("def area", "def surface").splitlines()


def test_the_other_language_server_gets_the_old_name(desk: NeovimDesk) -> None:
    editor = offered(desk, "rename area → surface in 2 places", OTHER)
    editor.keys("<Tab>")
    editor.has(*RENAMED)
    assert SHAPES in editor.lua("return _G.texts"), "it saw the definition as it was"
    editor.keys("u")
    editor.has(*SHAPES.replace("def area", "def surface").splitlines())


def test_a_server_that_finds_fewer_uses_is_not_used(desk: NeovimDesk) -> None:
    editor = offered(desk, "rename area → surface in 2 places", OTHER + "_G.forgets = true")
    editor.keys("<Tab>")
    editor.has(*RENAMED)


@pytest.mark.skipif(PYRIGHT is None, reason="basedpyright is not installed")
def test_pyright_renames_the_uses_that_only_it_knows(desk: NeovimDesk) -> None:
    text = "class Area:\n    pass\n\n\ndef half(whole: 'Area') -> Area:\n    return Area()\n"
    other = "from a import Area\n\nprint(Area())\n"
    editor = desk.open(text, beside={"main.py": other})
    editor.lua(
        """
        local root = vim.fn.expand("%:p:h")
        vim.lsp.start({ name = "pyright", cmd = { ..., "--stdio" }, root_dir = root })
        """,
        PYRIGHT,
    )
    ready = "return #vim.lsp.get_clients({ name = 'pyright' }) > 0"
    editor.until(lambda: editor.lua(ready))
    rename(editor, "Surface", "rename Area → Surface in 4 places (2 files)")
    editor.keys("<Tab>")
    editor.has(*text.replace("Area", "Surface").splitlines())
    assert text_of(editor, "main.py") == other.replace("Area", "Surface")
    editor.keys("u")
    editor.has(*text.replace("class Area", "class Surface").splitlines())
