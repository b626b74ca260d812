"""Tables of ranked places: how often a right one is among the first ones, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from redraft.model.places.last_edits import LastEdits
from redraft.model.places.ranker import APART, RankedPlace, Ranker
from redraft.model.training.places.judged import (
    MOST_LINES,
    Judged,
    area_of_left,
    judge,
    rank_moment,
)
from redraft.model.training.places.place_moments import PlaceMoment

from ..figures import Figure, ratio

#: Lines from the last edit to the nearest change that is left.
DISTANCES = (("0-2", 0, 2), ("3-12", 3, 12), ("13-60", 13, 60), (">60", 61, 10**9))
JUMPS = (0.05, 0.1, 0.2, 0.3)  # shares of moments with a far place
_MOST = 8


@dataclass(frozen=True, slots=True)
class PlaceTable:
    """Rows of text under headings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Systems = dict[str, list[Judged]]


def measure(ranker: Ranker, moments: Iterator[PlaceMoment], least_chance: float) -> Systems:
    """Rank the places of moments in several orders, and judge each.

    Args:
        least_chance: of a far place that comes before the cursor's.
    """
    found: Systems = {}
    for moment in moments:
        if len(moment.file.lines) > MOST_LINES:
            continue
        edits = LastEdits(moment.edits)
        places = rank_moment(ranker, moment, edits)
        end = min(edits.end(moment.file.path) or 0, len(moment.file.lines) - 1)
        cursor = _place(min(end + 1, len(moment.file.lines) - 1))
        sure = [one for one in places if one.is_far and one.chance >= least_chance][:1]
        for name, order in (
            ("ranker", places),
            ("sure far place, cursor, ranker", _distinct([*sure, cursor, *places])),
            ("cursor, ranker", _distinct([cursor, *places])),
            ("below, then above", _around(end, len(moment.file.lines))),
        ):
            found.setdefault(name, []).append(judge(moment, order, edits))
    return found


def tables(systems: Systems) -> Iterator[PlaceTable]:
    """Yield the tables of some systems, judged on the same moments."""
    first = next(iter(systems.values()))
    some = sum(map(_has_left, first))
    yield PlaceTable(
        f"Same file: {some} moments with something left, {len(first)} in all",
        ("", "hit@1", "hit@3", "hit@5", "next change @1", "@3"),
        tuple(
            (
                name,
                *(_share(judged, _has_left, _hit("here", most)) for most in (1, 3, 5)),
                *(_share(judged, _has_next, _hit("next_here", most)) for most in (1, 3)),
            )
            for name, judged in systems.items()
        ),
    )
    counts = [sum(map(_is_within(low, high), first)) for _, low, high in DISTANCES]
    yield PlaceTable(
        "By distance of the nearest change from the last edit, hit@1 / hit@3",
        ("", *(f"{each[0]} (n={n})" for each, n in zip(DISTANCES, counts, strict=True))),
        tuple((name, *_by_distance(judged)) for name, judged in systems.items()),
    )
    yield PlaceTable(
        "Far places in the file: precision where so many moments jump",
        ("", *(f"{share:.0%}" for share in JUMPS)),
        tuple((name, *_jumps(judged)) for name, judged in systems.items() if _has_chances(judged)),
    )
    elsewhere = sum(map(_is_elsewhere, first))
    yield PlaceTable(
        f"All open files; nothing left here but in another open file ({elsewhere} moments)",
        ("", "hit@1", "hit@3", "elsewhere @1", "elsewhere @3", 'AUC "anything left"'),
        tuple(
            (
                name,
                *(_share(judged, _has_any, _hit("everywhere", most)) for most in (1, 3)),
                *(_share(judged, _is_elsewhere, _hit("everywhere", most)) for most in (1, 3)),
                f"{area_of_left(judged):.3f}" if _has_chances(judged) else "–",
            )
            for name, judged in systems.items()
        ),
    )


def far_limit(judged: Sequence[Judged], share: float) -> float:
    """Return the chance that the far places of such a share of moments reach."""
    chances = sorted((one.far[0] for one in judged if one.far is not None), reverse=True)
    count = min(max(1, int(share * len(judged))), len(chances))
    return chances[count - 1] if chances else math.inf


# --- orders --------------------------------------------------------------------------------------


def _place(line: int) -> RankedPlace:
    return RankedPlace(0, line, 0.0, 0.0, 0.0, 0.0, "", is_far=False)


def _distinct(places: Sequence[RankedPlace]) -> list[RankedPlace]:
    """Return places without those within 6 lines of an earlier one."""
    kept: list[RankedPlace] = []
    for place in places:
        if all(place.file != o.file or abs(place.line - o.line) > APART for o in kept):
            kept.append(place)
    return kept[:_MOST]


def _around(line: int, total: int) -> list[RankedPlace]:
    """Return places by their distance from a line, those below first."""
    order = sorted(range(total), key=lambda at: (abs(at - line - 1), at <= line))
    return _distinct([_place(at) for at in order[:80]])


# --- figures -------------------------------------------------------------------------------------


Predicate = Callable[[Judged], bool]


def _has_left(one: Judged) -> bool:
    return one.distance is not None


def _has_next(one: Judged) -> bool:
    return one.has_next


def _has_any(one: Judged) -> bool:
    return one.has_left


def _is_elsewhere(one: Judged) -> bool:
    return one.has_left and one.distance is None


def _is_within(low: int, high: int) -> Predicate:
    return lambda one: one.distance is not None and low <= one.distance <= high


def _hit(field: str, most: int) -> Predicate:
    """Return whether a moment has a right place among its first ones, as a predicate."""
    return lambda one: any(getattr(one, field)[:most])


def _jumps_from(chance: float) -> Predicate:
    return lambda one: one.far is not None and one.far[0] >= chance


def _is_far_right(one: Judged) -> bool:
    return one.far is not None and one.far[1]


def _has_chances(judged: Sequence[Judged]) -> bool:
    return all(one.left for one in judged)


def _share(judged: Sequence[Judged], counts: Predicate, is_hit: Predicate) -> str:
    """Return the share of hits among the moments that count, bootstrapped by group."""
    chosen = [one for one in judged if counts(one)]
    return _show(ratio([float(is_hit(one)) for one in chosen], groups=[o.group for o in chosen]))


def _show(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return f"not measured (n={figure.n})"
    return f"{100 * figure.value:.1f} [{100 * figure.low:.1f}, {100 * figure.high:.1f}]"


def _by_distance(judged: Sequence[Judged]) -> list[str]:
    return [
        " / ".join(_share(judged, _is_within(low, high), _hit("here", most)) for most in (1, 3))
        for _, low, high in DISTANCES
    ]


def _jumps(judged: Sequence[Judged]) -> list[str]:
    limits = (far_limit(judged, share) for share in JUMPS)
    return [_share(judged, _jumps_from(limit), _is_far_right) for limit in limits]
