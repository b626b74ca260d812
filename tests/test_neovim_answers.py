"""What Neovim says without a status line: why nothing is shown, and that Redraft is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.neovim import Desk, Neovim, edits, ghost, neovim
from support.neovim_script import needs_neovim

pytestmark = needs_neovim

#: A server in Neovim's own process: each answer is what `_G.answers` says for the method, and where
#: that is "silence" there is none.
ANSWERING = """
function(dispatchers)
  return {
    request = function(method, params, answer)
      local told = method == "initialize" and { capabilities = { textDocumentSync = 1 } }
        or (_G.answers or {})[method]
      if told ~= "silence" then
        vim.schedule(function()
          if type(told) == "string" then answer({ code = -32603, message = told })
          else answer(nil, told) end
        end)
      end
      return true, 1
    end,
    notify = function(method)
      if method == "exit" then dispatchers.on_exit(0, 0) end
      return true
    end,
    is_closing = function() return false end,
    terminate = function() dispatchers.on_exit(0, 0) end,
  }
end
"""

NOTICES = """
_G.notices = {}
vim.notify = function(message) table.insert(_G.notices, message) end
"""

NO_TEXT = {"items": [], "reason": "below threshold 0.31 < 0.40"}
NO_EDIT = {"edits": [], "reason": "the model would change nothing"}


def answering(editor: Neovim, text: object, edit: object) -> None:
    answers = {"textDocument/inlineCompletion": text, "redraft/nextEdit": edit}
    editor.lua("_G.answers, _G.notices = ..., {}", answers)


def test_a_key_never_ends_in_a_message_that_waits_for_another_key(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING) as editor:
        reason = "a reason " + 20 * "that goes on and on " + "to the very end"
        editor.lua("_G.answers = ...", {"redraft/nextEdit": {"edits": [], "reason": reason}})
        editor.keys("<M-\\>")
        editor.sees("that goes on and on")
        assert not editor.request("nvim_get_mode")["blocking"]
        assert "…" in editor.screen.text()


def asked(editor: Neovim, key: str) -> str:
    """What is said when ``key`` is pressed in insert mode."""
    before = len(editor.notices())
    editor.keys(key)
    editor.until(lambda: len(editor.notices()) > before)
    return editor.notices()[-1]


def test_why_tells_ghost_text_and_next_edit_apart(tmp_path: Path) -> None:
    keys = "vim.keymap.set('i', '<F2>', '<Cmd>Redraft why<CR>')\n"
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES + keys) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("oy")
        said = asked(editor, "<F2>")
        apart = f"next edit: {NO_EDIT['reason']} · ghost text: {NO_TEXT['reason']}"
        assert said == f"Redraft: {apart}"
        # Back in normal mode, elsewhere: ghost text is told with its place.
        editor.keys("<Esc>gg")
        editor.command("Redraft why")
        editor.until(lambda: editor.notices()[-1] == f"Redraft: {apart} (line 2)")


def test_why_never_speaks_of_a_text_that_is_gone(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("oy")
        editor.until(lambda: NO_TEXT["reason"] in editor.why())
        answering(editor, "silence", "silence")
        editor.keys("z")
        editor.until(lambda: editor.lines()[1] == "yz" and editor.why() == "thinking")


def test_a_question_by_hand_ends_in_something_to_see_or_a_sentence(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("A")
        said = asked(editor, "<M-\\>")
        assert "next edit: the model would" in said and "ghost text: below thresh" in said
        answering(editor, {"items": []}, {"edits": []})
        assert "next edit: none here · ghost text: none here" in asked(editor, "<M-\\>")
        answering(editor, "out of memory", "out of memory")
        assert "ghost text: out of memory" in asked(editor, "<M-\\>")
        answering(editor, {"items": [{"insertText": "23"}]}, NO_EDIT)
        editor.keys("<M-\\>")
        editor.sees("x = 123")
        assert editor.notices() == []
        editor.keys("<C-e><Esc>")
        editor.command("Redraft disable here")
        editor.command("Redraft trigger")
        assert editor.notices()[-1].startswith("Redraft: switched off in this buffer")


def test_after_esc_nothing_is_called_shown(desk: Desk) -> None:
    editor = desk.open("def f(a):\n    g(a)\n", edits(("g(a)", "g(a, b)")))
    editor.keys("ggf)i, b<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    assert editor.why() == "next edit shown"
    editor.keys("<Esc>")
    editor.until(lambda: editor.showing() is None)
    editor.until(lambda: "reject" in editor.why())
    assert "shown" not in editor.why()


def test_a_long_wait_is_marked_behind_the_line(desk: Desk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    desk.predictor.delay_s = 1.5
    editor.keys("oname = ")
    editor.sees("⋯")
    editor.picture("thinking")
    editor.sees("name = str(total)")
    editor.until(lambda: "⋯" not in editor.screen.text())


def test_a_new_user_is_greeted_once_on_one_line(tmp_path: Path) -> None:
    greeted = "return require('redraft.notices').GREETING"
    for times in (1, 0):
        with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES) as editor:
            greeting = "Redraft: " + editor.lua(greeted)
            assert len(greeting) < 80 - 12  # more, and Neovim waits for a key
            editor.until(lambda: editor.lua("return require('redraft.client').get() ~= nil"))
            assert editor.notices().count(greeting) == times


def test_notices_can_be_switched_off(tmp_path: Path) -> None:
    init = NOTICES + "vim.g.redraft = { notices = false }\n"
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=init) as editor:
        told = {"busy": False, "kind": "Error", "message": "the model cannot be used"}
        editor.lua("require('redraft.status').told(...)", told)
        assert editor.notices() == []


@pytest.mark.parametrize("kind", ["Warning", "Error"])
def test_what_stands_in_the_way_is_said_once_and_so_is_its_end(desk: Desk, kind: str) -> None:
    editor = desk.open("x = 1\n")
    editor.lua("require('redraft.notices').patience_ms = 0")
    for share in (3, 40):
        told = {"busy": False, "kind": kind, "message": f"model still downloading {share} %"}
        editor.lua("require('redraft.status').told(...)", told)
        editor.until(lambda: editor.notices() != [])
    editor.lua(
        "require('redraft.status').told(...)",
        {"busy": False, "kind": "Normal", "message": "ready: fake"},
    )
    assert editor.notices() == ["Redraft: model still downloading 3 %", "Redraft: ready: fake"]
    editor.lua("require('redraft.notices').patience_ms = 3000")
