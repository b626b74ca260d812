"""Clients that the installed package carries, and the command that they start."""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib import metadata, resources
from pathlib import Path

from redraft.model.errors import EditorSetupError


def client_file(name: str) -> Path:
    """Return a file or folder of ``editor-clients``.

    Raises:
        EditorSetupError: the installed package lacks it.
    """
    path = Path(str(resources.files("redraft.editor_clients"))) / name
    if not path.exists():
        raise EditorSetupError(f"{path} is missing; install Redraft again")
    return path


def find_program(*names: str) -> str:
    """Return the path of the first of some commands that is on the PATH, else "".

    A command in the working folder is not taken: Windows looks there first.
    """
    found = filter(None, map(shutil.which, names))
    return next((path for path in found if Path(path).is_absolute()), "")


def config_folder() -> Path:
    """Return the folder in which editors keep the settings of the user."""
    if os.name == "nt":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def licence() -> str:
    """Return the text of Redraft's licence, from the installed package."""
    texts = (each.read_text("licenses/LICENSE") for each in metadata.distributions(name="redraft"))
    return next(filter(None, texts), "")


def server_program() -> str:
    """Return the path of the command ``redraft`` of this installation.

    An editor may be started without the environment's ``PATH``.

    Raises:
        EditorSetupError: there is none.
    """
    schemes = sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")
    folders = (sysconfig.get_path("scripts", scheme) for scheme in schemes)
    found = (shutil.which("redraft", path=folder) for folder in (*folders, None))
    program = next(filter(None, found), None)
    if program is None:
        raise EditorSetupError("the command 'redraft' is not found; install Redraft with pip again")
    return str(Path(program).absolute())
