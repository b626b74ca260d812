"""Editor plugins of other projects in a real Neovim: each shows and accepts scripted answers.

Skipped where they are not installed (``support/editors/real_clients.py``); with the default model
they run in ``test_real_clients_weights.py``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.editors.neovim import Neovim, edits, ghost, needs_neovim, server_command
from support.editors.predictor import ScriptedPredictor, chatting
from support.editors.real_clients import (
    avante,
    codecompanion,
    copilot_lsp,
    cursortab,
    http_server,
    llama_vim,
    minuet,
    sidekick,
    typed,
)

pytestmark = needs_neovim

ADD = "def add(a, b):\n"
CALLED = "def f(a):\n    pass\n\n\ng(a)\n"


def scripted(folder: Path) -> str:
    """Lua for a server whose model gives ``g`` a second argument."""
    script: dict[str, Any] = {
        "answers": [{"ghost": "", "edits": [["g(a)", "g(a, b)"]]}],
        "settings": {"delay_ms": 0, "eagerness": "high"},
        "log": str(folder / "model.log"),
    }
    return server_command(script)


def test_llama_vim_shows_ghost_text_and_takes_it(tmp_path: Path) -> None:
    with (
        http_server(ScriptedPredictor([("a", " + b")])) as url,
        llama_vim(tmp_path, url, ADD) as editor,
    ):
        typed(editor, "Go<C-u>    c = ")
        editor.sees("    c = a + b")
        assert editor.lines()[1] == "    c = "  # it is shown, not written
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines() == ["def add(a, b):", "    c = a + b"])


def test_minuet_shows_ghost_text_and_takes_it(tmp_path: Path) -> None:
    with http_server(ScriptedPredictor()) as url, minuet(tmp_path, url, ADD) as editor:
        typed(editor, "Go<C-u>    ")
        editor.sees("    return a + b")
        assert editor.lines()[1].strip() == ""
        editor.keys("<A-a>")
        editor.until(lambda: editor.lines()[:2] == ["def add(a, b):", "    return a + b"])


def test_codecompanion_shows_an_answer(tmp_path: Path) -> None:
    with (
        http_server(chatting("Hello to you.")) as url,
        codecompanion(tmp_path, url, ADD) as editor,
    ):
        editor.keys(":CodeCompanionChat Say hello.<CR>")
        editor.sees("Hello to you.")


def test_avante_reads_an_answer(tmp_path: Path) -> None:
    with http_server(chatting("Hello to you.")) as url, avante(tmp_path, url, ADD) as editor:
        editor.lua("_G.ask('Say hello.')")
        editor.until(lambda: editor.lua("return _G.why"))
        assert editor.lua("return { _G.said, _G.why }") == ["Hello to you.", "complete"]


@pytest.mark.parametrize("provider", ["inline", "fim"])
def test_cursortab_shows_ghost_text_and_takes_it(tmp_path: Path, provider: str) -> None:
    answer = " a + b" if provider == "inline" else "a + b"  # the one asks before the blank
    with (
        http_server(ScriptedPredictor([ghost(answer)])) as url,
        cursortab(tmp_path, url, provider, ADD) as editor,
    ):
        typed(editor, "Go<C-u>    return ")
        editor.sees("    return a + b")
        assert editor.lines()[1].rstrip() == "    return"  # it is shown, not written
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines() == ["def add(a, b):", "    return a + b"])


@pytest.mark.parametrize("client", [copilot_lsp, sidekick])
def test_what_speaks_lsp_shows_and_takes_the_next_edit(tmp_path: Path, client: Any) -> None:
    opened: AbstractContextManager[Neovim] = client(tmp_path, scripted(tmp_path), CALLED)
    with opened as editor:
        typed(editor, "ggf)i, b<Esc>")
        editor.sees("g(a, b)")
        editor.keys("<Tab>")
        editor.until(lambda: editor.cursor()[0] == 5)  # the first goes there
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines()[4] == "g(a, b)")


@pytest.mark.parametrize("provider", ["mercuryapi", "zeta-2", "zeta", "sweep"])
def test_cursortab_shows_the_next_edit_and_takes_it(tmp_path: Path, provider: str) -> None:
    route = "/v1/edit/completions" if provider == "mercuryapi" else ""
    with (
        http_server(ScriptedPredictor([edits(("g(a)", "g(a, b)"))])) as url,
        cursortab(tmp_path, url + route, provider, CALLED) as editor,
    ):
        typed(editor, "ggf)i, b")
        editor.until(lambda: editor.lua("return require('cursortab.ui').has_cursor_prediction()"))
        editor.keys("<Tab>")
        editor.until(lambda: editor.cursor()[0] == 5)  # the first goes there
        editor.sees("g(a, b)")
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines()[4] == "g(a, b)")
        assert editor.lines()[0] == "def f(a, b):"
