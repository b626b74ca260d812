"""Moments whose outcome is known, for fitting and testing the gate.

Moments are gaps and begun bodies of commits and files; next edits are those of
:mod:`redraft.evals.steps`. They are drawn by hashes, a small part of a large file, kinds taking
turns, so that an interrupted run holds a fair part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of
from redraft.model.training.shards import read_records

from ..example import Example
from .begun import gaps_in_new_code
from .commits import MOST_LINES, CommitChange, changes_of, in_turn, rank, unix
from .gaps import gaps_of

#: How many of each kind come in a turn.
TURN = {"gap": 3, "begun": 4}


def sample_moments(
    commits: Path | None, files: Path | None, share: float, limit: int | None, seed: int
) -> list[Example]:
    """Return the moments of a sample, kinds and languages taking turns.

    Args:
        commits: a ``*-commits.jsonl.zst``; files: a ``*-files.jsonl.zst``.
        share: of their lines, how many are looked at, 0 … 1.
    """
    found: dict[str, list[Example]] = {kind: [] for kind in TURN}
    if commits is not None:
        for each in _of_commits(_some(commits, share, seed)):
            found[each.kind].append(each)
    if files is not None:
        for each in _of_files(_some(files, share, seed)):
            found[each.kind].append(each)
    lists = {kind: in_turn(each, None, seed) for kind, each in found.items()}
    return list(_taking_turns(lists))[:limit]


def _known(kind: str, example: Example) -> Example:
    name, tags = f"{kind}:{example.id}", {**example.tags, "kind": kind}
    return replace(example, id=name, tags=tags)


def _taking_turns(lists: dict[str, list[Example]]) -> Iterator[Example]:
    left = {kind: iter(each) for kind, each in lists.items() if each}
    while left:
        for kind in list(left):
            for _ in range(TURN[kind]):
                one = next(left[kind], None)
                if one is None:
                    del left[kind]
                    break
                yield one


def _some(path: Path, share: float, seed: int) -> Iterator[dict[str, Any]]:
    """Return records of a file, a ``share`` of them by the hash of their name."""
    most = int(share * 2**32)
    try:
        for record in read_records(path):
            name = f"{record['repo']}@{record.get('commit', record.get('path'))}"
            if int.from_bytes(rank(seed, name)[:4], "big") < most:
                yield record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is not a file of commits or files ({type(error).__name__}: {error}). Name one "
            "such as train-commits.jsonl.zst."
        ) from error


def _of_commits(records: Iterable[dict[str, Any]]) -> Iterator[Example]:
    for record in records:
        for change in changes_of(record):
            yield from _in_file(change)


def _in_file(change: CommitChange) -> Iterator[Example]:
    yield from (_known("gap", gap) for gap in gaps_of(change))
    yield from (_known("begun", gap) for gap in gaps_in_new_code(change))


def _of_files(records: Iterable[dict[str, Any]]) -> Iterator[Example]:
    for record in records:
        path, text = record["path"], unix(record["text"])
        language = language_of(path)
        if language is None or text.count("\n") >= MOST_LINES:
            continue
        name = f"{record['repo']}:{path}"
        yield from _in_file(CommitChange(name, name, path, language, "", text))
