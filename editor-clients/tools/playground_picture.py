"""Takes the picture of the playground: ``redraft serve``, the shipped model, a real Chromium.

    REDRAFT_VSCODE_DIR=DIR python editor-clients/tools/playground_picture.py [OUT] [--dark]

Needs what ``tests/server/routes/test_playground.py`` needs, and the weights (``redraft model
pull``). The model wrote everything that the picture shows as its own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.editors.vscode_studio import no_browser  # noqa: E402
from support.playground import page, redraft_serve  # noqa: E402

PICTURE = ROOT / "editor-clients" / "media" / "playground.png"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=PICTURE)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    if reason := no_browser():
        sys.stderr.write(f"{reason}\n")
        return 1
    with redraft_serve() as url, page() as opened:
        opened.open(url, width=1040, height=640, colorScheme="dark" if options.dark else "light")
        opened.await_text("#server", "ready", 300)
        opened.await_text("#said", "the text, then the edit", 120)
        opened.picture(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
