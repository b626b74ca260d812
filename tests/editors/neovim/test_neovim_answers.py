"""Messages of the Neovim client: why nothing is shown, and that Redraft is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.editors.neovim import (
    Neovim,
    NeovimDesk,
    edits,
    ghost,
    needs_neovim,
    neovim,
    server_command,
)

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

NO_TEXT = {"items": [], "reason": "8 % likely to be kept."}
NO_EDIT = {"edits": [], "reason": "the model would change nothing."}
#: As the client says them: each names its kind.
TEXT, EDIT = f"Ghost text: {NO_TEXT['reason']}", f"Next edit: {NO_EDIT['reason']}"


def answering(editor: Neovim, text: object, edit: object) -> None:
    answers = {"textDocument/inlineCompletion": text, "redraft/nextEdit": edit}
    editor.lua("_G.answers, _G.notices = ..., {}", answers)


LONG = "a reason " + 20 * "that goes on and on " + "to the very end"


def test_why_shows_the_rest_of_a_long_reason(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING) as editor:
        editor.lua("_G.answers = ...", {"redraft/nextEdit": {"edits": [], "reason": LONG}})
        editor.keys("<M-\\>")
        editor.sees("that goes on and on")
        assert not editor.request("nvim_get_mode")["blocking"]
        assert "…" in editor.screen.text()
        editor.keys(":Redraft why<CR>")
        editor.sees("to the very end")
        assert not editor.request("nvim_get_mode")["blocking"]
        editor.keys("l")
        editor.until(lambda: "to the very end" not in editor.screen.text())


@pytest.mark.parametrize(("key", "name"), [("<M-\\>", "Alt-\\"), ("<C-x>", "Ctrl-x")])
def test_a_reason_names_the_key_that_shows_it(tmp_path: Path, key: str, name: str) -> None:
    init = NOTICES + f"vim.g.redraft = {{ keys = {{ ask = [[{key}]] }} }}\n"
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=init) as editor:
        editor.lua("vim.o.laststatus = 2")
        editor.lua("vim.o.statusline = \"%{%v:lua.require'redraft'.statusline()%}\"")
        answering(editor, NO_TEXT | {"revealable": True}, NO_EDIT)
        editor.keys("oy")
        editor.sees(f"Redraft: {TEXT} {name} shows it.")
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("z")
        editor.until(lambda: "shows it" not in editor.screen.text())
        editor.sees(f"Redraft: {TEXT}")


def test_a_reason_is_never_drawn_into_the_file(tmp_path: Path) -> None:
    doubt = "below threshold 0.05 < 0.25"
    with neovim(tmp_path, "x = 1\n", ANSWERING) as editor:
        name = editor.lua("return vim.uri_from_bufnr(0)")
        where = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
        document = {"uri": name, "version": None}
        edit = {"text": "2", "range": where, "textDocument": document}
        answer = {"edits": [edit], "id": "e", "unsure": doubt}
        editor.lua("_G.answers = ...", {"redraft/nextEdit": answer})
        editor.keys("<M-\\>")
        editor.sees("unsure · Tab")
        assert "threshold" not in editor.screen.text()


def asked(editor: Neovim, key: str) -> str:
    """Return the message after ``key`` was pressed in insert mode."""
    before = len(editor.notices())
    editor.keys(key)
    editor.until(lambda: len(editor.notices()) > before)
    return editor.notices()[-1]


def test_why_tells_ghost_text_and_next_edit_apart(tmp_path: Path) -> None:
    keys = "vim.keymap.set('i', '<F2>', '<Cmd>Redraft why<CR>')\n"
    wide = {"size": (120, 24)}
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES + keys, **wide) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("oy")
        assert asked(editor, "<F2>") == f"Redraft: {TEXT} {EDIT}"
        # Back in normal mode, elsewhere: ghost text is named with its place.
        editor.keys("<Esc>gg")
        editor.command("Redraft why")
        editor.until(lambda: editor.notices()[-1] == f"Redraft: Line 2: {TEXT} {EDIT}")


def test_why_keeps_its_reason_without_the_indentation(tmp_path: Path) -> None:
    with neovim(tmp_path, "if x:\n    y\n", ANSWERING, init=NOTICES, size=(120, 24)) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.lua("vim.bo.autoindent = true")
        editor.keys("Go")
        editor.until(lambda: NO_TEXT["reason"] in editor.why())
        editor.keys("<Esc>:Redraft why<CR>")
        editor.until(lambda: editor.notices() != [])
        assert editor.lines()[-1] == ""  # what Neovim did with the indentation
        assert editor.notices() == [f"Redraft: {TEXT} {EDIT}"]


def test_why_never_speaks_of_a_text_that_is_gone(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("oy")
        editor.until(lambda: NO_TEXT["reason"] in editor.why())
        answering(editor, "silence", "silence")
        editor.keys("z")
        editor.until(lambda: editor.lines()[1] == "yz" and editor.why() == "thinking")


def test_a_manual_request_shows_text_or_a_reason(tmp_path: Path) -> None:
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=NOTICES) as editor:
        answering(editor, NO_TEXT, NO_EDIT)
        editor.keys("A")
        said = asked(editor, "<M-\\>")
        assert said == f"Redraft: {TEXT}"
        answering(editor, {"items": []}, {"edits": []})
        assert asked(editor, "<M-\\>") == "Redraft: Ghost text: nothing here"
        answering(editor, "out of memory", "out of memory")
        assert asked(editor, "<M-\\>") == "Redraft: Ghost text: out of memory"
        answering(editor, {"items": [{"insertText": "23"}]}, NO_EDIT)
        editor.keys("<M-\\>")
        editor.sees("x = 123")
        assert editor.notices() == []
        editor.keys("<C-e><Esc>")
        editor.command("Redraft disable here")
        editor.command("Redraft trigger")
        assert editor.notices()[-1].startswith("Redraft: switched off in this buffer")


ONE_LINE = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}


@pytest.mark.parametrize(("line", "shown"), [("", "ghost"), ("y = ", "edit")])
def test_a_gesture_shows_ghost_text_or_an_edit(tmp_path: Path, line: str, shown: str) -> None:
    with neovim(tmp_path, "x = 1\nz = 2\n", ANSWERING) as editor:
        document = {"uri": editor.lua("return vim.uri_from_bufnr(0)"), "version": None}
        edit = {"text": "a = 0\n", "range": ONE_LINE, "textDocument": document}
        ghost_text = {"items": [{"insertText": "1 + 1"}]}
        both = {
            "textDocument/inlineCompletion": ghost_text,
            "redraft/nextEdit": {"edits": [edit], "id": "e"},
        }
        editor.lua("_G.answers = ...", {**both, "textDocument/inlineCompletion": {"items": []}})
        editor.keys(f"o{line}")
        editor.until(lambda: editor.showing() == "edit")
        editor.lua("_G.answers = ...", both)
        editor.keys("<M-\\>")
        editor.until(lambda: not editor.lua("return require('redraft.events').is_asking()"))
        editor.until(lambda: editor.showing() == shown)
        editor.until(lambda: ("a = 0" in editor.screen.text()) == (shown == "edit"))
        editor.until(lambda: ("1 + 1" in editor.screen.text()) == (shown == "ghost"))


def test_after_esc_nothing_is_called_shown(desk: NeovimDesk) -> None:
    editor = desk.open("def f(a):\n    g(a)\n", edits(("g(a)", "g(a, b)")))
    editor.keys("ggf)i, b<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    assert editor.why() == "next edit shown"
    editor.keys("<Esc>")
    editor.until(lambda: editor.showing() is None)
    editor.until(lambda: editor.why() == "Next edit: hidden with Esc; it may come back")


def test_ghost_text_is_grey_without_true_colour(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    for group in ("RedraftGhost", "RedraftUnsure", "RedraftThinking"):
        look = editor.lua("return vim.api.nvim_get_hl(0, { name = ..., link = false })", group)
        assert look["ctermfg"] in (244, 8), group


def test_a_long_wait_is_marked_behind_the_line(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    desk.predictor.delay_s = 1.5
    editor.keys("oname = ")
    editor.sees("⋯")
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


STATE = "return require('redraft.status').state.message"


@pytest.mark.usefixtures("cache")
def test_a_larger_model_is_offered_once_on_one_line(tmp_path: Path) -> None:
    status = {"state": "ready", "model": "redraft-0.5b int8", "larger": "redraft-1.5b"}
    statuses = [{**status, "about_larger": "redraft-1.5b suits this machine: it takes 1 GB."}]
    script = {"answers": ["1"], "statuses": statuses, "log": str(tmp_path / "log")}
    offering = server_command(script)
    for times in (0, 1, 0):  # the first time it greets
        with neovim(tmp_path, "x = 1\n", offering, init=NOTICES) as editor:
            editor.until(lambda: editor.lua(STATE).startswith("ready"))
            offers = [each for each in editor.notices() if "suits this machine" in each]
            assert len(offers) == times and all(len(each) < 80 - 12 for each in offers)
            editor.command("Redraft status")
            editor.sees("redraft model pull redraft-1.5b")


def test_notices_can_be_switched_off(tmp_path: Path) -> None:
    init = NOTICES + "vim.g.redraft = { notices = false }\n"
    with neovim(tmp_path, "x = 1\n", ANSWERING, init=init) as editor:
        told = {"busy": False, "kind": "Error", "message": "the model cannot be used"}
        editor.lua("require('redraft.status').update(...)", told)
        assert editor.notices() == []


@pytest.mark.parametrize("kind", ["Warning", "Error"])
def test_a_server_problem_and_its_end_are_said_once(desk: NeovimDesk, kind: str) -> None:
    editor = desk.open("x = 1\n")
    editor.lua("require('redraft.notices').patience_ms = 0")
    for share, left in ((3, "2 min"), (40, "50 s")):
        message = f"model still downloading {share} % ({left} left)"
        told = {"busy": False, "kind": kind, "message": message}
        editor.lua("require('redraft.status').update(...)", told)
        editor.until(lambda: editor.notices() != [])
    editor.lua(
        "require('redraft.status').update(...)",
        {"busy": False, "kind": "Normal", "message": "ready: fake"},
    )
    assert editor.notices() == [
        "Redraft: model still downloading 3 % (2 min left)",
        "Redraft: ready: fake",
    ]
    editor.lua("require('redraft.notices').patience_ms = 3000")


def test_reasons_are_those_of_the_present_moment(desk: NeovimDesk) -> None:
    editor = desk.open("f(1)\ng(2)\nh(2)\n", edits(("g(2)", "g(2, 3)"), ("h(2)", "h(2, 3)")))
    editor.keys("f)i, 3<Esc>")
    editor.sees("g(2, 3)")
    assert editor.why() == "next edit shown"
    editor.command("Redraft accept")
    editor.sees("h(2, 3)")
    editor.command("Redraft accept")
    editor.has("f(1, 3)", "g(2, 3)", "h(2, 3)")
    editor.until(lambda: "would change nothing" in editor.why())  # the chain has ended
    editor.keys("u")
    editor.has("f(1, 3)", "g(2, 3)", "h(2)")
    editor.until(lambda: "you just undid" in editor.why())
    editor.keys("<C-r>")
    editor.has("f(1, 3)", "g(2, 3)", "h(2, 3)")
    editor.until(lambda: "you just undid or redid" in editor.why())
    editor = desk.open("f(1)\ng(2)\n", edits(("g(2)", "g(2, 3)")))
    editor.keys("f)i, 3<Esc>")
    editor.sees("g(2, 3)")
    editor.command("Redraft reject")
    editor.until(lambda: "you rejected a suggestion here" in editor.why())
