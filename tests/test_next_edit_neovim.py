"""Next edits in a real Neovim, headless, through the messages of a client we did not write.

What it sends is what next-edit plugins for another server send: the client's name holds that
server's, ``didFocus`` on entering a buffer, a request on leaving insert mode, an answer taken only
for the buffer's version, ``executeCommand`` after the text is in. Skipped where there is no Neovim.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.neovim_script import needs_neovim, run_script

pytestmark = needs_neovim

CODE = "def area(r):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"

#: Types, leaves insert mode, takes what comes, as often as the arguments say.
SCRIPT = """
local keys = vim.json.decode(arg[5])
log.answers, log.stale = {}, 0
client:notify("textDocument/didFocus", { textDocument = { uri = vim.uri_from_bufnr(buffer) } })

local shown, answered
local function ask()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buffer]
  params.context = { triggerKind = 2 }
  client:request("textDocument/copilotInlineEdit", params, function(err, result)
    answered = true
    table.insert(log.answers, err or result)
    for _, edit in ipairs(result and result.edits or {}) do
      if edit.textDocument.version == vim.lsp.util.buf_versions[buffer] then
        shown = edit
        client:notify("textDocument/didShowInlineEdit", { item = edit })
      else
        log.stale = log.stale + 1
      end
    end
  end, buffer)
end
vim.api.nvim_create_autocmd("InsertLeave", { buffer = buffer, callback = ask })

local function accept()
  local edit = assert(shown, "nothing to accept: " .. vim.json.encode(log.answers))
  shown = nil
  local change = { range = edit.range, newText = edit.text }
  vim.lsp.util.apply_text_edits({ change }, buffer, client.offset_encoding)
  client:exec_cmd(edit.command, { bufnr = buffer })
  vim.api.nvim_win_set_cursor(0, { edit.range.start.line + 1, 0 })
end

for _, typed in ipairs(keys) do
  answered = false
  if typed == "<Tab>" then
    accept()
    ask()
  else
    local raw = vim.api.nvim_replace_termcodes(typed, true, true, true)
    vim.api.nvim_feedkeys(raw, "tx", false)
  end
  assert(vim.wait(50000, function() return answered end), "no answer after " .. typed)
end
"""


def drive(folder: Path, text: str, keys: list[str], *answers: list[str]) -> dict[str, Any]:
    server = {
        # By what the text holds and in no order: what is computed ahead may be asked for twice.
        "answers": [{"ghost": "", "edits": list(answers), "confidence": 0.9}],
        "outcomes": str(folder / "outcomes.log"),
    }
    log = run_script(folder, text, SCRIPT, server, "copilot", json.dumps(keys))
    log["outcomes"] = (folder / "outcomes.log").read_text().splitlines()
    asked = (folder / "model.log").read_text().splitlines()
    log["asked"] = [entry for entry in map(json.loads, asked) if entry["event"] == "asked"]
    return log


def test_a_changed_signature_brings_the_edit_of_its_call_which_is_taken(tmp_path: Path) -> None:
    nothing = ["nothing", "left"]
    keys = ["ggf)i, pi<Esc>", "<Tab>"]
    log = drive(tmp_path, CODE, keys, ["area(2)", "area(2, 3.14)"], nothing)
    [edit] = log["answers"][0]["edits"]
    assert (edit["text"], edit["targetLine"]) == ("print(area(2, 3.14))", 4)
    assert log["lines"] == [
        "def area(r, pi):",
        "    return 3.14 * r * r",
        "",
        "",
        "print(area(2, 3.14))",
    ]
    assert log["answers"][1] == {"edits": []}
    assert log["asked"][0]["task"] == "next_edit"
    assert log["asked"][0]["edits"][0][1].startswith("-def area(r):\n+def area(r, pi):\n")
    assert log["outcomes"] == ["suggestion redraft-1 was accepted"]
    assert (log["stale"], log["popups"]) == (0, [])


def test_edits_follow_each_other_by_acceptance(tmp_path: Path) -> None:
    keys = ["ggf)i, pi<Esc>", "<Tab>", "<Tab>"]
    answers = ["area(2)", "area(2, 3.14)"], ["return 3.14", "return pi"], ["nothing", "left"]
    log = drive(tmp_path, CODE.replace("\n", "\r\n"), keys, *answers)
    assert log["lines"][1] == "    return pi * r * r"
    assert log["lines"][4] == "print(area(2, 3.14))"
    assert log["outcomes"] == [
        "suggestion redraft-1 was accepted",
        "suggestion redraft-2 was accepted",
    ]


def test_undoing_brings_nothing_and_says_why(tmp_path: Path) -> None:
    keys = ["ggf)i, pi<Esc>", "ui<Esc>"]
    log = drive(tmp_path, CODE, keys, ["area(2)", "area( 2)"])
    assert log["lines"][0] == "def area(r):"
    assert log["answers"][1] == {"edits": []}
    assert log["statuses"][-1] == "No next edit: you just undid or redid a change."


def test_a_rename_goes_on_by_tab_through_places_far_apart(tmp_path: Path) -> None:
    filler = "".join(f"value_{i} = compute({i})\n" for i in range(60))
    text = "def show(total):\n    pass\n" + f"{filler}use(total)\n" * 3
    keys = ["ggftciwamount<Esc>", "<Tab>", "<Tab>", "<Tab>"]
    log = drive(tmp_path, text, keys, ["use(total)", "use(amount)"])
    assert log["lines"].count("use(amount)") == 3
    assert [edits[0]["targetLine"] for answer in log["answers"] if (edits := answer["edits"])] == [
        62,
        123,
        184,
    ]
    assert log["outcomes"] == [f"suggestion redraft-{n} was accepted" for n in (1, 2, 3)]
    assert (log["stale"], log["popups"]) == (0, [])
