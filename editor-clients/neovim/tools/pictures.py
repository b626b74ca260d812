"""Pictures of Neovim with the client, the server and the installed model.

    python editor-clients/neovim/tools/pictures.py OUT         ghost text and edit
    python editor-clients/neovim/tools/pictures.py OUT edit    one of them

Types a scene, waits until a suggestion is shown, and draws the cells and colours of the screen. The
weights are those of ``redraft model pull``. A picture shows one answer of the model. It does not
show how often the model is right.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from support.editors.neovim import Neovim  # noqa: E402

#: The configuration of a user, in addition to the plugin.
INIT = """
vim.o.termguicolors, vim.o.number, vim.o.ruler, vim.o.showmode = true, true, false, false
vim.o.laststatus = 2
vim.o.statusline = " %f %m%=%{%v:lua.require'redraft'.statusline()%} "
vim.o.expandtab, vim.o.shiftwidth, vim.o.softtabstop = true, 4, 4
vim.cmd("syntax on | filetype plugin indent on")
vim.lsp.config("redraft", { init_options = { eagerness = "high" } })
"""


@dataclass(frozen=True)
class Scene:
    """A file, the keys typed into it, and the suggestion to show."""

    file: str
    text: str
    keys: tuple[str, ...]
    shows: str  # "ghost" or "edit"


SCENES = {
    "ghost": Scene(
        "cart.py",
        '''"""A shopping cart."""


class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        return sum(price * count for _, price, count in self.items)

    def is_empty(self):
''',
        ("Goreturn ",),
        "ghost",
    ),
    "edit": Scene(
        "prices.py",
        '''"""What an order costs."""

from decimal import Decimal


def net(order):
    return sum(line.price for line in order.lines)


def gross(order):
    return net(order) * Decimal("1.19")


def report(orders):
    for order in orders:
        print(order.id, net(order))
        print(order.id, gross(order))
''',
        ("6Gwcwnet_total<Esc>",),
        "edit",
    ),
}


def picture(scene: Scene, folder: Path, command: list[str], wait_s: float) -> str:
    """Return the screen as soon as it shows the suggestion of the scene.

    Raises:
        SystemExit: No such suggestion came within ``wait_s``.
    """
    project = folder / "project"
    (project / ".git").mkdir(parents=True)
    file = project / scene.file
    file.write_text(scene.text, encoding="utf-8")
    lua = "vim.json.decode([==[" + json.dumps(command) + "]==])"
    editor = Neovim(folder, file, lua, INIT, size=(72, 18))
    try:
        editor.lua("vim.api.nvim_set_current_dir(...)", str(project))
        editor.attached()
        editor.until(lambda: editor.why().startswith(("ready", "idle")))
        for keys in scene.keys:
            editor.keys(keys)
            time.sleep(1.0)  # as a person pauses
            until = time.monotonic() + wait_s
            while editor.showing() is None and time.monotonic() < until:
                time.sleep(0.1)
            if editor.showing() == scene.shows:
                time.sleep(0.3)  # the status line follows
                return editor.screen.svg()
        raise SystemExit(f"no {scene.shows} within {wait_s:g} s: {editor.why()}")
    finally:
        editor.close()


def find_redraft(parser: argparse.ArgumentParser) -> str:
    """Return the path of the command ``redraft``, or end with an error."""
    found = shutil.which("redraft") or shutil.which("redraft", path=Path(sys.executable).parent)
    if found is None:
        parser.error("no redraft on the PATH; install this checkout first")
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("scene", nargs="?", choices=list(SCENES), help="both where none is named")
    parser.add_argument("--wait", type=float, default=40.0, help="seconds for the model")
    given = parser.parse_args()
    redraft = find_redraft(parser)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in [given.scene] if given.scene else SCENES:
        with tempfile.TemporaryDirectory() as folder:
            drawn = picture(SCENES[name], Path(folder), [redraft, "lsp"], given.wait)
        file = given.out / f"neovim-{name}.svg"
        file.write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
