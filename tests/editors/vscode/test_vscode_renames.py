"""Whole renames in a real VS Code: the label, one Tab, one undo, and the rename provider.

Skipped where ``test_vscode.py`` is.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.editors.vscode_desk import HINTS, Window, window
from support.editors.vscode_studio import PATIENCE_S, Studio, missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]

SHAPES = "def area(width):\n    return width\n\n\nprint(area(2), area(3))\n"
MAIN = "from a import area\n\nprint(area(1), 'area')\n"

#: The lines of the editor, in the order of the screen.
LINES = (
    "[...document.querySelectorAll('.editor-instance .view-line')]"
    ".sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))"
    ".map(e => e.textContent.replaceAll('\\u00a0', ' '))"
)


def rename(w: Window, column: int, label: str) -> None:
    """Rename ``area`` in the first line to ``surface``, and wait for the label."""
    w.go_to(1, column)
    w.press(*["Shift+ArrowRight"] * 4)
    w.type("surface")
    end = time.monotonic() + PATIENCE_S
    while label not in w.hints():
        assert time.monotonic() < end, w.hints()
        w.press("ArrowLeft", "ArrowRight")  # asks again: the index may not be ready
        with suppress(AssertionError):
            w.until(f"{HINTS}.includes({json.dumps(label)})", 2.0)


def await_text(w: Window, name: str, text: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while (found := (w.folder / name).read_text(encoding="utf-8")) != text:
        assert time.monotonic() < end, found
        time.sleep(0.1)


def test_one_tab_renames_open_and_unopened_files(vscode: Studio, tmp_path: Path) -> None:
    files = {"a.py": SHAPES, "main.py": MAIN}
    with window(vscode, tmp_path, "rename", files, {"answers": [{"ghost": "", "edits": []}]}) as w:
        rename(w, 5, "rename area → surface in 4 places (2 files) · Tab")
        w.picture("offered")
        w.press("Tab")
        w.await_outcome("was accepted")
        importer = MAIN.replace("area", "surface").replace("'surface'", "'area'")
        await_text(w, "main.py", importer)
        assert w.saved("a.py") == SHAPES.replace("area", "surface")
        w.await_no_hint()
        w.press("Control+z")
        await_editor(w, SHAPES.replace("def area", "def surface"))
        w.until("document.querySelector('.tab.dirty[data-resource-name=\"main.py\"]')")


def test_the_rename_provider_changes_all_its_places(vscode: Studio, tmp_path: Path) -> None:
    text = SHAPES + "# the area\n"
    script = {"answers": [{"ghost": "", "edits": []}]}
    with window(vscode, tmp_path, "provider", {"provided.py": text}, script) as w:
        rename(w, 5, "rename area → surface in 2 places · Tab")
        w.press("Tab")
        w.await_outcome("was accepted")
        await_editor(w, text.replace("area", "surface"))
        w.press("Control+z")  # the definition too, because the provider saw its former name
        await_editor(w, text)


def await_editor(w: Window, text: str) -> None:
    """Wait until the editor shows a text."""
    lines = json.dumps(text.split("\n"))
    w.until(f"JSON.stringify({LINES}) === JSON.stringify({lines})")
