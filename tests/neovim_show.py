"""Pictures of the real thing: Neovim, the client, the server and the model that is installed.

    python tests/neovim_show.py OUT          both: ``neovim-ghost.svg`` and ``neovim-edit.svg``
    python tests/neovim_show.py OUT edit     one of them

Types as a person does, waits until something is shown, and draws the screen's own cells and
colours. The weights are those of ``redraft model pull`` (``REDRAFT_CACHE_DIR`` says where). Nothing
is scripted: a picture shows what the model wrote there, not how often it is right.
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

from support.neovim import Neovim

#: What a person would have in their configuration, beside the plugin.
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
    """A file, what is typed into it, and what has to be shown then."""

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
    """The screen once the scene shows what it is about.

    Raises:
        SystemExit: nothing of that kind came within ``wait_s``; says why.
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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("scene", nargs="?", choices=list(SCENES), help="both where none is named")
    parser.add_argument("--wait", type=float, default=40.0, help="seconds for the model")
    given = parser.parse_args()
    redraft = shutil.which("redraft") or shutil.which("redraft", path=Path(sys.executable).parent)
    if redraft is None:
        parser.error("no redraft on the PATH; install this checkout first")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in [given.scene] if given.scene else SCENES:
        with tempfile.TemporaryDirectory() as folder:
            drawn = picture(SCENES[name], Path(folder), [redraft, "lsp"], given.wait)
        file = given.out / f"neovim-{name}.svg"
        file.write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
