"""A film of the real thing: a minute in Neovim with the client, the server and the default model.

    python tests/neovim_film.py OUT.svg

Nothing is scripted but the keys: they are typed at a person's pace, and where a person would wait
for a suggestion they wait for it, as long as it takes. What comes is what the model wrote. The film
is an SVG that moves by itself; where SVGs do not move, its last scene is seen.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from neovim_show import INIT
from support.filmed_file import FILE, TEXT
from support.neovim import Neovim, pieces
from support.neovim_screen import Film

#: What is typed; None waits for a suggestion, a number of seconds is a pause.
KEYS: tuple[str | float | None, ...] = (
    1.5,
    *("8Gw", 0.6, "cw", "net_total", None, "<Esc>", None, 1.5),
    *("<Tab>", None, 1.5, "<Tab>", None, 1.5, "<Tab>", None, 1.5, "<Tab>", 1.5),
    *("G", 0.6, "o", "<CR><C-u>", "def average(orders):", "<CR>", "return ", None, 1.5),
    *("<Tab>", 2.0, "<Esc>", 0.6, ":Redraft why<CR>", 3.0),
)
_KEY_S, _FRAME_S = 0.13, 0.05
_LONGEST_S = 60.0
_LOADING_S = 300.0  # before the film begins


def play(editor: Neovim, wait_s: float) -> None:
    for step in KEYS:
        if isinstance(step, float):
            time.sleep(step)
        elif step is None:
            time.sleep(0.4)
            until = time.monotonic() + wait_s
            while editor.showing() is None and time.monotonic() < until:
                time.sleep(0.05)
        else:
            for key in pieces(step):
                editor.keys(key)
                time.sleep(_KEY_S)


def shoot(command: list[str], wait_s: float) -> str:
    """The film as an SVG."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        (project / ".git").mkdir(parents=True)
        file = project / FILE
        file.write_text(TEXT, encoding="utf-8")
        lua = "vim.json.decode([==[" + json.dumps(command) + "]==])"
        editor = Neovim(Path(folder), file, lua, INIT, size=(76, 26))
        film, done = Film(editor.screen), threading.Event()

        def watch() -> None:
            begin = time.monotonic()
            while not done.wait(_FRAME_S) and time.monotonic() - begin < _LONGEST_S:
                film.take(time.monotonic() - begin)

        try:
            editor.lua("vim.api.nvim_set_current_dir(...)", str(project))
            editor.attached()
            until = time.monotonic() + _LOADING_S
            while not editor.why().startswith(("ready", "idle")) and time.monotonic() < until:
                time.sleep(0.2)
            watching = threading.Thread(target=watch)
            watching.start()
            play(editor, wait_s)
            done.set()
            watching.join()
            return film.svg()
        finally:
            editor.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", help="another than the default one")
    parser.add_argument("--wait", type=float, default=6.0, help="seconds for each suggestion")
    given = parser.parse_args()
    redraft = shutil.which("redraft") or shutil.which("redraft", path=Path(sys.executable).parent)
    if redraft is None:
        parser.error("no redraft on the PATH; install this checkout first")
    command = [redraft, "lsp", *(["--model", given.model] if given.model else [])]
    given.out.write_text(shoot(command, given.wait), encoding="utf-8")


if __name__ == "__main__":
    main()
