"""Editors that ``redraft setup`` knows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from . import emacs, helix, neovim, vscode, zed
from .changes import Plan, Record, TakeOut
from .marked_block import without_block


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor, and how its client is installed."""

    title: str
    find: Callable[[], str]  # where it is on this machine, or ""
    plan: Callable[[Record, str], Plan]  # from what was done before and the path of 'redraft'
    take_out: TakeOut = without_block


def _like_vscode(title: str, command: str) -> Editor:
    return Editor(title, lambda: shutil.which(command) or "", partial(vscode.plan, command, title))


#: By their names on the command line.
EDITORS = {
    "vscode": _like_vscode("VS Code", "code"),
    "vscodium": _like_vscode("VSCodium", "codium"),
    "cursor": _like_vscode("Cursor", "cursor"),
    "windsurf": _like_vscode("Windsurf", "windsurf"),
    "code-server": _like_vscode("code-server", "code-server"),
    "neovim": Editor("Neovim", neovim.find, neovim.plan),
    "zed": Editor("Zed", zed.find, zed.plan, zed.take_out),
    "helix": Editor("Helix", helix.find, helix.plan),
    "emacs": Editor("Emacs", emacs.find, emacs.plan),
}
