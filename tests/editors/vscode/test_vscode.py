"""The extension in a real VS Code, in front of the real language server with a scripted model.

VS Code is code-server in Chromium. Skipped where they are missing;
``editor-clients/vscode/e2e/install.sh DIR`` installs them, and ``REDRAFT_VSCODE_DIR=DIR`` says
where. Screenshots of failures go to the folder of pytest's ``--pictures``, else to one that the run
names at its end.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from support.editors.vscode_desk import (
    BODY,
    CALL,
    CODE,
    HINTS,
    ITEM,
    POSITION,
    Open,
    change_signature,
)
from support.editors.vscode_studio import PATIENCE_S, missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]


#: The code of the line that a hint stands behind.
HINT_LINE = (
    "[...document.querySelectorAll('.editor-instance .view-line span[class*=\"ced-\"]')]"
    ".find(e => getComputedStyle(e, '::after').content.includes('→'))"
    ".closest('.view-line').textContent.replaceAll('\\u00a0', ' ')"
)

#: Entries of the completion menu.
MENU = (
    "[...document.querySelectorAll('.suggest-widget.visible .monaco-list-row')]"
    ".map(e => e.textContent).join(' ')"
)

#: The column of the first character of ghost text that is no blank, from 0.
GHOST_COLUMN = (
    "(() => { const ghost = [...document.querySelectorAll('span.ghost-text-decoration')]"
    ".find(e => e.textContent.trim()); const line = ghost.closest('.view-line');"
    " return line.textContent.search(/[^\\s\\u00a0]/); })()"
)


def test_typing_shrinks_ghost_text_and_tab_accepts_it(project: Open) -> None:
    with project("math.sqrt(r)\n    return s / 2") as w:
        w.go_to(4, 13)
        w.press("Enter")
        w.type("s = ")
        w.await_ghost("math.sqrt(r)")
        assert "return s / 2" in w.ghost()
        asked = len(w.asked())
        w.type("math", 150)
        w.await_ghost(".sqrt(r)")
        assert len([a for a in w.asked()[asked:] if "task" not in a]) == 0
        w.press("Tab")
        w.await_no_ghost()
        assert "    s = math.sqrt(r)\n    return s / 2" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_ghost_text_is_accepted_by_word_and_by_line(project: Open) -> None:
    with project("one + two\n    three = 3\n    four = 4") as w:
        w.go_to(4, 13)
        w.press("Enter")
        w.type("s = ")
        w.await_ghost("one + two")
        w.press("Alt+k")
        w.await_ghost("+ two", first=True)
        w.press("Alt+j")
        w.await_ghost("three = 3", first=True)
        w.press("Escape")
        w.await_no_ghost()
        assert w.saved("a.py").split("\n")[4].startswith("    s = one + two")
        assert "three" not in w.saved("a.py")
        w.await_outcome("was accepted")  # in part, which counts


def test_tab_indents_before_it_accepts_ghost_text(project: Open) -> None:
    with project("    value = 1") as w:
        w.go_to(6, 1)
        w.press("Enter")
        w.await_ghost("value = 1")
        w.press("Tab")
        w.until(f"{POSITION}.startsWith('Ln 7, Col 5')")
        w.await_ghost("value = 1", first=True)
        assert w.evaluate(GHOST_COLUMN) == 4  # where it stood before
        w.press("Tab")
        w.await_no_ghost()
        assert w.saved("a.py").split("\n")[6] == "    value = 1"


def test_tab_after_a_gesture_takes_ghost_text_at_once(project: Open) -> None:
    with project("    value = 1") as w:
        w.go_to(6, 1)
        w.press("Enter")
        w.await_ghost("value = 1")
        w.press("Alt+\\")
        w.await_status(" shown")
        time.sleep(1)  # the answer to the gesture changes nothing to be seen
        w.press("Tab")
        w.await_no_ghost()
        assert w.saved("a.py").split("\n")[6] == "    value = 1"


def test_tab_is_the_menus_while_that_is_open(project: Open) -> None:
    settings = {
        "editor.wordBasedSuggestions": "currentDocument",
        "editor.inlineSuggest.suppressSuggestions": False,
    }
    with project("_of_it", settings=settings) as w:
        w.go_to(9, 10)
        w.press("End", "Enter")
        w.type("rati")
        w.press("Control+Space")
        w.until(f"{MENU}.includes('ratio')")
        w.press("Tab")
        w.until(f"{MENU} === ''")
        assert w.saved("a.py").split("\n")[9].strip() == "ratio"


def test_tab_in_a_snippet_goes_to_its_next_field(project: Open) -> None:
    snippet = {"two": {"prefix": "twofields", "body": "f(${1:one}, ${2:two})$0"}}
    files = {"a.py": CODE, ".vscode/s.code-snippets": json.dumps(snippet)}
    settings = {"editor.snippetSuggestions": "top"}
    with project("_ghost", files=files, settings=settings) as w:
        w.go_to(9, 10)
        w.press("End", "Enter")
        w.type("twofields")
        w.press("Control+Space")
        w.until(f"{MENU}.includes('twofields')")
        w.press("Tab")
        w.until("document.querySelector('.view-lines').textContent.includes('f(one')")
        w.type("1")
        w.press("Tab")
        w.type("2")
        w.until("document.querySelector('.view-lines').textContent.includes('2)')")
        assert w.saved("a.py").split("\n")[9].strip() == "f(1, 2)"


def test_tab_visits_the_edits_after_a_signature_change(project: Open) -> None:
    with project(edits=[CALL, BODY], settings={"redraft.renderer": "decorations"}) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area` · Tab")
        w.press("Tab")  # there
        w.await_near()
        w.press("Tab")  # take it
        w.await_hint("→ edit at line 9 · Tab")
        w.press("Tab", "Tab")
        w.await_no_hint()
        w.await_outcome("was accepted", times=2)
        wanted = CODE.replace("area(r)", "area(r, pi)").replace(*CALL).replace(*BODY)
        assert w.saved("a.py") == wanted


def test_the_hint_of_a_long_line_stands_beside_it(project: Open) -> None:
    long = "def area(r):" + 100 * " " + "# a comment far to the right"
    with project(edits=[CALL], files={"a.py": CODE.replace("def area(r):", long)}) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area` · Tab")
        assert w.evaluate(HINT_LINE).strip() == "return 3.14 * r * r"


def test_no_tab_jumps_out_of_what_is_typed(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area` · Tab")
        w.press("End", "x", "Tab")  # sooner than the answer for the key comes
        w.await_hint("→ line 13")
        w.until(f"{POSITION}.startsWith('Ln 4')")
        assert "print(area(2))" in w.saved("a.py")


def test_a_next_edit_at_the_cursor_is_ghost_text(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area` · Tab")
        w.press("Tab")
        w.await_ghost(", 3.14")
        w.press("Tab")
        w.await_no_ghost()
        assert "print(area(2, 3.14))" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_a_next_edit_is_taken_by_words(project: Open) -> None:
    with project(edits=[CALL], settings={"redraft.renderer": "decorations"}) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Tab")
        w.await_near()
        w.press("Alt+k")
        w.until("document.querySelector('.view-lines').textContent.includes('area(2,)')")
        w.await_near()
        w.press("Tab")
        w.await_no_hint()
        assert "print(area(2, 3.14))" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_a_hidden_edit_returns_at_another_cursor(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Escape")
        w.await_no_hint()
        w.press("Escape")  # hides nothing
        w.go_to(9, 1)
        w.await_hint("→ line 13: `pi` was added to `area`")
        assert not any("was rejected" in line for line in w.outcomes())


def test_a_rejected_edit_does_not_return(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Alt+Backspace")
        w.await_no_hint()
        w.await_outcome("was rejected")
        w.go_to(5, 1)
        w.press("End")
        w.type("  # area")
        w.await_reason("you rejected this edit before")
        assert w.hints() == ""


@pytest.mark.parametrize("is_open", [True, False])
def test_an_edit_in_another_file_is_jumped_to(project: Open, is_open: bool) -> None:
    files = {"a.py": CODE, "b.py": "from a import area\n\n\ndef show():\n    return area(2)\n"}
    code = CODE.replace("print(area(2))\n", "")
    renderer = {"redraft.renderer": "decorations"}
    with project(edits=[CALL], files={**files, "a.py": code}, settings=renderer) as w:
        if is_open:
            w.open("b.py")
            w.open("a.py")
        change_signature(w)
        end = time.monotonic() + PATIENCE_S
        while "→ b.py, line 5: `pi` was added to `area` · Tab" not in w.hints():
            assert time.monotonic() < end, w.hints()
            w.press("ArrowLeft", "ArrowRight")  # asks again: the file may not be indexed yet
            with suppress(AssertionError):
                w.until(f"{HINTS} !== ''", 2.0)
        w.press("Tab")
        w.until("document.querySelector('.tab.active')?.textContent.includes('b.py')")
        w.await_near()
        w.press("Tab")
        w.await_outcome("was accepted")
        assert "return area(2, 3.14)" in w.saved("b.py")


def test_subtle_mode_hints_until_asked(project: Open) -> None:
    with project(edits=[CALL], settings={"redraft.subtle": True}) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area` · Alt+\\")
        w.press("Alt+\\")
        w.await_hint("→ line 13: `pi` was added to `area` · Tab")


def test_a_manual_request_without_result_says_why(project: Open) -> None:
    with project() as w:
        w.go_to(9, 10)
        w.press("Alt+\\")
        w.until(
            "/Redraft: (Ghost text|Next edit|No ghost text|No next edit)/"
            ".test(document.querySelector('.statusbar').textContent)"
        )


def test_the_list_of_reasons_leads_to_the_line(project: Open) -> None:
    unsure = [{"ghost": "value = 1", "edits": [], "confidence": 0.01}]
    with project(answers=unsure) as w:
        w.go_to(4, 13)
        w.press("Enter")
        w.until(f"{ITEM}.includes('Redraft: ')")
        assert w.ghost() == ""
        w.go_to(12, 1)
        w.command("Redraft: Why Is Nothing Shown?")
        w.choose("Ghost text, line 5")
        w.until(f"{POSITION}.startsWith('Ln 5')")
        w.await_ghost("value = 1")


def test_snoozing_brings_nothing_until_woken(project: Open) -> None:
    with project("math.pi") as w:
        w.command("Redraft: Snooze for 5 Minutes")
        w.await_status("paused for another 5 min")
        w.go_to(9, 5)
        w.type("z = ")
        w.await_status("paused")
        assert (w.ghost(), w.asked()) == ("", [])
        w.command("Redraft: Wake Up")
        w.type_until_ghost("1 + ", "math.pi")  # the keys may be there before the command is


def test_another_text_takes_the_place_of_ghost_text(project: Open) -> None:
    with project("one", others=["two", "three"]) as w:
        w.go_to(4, 13)
        w.press("Enter")
        w.type("s = ")
        w.await_ghost("one", first=True)
        w.press("Alt+]")
        w.await_ghost("two", first=True)
        w.press("Alt+]")
        w.await_ghost("three", first=True)
        w.press("Alt+[")
        w.await_ghost("two", first=True)
        w.press("Tab")
        w.await_no_ghost()
        assert "    s = two\n" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_another_edit_takes_the_place_of_the_one_shown(project: Open) -> None:
    with project(edits=[CALL, ["area(2)", "area(2, 3)"]], several=True) as w:
        change_signature(w)
        w.await_hint("→ line 13: `pi` was added to `area`")
        w.press("Tab")
        w.until(f"{POSITION}.startsWith('Ln 13')")
        w.press("Alt+]")
        w.await_outcome("was replaced")
        time.sleep(1)  # the answer is on its way
        w.press("Alt+l")
        assert w.saved("a.py").endswith("print(area(2, 3))\n")


def test_statistics_open_as_a_read_only_document(project: Open) -> None:
    with project("math.pi") as w:
        w.go_to(9, 5)
        w.type_until_ghost("1 + ", "math.pi")
        w.press("Tab")
        w.await_outcome("was accepted")
        w.command("Redraft: Show Statistics")
        w.until("document.querySelector('.tab.active')?.textContent.includes('Redraft Statistics')")
        lines = "[...document.querySelectorAll('.editor-instance .view-line')]"
        w.until(f"{lines}.some(line => line.textContent.startsWith('ghost'))")
        w.type("x")
        assert not w.evaluate("document.querySelector('.tab.active.dirty') !== null")
