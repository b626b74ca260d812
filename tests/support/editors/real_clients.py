"""Editor plugins of others, each in a real Neovim, set up as our pages say.

The environment variable ``REDRAFT_CLIENTS_DIR`` names a folder with a checkout of each
(``llama.vim``, ``minuet-ai.nvim``, ``copilot-lsp``, ``sidekick.nvim``, ``cursortab.nvim``,
``codecompanion.nvim``, ``avante.nvim``; the last two need ``plenary.nvim``). Tests of a missing one
are skipped with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.editors.neovim import Neovim, pieces
from support.editors.predictor import ScriptedPredictor
from support.served import served

_KEY_S = 0.1

_PAGE = Path(__file__).parents[3] / "editor-clients" / "http.md"

FOLDER = os.environ.get("REDRAFT_CLIENTS_DIR", "")


def plugin(name: str) -> Path:
    """Return the checkout of a client, or skip the test."""
    folder = Path(FOLDER) / name
    if not FOLDER or not folder.is_dir():
        pytest.skip(f"no {name}: REDRAFT_CLIENTS_DIR names no folder that holds a checkout of it")
    return folder


def documented(name: str, url: str) -> str:
    """Return the Lua of ``http.md`` that sets up the plugin ``name``, with the address ``url``."""
    blocks = re.findall(r"```lua\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    [block] = (each for each in blocks if each.startswith(f'require("{name}")'))
    return str(block).replace("http://127.0.0.1:7331", url)


def needs_curl() -> None:
    """Skips where the plugin could not ask."""
    if shutil.which("curl") is None:
        pytest.skip("no curl, by which the plugin asks")


@contextlib.contextmanager
def http_server(predictor: ScriptedPredictor) -> Iterator[str]:
    """Run a server in a thread, and yield its URL."""
    urls: queue.Queue[str] = queue.Queue()
    loop, done = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with served(predictor) as (url, _):
            urls.put(str(url))
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        yield urls.get(timeout=60).rstrip("/")
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(timeout=60)


def typed(editor: Neovim, keys: str) -> None:
    """As a person types: clients that look at edits see each of them."""
    for key in pieces(keys):
        editor.keys(key)
        time.sleep(_KEY_S)


@contextlib.contextmanager
def editor_with(folder: Path, sources: Path, text: str, init: str) -> Iterator[Neovim]:
    """Start a Neovim with one plugin."""
    file = folder / "a.py"
    file.write_text(text, encoding="utf-8")
    begin = f"vim.opt.runtimepath:append([==[{sources}]==])\n"
    editor = Neovim(folder, file, None, begin + init)
    try:
        yield editor
    finally:
        editor.close()


@contextlib.contextmanager
def llama_vim(folder: Path, url: str, text: str) -> Iterator[Neovim]:
    needs_curl()
    init = f"vim.g.llama_config = {{ endpoint_fim = '{url}/infill', show_info = 0 }}\n"
    with editor_with(folder, plugin("llama.vim"), text, init) as editor:
        yield editor


@contextlib.contextmanager
def minuet(folder: Path, url: str, text: str) -> Iterator[Neovim]:
    """Its virtual text, taken with Alt-a."""
    needs_curl()
    init = f"""
    vim.env.TERM = "xterm"
    local minuet, wait = require("minuet"), {{ throttle = 0, debounce = 50 }}
    local setup = minuet.setup
    minuet.setup = function(options) setup(vim.tbl_extend("force", options, wait)) end
    {documented("minuet", url)}
    """
    with editor_with(folder, plugin("minuet-ai.nvim"), text, init) as editor:
        yield editor


@contextlib.contextmanager
def codecompanion(folder: Path, url: str, text: str) -> Iterator[Neovim]:
    """Its chat."""
    needs_curl()
    init = f"""
    vim.opt.runtimepath:append([==[{plugin("plenary.nvim")}]==])
    vim.env.TERM = "xterm"
    {documented("codecompanion", url)}
    """
    with editor_with(folder, plugin("codecompanion.nvim"), text, init) as editor:
        yield editor


@contextlib.contextmanager
def avante(folder: Path, url: str, text: str) -> Iterator[Neovim]:
    """``_G.ask`` sends a message; ``_G.said`` is the answer, ``_G.why`` how it ended.

    Its windows need libraries that are built, but not what asks and reads.
    """
    needs_curl()
    init = f"""
    vim.opt.runtimepath:append([==[{plugin("plenary.nvim")}]==])
    package.loaded["avante"] = require("avante.config")
    {documented("avante", url)}
    package.loaded["avante"] = nil
    _G.said = ""
    _G.ask = function(text)
      require("avante.llm").curl({{
        provider = require("avante.providers").redraft,
        prompt_opts = {{
          system_prompt = "You help.", messages = {{ {{ role = "user", content = text }} }},
        }},
        handler_opts = {{
          on_chunk = function(piece) _G.said = _G.said .. piece end,
          on_stop = function(why) _G.why = why.reason end,
        }},
      }})
    end
    """
    with editor_with(folder, plugin("avante.nvim"), text, init) as editor:
        yield editor


@contextlib.contextmanager
def copilot_lsp(folder: Path, command: str, text: str) -> Iterator[Neovim]:
    """``command`` is Lua for the server's; Tab goes to the edit, and takes it."""
    init = f"""
    vim.g.copilot_nes_debounce = 50
    vim.lsp.config("copilot_ls", {{ cmd = {command} }})
    vim.lsp.enable("copilot_ls")
    _G.take = function()
      local nes = require("copilot-lsp.nes")
      return nes.walk_cursor_start_edit()
        or (nes.apply_pending_nes() and nes.walk_cursor_end_edit())
    end
    vim.keymap.set("n", "<Tab>", "<Cmd>lua _G.take()<CR>")
    """
    with editor_with(folder, plugin("copilot-lsp"), text, init) as editor:
        editor.until(
            lambda: editor.lua("return #vim.lsp.get_clients({ name = 'copilot_ls' })") == 1
        )
        yield editor


@contextlib.contextmanager
def sidekick(folder: Path, command: str, text: str) -> Iterator[Neovim]:
    """``command`` is Lua for the server's; Tab goes to the edit, and takes it."""
    sources = plugin("sidekick.nvim")
    init = f"""
    vim.lsp.config("redraft_copilot", {{ cmd = {command}, root_markers = {{ ".git" }} }})
    vim.lsp.enable("redraft_copilot")
    require("sidekick").setup({{ copilot = {{ status = {{ enabled = false }} }} }})
    vim.keymap.set("n", "<Tab>", function() require("sidekick").nes_jump_or_apply() end)
    """
    # Since its commit f8eac10 it looks for a field that Neovim 0.11 does not have.
    source = (sources / "lua" / "sidekick" / "nes" / "init.lua").read_text(encoding="utf-8")
    if "ctx.request_id" in source:
        pytest.skip("this sidekick.nvim takes no answer in Neovim 0.11; one before f8eac10 does")
    with editor_with(folder, sources, text, init) as editor:
        editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 1)
        yield editor


@contextlib.contextmanager
def cursortab(folder: Path, url: str, provider: str, text: str) -> Iterator[Neovim]:
    """Start cursortab.nvim with the request format ``provider``."""
    sources = plugin("cursortab.nvim")
    if not (sources / "server" / "cursortab").exists():
        pytest.skip("cursortab.nvim without its server: 'go build' in its folder server makes it")
    asks = f"type = '{provider}', url = '{url}'"
    with tempfile.TemporaryDirectory() as state:  # a socket's path may have 107 characters
        init = f"""
        vim.o.shiftwidth, vim.o.expandtab = 4, true
        require("cursortab").setup({{
          state_dir = "{state}", provider = {{ {asks} }}, debug = {{ immediate_shutdown = true }},
        }})
        """
        log = Path(state) / "cursortab.log"
        with editor_with(folder, sources, text, init) as editor:
            editor.until(lambda: log.exists() and "client connected" in log.read_text())
            yield editor
