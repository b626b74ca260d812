"""``redraft setup neovim`` with a real Neovim: the plugin is found, and leaves without a trace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from redraft.server.commands.setup import neovim
from redraft.server.commands.setup.clients import client_file, server_program
from support.command import call
from support.editors.neovim import NVIM, needs_neovim

pytestmark = needs_neovim


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder of a user who has Neovim, but no ``redraft`` on the PATH."""
    folder = tmp_path / "my höme"
    (folder / "bin").mkdir(parents=True)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    (folder / "bin" / "nvim").symlink_to(NVIM or "")
    return folder


def plugin(home: Path) -> Path:
    return home / ".local" / "share" / "nvim" / "site" / "pack" / "redraft" / "start" / "redraft"


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def ask(home: Path, table: str) -> Any:
    """Return what Neovim answers with the configuration of the user."""
    lua = f"lua io.stdout:write('\\n' .. vim.json.encode({table}))"
    done = subprocess.run(
        [str(NVIM), "--headless", "-i", "NONE", "-c", lua, "-c", "qa!"],
        capture_output=True, encoding="utf-8", timeout=60, check=True,
        env={**os.environ, "XDG_STATE_HOME": str(home.parent), "XDG_CACHE_HOME": str(home.parent)},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def test_the_plugin_is_found_and_leaves_no_trace(home: Path) -> None:
    before = tree(home)
    code, out, err = call("setup", "neovim", "--yes")
    assert (code, err) == (0, ""), out + err
    assert "starts, answers and ends" in out
    found = ask(
        home, "{ vim.g.loaded_redraft, vim.lsp.config.redraft.cmd, vim.fn.exists(':Redraft') }"
    )
    assert found == [True, [server_program(), "lsp"], 2]
    tags = (plugin(home) / "doc" / "tags").read_text(encoding="utf-8")
    assert tags == made_by_neovim(home)
    assert call("setup", "neovim")[0] == 0  # current: no question
    code, out, err = call("setup", "neovim", "--remove", "--yes")
    assert (code, err) == (0, ""), out + err
    assert tree(home) == before


def made_by_neovim(home: Path) -> str:
    folder = home.parent / "tags"
    folder.mkdir()
    shutil.copy(client_file("neovim") / "doc" / "redraft.txt", folder)
    command = [str(NVIM), "--headless", "--clean", "-c", f"helptags {folder}", "-c", "qa!"]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "HOME": str(home.parent)})
    return (folder / "tags").read_text(encoding="utf-8")


def test_a_command_of_the_user_is_used_and_checked(home: Path) -> None:
    init = home / ".config" / "nvim" / "init.lua"
    init.parent.mkdir(parents=True)
    init.write_text('vim.lsp.config("redraft", { cmd = { "/nowhere/redraft", "lsp" } })\n')
    code, out, _ = call("setup", "neovim", "--yes")
    assert code == 1
    assert "problem: /nowhere/redraft lsp cannot be run" in out


def test_a_configuration_without_packages_is_named(home: Path) -> None:
    init = home / ".config" / "nvim" / "init.lua"
    init.parent.mkdir(parents=True)
    init.write_text("vim.opt.packpath = vim.env.VIMRUNTIME\n")  # as lazy.nvim does
    code, out, err = call("setup", "neovim", "--yes")
    assert code == 0, err
    assert neovim.LAZY in out


def test_a_plugin_of_others_is_left_alone(home: Path) -> None:
    mine = plugin(home) / "lua" / "mine.lua"
    mine.parent.mkdir(parents=True)
    mine.touch()
    before = tree(home)
    code, _, err = call("setup", "neovim", "--yes")
    assert code == 1
    assert f"{plugin(home) / 'lua'} exists and was not made by 'redraft setup'" in err
    assert tree(home) == before


def test_what_took_the_place_of_the_plugin_stays(home: Path) -> None:
    assert call("setup", "neovim", "--yes")[0] == 0
    shutil.rmtree(plugin(home))
    mine = plugin(home) / "lua" / "mine.lua"
    mine.parent.mkdir(parents=True)
    mine.touch()
    (plugin(home) / "doc").mkdir()
    (plugin(home) / "doc" / "redraft.txt").write_text("mine")
    kept = tree(plugin(home))
    assert call("setup", "neovim", "--yes")[0] == 1
    assert call("setup", "neovim", "--remove", "--yes")[0] == 0
    assert tree(plugin(home)) == kept


def test_an_older_plugin_is_replaced(home: Path) -> None:
    assert call("setup", "neovim", "--yes")[0] == 0
    record = home / ".local" / "share" / "redraft" / "setup" / "neovim.json"
    link, now = plugin(home) / "lsp", str(client_file("neovim") / "lsp")
    record.write_text(record.read_text().replace(json.dumps(now), json.dumps(str(home))))
    link.unlink()
    link.symlink_to(home)  # as an older environment was linked
    (plugin(home) / "doc" / "redraft.txt").write_text("old")
    assert "neovim       set up, not current" in call("setup")[1]
    assert call("setup", "neovim", "--yes")[0] == 0
    assert str(link.readlink()) == now
    assert "set up, current" in call("setup")[1]


def test_without_links_the_plugin_is_copied(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from redraft.server.commands.setup.changes import Record, carry_out
    from redraft.server.commands.setup.marked_block import without_block

    before = tree(home)
    monkeypatch.setattr(neovim, "HAS_LINKS", False)
    plan = neovim.plan(Record("neovim"), server_program())
    assert not plan.links
    carry_out(plan, Record("neovim"), without_block)
    assert ask(home, "{ vim.g.loaded_redraft }") == [True]
    record = Record.load("neovim")
    assert record is not None
    record.revert(without_block)
    record.forget()
    assert tree(home) == before
