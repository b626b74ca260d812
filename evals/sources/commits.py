"""Held-out commits, and samples that stay the same: on every machine, a smaller part of a larger.

All choices follow from hashes of names and a seed, and languages take turns, so that each is
measured as soon as any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from redraft.model.errors import SettingsError
from redraft.model.training.shards import read_records

from ..example import Example

MOST_LINES = 6_000  # of a file


@dataclass(frozen=True, slots=True)
class CommitChange:
    """Change of one file by a commit."""

    id: str
    commit: str
    path: str
    language: str
    before: str  # "": a new file
    after: str


def read_changes(path: Path) -> Iterator[CommitChange]:
    """Return the changed files of a ``*-commits.jsonl.zst``.

    Raises:
        SettingsError: it cannot be read as one.
    """
    try:
        for record in read_records(path):
            yield from changes_of(record)
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{path} is not a file of commits ({type(error).__name__}: {error}). Name one such as "
            "dev-commits.jsonl.zst."
        ) from error


def changes_of(record: dict[str, Any]) -> Iterator[CommitChange]:
    """Return the changed files of one line."""
    commit = f"{record['repo']}@{record['commit'][:10]}"
    for file in record["files"]:
        before, after = (unix(file[side] or "") for side in ("before", "after"))
        if after and max(before.count("\n"), after.count("\n")) < MOST_LINES:
            name = f"{commit}:{file['path']}"
            yield CommitChange(name, commit, file["path"], file["language"], before, after)


def unix(text: str) -> str:
    """Return ``text`` with line feeds alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def in_turn(samples: Iterable[Example], limit: int | None, seed: int) -> list[Example]:
    """Return ``limit`` of the samples (None: all), the languages taking turns while they last."""
    ordered = sorted(samples, key=lambda sample: rank(seed, sample.id))
    seen: dict[str, int] = {}
    turns: list[tuple[int, int]] = []  # of its language, in the order
    for place, sample in enumerate(ordered):
        turns.append((seen.setdefault(sample.language, 0), place))
        seen[sample.language] += 1
    return [ordered[place] for _, place in sorted(turns)][:limit]


def rank(seed: int, name: str) -> bytes:
    """Return what samples are ordered by."""
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()


def fingerprint(samples: Iterable[Example]) -> str:
    """Return a hash of all samples, so that two samplings never mix in a run."""
    digest = hashlib.sha256()
    for sample in sorted(samples, key=lambda each: each.id):
        digest.update(repr(sample).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
