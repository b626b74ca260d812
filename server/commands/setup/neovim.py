"""Neovim: the plugin as a package in Neovim's data folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from redraft.model.errors import EditorSetupError

from ..doctor import Finding, language_server_finding
from .changes import Record, SetupPlan, run
from .clients import client_file, find_program

HAS_LINKS = os.name != "nt"  # there, links need a right that users do not have
#: What lazy.nvim needs, which looks for no packages itself.
LAZY = '{ dir = vim.fn.stdpath("data") .. "/site/pack/redraft/start/redraft", lazy = false }'


def find() -> str:
    """Return where Neovim is, "" if it is not on the PATH."""
    return find_program("nvim")


def plan(_record: Record, program: str) -> SetupPlan:
    asked = _ask("{ data = vim.fn.stdpath('data'), new = vim.fn.has('nvim-0.11') }", "--clean")
    if not asked["new"]:
        raise EditorSetupError(f"{find()} is too old: the plugin needs Neovim 0.11 or later")
    folder = Path(asked["data"]) / "site" / "pack" / "redraft" / "start" / "redraft"
    client = client_file("neovim")
    page = (client / "doc" / "redraft.txt").read_bytes()
    # JSON's strings are strings of Lua, too.
    command = json.dumps([program, "lsp"], ensure_ascii=False).strip("[]")
    files = {
        folder
        / "after/lsp/redraft.lua": f"{_WRITTEN}return {{ cmd = {{ {command} }} }}\n".encode(),
        folder / "doc/redraft.txt": page,
        folder / "doc/tags": _tags(page.decode()).encode(),
    }
    links = {folder / name: client / name for name in ("lsp", "lua", "plugin")}
    if not HAS_LINKS:
        for link, to in links.items():
            found = [path for path in to.rglob("*") if path.is_file()]
            files |= {link / path.relative_to(to): path.read_bytes() for path in found}
        links = {}
    return SetupPlan(files=files, links=links)


_WRITTEN = "-- Written by 'redraft setup neovim'; 'redraft setup neovim --remove' deletes it.\n"


def check(program: str) -> Finding:
    """Start the server by the command that Neovim uses with the configuration of the user."""
    asked = _ask(
        "{ loaded = vim.g.loaded_redraft == true, cmd = (vim.lsp.config.redraft or {}).cmd }"
    )
    command = asked.get("cmd")
    finding = asyncio.run(
        language_server_finding(command if isinstance(command, list) else [program, "lsp"])
    )
    if finding.verdict == "ok" and not asked.get("loaded"):
        advice = f"With lazy.nvim, add to your plugins: {LAZY}"
        return Finding("note", "server", "your configuration does not load the plugin", advice)
    return finding


def _ask(table: str, *options: str) -> dict[str, Any]:
    """Return a table of Lua as Neovim computes it, without traces in its folders.

    Raises:
        EditorSetupError: Neovim fails.
    """
    mark = "redraft setup: "
    lua = f"lua io.stdout:write('\\n{mark}' .. vim.json.encode({table}) .. '\\n')"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        aside = dict.fromkeys(("XDG_STATE_HOME", "XDG_CACHE_HOME"), folder)
        out = run(
            find(), "--headless", "-i", "NONE", *options, "-c", lua, "-c", "qa!", environment=aside
        )
    found = re.search(f"^{mark}(.*)$", out, re.MULTILINE)
    if found is None:
        raise EditorSetupError(f"{find()} does not answer: {out[-400:]}")
    answer: dict[str, Any] = json.loads(found[1])
    return answer


def _tags(page: str) -> str:
    """Return the tags of a help page, as ``:helptags`` writes them."""
    tags = sorted(re.findall(r"(?:^|(?<=\s))\*([^*\s|]+)\*(?=\s|$)", page, re.MULTILINE))
    return "".join(f"{tag}\tredraft.txt\t/*{tag}*\n" for tag in tags)
