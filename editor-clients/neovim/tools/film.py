"""A film of a walk through two files in Neovim with the client, the server and the default model.

    python editor-clients/neovim/tools/film.py OUT.svg

Only the keys are scripted. They are typed at the pace of a person, and each wait lasts until a
suggestion is shown. The film is an animated SVG. Viewers that do not animate show its last scene.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path

from pictures import INIT, find_redraft
from support.editors.filmed_file import FILE, OTHER_FILE, OTHER_TEXT, TEXT
from support.editors.neovim import Neovim, pieces
from support.editors.neovim_screen import Screen

#: The keys. None waits for a suggestion, and a number is a pause in seconds.
KEYS: tuple[str | float | None, ...] = (
    1.5,
    *("6Gw", 0.6, "cw", "net_price", None, "<Esc>", None, 2.0, "<Tab>", 2.0),
    *("10G0", "f,", 0.6, "dt)", None, 2.0, "<Tab>", 2.0),
    *("0", 0.6, "i", "async ", "<Esc>", None, 2.0, "<Tab>", None, 2.0, "<Tab>", None, 2.0),
    *("<Tab>", 1.0, ":Redraft why<CR>", 3.0),
)
_KEY_S, _FRAME_S = 0.13, 0.05
_LONGEST_S = 60.0
_LOADING_S = 300.0  # before the film begins


class Film:
    """A screen over time. A row that stays the same is kept once."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._now: list[str] = []
        self._since: list[float] = []
        self._shots: list[tuple[float, float, str]] = []  # start, end, row
        self._end_s = 0.0

    def take(self, at_s: float) -> None:
        """Add the screen as it is ``at_s`` seconds after the beginning."""
        drawn, self._end_s = self._screen.drawn(), at_s
        if len(drawn) != len(self._now):
            self._cut(at_s)
            self._now, self._since = drawn, [at_s] * len(drawn)
        for number, part in enumerate(drawn):
            if part != self._now[number]:
                self._shots.append((self._since[number], at_s, self._now[number]))
                self._now[number], self._since[number] = part, at_s

    def _cut(self, at_s: float) -> None:
        self._shots += [
            (since, at_s, part) for since, part in zip(self._since, self._now, strict=True)
        ]

    def svg(self) -> str:
        """Return an SVG that repeats the film. Without animation it shows the end."""
        still = "\n".join(self._now)
        self._cut(self._end_s)
        length = self._end_s + 2.0  # the last one stays for a moment
        parts = [
            self._screen.head(),
            f'<rect width="0" height="0"><animate id="film" attributeName="x" from="0" to="0" '
            f'dur="{length:.2f}s" begin="0s;film.end"/></rect>',
            f'<g>{still}<set attributeName="display" to="none" begin="0s"/></g>',
        ]
        for since, until, part in sorted(self._shots):
            if not part:
                continue
            until = length if until == self._end_s else until
            parts.append(
                f'<g visibility="hidden">{part}<set attributeName="visibility" to="visible" '
                f'begin="film.begin+{since:.2f}s" dur="{until - since:.2f}s"/></g>'
            )
        return "\n".join([*parts, "</g></svg>", ""])


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
    """Return the film as an SVG."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        (project / ".git").mkdir(parents=True)
        file = project / FILE
        file.write_text(TEXT, encoding="utf-8")
        (project / OTHER_FILE).write_text(OTHER_TEXT, encoding="utf-8")
        lua = "vim.json.decode([==[" + json.dumps(command) + "]==])"
        editor = Neovim(Path(folder), file, lua, INIT, size=(76, 34))
        film, done = Film(editor.screen), threading.Event()

        def watch() -> None:
            begin = time.monotonic()
            while not done.wait(_FRAME_S) and time.monotonic() - begin < _LONGEST_S:
                film.take(time.monotonic() - begin)

        try:
            editor.lua("vim.api.nvim_set_current_dir(...)", str(project))
            editor.lua("vim.cmd('below 11split ' .. ...)", OTHER_FILE)
            editor.lua("vim.cmd.wincmd('k')")
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
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", help="another than the default one")
    parser.add_argument("--wait", type=float, default=6.0, help="seconds for each suggestion")
    given = parser.parse_args()
    command = [find_redraft(parser), "lsp", *(["--model", given.model] if given.model else [])]
    given.out.write_text(shoot(command, given.wait), encoding="utf-8")


if __name__ == "__main__":
    main()
