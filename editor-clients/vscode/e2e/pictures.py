"""Takes the pictures of READMEs: the real VS Code, the real server, the shipped model.

    REDRAFT_VSCODE_DIR=DIR python editor-clients/vscode/e2e/pictures.py [OUT] [--only NAME]

Each picture is of something the model really did; where it does not come within the patience, the
script says so and goes on. Needs what ``tests/editors/vscode/test_vscode.py`` needs, ``redraft``
installed for this Python, and its weights (``redraft model pull``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from redraft.model.weights.catalog import cache_dir  # noqa: E402
from support.editors.vscode_desk import Window, window  # noqa: E402
from support.editors.vscode_studio import Studio, missing, studio  # noqa: E402

MEDIA = ROOT / "editor-clients" / "vscode" / "media"

NOTES = '''"""Notes in a text file, one per line."""

from pathlib import Path


def load_notes(path: Path) -> list[str]:
    with path.open() as file:
        return [line.strip() for line in file]


def count_notes(path: Path) -> int:
    with path.open() as file:
        return'''

SHOP = '''"""Prices of a small shop."""


def price(item: str) -> float:
    return PRICES[item]


def total(items: list[str]) -> float:
    return sum(price(item) for item in items)


def receipt(items: list[str]) -> str:
    lines = [f"{item}: {price(item):.2f}" for item in items]
    return "\\n".join(lines)


PRICES = {"tea": 2.5, "cake": 3.2}
'''


def ghost_text(w: Window) -> None:
    w.press("Control+End")
    w.type(" ")
    w.until("document.querySelector('.editor-instance span.ghost-text-decoration')", 180)


def next_edit(w: Window) -> None:
    """Rename the parameter of a function: the body has to follow."""
    w.go_to(4, 11)
    w.press("Control+Shift+ArrowRight")
    w.type("name", 60)
    w.until("document.querySelector('.editor-instance .view-line span[class*=\"ced-\"]')", 180)


PICTURES: dict[str, tuple[str, str, Callable[[Window], None]]] = {
    "ghost-text": ("notes.py", NOTES, ghost_text),
    "next-edit": ("shop.py", SHOP, next_edit),
}

SETTINGS = {
    "redraft.server.path": str(Path(sys.executable).parent / "redraft"),
    "redraft.server.arguments": ["lsp"],
    # VS Code gets a home of its own, the weights stay where they are.
    "redraft.server.environment": {"REDRAFT_CACHE_DIR": str(cache_dir())},
    "redraft.eagerness": "high",
    "redraft.timeoutMs": 120_000,
    "workbench.activityBar.location": "hidden",
    "workbench.sideBar.location": "right",
    "window.commandCenter": False,
    "workbench.layoutControl.enabled": False,
    "editor.fontSize": 15,
    "files.exclude": {"**/.vscode": True},
}


def take(
    opened: Studio, folder: Path, name: str, file: str, text: str, act: Callable[[Window], None]
) -> bool:
    try:
        with window(opened, folder, name, {file: text}, {}, SETTINGS, (900, 520)) as w:
            w.press("Control+b")  # no side bar
            w.await_ready()
            act(w)
            picture = w.picture("")
    except AssertionError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return False
    sys.stdout.write(f"{name}: {picture}\n")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=MEDIA)
    parser.add_argument("--only", choices=PICTURES, help="one picture instead of all")
    options = parser.parse_args()
    if missing():
        sys.stderr.write(f"{missing()}\n")
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder, studio(Path(folder), options.out) as opened:
        for name, (file, text, act) in PICTURES.items():
            if options.only in (None, name):
                failed += not take(opened, Path(folder) / name, name, file, text, act)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
