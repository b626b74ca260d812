"""The Neovim client as a person uses it: keys typed into a real Neovim, its screen read back."""

from __future__ import annotations

from pathlib import Path

from neovim import Desk, edits, ghost
from neovim_script import needs_neovim

pytestmark = needs_neovim

CODE = "def area(r):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"
FAR = CODE.replace("\n\n\n", "\n" * 30)
CHANGE = "ggf)i, pi<Esc>"


CALL = ("area(2)", "area(2, 3.14)")


# --- ghost text --------------------------------------------------------------------------------


def test_typing_shows_ghost_text_and_tab_takes_it(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    assert editor.lines() == ["total = 0", "name = "]  # only drawn, not written
    editor.keys("<Tab>")
    editor.has("total = 0", "name = str(total)")
    assert editor.cursor() == (2, len("name = str(total)"))


def test_typing_along_shrinks_the_ghost_and_asks_the_model_no_more(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    asked = sum(request.task == "infill" for request in desk.predictor.requests)
    editor.keys("str(")
    editor.until(lambda: editor.lua("return require('redraft').visible()") == "total)")
    assert "name = str(total)" in editor.screen.text()
    assert sum(request.task == "infill" for request in desk.predictor.requests) == asked


def test_several_lines_are_drawn_below_and_taken_whole(desk: Desk) -> None:
    editor = desk.open("x = 1\ny = 2\n", ghost(" x:\n    z = 3"))
    editor.keys("oif")
    editor.sees("if x:\n    z = 3\ny = 2")
    editor.keys("<Tab>")
    editor.has("x = 1", "if x:", "    z = 3", "y = 2")


def test_words_and_lines_are_taken_one_by_one(desk: Desk) -> None:
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


def test_undo_takes_back_what_was_accepted_and_not_what_was_typed(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<Tab><Esc>")
    editor.has("total = 0", "name = str(total)")
    editor.keys("u")
    editor.has("total = 0", "name = ")


def test_leaving_insert_mode_takes_the_ghost_away(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<Esc>")
    editor.until(lambda: "str(total)" not in editor.screen.text())


def test_a_rejected_ghost_does_not_come_back(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<C-]>")
    editor.until(lambda: "str(total)" not in editor.screen.text())
    editor.lua("require('redraft').next()")
    editor.until(lambda: "this text was rejected here before" in editor.told())
    assert editor.showing() is None


def test_a_slow_model_holds_up_no_key(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    desk.predictor.delay_s = 30
    editor.keys("oname = abc<BS><BS><BS>")
    editor.has("total = 0", "name = ")
    editor.until(lambda: editor.lua("return require('redraft').statusline()") == "Redraft …")
    desk.predictor.delay_s = 0
    editor.keys(" ")
    editor.sees("name =  str(total)")


# --- Tab ---------------------------------------------------------------------------------------


def test_tab_is_a_tab_where_nothing_is_shown(desk: Desk) -> None:
    editor = desk.open("a = 1\n", ghost(""))
    editor.keys("o<Tab>b")
    editor.until(lambda: editor.lines()[1].strip() == "b" and editor.lines()[1] != "b")


def test_tab_indents_in_leading_white_space_and_another_key_accepts(desk: Desk) -> None:
    editor = desk.open("def f():\n", ghost("return 1"))
    editor.lua("vim.bo.expandtab, vim.bo.shiftwidth, vim.bo.softtabstop = true, 4, 4")
    editor.keys("o<C-u>  ")
    editor.sees("  return 1")
    editor.keys("<Tab>")
    editor.has("def f():", "    ")
    editor.sees("    return 1")
    editor.keys("<M-l>")
    editor.has("def f():", "    return 1")


def test_tab_is_left_to_the_completion_menu(desk: Desk) -> None:
    editor = desk.open("total_one = 1\ntotal_two = 2\n", ghost("(x)"))
    editor.keys("Gototal_<C-n>")
    editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 1)
    editor.until(lambda: editor.showing() == "ghost")
    assert editor.lua("return require('redraft.keys').is_free()") is False
    editor.keys("<M-l>")
    editor.until(lambda: editor.lines()[2].endswith("(x)"))


def test_the_key_does_what_another_plugin_mapped_it_to(desk: Desk) -> None:
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


def test_tab_goes_on_through_a_snippet(desk: Desk) -> None:
    editor = desk.open("a = 1\n", ghost("(x)"))
    editor.keys("o")
    editor.lua("vim.snippet.expand('f(${1:one}, ${2:two})$0')")
    editor.keys("1")
    editor.until(lambda: editor.lines()[1] == "f(1, two)")
    editor.keys("<Tab>")
    editor.until(lambda: editor.mode() == "s")
    editor.keys("2")
    editor.has("a = 1", "f(1, 2)")


# --- next edits --------------------------------------------------------------------------------


def test_a_changed_signature_brings_the_edit_of_its_call(desk: Desk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("def area(r, pi):    → edit at line 5 · Tab ".rstrip())
    editor.sees("print(area(2, 3.14))")
    assert editor.screen.attributes(", 3.14")["background"] == 0x1F3D2B
    assert editor.lines()[4] == "print(area(2))"  # only drawn, not written
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor() == (5, len("print(area(2")))
    editor.until(lambda: "→" not in editor.screen.text())
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[4] == "print(area(2, 3.14))")
    editor.until(lambda: editor.showing() is None)


def test_edits_follow_each_other_by_tab(desk: Desk) -> None:
    body = ("3.14 * r", "pi * r")
    editor = desk.open(FAR, edits(CALL, body))
    editor.keys(CHANGE)
    editor.until(lambda: editor.showing() == "edit")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: "print(area(2, 3.14))" in editor.lines())
    editor.sees("→ edit at line 2 · Tab")
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor()[0] == 2)
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1] == "    return pi * r * r")
    assert len([r for r in desk.predictor.requests if r.task == "next_edit"]) >= 2


def test_lines_that_go_are_tinted_and_lines_that_come_drawn_between(desk: Desk) -> None:
    old = "    return 3.14 * r * r\n"
    new = "    if r < 0:\n        raise ValueError(r)\n    return 3.14 * r * r\n"
    editor = desk.open(CODE, edits((old, new)))
    editor.keys(CHANGE)
    editor.sees("    if r < 0:\n        raise ValueError(r)\n    return 3.14 * r * r")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1:4] == new.splitlines())


def test_what_goes_is_tinted(desk: Desk) -> None:
    editor = desk.open(CODE, edits(("3.14 * r", "pi * r")))
    editor.keys(CHANGE)
    editor.sees("return 3.14pi * r * r")
    assert editor.screen.attributes("3.14")["strikethrough"] is True
    assert editor.screen.attributes("pi * r * r")["background"] == 0x1F3D2B
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1] == "    return pi * r * r")


def test_a_rejected_edit_does_not_come_back(desk: Desk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("→ edit at line 5")
    editor.keys("<Esc>")
    editor.until(lambda: "→" not in editor.screen.text())
    editor.lua("require('redraft').next()")
    editor.until(lambda: "this edit was rejected before" in editor.told())
    assert editor.showing() is None
    assert "3.14))" not in editor.screen.text()


def test_an_edit_elsewhere_is_not_lost_by_typing(desk: Desk) -> None:
    editor = desk.open(FAR, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("→ edit at line 32")
    editor.keys("ggO# a line<Esc>")
    editor.sees("→ edit at line 33")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: editor.lines()[32] == "print(area(2, 3.14))")


def test_an_edit_is_taken_word_by_word(desk: Desk) -> None:
    editor = desk.open("def f(a):\n    g(a)\n", edits(("g(a)", "g(a, one, two)")))
    editor.keys("ggfai b<Esc>")
    editor.sees("g(a, one, two)")
    editor.keys("<M-Right>")
    editor.until(lambda: editor.lines()[1] == "    g(a,)")
    editor.sees("g(a, one, two)")
    editor.keys("<M-Right>")
    editor.until(lambda: editor.lines()[1] == "    g(a, one)")


def test_subtle_mode_hints_and_shows_when_asked(desk: Desk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.command("Redraft subtle on")
    editor.keys(CHANGE)
    editor.sees("→ edit at line 5 · Tab")
    assert "3.14))" not in editor.screen.text()
    editor.keys("<Tab>")
    editor.sees("print(area(2, 3.14))")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: editor.lines()[4] == "print(area(2, 3.14))")


def test_a_rename_goes_on_in_another_file(desk: Desk) -> None:
    editor = desk.open("def area(r):\n    return r\n", edits(CALL))
    other = Path(editor.lua("return vim.fs.dirname(vim.api.nvim_buf_get_name(0))")) / "b.py"
    other.write_text("from a import area\n\nprint(area(2))\n", encoding="utf-8")
    editor.command(f"edit {other.as_posix()}")
    editor.attached()
    editor.command("buffer #")
    editor.keys(CHANGE)
    editor.sees("→ edit in b.py, line 3 · Tab")
    editor.keys("<Tab>")
    editor.sees("print(area(2, 3.14))")
    assert editor.lines()[2] == "print(area(2))"
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[2] == "print(area(2, 3.14))")


def test_lines_at_the_end_of_the_file_come_and_go(desk: Desk) -> None:
    editor = desk.open("a = 1\nb = 2\n", edits(("b = 2\n", "b = 2\nc = 3\n")))
    editor.keys("ggA0<Esc>")
    editor.sees("b = 2\nc = 3")
    editor.keys("<Tab>")
    editor.has("a = 10", "b = 2", "c = 3")
    editor = desk.open("a = 1\nb = 2\nc = 3\n", edits(("\nc = 3\n", "\n")))
    editor.keys("ggA0<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    assert editor.screen.attributes("c = 3")["strikethrough"] is True
    editor.keys("<Tab>")
    editor.has("a = 10", "b = 2")


def test_files_with_dos_line_ends_get_no_carriage_returns(desk: Desk) -> None:
    both = edits(("x = 1", "x = 2"), ghost=" one\n# two")
    editor = desk.open("x = 1\r\ny = 2\r\n", both)
    editor.keys("GA #")
    editor.sees("y = 2 # one\n# two")
    editor.keys("<M-Right><M-l>")
    editor.has("x = 1", "y = 2 # one", "# two")
    editor.keys("<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: editor.lines()[0] == "x = 2")
    assert editor.lua("return vim.bo.fileformat") == "dos"


def test_places_are_counted_right_behind_characters_of_all_widths(desk: Desk) -> None:
    editor = desk.open("s = '😀é' + a(1)\n", edits(("a(1)", "a(1, 'ß😀')"), ghost="'😀'"))
    editor.keys("GA #")
    editor.sees("s = '😀é' + a(1) #'😀'")
    editor.keys("<Tab>")
    editor.has("s = '😀é' + a(1) #'😀'")
    editor.keys("<Esc>")
    editor.sees("a(1, 'ß😀')")
    editor.keys("<Tab><Tab>")
    editor.has("s = '😀é' + a(1, 'ß😀') #'😀'")


def test_new_text_has_the_colours_of_its_language(desk: Desk) -> None:
    editor = desk.open("local a = 1\nlocal c = a\n", edits(("c = a", "c = 'text'")), name="a.lua")
    editor.lua("vim.api.nvim_set_hl(0, '@string.lua', { fg = '#123456' })")
    editor.keys("ggA0<Esc>")
    editor.sees("c = a'text'")
    drawn = editor.screen.attributes("'text'")
    assert (drawn["foreground"], drawn["background"]) == (0x123456, 0x1F3D2B)


def test_drawn_is_the_least_that_changes(desk: Desk) -> None:
    editor = desk.open("x = 1\n")
    changes = "return require('redraft.diff').changes(...)"

    def drawn(old: str, new: str) -> list[tuple[object, ...]]:
        kinds = {"part": ("row", "from", "to", "new"), "gone": ("row",), "come": ("row", "lines")}
        return [
            (each["kind"], *(each[name] for name in kinds[each["kind"]]))
            for each in editor.lua(changes, old.split("\n"), new.split("\n"))
        ]

    assert drawn("a\nb", "a\nb") == []
    assert drawn("net(x)", "net_total(x)") == [("part", 0, 3, 3, "_total")]
    assert drawn("f(a, b)", "f(b)") == [("part", 0, 2, 5, "")]
    assert drawn("é = old", "é = new") == [("part", 0, 5, 8, "new")]
    assert drawn("a\nc", "a\nb\nc") == [("come", 1, ["b"])]
    assert drawn("a\nb\nc", "a\nc") == [("gone", 1)]
    assert drawn("return 1", "if broken:\n    return 1") == [
        ("come", 0, ["if broken:"]),
        ("part", 0, 0, 0, "    "),
    ]
    assert drawn("a = 1", "something else entirely") == [
        ("gone", 0),
        ("come", 1, ["something else entirely"]),
    ]
