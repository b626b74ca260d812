"""What lies in a ready folder, and whether it is still what was put there."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from ..errors import WeightsError
from ..validation import object_of
from .files import sha256_of, write_atomically

#: In every ready folder: the SHA-256 of its files and of the recipe it was made by.
MANIFEST = "manifest.json"
#: Sizes and times of the files when they were last hashed.
STAMPS = ".checked.json"


def write_manifest(folder: Path, recipe: str) -> None:
    files = {
        path.name: {"sha256": sha256_of(path), "size": path.stat().st_size}
        for path in sorted(folder.iterdir())
    }
    content = json.dumps({"recipe": recipe, "files": files}, indent=1)
    stamps = {name: _stamp(folder / name) for name in files}
    write_atomically(folder / STAMPS, json.dumps(stamps).encode())
    write_atomically(folder / MANIFEST, content.encode())


def _stamp(path: Path) -> list[int]:
    """What changes when a file is written to: its size and times."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def problem_of(folder: Path, recipe: str | None, thorough: bool | None) -> str:
    """What is wrong with a ready folder; "" nothing.

    Args:
        thorough: True hashes every file, False those that changed since the last time, None none.
    """
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict) or not files:
        return "its manifest is missing or damaged"
    if recipe is not None and manifest.get("recipe") != recipe:
        return "it was made from other weights or by another version"
    checked = read_json(folder / STAMPS) if thorough is False else {}
    stamps: dict[str, list[int]] = {}
    for name, entry in files.items():
        path = folder / name
        try:
            stamps[name] = _stamp(path)
            if stamps[name][0] != entry["size"]:
                return f"{name} has {stamps[name][0]} bytes, not {entry['size']}"
            if thorough is None or checked.get(name) == stamps[name]:
                continue
            if sha256_of(path) != entry["sha256"]:
                return f"{name} does not have the SHA-256 of the manifest"
        except (OSError, WeightsError, KeyError, TypeError):
            return f"{name} is missing or cannot be read"
    if thorough is not None and stamps != checked:
        with contextlib.suppress(WeightsError):  # a read-only folder: hash again next time
            write_atomically(folder / STAMPS, json.dumps(stamps).encode())
    return ""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, empty where the file is missing or holds anything else."""
    try:
        return object_of(path.read_bytes())
    except OSError:
        return {}
