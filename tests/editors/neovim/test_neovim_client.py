"""The Neovim client as a person uses it: keys typed into a real Neovim, its screen read back."""

from __future__ import annotations

import pytest
from support.editors.neovim import NeovimDesk, edits, ghost, needs_neovim, with_ghost_text

pytestmark = needs_neovim


def test_typing_shows_ghost_text_and_tab_takes_it(desk: NeovimDesk) -> None:
    editor = with_ghost_text(desk)
    assert editor.lines() == ["total = 0", "name = "]  # only drawn, not written
    editor.keys("<Tab>")
    editor.has("total = 0", "name = str(total)")
    assert editor.cursor() == (2, len("name = str(total)"))


def test_typing_ghost_text_sends_no_new_request(desk: NeovimDesk) -> None:
    editor = with_ghost_text(desk)
    asked = sum(request.task == "infill" for request in desk.predictor.requests)
    editor.keys("str(")
    editor.until(lambda: editor.lua("return require('redraft').visible()") == "total)")
    assert "name = str(total)" in editor.screen.text()
    assert sum(request.task == "infill" for request in desk.predictor.requests) == asked


def test_several_lines_are_drawn_below_and_taken_whole(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\ny = 2\n", ghost(" x:\n    z = 3"))
    editor.keys("oif")
    editor.sees("if x:\n    z = 3\ny = 2")
    editor.keys("<Tab>")
    editor.has("x = 1", "if x:", "    z = 3", "y = 2")


def test_words_and_lines_are_taken_one_by_one(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost(" one two\n# three"))
    editor.keys("o#")
    editor.sees("# one two\n# three")
    editor.keys("<M-Right>")
    editor.has("x = 1", "# one")
    editor.sees("# one two\n# three")
    editor.keys("<M-C-Right>")
    editor.has("x = 1", "# one two")
    editor.keys("<M-C-Right>")
    editor.has("x = 1", "# one two", "# three")


def test_undo_removes_accepted_text_but_not_typed_text(desk: NeovimDesk) -> None:
    editor = with_ghost_text(desk)
    editor.keys("<Tab><Esc>")
    editor.has("total = 0", "name = str(total)")
    editor.keys("u")
    editor.has("total = 0", "name = ")


def test_ghost_text_returns_with_insert_mode(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    for _ in range(3):  # leaving insert mode is no rejection, however often
        editor.sees("name = str(total)")
        editor.keys("<Esc>")
        editor.until(lambda: "str(total)" not in editor.screen.text())
        editor.keys("A")
    editor.sees("name = str(total)")


def test_a_rejected_ghost_does_not_come_back(desk: NeovimDesk) -> None:
    editor = with_ghost_text(desk)
    editor.keys("<C-]>")
    editor.until(lambda: "str(total)" not in editor.screen.text())
    editor.lua("require('redraft').trigger()")
    editor.until(lambda: "you rejected this text here before" in editor.why())
    assert editor.showing() is None


def test_a_slow_model_holds_up_no_key(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    desk.predictor.delay_s = 30
    editor.keys("oname = abc<BS><BS><BS>")
    editor.has("total = 0", "name = ")
    editor.until(lambda: editor.lua("return require('redraft').statusline()") == "Redraft …")
    desk.predictor.delay_s = 0
    editor.keys(" ")
    editor.sees("name =  str(total)")


def test_tab_is_a_tab_where_nothing_is_shown(desk: NeovimDesk) -> None:
    editor = desk.open("a = 1\n", ghost(""))
    editor.keys("o<Tab>b")
    editor.until(lambda: editor.lines()[1].strip() == "b" and editor.lines()[1] != "b")


@pytest.mark.parametrize(
    ("typed", "ghost_text", "key"),
    [
        ("Go<C-u>    ", "return 1", "<Tab>"),
        ("GA<CR>", "return 1", "<Tab>"),  # the line that Enter begins
        ("Go<C-u>", "    return 1", "<M-l>"),  # before its indentation
    ],
)
def test_a_key_takes_ghost_text(desk: NeovimDesk, typed: str, ghost_text: str, key: str) -> None:
    editor = desk.open("def f():\n    x = 1\n", ghost(ghost_text))
    editor.lua("vim.bo.autoindent = true")
    editor.keys(typed)
    editor.sees("    return 1")
    editor.keys(key)
    editor.has("def f():", "    x = 1", "    return 1")
    assert editor.mode() == "i"


@pytest.mark.parametrize("typed", ["", "  "])
def test_tab_indents_before_it_accepts_ghost_text(desk: NeovimDesk, typed: str) -> None:
    deep = 8 * " "
    editor = desk.open("class C:\n    def f(self):\n", ghost(deep[len(typed) :] + "return 1"))
    editor.lua("vim.bo.expandtab, vim.bo.shiftwidth, vim.bo.softtabstop = true, 4, 4")
    editor.keys(f"Go<C-u>{typed}")
    editor.sees(f"{deep}return 1")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[2] == deep)
    editor.sees(f"\n{deep}return 1\n")
    assert editor.showing() == "ghost"
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[2] == f"{deep}return 1")


def test_tab_after_a_gesture_takes_at_once(desk: NeovimDesk) -> None:
    editor = desk.open("def f():\n", ghost("    return 1"))
    editor.keys("o<C-u>")
    editor.sees("    return 1")
    editor.keys("<M-\\>")
    editor.until(lambda: len(desk.predictor.requests) >= 2 or editor.showing() == "ghost")
    editor.until(lambda: not editor.lua("return require('redraft.events').is_asking()"))
    editor.keys("<Tab>")
    editor.has("def f():", "    return 1")


def test_tab_in_normal_mode_accepts_at_the_line_start(desk: NeovimDesk) -> None:
    change = ("    return r", "    return r + pi")
    editor = desk.open("def f(r):\n    return r\n", edits(change))
    editor.keys("ggf)i, pi<Esc>j0")
    editor.sees("    return r + pi")
    editor.keys("<Tab>")
    editor.has("def f(r, pi):", "    return r + pi")


@pytest.mark.parametrize("mode", ["i", "n"])
def test_alt_keys_do_nothing_new_without_a_suggestion(desk: NeovimDesk, mode: str) -> None:
    editor = desk.open("abc\n", ghost(""))
    before = "A" if mode == "i" else "0"
    editor.keys(f"gg{before}<M-l>")
    editor.until(lambda: editor.mode() == "n")
    editor.keys("<Esc>")
    ours = (editor.lines(), editor.cursor())
    editor.lua("vim.keymap.del({ 'i', 'n' }, '<M-l>')")
    try:
        editor.keys(f"gg{before}<M-l>")
        editor.until(lambda: editor.mode() == "n")
        assert ours == (editor.lines(), editor.cursor())
        assert editor.lines() == ["abc"]
        editor.keys("gg0i<M-Right>")
        editor.until(lambda: editor.mode() == "n")
        without = editor.cursor()
        editor.lua("require('redraft').setup()")
        editor.keys("gg0i<M-Right>")
        editor.until(lambda: editor.mode() == "n")
        assert editor.cursor() == without
    finally:
        editor.lua("require('redraft').setup()")


def test_the_key_does_what_another_plugin_mapped_it_to(desk: NeovimDesk) -> None:
    editor = desk.open("a = 1\n", edits())
    editor.lua(
        """
        vim.keymap.set("i", "<F6>", function() return "<C-v>u2192" end, { expr = true })
        vim.keymap.set("i", "<F7>", function() vim.b.pressed = 7 end)
        vim.keymap.set("i", "<F8>", "eight")
        vim.keymap.set("i", "<F9>", "<F8>!", { remap = true })
        vim.cmd("inoremap <expr> <F10> 'ten'")
        for _, key in ipairs({ "<F6>", "<F7>", "<F8>", "<F9>", "<F10>" }) do
          require("redraft").setup({ keys = { accept = key } })
        end
        """
    )
    editor.keys("ox<F6><F7> <F8> <F9> <F10>")
    editor.has("a = 1", "x→ eight eight! ten")
    assert editor.lua("return vim.b.pressed") == 7
