"""The file of ``--json``, which every command that measures can write its figures to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redraft.model.errors import SettingsError


def check_writable(path: Path | None) -> Path | None:
    """Said before hours of measuring, not after.

    Raises:
        SettingsError: ``path`` has no folder to be in.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise SettingsError(f"The folder of {path} does not exist. Make it first.")
    return path


def write_json(path: Path | None, content: dict[str, Any]) -> None:
    """
    Raises:
        SettingsError: ``path`` cannot be written.
    """
    if path is None:
        return
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}.") from error
