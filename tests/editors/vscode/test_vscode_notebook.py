"""Notebooks in a real VS Code: the cells above in a question, suggestions in a cell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.editors.vscode_desk import Open, Window
from support.editors.vscode_studio import CODE_SERVER, missing

NOTEBOOKS = CODE_SERVER.parents[2] / "lib" / "vscode" / "extensions" / "ipynb"


def without_notebooks() -> str:
    """Return why this VS Code has no notebooks, or ""."""
    if reason := missing():
        return reason
    folder = Path(os.environ["REDRAFT_VSCODE_DIR"])
    is_there = (folder / NOTEBOOKS).exists()
    return "" if is_there else f"no notebooks in {folder}; run editor-clients/vscode/e2e/install.sh"


pytestmark = [
    pytest.mark.skipif(bool(without_notebooks()), reason=without_notebooks()),
    pytest.mark.timeout(1_200),
]

#: Text of a row of code; a cell is a row of the notebook's list.
EDITORS = ".code-cell-row .cell-editor-part .view-lines"
GHOST = (
    "[...document.querySelectorAll('.code-cell-row .ghost-text-decoration')]"
    ".map(e => e.textContent).join('').replaceAll('\\u00a0', ' ')"
)
#: The text of the cell that has the keyboard; null for none.
FOCUSED = (
    "(document.activeElement?.closest('.cell-editor-part')?.querySelector('.view-lines')"
    "?.textContent ?? null)"
)
HINTS = (
    "[...document.querySelectorAll('.code-cell-row .view-line span[class*=\"ced-\"]')]"
    ".map(e => getComputedStyle(e, '::after').content).join(' ')"
)


def cell(kind: str, text: str) -> dict[str, Any]:
    """Return a cell as a notebook file has it; one of code has an output."""
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text}
    if kind == "code":
        output = {"output_type": "stream", "name": "stdout", "text": f"printed by {text}"}
        made |= {"outputs": [output], "execution_count": 1}
    return made


@contextmanager
def notebook(project: Open, *cells: dict[str, Any], **script: Any) -> Iterator[Window]:
    """Open a notebook, with the cursor at the end of its last cell."""
    language = {"language_info": {"name": "python"}}
    book = {"cells": cells, "metadata": language, "nbformat": 4, "nbformat_minor": 5}
    files = {"a.py": "x = 1\n", "sales.ipynb": json.dumps(book)}
    with project(files=files, **script) as w:
        w.open("sales.ipynb")
        w.until(f"document.querySelector('{EDITORS}')")
        w.studio.browser.do("click", selector=f"{EDITORS} >> nth=-1")
        w.press("Control+End")
        yield w


def above(w: Window) -> str:
    """Return the cells above, as the newest question has them."""
    return dict(w.asked()[-1].get("related", ())).get("sales.ipynb.py", "")


def until_ghost(w: Window, piece: str) -> None:
    """Type a piece again and again until ghost text is shown.

    On a busy machine VS Code may not ask at the first keys of a cell that it has just inserted.
    """
    for _ in range(12):
        with suppress(AssertionError):
            w.until(f"{GHOST} === 'mean(total)'", 5.0)
            return
        w.type(piece)
    w.until(f"{GHOST} === 'mean(total)'")


def test_ghost_text_in_a_cell_uses_the_cells_above(project: Open) -> None:
    cells = [
        cell("markdown", "# Sales"),
        cell("code", "sales = read()"),
        cell("code", "total = sum(sales)"),
        cell("code", "show = "),
    ]
    with notebook(project, *cells, ghost="mean(total)") as w:
        w.type("1 + ")
        w.until(f"{GHOST} === 'mean(total)'")
        heading, sales = "# %% [markdown]\n# # Sales\n", "# %%\nsales = read()\n"
        total = "# %%\ntotal = sum(sales)\n"
        assert above(w) == f"{heading}{sales}{total}# %%\n"
        assert "printed" not in w.log.read_text()
        w.press("Tab")
        w.until(f"{GHOST} === ''")
        w.press("Escape", "Alt+ArrowUp", "Enter", "Control+End")  # one cell up
        w.type(" + ")
        w.until(f"{GHOST} === 'mean(total)'")
        assert above(w) == f"{heading}{sales}# %%\n"
        w.command("Notebook: Insert Code Cell Below")
        w.until(f"{GHOST} === '' && {FOCUSED} === ''")
        w.type("y = ")
        until_ghost(w, "1 + ")
        assert above(w) == f"{heading}{sales}# %%\nshow = 1 + mean(total) + \n# %%\n"
        w.press("Control+s")
        w.until("!document.querySelector('.tab.active.dirty')")
        assert "1 + mean(total)" in (w.folder / "sales.ipynb").read_text()


def test_a_next_edit_is_shown_and_taken_in_a_cell(project: Open) -> None:
    text = "def area(r):\n    return r * r\n\nprint(area(2))"
    edits = [["area(2)", "area(2, 3.14)"]]
    with notebook(project, cell("code", "import math"), cell("code", text), edits=edits) as w:
        w.press("ArrowUp", "ArrowUp", "ArrowUp", "End", "ArrowLeft", "ArrowLeft")
        w.type(", pi")
        w.until(f"{HINTS}.includes('Tab')")
        assert above(w) == "# %%\nimport math\n# %%\n"
        w.press("Tab")
        w.until(f"document.querySelectorAll('{EDITORS}')[1].textContent.includes('3.14')")
