"""``:Redraft``, ``:checkhealth redraft``, the status line and the help of the Neovim client."""

from __future__ import annotations

from pathlib import Path

from support.editors.lsp_process import command_with_tour
from support.editors.neovim import CLIENT, Neovim, NeovimDesk, edits, ghost, needs_neovim, neovim

pytestmark = needs_neovim


def completions(editor: Neovim, line: str) -> list[str]:
    found: list[str] = editor.lua("return vim.fn.getcompletion(..., 'cmdline')", line)
    return found


def test_everything_that_can_be_said_is_completed(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    names = completions(editor, "Redraft ")
    assert {"enable", "disable", "snooze", "why", "restart", "record", "trigger"} <= set(names)
    assert completions(editor, "Redraft sn") == ["snooze"]
    assert completions(editor, "Redraft eagerness ") == ["low", "medium", "high"]
    assert completions(editor, "Redraft snooze ") == ["5", "15", "60", "off"]
    assert completions(editor, "Redraft disable ") == ["here", "language"]
    assert "rust" in completions(editor, "Redraft disable language ru")
    assert completions(editor, "Redraft why ") == []
    for name in names:  # what takes words says which, and every name is in the help
        assert f":Redraft {name}" in (CLIENT / "doc" / "redraft.txt").read_text(encoding="utf-8")


def test_switched_off_and_on_again_for_a_language(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.command("Redraft disable language")
    editor.keys("oname = ")
    editor.until(lambda: "switched off for python" in editor.why())
    assert editor.lua("return require('redraft').statusline()").startswith("Redraft paused: ")
    editor.command("Redraft enable language python")
    editor.keys("a")
    editor.sees("name = astr(total)")


def test_switched_off_and_on_again_here_and_everywhere(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    for off, on in (("disable", "enable"), ("disable here", "enable here")):
        editor.command(f"Redraft {off}")
        editor.keys("oname =")
        editor.until(lambda: editor.lua("return require('redraft').status()") in ("off", "paused"))
        assert "switched off" in editor.why()
        editor.command(f"Redraft {on}")
        editor.keys(" ")
        editor.sees("name = str(total)")
        editor.keys("<C-e><Esc>dd")


def test_a_pause_silences_and_can_be_ended(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.command("Redraft snooze 15")
    editor.until(lambda: editor.notices() == ["Redraft: quiet for 15 min"])
    editor.keys("oname =")
    editor.until(lambda: "paused for another 15 min" in editor.why())
    editor.sees("paused for another 15 min")
    assert desk.predictor.requests == []
    editor.command("Redraft snooze off")
    editor.until(lambda: editor.notices()[-1] == "Redraft: no longer quiet")
    editor.keys(" ")
    editor.sees("name = str(total)")


def test_eagerness_is_the_servers_to_apply(desk: NeovimDesk) -> None:
    change = ("g(a)", "g(a, b)")
    editor = desk.open("def f(a):\n    g(a)\n", edits(change, confidence=0.2))
    editor.command("Redraft eagerness low")
    editor.keys("ggf)i, b<Esc>")
    editor.until(lambda: "likely to be kept" in editor.why())
    editor.command("Redraft eagerness high")
    editor.command("Redraft trigger")
    editor.sees("g(a, b)")
    editor.command("Redraft accept")
    editor.until(lambda: editor.lines()[1] == "    g(a, b)")


def test_the_tour_opens_and_its_files_are_a_workspace(tmp_path: Path) -> None:
    command = command_with_tour(tmp_path)
    with neovim(
        tmp_path, "", f'{{ "{command}", "lsp" }}', attached=False, size=(120, 24)
    ) as editor:
        editor.command("Redraft tour")
        editor.sees("Scene 1 of 6")
        assert editor.lua("return vim.fn.expand('%:p')") == str(
            tmp_path / "redraft-tour" / "tour1_parameter.py"
        )
        editor.command("edit redraft-tour/tour3_colours.ts | set filetype=typescript")
        editor.attached()
        editor.keys("/^export function mix<CR>wwcwblend<Esc>")
        editor.sees("rename mix → blend in 4 places (2 files)")
        editor.command(f"cd {tmp_path / 'project'} | Redraft tour ../project")
        editor.sees("has other files")


def test_a_server_that_starts_is_not_called_off(tmp_path: Path) -> None:
    command = command_with_tour(tmp_path)
    command.write_text(command.read_text().replace("\nexec ", "\nsleep 3; exec "))
    with neovim(tmp_path, "x = 1\n", f'{{ "{command}" }}', attached=False) as editor:
        line = "return require('redraft').statusline()"
        editor.until(lambda: editor.lua(line) == "Redraft: the server is starting")
        assert editor.lua("return require('redraft').status()") == "starting"
        assert editor.command("Redraft stats") == "Redraft: the server is starting"
        seen = set[str]()
        editor.until(lambda: seen.add(editor.lua(line)) or "Redraft" in seen)
        assert not [each for each in seen if "off" in each]
        editor.command("Redraft restart")
        assert editor.lua(line) == "Redraft: the server is starting"


def test_why_and_status_answer_what_people_ask(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n", edits())
    editor.keys("ggA0<Esc>")
    editor.until(lambda: "nothing" in editor.why())
    editor.command("Redraft why")
    editor.sees("model would change nothing here.")
    editor.sees("Ghost text: nothing was asked here yet; it comes while you type.")
    assert editor.notices() == []  # on a line of messages this would wait for Enter
    editor.keys("h")
    editor.command("Redraft status")
    editor.sees("model: fake-1m int8 on CPU")
    editor.sees("eagerness = ")
    editor.keys("l")


def test_a_wrong_word_is_answered_with_the_right_ones(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    editor.command("Redraft sleep")
    editor.sees('"sleep"')
    editor.command("Redraft eagerness most")
    assert editor.notices() == ['Redraft: eagerness is one of low, medium, high, not "most"']
    wrong = "return select(2, pcall(require('redraft').setup, ...))"
    assert "has no option" in editor.lua(wrong, {"delayMs": 3})
    assert "has no key" in editor.lua(wrong, {"keys": {"tab": "<Tab>"}})


def test_the_health_page_names_what_is_wrong(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    editor.lua("vim.keymap.set('i', '<M-l>', 'x')")
    editor.command("checkhealth redraft")
    page = "\n".join(editor.lines())
    editor.command("bwipeout!")
    assert "OK model fake-1m int8 on CPU" in page
    assert "<Tab> is accept" in page
    assert "<M-l> should be accept_always and is mapped to x" in page
    editor.lua("vim.keymap.del('i', '<M-l>')")


def test_the_help_is_found(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    editor.lua("vim.cmd.helptags(vim.fn.fnamemodify(..., ':p'))", str(CLIENT / "doc"))
    try:
        for tag in ("redraft", ":Redraft", "redraft-keys", "redraft-server", "redraft-api"):
            editor.command(f"help {tag}")
            assert editor.lua("return vim.fn.expand('%:t')") == "redraft.txt"
            line = editor.lua("return vim.api.nvim_get_current_line()")
            assert f"*{tag}*" in line
    finally:
        (CLIENT / "doc" / "tags").unlink()
        editor.command("helpclose")


def test_text_typed_during_a_restart_is_not_lost(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    before = editor.lua("return require('redraft.client').get().id")
    editor.keys("oname =")
    editor.command("Redraft restart")
    editor.keys(" a +")
    editor.until(lambda: editor.lua("return (require('redraft.client').get() or {}).id") != before)
    editor.attached()
    editor.keys(" ")
    editor.sees("name = a + str(total)")


def test_recording_is_the_servers_to_switch(desk: NeovimDesk) -> None:
    editor = desk.open("x = 1\n")
    editor.command("Redraft record status")
    editor.sees("not recording; recordings are kept in ")
    editor.command("Redraft record perhaps")
    assert editor.notices() == ['Redraft: record is one of on, off, status, not "perhaps"']


def test_statistics_stand_in_a_window_of_their_own(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<Tab><Esc>")
    editor.command("Redraft stats 7")
    editor.until(lambda: editor.lines()[0].startswith("Suggestions from "))
    table = {line.split("  ")[0]: line.split()[-8:] for line in editor.lines()}
    shown, accepted, *_ = map(int, table["ghost text"][:2])
    assert shown >= accepted >= 1
    editor.command("close")
    editor.command("Redraft stats week")
    editor.until(lambda: editor.notices() != [])
    told = "Redraft: redraft.statistics takes days from 1 to 90, got 'week'"
    assert editor.notices() == [told]


def test_read_describes_the_suggestion_or_its_absence(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.lua("vim.keymap.set({ 'n', 'i' }, '<M-r>', '<Cmd>Redraft read<CR>')")  # as in the help
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    editor.keys("<M-r>")
    editor.sees("At the cursor: `str(total)`.")
    editor = desk.open("old(1)\nold(2)\n", edits(("old(2)", "new(2)")))
    editor.lua("vim.keymap.set({ 'n', 'i' }, '<M-r>', '<Cmd>Redraft read<CR>')")
    editor.keys("cwnew<Esc>")
    editor.until(lambda: editor.showing() == "edit")
    editor.keys("<M-r>")
    editor.sees("Line 2: replace `old` by `new`.")
    editor.keys("<Esc><M-r>")
    editor.sees("Nothing is suggested here.")


def test_a_long_sentence_is_read_without_cutting_words(desk: NeovimDesk) -> None:
    names = [f"a_rather_long_name_{number}" for number in range(6)]
    editor = desk.open("total = 0\n", ghost(" + ".join(names)))
    editor.keys("oname = ")
    editor.sees(names[0])
    editor.command("Redraft read")
    editor.sees("At the cursor: ")
    _, window = editor.screen.text().split("At the cursor: ")
    assert all(name in window for name in names)


def test_nothing_differs_by_colour_alone(desk: NeovimDesk) -> None:
    editor = desk.open("total = 0\n", ghost("str(total)"))
    editor.keys("oname = ")
    editor.sees("name = str(total)")
    assert editor.screen.attributes("str(total)")["italic"] is True
    editor = desk.open("old(1)\nold(2)\n", edits(("old(2)", "new(2)\nmore")))
    editor.keys("cwnew<Esc>")
    editor.sees("more")
    assert editor.screen.attributes("old")["strikethrough"] is True
    assert editor.screen.attributes("more")["underdotted"] is True
    editor = desk.open("x = 1\n\ny = 2\n")
    editor.lua("require('redraft.marks').draw(0, { { kind = 'removed', row = 1 } }, {})")
    [[*_, drawn]] = editor.request("nvim_buf_get_extmarks", 0, -1, 0, -1, {"details": True})
    assert drawn["virt_text"] == [[" ", "RedraftDelete"]], "an empty line has something to strike"
