"""Walks: the files of a change, and the steps that a person makes in them, one after the other.

A walk comes from a ``steps.jsonl.zst``, where pull requests are recorded in steps, or from a
``*-commits.jsonl.zst``, whose hunks are put into the order in which people make them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from redraft.model.edits.edit import LineChange
from redraft.model.errors import SettingsError
from redraft.model.text.syntax import language_of
from redraft.model.training.places.place_moments import (
    MomentMix,
    OpenFile,
    files_of_commit,
    with_open_files,
)
from redraft.model.training.shards import read_records

from ..sources.commits import rank, unix

SCENES = Path(__file__).parent / "scenes.jsonl"
MOST_STEPS = 120  # of a walk; longer ones end there
_LONG = 6_000  # lines of a file that is left out


@dataclass(frozen=True, slots=True)
class WalkFile:
    """A file that is open during a walk."""

    path: str
    language: str  # LSP id, "" when unknown
    before: tuple[str, ...]  # lines
    after: tuple[str, ...]  # lines, when all steps are made


@dataclass(frozen=True, slots=True)
class WalkStep:
    """A change of one file."""

    file: int  # number in the walk
    change: LineChange  # in the text that the step before leaves
    is_typed: bool = False  # it need not be foreseen


@dataclass(frozen=True, slots=True)
class Walk:
    """A change in ordered steps."""

    id: str  # commit or pull request
    repo: str
    files: tuple[WalkFile, ...]  # the first is the first to be edited
    steps: tuple[WalkStep, ...]


@dataclass(frozen=True, slots=True)
class AskedWalk:
    """A walk, and after which of its steps the next edit is asked for."""

    walk: Walk
    after: frozenset[int]  # numbers of steps made by then; that of all steps: nothing is left


#: Hunks whole and in their likely order.
IN_ORDER = MomentMix(shuffled=0.0, two_steps=0.0)
#: As people write, for fitting; see :class:`MomentMix`.
AS_WRITTEN = MomentMix()


def choose_walks(
    path: Path, limit: int | None, seed: int, per_walk: int, mix: MomentMix = IN_ORDER
) -> list[AskedWalk]:
    """Return a sample of moments of a file, the repositories in turn.

    Args:
        limit: moments; None: all.
        per_walk: moments with something left to do, at most, of each walk. One with nothing left
            is added.
        mix: how the hunks of commits become steps.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        by_repo: dict[str, set[str]] = {}
        for record in read_records(path):
            by_repo.setdefault(record["repo"], set()).add(_name(record))
        turns = sorted(
            (turn, rank(seed, name), name)
            for some in by_repo.values()
            for turn, name in enumerate(sorted(some, key=lambda name: rank(seed, name)))
        )
        order = {name: at for at, (*_, name) in enumerate(turns[:limit])}
        walks = sorted(_read(path, mix, order), key=lambda walk: order[walk.id])
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise SettingsError(
            f"{path} holds neither commits nor steps ({type(error).__name__}: {error}). Name a "
            "file such as dev-commits.jsonl.zst or steps.jsonl.zst."
        ) from error
    found, moments = list[AskedWalk](), 0
    for walk in walks:
        if limit is not None and moments >= limit:
            break
        rng = random.Random(f"{seed}:{walk.id}")
        typed = next((at for at, step in enumerate(walk.steps) if not step.is_typed), 0)
        possible = range(max(1, typed), len(walk.steps))
        after = frozenset(rng.sample(possible, min(per_walk, len(possible)))) | {len(walk.steps)}
        moments += len(after)
        found.append(AskedWalk(walk, after))
    return found


def scenes() -> list[Walk]:
    """Return the scenes that come with Redraft: two of each kind of work, in four languages.

    Their first steps are typed, and the others are what a professional expects to be offered.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in SCENES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        groups.setdefault(row["pr"], []).append(row)
    return [_of_steps(name, rows) for name, rows in groups.items()]


def _name(record: dict[str, Any]) -> str:
    if "steps" in record:
        return f"{record['repo']}#{record['pr']}"
    return f"{record['repo']}@{record['commit'][:10]}"


def _read(path: Path, mix: MomentMix, wanted: Collection[str]) -> Iterator[Walk]:
    """Yield the wanted walks of a file that have two steps or more."""
    groups: dict[str, list[dict[str, Any]]] = {}

    def commits() -> Iterator[dict[str, Any]]:
        for record in read_records(path):
            if "steps" not in record:
                yield record
            elif _name(record) in wanted:
                groups.setdefault(_name(record), []).append(record)

    for record, others in with_open_files(commits(), lambda one: _name(one) in wanted):
        walk = _of_commit(record, others, mix)
        if len(walk.steps) > 1:
            yield walk
    for name, rows in groups.items():
        yield _of_steps(name, rows)


def _of_steps(name: str, rows: list[dict[str, Any]]) -> Walk:
    """Return the walk of a pull request, a row for each file."""
    made = ((at, step) for at, row in enumerate(rows) for step in row["steps"])
    order = sorted(made, key=lambda one: (one[1]["step"], one[0]))  # several hunks may be one step
    texts = [row["before"].split("\n") for row in rows]
    steps = list[WalkStep]()
    for at, step in order[:MOST_STEPS]:
        first, last = step["start_line"], step["end_line"]
        change = LineChange(first, tuple(texts[at][first:last]), tuple(step["new_lines"]))
        texts[at][first:last] = change.new
        steps.append(WalkStep(at, change, is_typed=not step.get("target", True)))
    files = (_file(row["path"], row["before"].split("\n"), row["after"]) for row in rows)
    return Walk(name, rows[0]["repo"], tuple(files), tuple(steps))


def _of_commit(record: dict[str, Any], others: list[OpenFile], mix: MomentMix) -> Walk:
    name = _name(record)
    rng = random.Random(name)
    final = {file["path"]: unix(file["after"] or "") for file in record["files"]}
    files, steps = list[WalkFile](), list[WalkStep]()
    for number, edited in enumerate(files_of_commit(record, mix, rng)):
        files.append(_file(edited.path, edited.lines, final[edited.path]))
        while edited.coming and len(steps) < MOST_STEPS:
            steps.append(WalkStep(number, edited.coming[0].change))
            edited.make_next()
    known = {file.path for file in files}
    idle = (_file(one.path, one.lines, "\n".join(one.lines)) for one in others)
    files += [one for one in idle if one.path not in known]
    return Walk(name, record["repo"], tuple(files), tuple(steps))


def _file(path: str, before: list[str], after: str) -> WalkFile:
    return WalkFile(path, language_of(path) or "", tuple(before), tuple(after.split("\n")))
