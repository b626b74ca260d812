"""Next edits in the Neovim client: keys typed into a real Neovim, its screen read back."""

from __future__ import annotations

from pathlib import Path

from redraft.model.records import EditRequest, Prediction
from support.editors.neovim import Neovim, NeovimDesk, edits, needs_neovim
from support.editors.predictor import rewrite

pytestmark = needs_neovim

CODE = "def area(r):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"
FAR = CODE.replace("\n\n\n", "\n" * 30)
CHANGE = "ggf)i, pi<Esc>"
CALL = ("area(2)", "area(2, 3.14)")


def with_an_edit(desk: NeovimDesk) -> Neovim:
    """Change a signature and wait for the edit of its call."""
    editor = desk.open(CODE, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("→ line 5: `pi` was added to `area`")
    return editor


def listen(editor: Neovim) -> None:
    """Keep the names of all messages and commands that the client sends, in ``_G.sent``."""
    editor.lua(
        """
        _G.sent = {}
        local client = require("redraft.client").get()
        for _, way in ipairs({ "notify", "request" }) do
          local send = client[way]
          client[way] = function(self, method, params, ...)
            table.insert(_G.sent, params and params.command or method)
            return send(self, method, params, ...)
          end
        end
        """
    )


def test_a_changed_signature_suggests_a_changed_call(desk: NeovimDesk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("def area(r, pi):    → line 5: `pi` was added to `area` · Tab ".rstrip())
    editor.sees("print(area(2, 3.14))")
    assert editor.screen.attributes(", 3.14")["background"] == 0x1F3D2B
    assert editor.lines()[4] == "print(area(2))"  # only drawn, not written
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor() == (5, len("print(area(2")))
    editor.until(lambda: "→" not in editor.screen.text())
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[4] == "print(area(2, 3.14))")
    editor.until(lambda: editor.showing() is None)


def test_added_lines_are_drawn_between_existing_lines(desk: NeovimDesk) -> None:
    old = "    return 3.14 * r * r\n"
    new = "    if r < 0:\n        raise ValueError(r)\n    return 3.14 * r * r\n"
    editor = desk.open(CODE, edits((old, new)))
    editor.keys(CHANGE)
    editor.sees("    if r < 0:\n        raise ValueError(r)\n    return 3.14 * r * r")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1:4] == new.splitlines())


def test_what_goes_is_tinted(desk: NeovimDesk) -> None:
    editor = desk.open(CODE, edits(("3.14 * r", "pi * r")))
    editor.keys(CHANGE)
    editor.sees("return 3.14pi * r * r")
    assert editor.screen.attributes("3.14")["strikethrough"] is True
    assert editor.screen.attributes("pi * r * r")["background"] == 0x1F3D2B
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1] == "    return pi * r * r")


def test_escape_hides_an_edit_and_rejects_nothing(desk: NeovimDesk) -> None:
    editor = with_an_edit(desk)
    listen(editor)
    editor.keys("<Esc><Esc>")
    editor.until(lambda: "→" not in editor.screen.text())
    editor.until(lambda: "redraft.dismiss" in editor.lua("return _G.sent"))
    editor.keys("<Esc>")  # with nothing shown it reports nothing
    editor.until(lambda: editor.mode() == "n")
    sent = editor.lua("return _G.sent")
    assert (sent.count("redraft.dismiss"), sent.count("redraft.reject")) == (1, 0)


def test_a_rejected_edit_does_not_come_back(desk: NeovimDesk) -> None:
    editor = with_an_edit(desk)
    editor.command("Redraft reject")
    editor.until(lambda: "→" not in editor.screen.text())
    editor.lua("require('redraft').trigger()")
    editor.until(lambda: "you rejected this edit before" in editor.why())
    assert editor.showing() is None
    assert "3.14))" not in editor.screen.text()


def test_an_edit_hidden_by_typing_is_not_rejected(desk: NeovimDesk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("print(area(2, 3.14))")
    desk.predictor.delay_s = 30
    editor.keys("GA #x<Esc>")
    editor.until(lambda: "3.14))" not in editor.screen.text())
    assert editor.showing() is None
    assert editor.lua("return require('redraft').accept()") is False
    editor.keys("<Esc>")
    editor.until(lambda: editor.mode() == "n")
    desk.predictor.delay_s = 0
    editor.keys("Ay<Esc>")  # it was not rejected: it comes again
    editor.sees("print(area(2, 3.14)) #xy")


def test_an_edit_elsewhere_is_not_lost_by_typing(desk: NeovimDesk) -> None:
    editor = desk.open(FAR, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("→ line 32: `pi` was added to `area`")
    editor.keys("ggO# a line<Esc>")
    editor.sees("→ line 33: `pi` was added to `area`")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: editor.lines()[32] == "print(area(2, 3.14))")


def test_an_edit_is_taken_word_by_word(desk: NeovimDesk) -> None:
    editor = desk.open("def f(a):\n    g(a)\n", edits(("g(a)", "g(a, one, two)")))
    editor.keys("ggfai b<Esc>")
    editor.sees("g(a, one, two)")
    editor.keys("<M-Right>")
    editor.until(lambda: editor.lines()[1] == "    g(a,)")
    editor.sees("g(a, one, two)")
    editor.keys("<M-Right>")
    editor.until(lambda: editor.lines()[1] == "    g(a, one)")


def test_subtle_mode_hints_and_shows_when_asked(desk: NeovimDesk) -> None:
    editor = desk.open(CODE, edits(CALL))
    editor.command("Redraft subtle on")
    editor.keys(CHANGE)
    editor.sees("→ line 5: `pi` was added to `area` · Tab")
    assert "3.14))" not in editor.screen.text()
    editor.keys("<Tab>")
    editor.sees("print(area(2, 3.14))")
    editor.keys("<Tab><Tab>")
    editor.until(lambda: editor.lines()[4] == "print(area(2, 3.14))")


def test_a_rename_goes_on_in_another_file(desk: NeovimDesk) -> None:
    editor = desk.open("def area(r):\n    return r\n", edits(CALL))
    other = Path(editor.lua("return vim.fs.dirname(vim.api.nvim_buf_get_name(0))")) / "b.py"
    other.write_text("from a import area\n\nprint(area(2))\n", encoding="utf-8")
    editor.command(f"edit {other.as_posix()}")
    editor.attached()
    editor.command("buffer #")
    editor.keys(CHANGE)
    editor.sees("→ b.py, line 3: `pi` was added to `area` · Tab")
    editor.keys("<Tab>")
    editor.sees("print(area(2, 3.14))")
    assert editor.lines()[2] == "print(area(2))"
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[2] == "print(area(2, 3.14))")


def test_tab_visits_all_edits_of_two_files(desk: NeovimDesk) -> None:
    gap = "x = 1\n" * 120
    code = f"def area(r):\n    return r\n\n\n{gap}print(area(2))\n"
    beside = f"from a import area\n\n{gap}print(area(3))\n{gap}print(area(4))\n"
    calls = {f"area({number})": f"area({number}, 3.14)" for number in (2, 3, 4)}

    def answer(request: EditRequest) -> Prediction:
        """Change the call of the region that is asked about."""
        made = (rewrite(request, *call) for call in calls.items())
        nothing = rewrite(request, "", "")
        return next((each for each in made if each.candidates), nothing)

    editor = desk.open(code, answer, beside={"b.py": beside})
    editor.lua("require('redraft.client').set('wholeRenames', false)")
    other = editor.lua("return vim.fs.dirname(vim.api.nvim_buf_get_name(0))") + "/b.py"
    editor.command(f"edit {other}")
    editor.attached()
    editor.command("buffer #")
    editor.keys(CHANGE)
    hints = []
    for _ in range(6):  # to each of three calls, and to take it
        editor.until(lambda: editor.lua("return require('redraft.edit').is_ready()"))
        editor.lua("vim.cmd.redraw()")
        screen = editor.screen.text().split("\n")
        hints += [line.partition("→ ")[2] for line in screen if "→" in line]
        state = editor.cursor(), editor.lines()
        editor.keys("<Tab>")
        editor.until(lambda state=state: (editor.cursor(), editor.lines()) != state)  # type: ignore[misc]
    editor.until(lambda: editor.showing() is None)
    places = [hint.partition(":")[0].removeprefix("b.py, ") for hint in hints]
    assert sorted(places) == ["line 123", "line 125", "line 244"]
    ends = " · 2 more places · Tab", " · 1 more place · Tab", "`area` · Tab"
    for hint, end in zip(hints, ends, strict=True):
        assert ": `pi` was added" in hint and hint.endswith(end)
    get = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true), ' ')"
    texts = editor.lua(get, "a.py") + editor.lua(get, "b.py")
    assert all(new in texts for new in calls.values())
    editor.lua("require('redraft.client').set('wholeRenames', true)")


def test_no_tab_jumps_out_of_what_is_typed(desk: NeovimDesk) -> None:
    editor = desk.open(FAR, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("→ line 32")
    editor.lua("vim.bo.expandtab = true")
    editor.keys("jA # se<Tab>")  # the keys come at once, before any event
    editor.until(lambda: editor.lines()[1].startswith("    return 3.14 * r * r # se "))
    editor.sees("→ line 32")  # after a pause it is back
    for key in "lf.":
        editor.keys(key)
        editor.until(lambda key=key: editor.lines()[1].endswith(key))  # type: ignore[misc]
        assert editor.lua("return require('redraft.edit').is_ready()") is False
        assert "→" not in editor.screen.text()
    editor.keys("<Tab>")
    editor.until(lambda: "lf. " in editor.lines()[1])
    assert editor.cursor()[0] == 2
    editor.sees("→ line 32")
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor()[0] == 32)


def test_a_hint_is_cut_to_the_window(desk: NeovimDesk) -> None:
    long = CODE.replace("(r):", f"(r):{' ' * 16}# a comment")
    editor = desk.open(long, edits(CALL))
    editor.keys(CHANGE)
    editor.sees("# a comment    → line 5: `pi` was added… · Tab")
    editor = desk.open(long.replace("# a", "# a long"), edits(CALL))
    editor.keys(CHANGE)
    editor.sees("# a long comment    → edit at line 5 · Tab")


def test_an_edit_of_a_read_only_buffer_is_not_shown(desk: NeovimDesk) -> None:
    editor = desk.open("def area(r):\n    return r\n", edits(CALL))
    other = Path(editor.lua("return vim.fs.dirname(vim.api.nvim_buf_get_name(0))")) / "b.py"
    other.write_text("from a import area\n\nprint(area(2))\n", encoding="utf-8")
    editor.command(f"edit {other.as_posix()}")
    editor.attached()
    editor.command("setlocal nomodifiable")
    editor.command("buffer #")
    editor.lua(
        """
        local edit = require("redraft.edit")
        _G.received, _G.answered = edit.receive, 0
        edit.receive = function(result, ...)
          _G.received(result, ...)
          _G.answered = _G.answered + #(result and result.edits or {})
        end
        """
    )
    try:
        editor.keys(CHANGE)
        editor.until(lambda: editor.lua("return _G.answered") > 0)
        assert editor.showing() is None
        editor.keys("<Tab>")
        assert editor.lines()[0] == "def area(r, pi):"
    finally:
        editor.lua("require('redraft.edit').receive = _G.received")


def test_lines_at_the_end_of_the_file_come_and_go(desk: NeovimDesk) -> None:
    editor = desk.open("a = 1\nb = 2\n", edits(("b = 2\n", "b = 2\nc = 3\n")))
    editor.keys("ggA0<Esc>")
    editor.sees("b = 2\nc = 3")
    editor.keys("<Tab>")
    editor.has("a = 10", "b = 2", "c = 3")
    editor = desk.open("a = 1\nb = 2\n# ----\n", edits(("\n# ----\n", "\n")))
    editor.keys("ggA0<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    assert editor.screen.attributes("# ----")["strikethrough"] is True
    editor.keys("<Tab>")
    editor.has("a = 10", "b = 2")


def test_files_with_dos_line_ends_stay_consistent(desk: NeovimDesk) -> None:
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


def test_positions_after_wide_characters_are_right(desk: NeovimDesk) -> None:
    editor = desk.open("s = '😀é' + a(1)\n", edits(("a(1)", "a(1, 'ß😀')"), ghost="'😀'"))
    editor.keys("GA #")
    editor.sees("s = '😀é' + a(1) #'😀'")
    editor.keys("<Tab>")
    editor.has("s = '😀é' + a(1) #'😀'")
    editor.keys("<Esc>")
    editor.sees("a(1, 'ß😀')")
    editor.keys("<Tab><Tab>")
    editor.has("s = '😀é' + a(1, 'ß😀') #'😀'")


def test_new_text_has_the_colours_of_its_language(desk: NeovimDesk) -> None:
    editor = desk.open("local a = 1\nlocal c = a\n", edits(("c = a", "c = 'text'")), name="a.lua")
    editor.lua("vim.api.nvim_set_hl(0, '@string.lua', { fg = '#123456' })")
    editor.keys("ggA0<Esc>")
    editor.sees("c = a'text'")
    drawn = editor.screen.attributes("'text'")
    assert (drawn["foreground"], drawn["background"]) == (0x123456, 0x1F3D2B)


def test_drawn_is_the_least_that_changes(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    changes = "return require('redraft.diff').changes(...)"

    def drawn(old: str, new: str) -> list[tuple[object, ...]]:
        kinds = {
            "part": ("row", "from", "to", "new"),
            "removed": ("row",),
            "inserted": ("row", "lines"),
        }
        return [
            (each["kind"], *(each[name] for name in kinds[each["kind"]]))
            for each in editor.lua(changes, old.split("\n"), new.split("\n"))
        ]

    assert drawn("a\nb", "a\nb") == []
    assert drawn("net(x)", "net_total(x)") == [("part", 0, 3, 3, "_total")]
    assert drawn("f(a, b)", "f(b)") == [("part", 0, 2, 5, "")]
    assert drawn("é = old", "é = new") == [("part", 0, 5, 8, "new")]
    assert drawn("a\nc", "a\nb\nc") == [("inserted", 1, ["b"])]
    assert drawn("a\nb\nc", "a\nc") == [("removed", 1)]
    assert drawn("return 1", "if broken:\n    return 1") == [
        ("inserted", 0, ["if broken:"]),
        ("part", 0, 0, 0, "    "),
    ]
    assert drawn("a = 1", "something else entirely") == [
        ("removed", 0),
        ("inserted", 1, ["something else entirely"]),
    ]


def test_jumping_and_accepting_go_on_in_insert_mode(desk: NeovimDesk) -> None:
    editor = desk.open(FAR, edits(CALL, ("3.14 * r", "pi * r")))
    editor.keys("ggf)i, pi")
    editor.sees("→ line 32: `pi` was added to `area` · Tab")
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor()[0] == 32)
    editor.keys("<Tab>")
    editor.until(lambda: "print(area(2, 3.14))" in editor.lines())
    assert editor.mode() == "i"
    editor.sees("→ edit at line 2 · Tab")
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor()[0] == 2)
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[1] == "    return pi * r * r")
    editor.keys("<Esc>")
    editor.command("normal! ''")  # and back to where the last jump began
    assert editor.cursor()[0] == 32


def test_buffers_without_a_server_keep_their_keys(desk: NeovimDesk) -> None:
    editor = with_an_edit(desk)
    editor.command("new | setlocal buftype=nofile")
    assert editor.lua("return require('redraft.edit').is_ready()") is False
    editor.keys("itext<Esc>")
    editor.has("text")
    assert "→" not in editor.screen.text()
    assert editor.lua("return require('redraft').statusline()") == "Redraft off"
    editor.command("Redraft why")
    editor.sees("no server is attached to this buffer; :checkhealth redraft tells more")
    editor.command("wincmd p")
    editor.sees("→ line 5: `pi` was added to `area`")


def test_the_server_receives_each_outcome(desk: NeovimDesk) -> None:
    editor = desk.open(CODE, edits(CALL, ghost=" one two"))
    listen(editor)
    editor.command("doautocmd FocusLost | doautocmd FocusGained")

    def sent(*wanted: str) -> None:
        """Wait until ``wanted`` was sent in this order, then forget."""

        def in_order() -> bool:
            left = list(wanted)
            for each in editor.lua("return _G.sent"):
                if left and each == left[0]:
                    left.pop(0)
            return not left

        editor.until(in_order)
        editor.lua("_G.sent = {}")

    sent("textDocument/didFocus", "textDocument/didFocus")
    editor.keys("GA #")
    sent("textDocument/inlineCompletion", "textDocument/didShowCompletion")
    editor.sees("# one two")
    editor.keys("<M-Right>")
    sent("textDocument/didPartiallyAcceptCompletion")
    editor.keys("<Tab>")
    sent("redraft.accept")
    editor.keys("x")
    editor.sees("twox one two")
    editor.keys("<Esc>")
    sent("textDocument/didShowCompletion", "redraft.ignore")
    editor.keys("A")
    editor.keys("y")
    editor.sees("twoxy one two")
    sent("textDocument/didShowCompletion")
    editor.keys("<C-]>")
    sent("redraft.reject")
    editor.keys("<Esc>" + CHANGE)
    sent("redraft/nextEdit", "textDocument/didShowInlineEdit")
    editor.keys("<Tab><Tab>")
    sent("redraft.accept")


def hinted_at_an_unopened_file(desk: NeovimDesk) -> Neovim:
    beside = {"b.py": "from a import area\n\nprint(area(2))\n"}
    editor = desk.open("def area(r):\n    return r\n", edits(CALL), beside=beside)
    editor.keys(CHANGE)

    def is_hinted() -> bool:
        editor.keys("hl")  # asks again: the file may not be indexed and read yet
        return "→ b.py, line 3" in editor.screen.text()

    editor.until(is_hinted)
    return editor


def test_an_edit_in_a_file_that_is_not_open_opens_it(desk: NeovimDesk) -> None:
    editor = hinted_at_an_unopened_file(desk)
    editor.keys("<Tab>")
    editor.sees("print(area(2, 3.14))")
    assert editor.lines()[2] == "print(area(2))"
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[2] == "print(area(2, 3.14))")


def test_a_file_changed_before_opening_gets_no_edit(desk: NeovimDesk) -> None:
    editor = hinted_at_an_unopened_file(desk)
    file = Path(editor.lua("return vim.fs.dirname(vim.api.nvim_buf_get_name(0))")) / "b.py"
    file.write_text("one = 1\ntwo = 2\nthree = 3\n", encoding="utf-8")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines()[:1] == ["one = 1"])
    assert editor.showing() is None
    editor.keys("<Tab>")
    assert editor.lines() == ["one = 1", "two = 2", "three = 3"]
