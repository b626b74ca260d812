"""Undo steps in Neovim: accepted text is an undo step."""

from __future__ import annotations

import time

import pytest
from support.editors.neovim import NeovimDesk, edits, ghost, needs_neovim

pytestmark = needs_neovim

LOOP = "range(3):\n    total += i"


def test_typed_text_and_accepted_text_are_two_steps(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost(LOOP), ghost(""))
    editor.keys("ofor i in ")
    editor.sees("for i in range(3):")
    editor.keys("<Tab>")
    editor.has("x = 1", "for i in range(3):", "    total += i")
    editor.keys(" # pass<Esc>")
    editor.has("x = 1", "for i in range(3):", "    total += i # pass")
    editor.keys("u")
    editor.has("x = 1", "for i in range(3):", "    total += i")
    editor.keys("u")
    editor.has("x = 1", "for i in ")
    editor.keys("u")
    editor.has("x = 1")
    editor.keys("<C-r><C-r><C-r>")
    editor.has("x = 1", "for i in range(3):", "    total += i # pass")


@pytest.mark.parametrize("key", ["<M-Right>", "<M-C-Right>"])
def test_each_piece_is_a_step(desk: NeovimDesk, key: str) -> None:
    editor = desk.open("x = 1\n", ghost("one\n    two"))
    editor.keys("oy = ")
    editor.sees("y = one")
    editor.keys(key)
    editor.has("x = 1", "y = one")
    editor.keys(key)
    editor.has("x = 1", "y = one", "    two")
    editor.keys("zzz<Esc>u")
    editor.has("x = 1", "y = one", "    two")
    editor.keys("u")
    editor.has("x = 1", "y = one")
    editor.keys("u")
    editor.has("x = 1", "y = ")


def test_a_next_edit_in_insert_mode_is_a_step(desk: NeovimDesk) -> None:
    editor = desk.open("def f(a):\n    return a\nf(1)\n", edits(("f(1)", "f(1, 2)")))
    editor.keys("f)i, b")
    editor.until(lambda: editor.showing() == "edit")
    editor.keys("<M-l>")
    editor.until(lambda: "f(1, 2)" in editor.lines())
    before = editor.lines()
    editor.keys("zzz<Esc>")
    editor.until(lambda: editor.lines() != before)
    editor.keys("u")
    editor.has(*before)
    editor.keys("u")
    editor.has("def f(a, b):", "    return a", "f(1)")


@pytest.mark.parametrize(
    ("typed", "behind", "written", "line"),
    [
        ("print(", ")", "[1, 2], (3, 4)", "print([1, 2], (3, 4))"),
        ('s = "', '"', 'abc" + f(x)', 's = "abc" + f(x)'),
        ("foo(bar(", "))", "1), 2)", "foo(bar(1), 2)"),
    ],
)
def test_accepting_word_by_word_yields_the_whole_text(
    desk: NeovimDesk, typed: str, behind: str, written: str, line: str
) -> None:
    editor = desk.open("x = 1\n", ghost(written), *[ghost("")] * 20)
    editor.keys("o" + typed + behind + "<Left>" * len(behind))
    editor.until(lambda: editor.showing() == "ghost")
    for _ in range(20):
        if editor.showing() != "ghost":
            break
        before = editor.cursor()
        editor.keys("<M-Right>")
        editor.until(lambda before=before: editor.cursor() != before)
        editor.until(lambda: not editor.lua("return require('redraft.events').is_asking()"))
        time.sleep(0.1)
    editor.has("x = 1", line)
