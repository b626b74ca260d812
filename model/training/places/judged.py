"""Ranked places of moments, compared with the changes that are left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...places.last_edits import LastEdits
from ...places.line_index import LineIndex
from ...places.ranker import NEAR, File, RankedPlace, Ranker
from .place_moments import OpenFile, PlaceMoment, Span

MOST_LINES = 6_000  # of a file that is ranked
MOST_FILES = 9  # open ones, the user's first
PLACES = 8  # that are asked of a ranker


@dataclass(frozen=True, slots=True)
class Judged:
    """Places of one moment, the best first, and whether they are right.

    A place is right within two lines of a change that is left.
    """

    repo: str
    group: str  # commit or pull request
    language: str
    distance: int | None  # lines from the last edit to the nearest change left in its file, or None
    has_next: bool  # the very next change is in this file
    has_left: bool  # anything is left in any open file
    here: tuple[bool, ...]  # places in the file of the last edit
    next_here: tuple[bool, ...]  # the same, for the very next change
    everywhere: tuple[bool, ...]  # places in all open files
    far: tuple[float, bool] | None  # chance of the best far place in this file, and if it is right
    left: float  # chance that anything is left in this file
    chance: float  # of the best place
    places: tuple[RankedPlace, ...]


def files_of(moment: PlaceMoment) -> list[OpenFile]:
    """Return the open files of a moment that are ranked, the user's first."""
    others = [file for file in moment.others if len(file.lines) <= MOST_LINES]
    return [moment.file, *others][:MOST_FILES]


def judge_all(ranker: Ranker, moments: Iterable[PlaceMoment]) -> list[Judged]:
    """Rank the places of moments and judge them; files of over 6,000 lines are left out."""
    found = []
    for moment in moments:
        if len(moment.file.lines) <= MOST_LINES:
            edits = LastEdits(moment.edits)
            found.append(judge(moment, rank_moment(ranker, moment, edits), edits))
    return found


def rank_moment(ranker: Ranker, moment: PlaceMoment, edits: LastEdits) -> list[RankedPlace]:
    """Return the likeliest places of a moment."""
    files = [File(f.path, f.language, LineIndex.of(f.lines)) for f in files_of(moment)]
    return ranker.rank(files, edits, PLACES)


def judge(moment: PlaceMoment, places: Sequence[RankedPlace], edits: LastEdits) -> Judged:
    """Compare ranked places of a moment with what is left."""
    files = files_of(moment)
    own = [place for place in places if place.file == 0]
    end = edits.end(moment.file.path) or 0
    far = next((place for place in own if place.is_far), None)
    following = () if moment.next is None else (moment.next,)
    return Judged(
        moment.repo,
        moment.group,
        moment.file.language,
        min((_distance(end, span) for span in moment.file.left), default=None),
        moment.next is not None,
        any(file.left for file in files),
        tuple(is_right(place.line, moment.file.left) for place in own),
        tuple(is_right(place.line, following) for place in own),
        tuple(is_right(place.line, files[place.file].left) for place in places),
        None if far is None else (far.chance, is_right(far.line, moment.file.left)),
        own[0].left_in_file if own else 0.0,
        places[0].chance if places else 0.0,
        tuple(places),
    )


def is_right(line: int, left: Iterable[Span]) -> bool:
    """Return whether a change is left within two lines of a line."""
    return any(_distance(line, span) <= NEAR for span in left)


def _distance(line: int, span: Span) -> int:
    """Return how many lines a change is away; an insertion is at the lines on both sides of it."""
    first, last = span
    low, high = (first - 1, first) if first == last else (first, last - 1)
    return max(low - line, line - high, 0)


def hit_rate(judged: Sequence[Judged], most: int) -> float:
    """Return the share of moments with a right place among the first ones in this file.

    Only moments count after which something is left in the file.
    """
    hits = [any(one.here[:most]) for one in judged if one.distance is not None]
    return float(np.mean(hits)) if hits else 0.0


def area_of_left(judged: Sequence[Judged]) -> float:
    """Return the area under the curve of "anything is left in this file"; 0.5 says nothing."""
    some = [one.left for one in judged if one.distance is not None]
    none = [one.left for one in judged if one.distance is None]
    return area(some, none)


def area(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the chance that a positive has the higher value; equal values count half."""
    if not positive or not negative:
        return 0.5
    below = np.sort(np.asarray(negative))
    low, high = (np.searchsorted(below, positive, side) for side in ("left", "right"))
    return float((low + high).mean() / 2 / len(negative))
