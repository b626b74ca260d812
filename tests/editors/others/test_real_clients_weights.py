"""Editor plugins of others in a real Neovim, with the default model at the default eagerness.

A name is changed, and the plugin's keys change its calls; a line is begun and completed. Skipped
where a plugin (``support/editors/real_clients.py``) or the weights are missing.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ready_variants
from support.command import RUN
from support.editors.neovim import Neovim, needs_neovim
from support.editors.real_clients import copilot_lsp, cursortab, llama_vim, minuet, sidekick, typed

pytestmark = [needs_neovim, pytest.mark.timeout(600)]

MODEL = "redraft-0.5b"
COMMAND = [sys.executable, "-c", RUN]
CART = """def total(items):
    return sum(item.price for item in items)


def largest(items):
"""
SHAPES = """def area(width, height):
    return width * height


def main():
    print(area(1, 2))
    print(area(3, 4))
    print(area(5, 6))


main()
"""
Open = Callable[[Path, str, str], AbstractContextManager[Neovim]]


def with_provider(provider: str) -> Open:
    """Return a function that opens cursortab.nvim, which asks in many formats."""

    def opened(folder: Path, url: str, text: str) -> AbstractContextManager[Neovim]:
        route = "/v1/edit/completions" if provider == "mercuryapi" else ""
        return cursortab(folder, url + route, provider, text)

    return opened


def loaded(url: str, within_s: float = 60.0) -> None:
    """Wait until the model answers: not every client asks again while it loads."""
    body = json.dumps({"input_prefix": "x = ", "input_suffix": "\n", "n_predict": 4}).encode()
    until = time.monotonic() + within_s
    while True:
        asked = urllib.request.Request(f"{url}/infill", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=30):
                return
        except urllib.error.HTTPError as error:
            assert error.code == 503 and time.monotonic() < until, error.read()
            time.sleep(0.2)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Yield the URL of ``redraft serve``."""
    described = info(MODEL)
    if described.default_variant not in ready_variants(described):
        pytest.skip(f"the weights of {MODEL} are not here; 'redraft model pull {MODEL}' gets them")
    process = subprocess.Popen(
        [*COMMAND, "serve", "--model", MODEL, "--port", "0"],
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        loaded(found[0])
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.mark.parametrize(
    ("opens", "accept"),
    [
        (llama_vim, "<Tab>"),
        (minuet, "<A-a>"),
        (with_provider("inline"), "<Tab>"),
        (with_provider("fim"), "<Tab>"),
    ],
    ids=["llama.vim", "minuet", "cursortab-inline", "cursortab-fim"],
)
def test_a_begun_line_is_ended(tmp_path: Path, server: str, opens: Open, accept: str) -> None:
    with opens(tmp_path, server, CART) as editor:
        typed(editor, "Go<C-u>    return max")
        before = editor.lines()
        editor.until(lambda: re.search(r"return max\(.*\bitem", editor.screen.text()))
        assert editor.lines() == before  # it is shown, not written
        editor.keys(accept)
        editor.until(lambda: editor.lines() != before)
        ast.parse("\n".join(editor.lines()))


#: Lua: is an edit shown, or a way to one?
SHOWS = {
    "copilot-lsp": "vim.b.nes_state ~= nil",
    "sidekick": "#require('sidekick.nes').get() > 0",
    "cursortab": "require('cursortab.ui').has_completion() "
    "or require('cursortab.ui').has_cursor_prediction()",
}


@pytest.mark.parametrize(
    ("opens", "client"),
    [
        (copilot_lsp, "copilot-lsp"),
        (sidekick, "sidekick"),
        (with_provider("mercuryapi"), "cursortab"),
        (with_provider("zeta-2"), "cursortab"),
        (with_provider("zeta"), "cursortab"),
        (with_provider("sweep"), "cursortab"),
    ],
    ids=["copilot-lsp", "sidekick", "mercuryapi", "zeta-2", "zeta", "sweep"],
)
def test_a_name_is_changed_at_calls(tmp_path: Path, server: str, opens: Open, client: str) -> None:
    words = json.dumps([*COMMAND, "lsp", "--server", server])
    asks = server if client == "cursortab" else f"vim.json.decode([==[{words}]==])"
    wanted = SHAPES.replace("area(", "area_of(").splitlines()
    with opens(tmp_path, asks, SHAPES) as editor:
        typed(editor, "ggwcwarea_of<Esc>")
        for _ in range(12):  # Tab goes there, Tab takes it
            editor.until(lambda: editor.lines() == wanted or editor.lua(f"return {SHOWS[client]}"))
            if editor.lines() == wanted:
                break
            editor.keys("<Tab>")
            time.sleep(0.3)
        assert editor.lines() == wanted
