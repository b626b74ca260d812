"""A film of a walk through two files in VS Code with the extension, server and default model.

    REDRAFT_VSCODE_DIR=DIR python editor-clients/vscode/e2e/film.py [OUT.gif]

Nothing is scripted but the keys: they are typed at a person's pace, and where a person would wait
for a suggestion they wait for it; where none comes there is no film. What comes is what the model
wrote: take it on a machine that does nothing else. Needs what ``pictures.py``
beside it needs, and Pillow (``pip install pillow``), which writes the GIF.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pictures import MEDIA, SETTINGS
from support.editors.filmed_file import FILE, OTHER_FILE, OTHER_TEXT, TEXT
from support.editors.neovim import pieces
from support.editors.vscode_desk import GHOST, HINTS, Window, window
from support.editors.vscode_studio import missing, studio

if TYPE_CHECKING:
    from PIL.Image import Image

#: What is typed, ``<…>`` is one key; None waits for a suggestion, a number of seconds is a pause.
KEYS: tuple[str | float | None, ...] = (
    *(1.0, "<Control+Shift+ArrowRight>", 0.4, "net_price", None, 1.5, "<Tab>", 1.5),
    *(*("<ArrowDown>",) * 4, "<End>", "<ArrowLeft>", "<ArrowLeft>", 0.4),
    *("<Control+Backspace>", "<Backspace>", "<Backspace>", None, 1.5, "<Tab>", 1.5),
    *("<Home>", 0.4, "async ", None, 1.5, "<Tab>", None, 1.5, "<Tab>"),
)
BEGIN = (6, 5)  # line and column, from 1
SIZE = (830, 640)
_KEY_S, _POLL_S, _LAST_S = 0.1, 0.15, 3.0
_COLOURS = 64
#: In the page: is ghost text shown, or an edit?
SHOWN = f"{GHOST} !== '' || {HINTS} !== ''"


@dataclass
class Film:
    """What a window showed, and since when."""

    window: Window
    folder: Path
    frames: list[Image] = field(default_factory=list)
    since: list[float] = field(default_factory=list)  # seconds, by the clock

    def take(self) -> None:
        """Take a picture of the window, unless nothing has changed."""
        from PIL import Image, ImageChops

        file = self.folder / "frame.png"
        at = time.monotonic()
        self.window.studio.browser.do("screenshot", path=str(file))
        with Image.open(file) as opened:
            shot = opened.convert("RGB")
        if not self.frames or ImageChops.difference(shot, self.frames[-1]).getbbox():
            self.frames.append(shot)
            self.since.append(at)

    def watch(self, seconds: float, until: str = "") -> None:
        """For so long, or until the expression is true in the page."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and self.window.evaluate(until)):
            self.take()
            time.sleep(_POLL_S)
        self.take()

    def save(self, out: Path) -> None:
        ends = [*self.since[1:], self.since[-1] + _LAST_S]
        shown_ms = [
            round(1000 * (end - begin)) for begin, end in zip(self.since, ends, strict=True)
        ]
        palette = self.frames[-1].quantize(_COLOURS)
        first, *rest = [each.quantize(palette=palette, dither=0) for each in self.frames]
        how: dict[str, Any] = {"duration": shown_ms, "loop": 0, "optimize": True}
        first.save(out, save_all=True, append_images=rest, **how)


def play(film: Film, wait_s: float) -> None:
    w = film.window
    for step in KEYS:
        if isinstance(step, float):
            film.watch(step)
        elif step is None:
            film.watch(0.5)
            film.watch(wait_s, SHOWN)
            if not w.evaluate(SHOWN):
                raise SystemExit(f"nothing was shown within {wait_s:g} s: {w.status()}")
        else:
            for key in pieces(step):
                if key.startswith("<"):
                    w.press(key[1:-1])
                else:
                    w.type(key, 0)
                time.sleep(_KEY_S)
                film.take()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=MEDIA / "film.gif")
    parser.add_argument("--wait", type=float, default=20.0, help="seconds for each suggestion")
    given = parser.parse_args()
    if missing():
        sys.stderr.write(f"{missing()}\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {FILE: TEXT, OTHER_FILE: OTHER_TEXT}
        with (
            studio(folder, folder) as opened,
            window(opened, folder / "shop", "film", files, {}, SETTINGS, SIZE) as w,
        ):
            w.open(OTHER_FILE)
            w.press("Control+b")  # no side bar
            w.command("View: Move Editor into Group Below")
            w.press("Control+1")
            w.await_ready()
            w.until("!document.body.innerText.includes('model still loading')")
            w.go_to(*BEGIN)
            film = Film(w, folder)
            film.take()
            play(film, given.wait)
            film.save(given.out)
    sys.stdout.write(f"{given.out}: {len(film.frames)} frames, {given.out.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
