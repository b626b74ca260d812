"""Editors that ``redraft setup`` knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..doctor import Finding, language_server_finding
from . import emacs, helix, neovim, vscode, zed
from .changes import Record, SetupPlan, TakeOut
from .clients import find_program
from .marked_block import without_block


def _start_server(program: str) -> Finding:
    return asyncio.run(language_server_finding([program, "lsp"]))


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor, and how its client is installed."""

    title: str
    find: Callable[[], str]  # where it is on this machine, or ""
    plan: Callable[[Record, str], SetupPlan]  # from what was done before and the path of 'redraft'
    take_out: TakeOut = without_block
    command_to_undo: Callable[[], tuple[str, ...]] = tuple  # run before files are deleted
    check: Callable[[str], Finding] = _start_server
    can_be_absent: bool = False  # its client can be installed by hand


def _like_vscode(title: str, command: str) -> Editor:
    return Editor(
        title,
        partial(find_program, command),
        partial(vscode.plan, command, title),
        command_to_undo=partial(vscode.command_to_undo, command),
        can_be_absent=True,
    )


#: By their names on the command line.
EDITORS = {
    "vscode": _like_vscode("VS Code", "code"),
    "vscodium": _like_vscode("VSCodium", "codium"),
    "cursor": _like_vscode("Cursor", "cursor"),
    "windsurf": _like_vscode("Windsurf", "windsurf"),
    "code-server": _like_vscode("code-server", "code-server"),
    "neovim": Editor("Neovim", neovim.find, neovim.plan, check=neovim.check),
    "zed": Editor("Zed", zed.find, zed.plan, zed.take_out, check=zed.check),
    "helix": Editor("Helix", helix.find, helix.plan),
    "emacs": Editor("Emacs", emacs.find, emacs.plan),
}
