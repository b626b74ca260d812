"""Keys of the Neovim client beside what else wants them: menus, snippets, indents, other plugins.

The plugins stood in for here map as nvim-cmp and blink.cmp do: around what was there, for all
buffers or for one, with a way back to it.
"""

from __future__ import annotations

import pytest
from redraft.model.records import EditRequest, Prediction
from support.editors.neovim import Neovim, NeovimDesk, edits, ghost, needs_neovim
from support.editors.predictor import infill, predicted, rewrite

pytestmark = needs_neovim

TEXT = "total_one = 1\ntotal_two = 2\n"

#: As nvim-cmp: a mapping for all buffers; what was there is kept as another mapping, which is
#: typed where no menu is open.
AROUND = """
_G.menu, _G.selected = false, 0
package.loaded["cmp"] = { visible = function() return _G.menu end }
local was = vim.fn.maparg("<Tab>", "i", false, true)
local kept = "<Plug>(kept-tab)"
vim.keymap.set("i", kept, was.callback, {
  expr = was.expr == 1, replace_keycodes = was.replace_keycodes == 1,
})
vim.keymap.set("i", "<Tab>", function()
  if _G.menu then
    _G.selected = _G.selected + 1
  else
    vim.api.nvim_feedkeys(vim.keycode(kept), "im", true)
  end
end)
"""

#: As blink.cmp: an expression for one buffer, set when insert mode begins, which asks the mapping
#: for all buffers where no menu is open.
OVER = """
_G.menu, _G.selected = false, 0
package.loaded["blink.cmp"] = { is_visible = function() return _G.menu end }
vim.api.nvim_create_autocmd("InsertEnter", { once = true, callback = function()
  vim.keymap.set("i", "<Tab>", function()
    if _G.menu then
      _G.selected = _G.selected + 1
      return ""
    end
    for _, each in ipairs(vim.api.nvim_get_keymap("i")) do
      if each.lhs == "<Tab>" then
        return each.callback()
      end
    end
  end, { buffer = true, expr = true, replace_keycodes = false })
end })
"""


def take_with_tab(editor: Neovim) -> None:
    """Tab is the menu's while that is open, and takes the suggestion once it is not."""
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.lua("_G.menu = true")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lua("return _G.selected") == 1)
    assert editor.lines()[1] == "name = "
    editor.lua("_G.menu = false")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1] == "name = str(total)")
    editor.keys(" <Tab>x")  # nothing is shown: a tab
    editor.until(lambda: editor.lines()[1].endswith("x"))
    assert editor.lines()[1].removeprefix("name = str(total) ")[:-1].isspace(), editor.lines()


def forget(editor: Neovim) -> None:
    """Tab as Neovim maps it itself; the editor serves other tests."""
    editor.keys("<C-\\><C-n>")
    editor.lua(
        """
        package.loaded["cmp"], package.loaded["blink.cmp"] = nil, nil
        vim.keymap.set("i", "<Tab>", function()
          local on = vim.snippet.active({ direction = 1 })
          return on and "<Cmd>lua vim.snippet.jump(1)<CR>" or "<Tab>"
        end, { expr = true, desc = "as Neovim does" })
        """
    )


@pytest.mark.parametrize(
    ("plugin", "then"),
    [
        (AROUND, ""),
        (OVER, ""),
        (AROUND, "require('redraft').setup()"),  # setting keys again goes round in no circle
    ],
    ids=["for all buffers", "in a buffer", "keys set again"],
)
def test_a_plugin_that_maps_tab_gets_it_first(desk: NeovimDesk, plugin: str, then: str) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    try:
        editor.lua(plugin)
        editor.lua(then)
        take_with_tab(editor)
    finally:
        forget(editor)


def test_tab_selects_entries_of_an_open_menu(desk: NeovimDesk) -> None:
    editor = desk.open(TEXT, ghost("(x)"))
    editor.lua(
        """
        vim.keymap.set("i", "<Tab>", function()
          return vim.fn.pumvisible() == 1 and "<C-n>" or "<Tab>"
        end, { expr = true })
        require("redraft").setup()
        """
    )
    try:
        editor.keys("Gototal_<C-x><C-n>")
        editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 1)
        editor.until(lambda: editor.showing() == "ghost")
        first = editor.lines()[2]
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines()[2] not in (first, "total_"))
        assert editor.lines()[2] in ("total_one", "total_two", "total_")
        editor.keys("<C-y>")
        editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 0)
        assert "(x)" not in editor.lines()[2]
    finally:
        forget(editor)


def test_tab_moves_through_a_snippet_despite_an_edit(desk: NeovimDesk) -> None:
    call = ("area(2)", "area(2, 3.14)")
    editor = desk.open("def area(r):\n    pass\n\n\nprint(area(2))\n", edits(call))
    editor.keys("ggf)i, pi")
    editor.sees("→ line 5: `pi` was added to `area` · Tab")
    editor.keys("<Esc>o")
    editor.lua("vim.snippet.expand('f(${1:one}, ${2:two})$0')")
    editor.keys("1<Tab>")
    editor.until(lambda: editor.mode() == "s")
    editor.keys("2")
    editor.until(lambda: editor.lines()[1].strip() == "f(1, 2)")
    assert "print(area(2))" in editor.lines()
    editor.keys("<Tab>")  # the last field: behind it Tab is ours again
    editor.until(lambda: editor.lua("return vim.snippet.active({ direction = 1 })") is False)


def test_changing_keys_restores_the_previous_mappings(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.lua("vim.keymap.set('i', '<F5>', 'five')")
    editor.lua("require('redraft').setup({ keys = { accept = '<F5>' } })")
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.lua("require('redraft').setup({ keys = { accept = '<F6>', accept_word = false } })")
    editor.keys("<F5>")
    editor.until(lambda: editor.lines()[1] == "name = five")
    editor.sees("name = fivestr(total)")
    editor.keys("<F6>")
    editor.until(lambda: editor.lines()[1] == "name = fivestr(total)")
    described = "return (vim.fn.maparg(..., 'i', false, true).desc or '')"
    assert editor.lua(described, "<F6>").startswith("Redraft")
    assert editor.lua(described, "<M-Right>") == ""
    editor.lua("require('redraft').setup()")
    assert editor.lua(described, "<F6>") == ""
    assert editor.lua(described, "<Tab>").startswith("Redraft")


def test_a_user_mapping_with_our_description_stays(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost(""))
    editor.lua("require('redraft').setup({ keys = { accept = '<F5>' } })")
    editor.lua("vim.keymap.set('i', '<F5>', 'mine', { desc = 'Redraft accept' })")
    editor.lua("require('redraft').setup({ keys = { accept = '<F6>' } })")
    editor.keys("o<F5><Esc>")
    editor.has("total = 0", "mine")


def test_a_mapping_of_one_buffer_is_not_run_in_others(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost(""))
    editor.lua(
        """
        vim.keymap.set("i", "<F5>", "here", { buffer = true })
        vim.keymap.set("i", "<F5>", "everywhere")
        require("redraft").setup({ keys = { accept = "<F5>" } })
        """
    )
    editor.keys("o<F5><Esc>")
    editor.has("total = 0", "here")
    editor.command("enew!")
    editor.keys("i<F5><Esc>")
    editor.has("everywhere")


def test_mappings_of_scripts_do_what_they_did(desk: NeovimDesk) -> None:
    editor = desk.open("a = 1\n", edits())
    script = desk.folder / "mapping.vim"
    script.write_text(
        "function! s:Said()\n  return 'said'\nendfunction\n"
        "inoremap <expr> <F5> <SID>Said()\n"
        "imap <expr> <F6> pumvisible() ? '<C-n>' : '<Plug>(other)'\n"
        "inoremap <Plug>(other) other\n"
        'inoremap <expr> <F7> pumvisible() ? "\\<C-n>" : "\\<C-v>u2192"\n'
        "inoremap <F8> <C-R>='result'<CR>\n",
        encoding="utf-8",
    )
    editor.command(f"source {script.as_posix()}")
    for key in ("<F5>", "<F6>", "<F7>", "<F8>"):
        editor.lua("require('redraft').setup({ keys = { accept = ... } })", key)
        editor.keys(f"o{key}<Esc>")
    editor.has("a = 1", "said", "other", "→", "result")


def test_alternative_ghost_text_can_be_accepted(desk: NeovimDesk) -> None:
    def several(request: EditRequest) -> Prediction:
        if request.task == "infill" and request.candidates > 1:
            return infill(request, "str(total)", "repr(total)")
        return ghost("str(total)")(request)

    editor = desk.open("total = 0\n", several)
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<M-]>")
    editor.sees("name = repr(total)")
    editor.keys("<M-]>")
    editor.sees("name = str(total)")
    editor.keys("<M-]>")
    editor.sees("name = repr(total)")
    asked = [each.candidates for each in desk.predictor.requests if each.task == "infill"]
    assert [count for count in asked if count > 1] == [4]
    editor.keys("<Tab>")
    editor.has("total = 0", "name = repr(total)")


def test_another_edit_takes_the_place_of_the_one_shown(desk: NeovimDesk) -> None:
    def both(request: EditRequest) -> Prediction:
        if request.task == "infill" or "total_one = 1" in request.text:
            return ghost("")(request)
        made = (rewrite(request, "total_two = 2", f"total_two = {n}") for n in "34")
        return predicted(*(each.candidates[0] for each in made if each.candidates))

    editor = desk.open(TEXT, both)
    editor.keys("$r5")
    editor.sees("total_two = 23")  # old and new stand side by side
    editor.keys("<M-]>")
    editor.sees("total_two = 24")
    editor.keys("<M-]>")
    editor.sees("total_two = 23")  # old and new stand side by side


def test_the_user_learns_of_the_only_suggestion(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<M-]>")
    editor.until(lambda: editor.notices() == ["Redraft: there is no other text here"])
    editor = desk.open("f(1)\ng(2)\n", edits(("g(2)", "g(2, 3)")))
    editor.keys("f)i, 3<Esc>")
    editor.sees("g(2, 3)")
    editor.keys("<M-]>")
    editor.until(lambda: editor.notices() == ["Redraft: there is no other edit here"])
    editor.sees("g(2, 3)")
