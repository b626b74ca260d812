"""The extension in VS Code for screen readers, which hear the live regions of the page."""

from __future__ import annotations

import json

import pytest
from support.editors.vscode_desk import CALL, Open, Window, change_signature
from support.editors.vscode_studio import missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]

#: Collects what VS Code gives screen readers to say. A message may replace another at once.
LISTEN = """(() => {
  window.said = '';
  new MutationObserver(() => {
    for (const region of document.querySelectorAll('.monaco-aria-container > *'))
      window.said += region.textContent + '\\n';
  }).observe(document.querySelector('.monaco-aria-container'), {
    subtree: true, childList: true, characterData: true,
  });
})()"""
SAID = "window.said"
SENTENCE = "Line 13: insert `, 3.14` after `print(area(2`."


def hears(w: Window, text: str) -> None:
    w.until(f"{SAID}.includes({json.dumps(text)})")


def test_a_command_reads_the_suggestion_aloud(project: Open) -> None:
    with project("math.pi", edits=[CALL]) as w:
        w.evaluate(LISTEN)
        w.go_to(9, 5)
        w.type_until_ghost("z + ", "math.pi")
        w.press("Shift+Alt+\\")
        hears(w, "At the cursor: `math.pi`.")
        w.await_toast("At the cursor: `math.pi`.")
    with project("", edits=[CALL]) as w:
        w.evaluate(LISTEN)
        change_signature(w)
        w.await_hint("→ line 13")
        w.press("Shift+Alt+\\")
        hears(w, SENTENCE)
        w.press("Escape")
        w.command("Redraft: Read the Suggestion")
        hears(w, "Nothing is suggested here.")


def test_an_edit_is_announced_to_a_screen_reader(project: Open) -> None:
    with project("", edits=[CALL], settings={"editor.accessibilitySupport": "on"}) as w:
        w.evaluate(LISTEN)
        change_signature(w)
        hears(w, SENTENCE)
        w.until(f"!({_toasts()}).includes('Line 13')")  # it goes by itself
        assert "Progress" not in str(w.evaluate(SAID))


def test_nothing_is_announced_without_a_screen_reader(project: Open) -> None:
    with project("", edits=[CALL], settings={"editor.accessibilitySupport": "off"}) as w:
        w.evaluate(LISTEN)
        change_signature(w)
        w.await_hint("→ line 13")
        assert "Line 13" not in str(w.evaluate(SAID))
        assert w.toasts() == []


def _toasts() -> str:
    return "[...document.querySelectorAll('.notification-toast')].map(e => e.textContent).join()"
