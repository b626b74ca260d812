"""Rows to train the ranker of places on: right lines, hard negatives and random ones."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...places.last_edits import LastEdits
from ...places.line_features import COLUMNS, columns_of
from ...places.line_index import Floats, LineIndex
from ...places.ranker import Ranker
from .place_moments import MomentMix, OpenFile, PlaceMoment, Span, moments_of, with_open_files

_MOST_LINES = 6_000  # of a file
_WITH_OTHERS = 0.5  # share of moments with lines of other files
#: Right lines, hard negatives and random ones of a file: the user's, and each other one.
_OWN, _OTHER = (12, 30, 30), (6, 12, 10)
_HIGHEST_WEIGHT = 4.0  # of a random negative, that counts for those that were not drawn
#: Columns whose sum finds hard negatives before there is a model.
_FIRST_GUESS = (
    "removed",
    "like old lines",
    "same text as old",
    "just below",
    "added",
    "neighbours like those of an insertion",
)


@dataclass(frozen=True, slots=True)
class PlaceRows:
    """Lines of many moments."""

    features: NDArray[np.float16]  # [rows, columns]
    is_right: NDArray[np.bool_]  # [rows]
    weights: Floats  # lines that a row represents in the sum over all lines [rows]
    moments: NDArray[np.int64]  # number of the moment, ascending [rows]
    is_held_out: NDArray[np.bool_]  # of a repository for validation [rows]


def is_held_out(repo: str) -> bool:
    """Return whether a repository serves for validation: about one of ten."""
    return int(hashlib.sha256(repo.encode()).hexdigest(), 16) % 10 == 0


def choose_commits(per_repo: int, seed: int) -> Callable[[dict[str, Any]], bool]:
    """Return what chooses about so many commits of each repository, spread over its history."""
    taken: dict[str, int] = {}

    def choose(record: dict[str, Any]) -> bool:
        repo = record["repo"]
        name = hashlib.sha256(f"{seed}:{record['commit']}".encode()).hexdigest()[:12]
        if int(name, 16) / 16**12 > per_repo / 720 or taken.get(repo, 0) >= per_repo:
            return False
        taken[repo] = taken.get(repo, 0) + 1
        return True

    return choose


def make_rows(
    records: Iterable[dict[str, Any]],
    per_repo: int,
    seed: int,
    miner: Ranker | None,
    progress: Callable[[str, int], None],
) -> tuple[PlaceRows, dict[str, int]]:
    """Return the rows of chosen commits, and the number of commits of each repository.

    Args:
        records: commits of one repository after the other.
        per_repo: commits of each repository.
        miner: chooses hard negatives; None: a sum of some features does.
        progress: called with each repository and the number of moments so far.
    """
    parts: list[tuple[NDArray[np.float16], NDArray[np.bool_], Floats, int, bool]] = []
    draw = np.random.default_rng(seed)
    moments, repo, commits = 0, "", dict[str, int]()
    for record, others in with_open_files(records, choose_commits(per_repo, seed)):
        commits[record["repo"]] = commits.get(record["repo"], 0) + 1
        if record["repo"] != repo:
            repo = record["repo"]
            progress(repo, moments)
        rng = random.Random(f"{record['commit']}{seed}")
        for moment in moments_of(record, others, MomentMix(), rng):
            held_out = is_held_out(repo)
            for features, is_right, weights in _rows_of(moment, miner, rng, draw):
                parts.append((features, is_right, weights, moments, held_out))
            moments += 1
    sizes = [len(part[1]) for part in parts]
    return (
        PlaceRows(
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts]),
            np.repeat([part[3] for part in parts], sizes),
            np.repeat([part[4] for part in parts], sizes),
        ),
        commits,
    )


def right_lines(left: Sequence[Span], total: int) -> NDArray[np.int8]:
    """Return 1 for lines that a remaining change touches, -1 for lines next to those, else 0.

    An insertion touches the lines on both sides of it. [total]
    """
    found = np.zeros(total, np.int8)
    spans = [(max(first - (first == last), 0), max(last, first + 1)) for first, last in left]
    for first, last in spans:
        found[max(first - 1, 0) : last + 1] = -1
    for first, last in spans:
        found[first:last] = 1
    return found


def _rows_of(
    moment: PlaceMoment, miner: Ranker | None, rng: random.Random, draw: np.random.Generator
) -> Iterator[tuple[NDArray[np.float16], NDArray[np.bool_], Floats]]:
    """Yield features, labels and weights of the chosen lines of each file of a moment."""
    edits = LastEdits(moment.edits)
    for file in (moment.file, *_drawn_others(moment, rng)):
        if len(file.lines) > _MOST_LINES:
            continue
        index = LineIndex.of(file.lines)
        columns = columns_of(index, edits, file.path, file.language)
        scores = sum(columns[name] for name in _FIRST_GUESS)
        if miner is not None:
            scores = miner.scores(columns)
        most = _OWN if file is moment.file else _OTHER
        labels = right_lines(file.left, index.total)
        lines, weights = _sample(labels, np.asarray(scores), most, draw)
        features = np.stack([columns[name][lines] for name in COLUMNS], axis=1)
        yield features.astype(np.float16), labels[lines] == 1, weights


def _drawn_others(moment: PlaceMoment, rng: random.Random) -> list[OpenFile]:
    """Return up to two files with something left and one without, for half of the moments."""
    if rng.random() >= _WITH_OTHERS:
        return []
    some = [file for file in moment.others if file.left]
    return some[:2] + [file for file in moment.others if not file.left][:1]


def _sample(
    labels: NDArray[np.int8],
    scores: Floats,
    most: tuple[int, int, int],
    draw: np.random.Generator,
) -> tuple[NDArray[np.int64], Floats]:
    """Return the lines that become rows, and the weight of each."""
    most_right, hard, some = most
    right, wrong = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if len(right) > most_right:
        right = draw.choice(right, most_right, replace=False)
    weights = np.ones(len(wrong))
    if len(wrong) > hard + some:
        ordered = wrong[np.argsort(-scores[wrong], kind="stable")]
        drawn = draw.choice(ordered[hard:], some, replace=False)
        share = min((len(wrong) - hard) / some, _HIGHEST_WEIGHT)
        wrong = np.concatenate([ordered[:hard], drawn])
        weights = np.concatenate([np.ones(hard), np.full(some, share)])
    lines = np.concatenate([right, wrong])
    return lines, np.concatenate([np.ones(len(right)), weights]).astype(np.float32)
