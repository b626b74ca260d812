"""Buffers of Neovim that get a name, another name or language, or odd line breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.editors.neovim import Neovim, NeovimDesk, edits, ghost, needs_neovim

pytestmark = needs_neovim


def folder_of(editor: Neovim) -> Path:
    return Path(editor.lua("return vim.fn.expand('%:p:h')"))


def offers(editor: Neovim, typed: str) -> None:
    """Type something and wait for the ghost text."""
    editor.keys(f"Go{typed}")
    editor.sees(f"{typed}written()")
    editor.keys("<Esc>")


def paths(desk: NeovimDesk) -> set[str]:
    return {Path(request.path).name for request in desk.predictor.requests}


def test_a_buffer_that_gets_a_name_is_opened_under_it(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    folder = folder_of(editor)
    editor.command("enew")
    editor.command("setf python")
    editor.attached()
    offers(editor, "x = ")
    editor.command(f"silent write {folder / 'un.py'}")
    desk.predictor.requests.clear()
    offers(editor, "y = ")
    assert paths(desk) == {"un.py"}
    offers(editor, "z = ")
    editor.command("edit!")
    offers(editor, "z = ")


@pytest.mark.parametrize("command", ["file {}", "saveas {}", "keepalt file {}"])
def test_a_buffer_with_another_name_goes_on(desk: NeovimDesk, command: str) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    offers(editor, "a = ")
    editor.command("silent " + command.format(folder_of(editor) / "b.py"))
    desk.predictor.requests.clear()
    offers(editor, "b = ")
    assert paths(desk) == {"b.py"}
    text = desk.predictor.requests[-1].text
    assert text.startswith("x = 1\na = \nb = ")


def test_text_typed_just_before_a_rename_is_there_once(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    editor.lua("vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'late = 1' }); vim.cmd.file('c.py')")
    offers(editor, "b = ")
    assert desk.predictor.requests[-1].text.startswith("x = 1\nlate = 1\nb = ")


def test_a_language_that_is_set_later_is_heard(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"), name="notes.txt")
    editor.command("setf lua")
    offers(editor, "a = ")
    assert desk.predictor.requests[-1].language == "lua"
    editor.command("set filetype=python")
    offers(editor, "b = ")
    assert desk.predictor.requests[-1].language == "python"


def test_an_unlisted_buffer_keeps_its_suggestions(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    editor.command("setlocal nobuflisted")
    offers(editor, "a = ")
    editor.command("setlocal buflisted")
    editor.command("enew")
    editor.command("setf python")
    editor.attached()
    editor.command("setlocal nobuflisted")
    offers(editor, "b = ")


def test_a_buffer_that_was_wiped_out_may_come_back(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    file = folder_of(editor) / "a.py"
    editor.command("bwipeout!")
    editor.command(f"edit {file}")
    editor.attached()
    offers(editor, "a = ")


SEPARATED = "SEP = 'a\rb'\n\ndef area(r):\n    return 3 * r * r\n\nKEEP = 1\nALSO = 2\n"


def test_a_buffer_with_a_lone_cr_is_left_alone(desk: NeovimDesk) -> None:
    # The return line is rewritten, by a server that counts one line more.
    editor = desk.open("x = 1\n", edits(("3 * r", "3 * radius"), ghost="written()"))
    file = folder_of(editor) / "cr.py"
    file.write_bytes(SEPARATED.encode())
    editor.command(f"edit {file}")
    editor.until(lambda: "line 1 contains a carriage return" in editor.why())
    desk.predictor.requests.clear()
    editor.keys("3Gf(lcwradius<Esc>Gox = ")
    editor.until(lambda: editor.lines()[-1] == "x = ")
    editor.keys("<Esc>")
    editor.command("Redraft why")
    editor.sees("line 1 contains a carriage return")  # in a window: it is longer than a line
    editor.keys("<Esc>")
    assert not desk.predictor.requests
    editor.command(r"%s/\r/ /g")
    editor.attached()
    offers(editor, "y = ")
    assert desk.predictor.requests[-1].text.startswith("SEP = 'a b'\n\ndef area(radius):\n")


def test_a_cr_that_is_typed_ends_suggestions(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", ghost("written()"))
    offers(editor, "a = ")
    editor.keys("Goz<C-v><CR>z<Esc>")
    editor.until(lambda: "line 3 contains a carriage return" in editor.why())
    editor.keys("u")
    editor.attached()
    offers(editor, "b = ")
    assert desk.predictor.requests[-1].text.startswith("x = 1\na = \nb = ")


@pytest.mark.parametrize("text", ["a = 1\r\nb = 2\n", "a = 1\r\nb = 2\r\n"])
def test_line_ends_that_both_count_alike_are_no_reason(desk: NeovimDesk, text: str) -> None:
    editor = desk.open(text, ghost("written()"))
    offers(editor, "x = ")
    assert "a = 1\nb = 2\nx = " in desk.predictor.requests[-1].text
