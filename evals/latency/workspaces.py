"""A workspace of real files to measure on, the same on every machine. Knows nothing of measures."""

from __future__ import annotations

import heapq
from pathlib import Path, PurePosixPath

import zstandard
from redraft.model.errors import SettingsError
from redraft.model.training.shards import read_records

from ..figures.samples import rank

FILES = 5_000


def unpack(source: Path, folder: Path, files: int = FILES) -> int:
    """Write some files of a ``*-files.jsonl.zst`` below ``folder``; how many there were.

    Raises:
        SettingsError: ``source`` is no such file.
    """
    try:
        records = read_records(source)
        named = ((rank(0, name), name, each["text"]) for each in records if (name := _name(each)))
        chosen = heapq.nsmallest(files, named, key=lambda each: each[0])
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{source} is not a file of files ({type(error).__name__}: {error}). Name one such as "
            "train-files.jsonl.zst, or a folder."
        ) from error
    for _, name, text in chosen:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return len(chosen)


def _name(record: dict[str, str]) -> str:
    """Its place below a folder; "" where that would lie outside."""
    name = PurePosixPath(record["repo"]) / record["path"]
    return "" if name.is_absolute() or ".." in name.parts else name.as_posix()
