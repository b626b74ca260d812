"""Clients that the installed package carries, and the command that they start."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from redraft.model.errors import EditorSetupError
from redraft.model.release import distribution


def client_file(name: str) -> Path:
    """Return a file or folder of ``editor-clients``.

    Raises:
        EditorSetupError: the installed package lacks it.
    """
    path = Path(str(resources.files("redraft.editor_clients"))) / name
    if not path.exists():
        raise EditorSetupError(f"{path} is missing; install Redraft again")
    return path


def server_program() -> str:
    """Return the path of the installed command ``redraft``.

    An editor may be started without the environment's ``PATH``.

    Raises:
        EditorSetupError: there is none.
    """
    for file in (distribution and distribution.files) or ():
        if file.stem == "redraft" and file.parent.name in ("bin", "Scripts"):
            return str(Path(str(file.locate())).resolve())
    if found := shutil.which("redraft"):
        return found
    raise EditorSetupError("the command 'redraft' is not installed; install Redraft with pip")
