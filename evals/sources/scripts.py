"""Recordings that are replayed: read from files and folders, sampled, and named by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from redraft.lsp.learning.recorded_moments import Script, script_of
from redraft.lsp.learning.recording_file import read_recording
from redraft.model.errors import SettingsError

SUFFIXES = (".json", ".jsonl")


def read_scripts(paths: Iterable[Path]) -> list[Script]:
    """Return the recordings of files and folders, each with a name that no other has.

    Raises:
        SettingsError: there is none.
        InvalidRequest: a file is no recording.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise SettingsError(
            "There is no recording here. Name files or folders that hold recordings "
            f"({', '.join(SUFFIXES)}); 'redraft record list' says where yours are."
        )
    counts: dict[str, int] = {}
    scripts = []
    for file in files:
        name = file.name.partition(".")[0]
        counts[name] = counts.get(name, 0) + 1
        name = name if counts[name] == 1 else f"{name}~{counts[name]}"
        scripts.append(script_of(read_recording(file), name))
    return scripts


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    return [path]


def sample(scripts: Iterable[Script], limit: int | None, seed: int) -> set[str]:
    """Return the ids of the moments to ask at: all, or ``limit`` of them.

    They are drawn by hash, so that a smaller sample is part of a larger one.
    """
    ids = [moment.id for script in scripts for moment in script.moments]
    if limit is None or limit >= len(ids):
        return set(ids)
    return set(sorted(ids, key=lambda id_: _hash(f"{seed}:{id_}"))[:limit])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def fingerprint(scripts: Iterable[Script]) -> str:
    """Return a hash of what is played."""
    whole = hashlib.sha256()
    for script in scripts:
        for moment in script.moments:
            whole.update(f"{moment.id} {moment.at_s} {len(moment.text)} {moment.text}".encode())
    return whole.hexdigest()[:16]
