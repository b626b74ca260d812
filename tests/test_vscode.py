"""The extension in a real VS Code, in front of the real language server with a scripted model.

VS Code is code-server in Chromium. Skipped where they are missing;
``editor-clients/vscode/e2e/install.sh DIR`` installs them, and ``REDRAFT_VSCODE_DIR=DIR`` says
where. Screenshots of failures go to the folder of pytest's ``--pictures``, else to one that the run
names at its end.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.lsp_process import SERVER
from support.vscode_desk import (
    BODY,
    CALL,
    CODE,
    ITEM,
    POSITION,
    STATUS,
    Window,
    change_signature,
    window,
)
from support.vscode_studio import Studio, missing, studio

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]


Open = Callable[..., AbstractContextManager[Window]]

#: The code of the line that a hint stands behind.
HINT_LINE = (
    "[...document.querySelectorAll('.editor-instance .view-line span[class*=\"ced-\"]')]"
    ".find(e => getComputedStyle(e, '::after').content.includes('edit'))"
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


@pytest.fixture(scope="module")
def vscode(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Studio]:
    with studio(tmp_path_factory.mktemp("vscode"), pictures) as opened:
        yield opened


@pytest.fixture
def project(vscode: Studio, tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """Open a project whose model says ``ghost`` at the cursor and makes the first of ``edits``."""

    @contextmanager
    def opened(
        ghost: str = "",
        edits: list[list[str]] | None = None,
        files: dict[str, str] | None = None,
        settings: dict[str, Any] | None = None,
        ready: bool = True,
        **script: Any,
    ) -> Iterator[Window]:
        answers = [{"ghost": ghost, "edits": edits or []}]
        name = request.node.name.removeprefix("test_")
        told = {"answers": answers, **script}
        with window(vscode, tmp_path, name, files or {"a.py": CODE}, told, settings) as w:
            if ready:
                w.await_ready()
            yield w

    return opened


def test_ghost_text_is_typed_through_and_taken_with_tab(project: Open) -> None:
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


def test_words_and_lines_of_ghost_text_are_taken_one_by_one(project: Open) -> None:
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


def test_tab_before_the_indentation_of_ghost_text_indents_then_takes(project: Open) -> None:
    with project("        value = 1") as w:
        w.go_to(6, 1)
        w.press("Enter")
        w.await_ghost("value = 1")
        w.press("Tab")
        w.until(f"{POSITION}.startsWith('Ln 7, Col 9')")
        w.await_ghost("value = 1", first=True)
        assert w.evaluate(GHOST_COLUMN) == 8  # where it stood before
        w.press("Tab")
        w.await_no_ghost()
        assert w.saved("a.py").split("\n")[6] == "        value = 1"


def test_tab_after_a_gesture_takes_ghost_text_at_once(project: Open) -> None:
    with project("        value = 1") as w:
        w.go_to(6, 1)
        w.press("Enter")
        w.await_ghost("value = 1")
        w.press("Alt+\\")
        w.await_status(" shown")
        time.sleep(1)  # the answer to the gesture changes nothing to be seen
        w.press("Tab")
        w.await_no_ghost()
        assert w.saved("a.py").split("\n")[6] == "        value = 1"


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


def test_a_changed_signature_brings_tab_by_tab_the_edits_that_follow(project: Open) -> None:
    with project(edits=[CALL, BODY], settings={"redraft.renderer": "decorations"}) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13 · Tab")
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
        w.await_hint("→ edit at line 13 · Tab")
        assert w.evaluate(HINT_LINE).strip() == "return 3.14 * r * r"


def test_a_next_edit_at_the_cursor_is_ghost_text(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13 · Tab")
        w.press("Tab")
        w.await_ghost(", 3.14")
        w.press("Tab")
        w.await_no_ghost()
        assert "print(area(2, 3.14))" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_a_next_edit_is_taken_by_words(project: Open) -> None:
    with project(edits=[CALL], settings={"redraft.renderer": "decorations"}) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13")
        w.press("Tab")
        w.await_near()
        w.press("Alt+k")
        w.until("document.querySelector('.view-lines').textContent.includes('area(2,)')")
        w.await_near()
        w.press("Tab")
        w.await_no_hint()
        assert "print(area(2, 3.14))" in w.saved("a.py")
        w.await_outcome("was accepted")


def test_escape_hides_an_edit_which_comes_back_elsewhere(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13")
        w.press("Escape")
        w.await_no_hint()
        w.press("Escape")  # hides nothing
        w.go_to(9, 1)
        w.await_hint("→ edit at line 13")
        assert not any("was rejected" in line for line in w.outcomes())


def test_a_rejected_edit_does_not_return(project: Open) -> None:
    with project(edits=[CALL]) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13")
        w.press("Alt+Backspace")
        w.await_no_hint()
        w.await_outcome("was rejected")
        w.go_to(5, 1)
        w.press("End")
        w.type("  # area")
        w.await_reason("you rejected this edit before")
        assert w.hints() == ""


def test_an_edit_in_another_open_file_is_jumped_to(project: Open) -> None:
    files = {"a.py": CODE, "b.py": "from a import area\n\n\ndef show():\n    return area(2)\n"}
    code = CODE.replace("print(area(2))\n", "")
    renderer = {"redraft.renderer": "decorations"}
    with project(edits=[CALL], files={**files, "a.py": code}, settings=renderer) as w:
        w.open("b.py")
        w.open("a.py")
        change_signature(w)
        w.await_hint("→ edit in b.py, line 5 · Tab")
        w.press("Tab")
        w.until("document.querySelector('.tab.active')?.textContent.includes('b.py')")
        w.await_near()
        w.press("Tab")
        w.await_outcome("was accepted")
        assert "return area(2, 3.14)" in w.saved("b.py")


def test_subtle_mode_hints_until_asked(project: Open) -> None:
    with project(edits=[CALL], settings={"redraft.subtle": True}) as w:
        change_signature(w)
        w.await_hint("→ edit at line 13 · Alt+\\")
        w.press("Tab")  # is a tab
        w.press("Control+z")  # the text is as it was: the hint stays or comes back
        w.await_hint("→ edit at line 13 · Alt+\\")
        w.press("Alt+\\")
        w.await_hint("→ edit at line 13 · Tab")


def test_asking_by_hand_ends_in_a_sentence_where_there_is_nothing(project: Open) -> None:
    with project() as w:
        w.go_to(9, 10)
        w.press("Alt+\\")
        w.until(
            "/Redraft: (Ghost text|Next edit|No ghost text|No next edit)/"
            ".test(document.querySelector('.statusbar').textContent)"
        )


def test_the_status_bar_says_why_nothing_is_shown_and_the_list_leads_there(project: Open) -> None:
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


def test_a_killed_server_comes_back(project: Open) -> None:
    with project("math.pi") as w:
        server = _server_of(w)
        server.kill()
        server.wait(timeout=30)
        assert _server_of(w).pid != server.pid
        w.go_to(9, 5)
        w.type_until_ghost("z + ", "math.pi")  # typing brings suggestions again
        assert w.toasts() == []


def _server_of(w: Window) -> psutil.Process:
    """Return the language server of this window, known by the name of its model's log."""
    wanted = json.dumps(str(w.log))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in psutil.process_iter(["cmdline"]):
            if any(wanted in part for part in process.info["cmdline"] or ()):
                return process
        time.sleep(0.2)
    raise AssertionError("no server")


def test_a_slow_model_holds_no_key_up(project: Open) -> None:
    with project("math.pi", delay_s=4.0) as w:
        w.go_to(9, 1)
        text = "    total = 0  # typed while the model thinks\n"
        w.type(text.rstrip("\n"), 40)
        w.await_status("thinking")
        assert "total = 0  # typed while the model thinks" in w.saved("a.py")
        w.await_ghost("math.pi")


def test_a_server_that_is_not_there_is_said_once(project: Open) -> None:
    nowhere = {"redraft.server.path": "/nowhere/redraft"}
    with project("x", settings=nowhere, ready=False) as w:
        w.await_status("the server is not installed")
        w.await_toast("/nowhere/redraft, named by redraft.server.path")
        assert len(w.toasts()) == 1


def test_a_server_that_keeps_ending_is_left_alone_without_a_popup(project: Open) -> None:
    broken = {"redraft.server.arguments": ["-c", "raise SystemExit('broken')"]}
    with project("x", settings=broken, ready=False) as w:
        w.await_status("the server ended several times in a row")
        assert w.toasts() == []


def test_a_build_that_brings_no_server_installs_no_strangers(project: Open) -> None:
    with project("x", settings={"redraft.server.path": ""}, ready=False) as w:
        w.await_toast("Redraft needs its language server")
        w.answer("Install")
        w.await_toast("this build of the extension comes without the server")


def test_the_server_is_installed_with_a_tool(project: Open, request: pytest.FixtureRequest) -> None:
    settings = {"redraft.server.path": "", "redraft.server.package": "/somewhere/my redraft"}
    with project("math.pi", settings=settings, ready=False) as w:
        installed = w.studio.tools.parent / "home" / ".local" / "bin" / "redraft"
        request.addfinalizer(lambda: installed.unlink(missing_ok=True))
        told = {"answers": [{"ghost": "math.pi", "edits": []}], "log": str(w.log)}
        server = [sys.executable, str(SERVER), json.dumps(told)]
        uv = w.studio.tools / "uv"
        _script(uv, "echo no network >&2; exit 1")
        w.await_status("the server is not installed")
        w.await_toast("Redraft needs its language server")
        w.answer("Install")
        w.choose("uv tool")
        w.await_toast("could not be installed: uv ended with code 1. no network")
        _script(w.studio.tools / "redraft-to-be", f"exec {shlex.join(server)}")
        into = '"$HOME/.local/bin"'
        install = f'mkdir -p {into}; cp "${{0%uv}}redraft-to-be" {into}/redraft'
        _script(uv, f'printf "%s\\n" "$@" > "$0.told"; {install}')
        w.command("Redraft: Install Server…")
        w.choose("uv tool")
        w.await_ready()
        w.go_to(9, 5)
        w.type_until_ghost("z + ", "math.pi")
        *_, wanted = (w.studio.tools / "uv.told").read_text().splitlines()
        assert wanted == "redraft[cpu] @ file:///somewhere/my%20redraft"


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_menu_says_why_and_switches_a_language_off(project: Open) -> None:
    # A setting is changed where it is set already: here, not for the other tests.
    with project("math.pi", settings={"redraft.disabledLanguages": []}) as w:
        w.press("Escape")
        w.command("Redraft: Menu")
        w.until("document.querySelectorAll('.quick-input-list .monaco-list-row').length > 8")
        w.choose("Switch off for python")
        w.await_status("switched off for python")
        w.go_to(9, 5)
        w.type("z = ")
        w.command("Redraft: Why Is Nothing Shown?")
        w.until(
            "document.querySelector('.quick-input-list')?.textContent"
            ".includes('switched off for python')"
        )
        w.press("Escape")
        assert w.asked() == []
        settings = json.loads((w.folder / ".vscode" / "settings.json").read_text())
        assert settings["redraft.disabledLanguages"] == ["python"]
        before = _server_of(w).pid
        w.command("Redraft: Restart Server")
        w.until(f"!{STATUS}.includes('switched off')")
        w.await_ready()
        assert _server_of(w).pid != before


def test_in_ten_thousand_lines_keys_arrive_and_ghost_text_is_shown(project: Open) -> None:
    lines = "".join(f"value_{i} = compute({i}, 'text of line {i}')\n" for i in range(10_000))
    settings = {"redraft.trace.server": "off"}
    with project("math.pi", files={"a.py": f"import math\n\n{lines}"}, settings=settings) as w:
        w.go_to(5_000, 1)
        w.press("End", "Enter")
        text = "total = " + "".join(f"value_{i} + " for i in range(17, 27))
        w.type(text, 60)
        w.await_ghost("math.pi")
        assert f"\n{text}" in w.saved("a.py")
