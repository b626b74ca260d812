"""Moments to measure places on: held-out commits, and recorded steps of pull requests.

Both are for measuring only. Limits are chosen on held-out commits; nothing is fitted on steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import hunks_of
from redraft.model.errors import SettingsError
from redraft.model.records import RecentEdit
from redraft.model.text.syntax import language_of
from redraft.model.training.places.place_moments import (
    WHOLE,
    OpenFile,
    PlaceMoment,
    make,
    merge_history,
    moments_of,
    with_open_files,
)
from redraft.model.training.shards import read_records

PER_PULL_REQUEST = 12  # moments: long ones would count too much


def read_moments(path: Path) -> Iterator[PlaceMoment]:
    """Yield the moments of a ``*-commits.jsonl.zst`` or a ``steps.jsonl.zst``.

    Raises:
        SettingsError: it cannot be read as either.
    """
    try:
        first = next(iter(read_records(path)), {})
        yield from _of_steps(path) if "steps" in first else _of_commits(path)
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{path} holds neither commits nor steps ({type(error).__name__}: {error}). Name a "
            "file such as dev-commits.jsonl.zst or steps.jsonl.zst."
        ) from error


def _of_commits(path: Path) -> Iterator[PlaceMoment]:
    """Yield moments with whole hunks in their likely order."""
    for record, others in with_open_files(read_records(path), lambda _: True):
        yield from moments_of(record, others, WHOLE, random.Random(record["commit"]))


def _of_steps(path: Path) -> Iterator[PlaceMoment]:
    """Yield a sample of the moments of each pull request."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in read_records(path):
        groups.setdefault(f"{row['repo']}#{row['pr']}", []).append(row)
    for group, rows in groups.items():
        found = [*_of_pull_request(group, rows)]
        yield from random.Random(group).sample(found, min(len(found), PER_PULL_REQUEST))


def _of_pull_request(group: str, rows: list[dict[str, Any]]) -> Iterator[PlaceMoment]:
    """Yield the moments after each step, files in turn as the steps say."""
    texts = [row["before"].split("\n") for row in rows]
    final = [row["after"].split("\n") for row in rows]
    coming = [[_change(step) for step in row["steps"]] for row in rows]
    order = sorted((step["step"], file) for file, row in enumerate(rows) for step in row["steps"])
    history: list[RecentEdit] = []
    for _, number in order:
        first, last, new = coming[number].pop(0)
        change = LineChange(first, tuple(texts[number][first:last]), new)
        history.append(make(rows[number]["path"], texts[number], change))
        following = coming[number][0][:2] if coming[number] else None
        states = []
        for row, lines, goal, steps in zip(rows, texts, final, coming, strict=True):
            left = tuple((each.first, each.last) for each in hunks_of(lines, goal))
            left = left or tuple(step[:2] for step in steps[:1])
            language = language_of(row["path"]) or ""
            states.append(OpenFile(row["path"], language, list(lines), left))
        now = states.pop(number)
        yield PlaceMoment(
            rows[0]["repo"], group, now, tuple(states), merge_history(history), following
        )


def _change(step: dict[str, Any]) -> tuple[int, int, tuple[str, ...]]:
    """Return the lines [first, last) of a step, in the text before it, and those in their place."""
    return step["start_line"], step["end_line"], tuple(step["new_lines"])
