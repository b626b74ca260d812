"""All families together: what could be done next by rule, each with the odds that it will be.

Pure; whoever asks has the model judge what is proposed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..edits.repeats import MOST_LINES, find_repeats
from ..records import Diagnostic, RecentEdit
from . import (
    arguments,
    diagnosed,
    inserted_lines,
    inserted_text,
    literals,
    moved_lines,
    renamed_variants,
    siblings,
    wrapped_calls,
)
from .example import Example, Found, read

Family = Callable[[Example, Sequence[str], int, int], Iterator[Found]]

FAMILIES: dict[str, Family] = {
    "variant": renamed_variants.find,
    "literal": literals.find,
    "insertion": inserted_text.find,
    "argument": arguments.find,
    "lines": inserted_lines.find,
    "sibling": siblings.find,
    "moved": moved_lines.find,
    "wrapped": wrapped_calls.find,
}
#: Of each family a logistic regression over :func:`features`: all that it found at 6,000 moments of
#: training commits, and whether that was the next edit to the letter.
ODDS: dict[str, tuple[float, ...]] = {
    "sibling": (-2.74, 0.46, -0.51, 0.54, -0.72, -0.63, 0.39, -0.29, -0.27),
    "variant": (-1.44, 0.67, -0.72, 0.84, -0.58, -1.72, -1.28, 0.34, 1.77),
    "lines": (-0.49, 0.97, -0.28, 0.82, -1.27, -1.02, -0.05, 0.25, 0.0),
    "insertion": (-3.43, 0.17, -0.47, 1.71, -0.29, -1.37, -2.8, 1.27, 1.55),
    "moved": (-0.47, -0.59, -0.71, 1.26, 0.14, -1.87, 0.0, 0.19, 0.23),
    "literal": (3.46, -0.68, -0.14, 0.19, -0.99, -2.65, -1.28, -0.63, 0.88),
    "argument": (-3.79, 1.58, -0.74, 1.08, -0.22, -1.42, -1.65, -0.09, -0.19),
    "wrapped": (-0.5, -0.02, -0.54, 0.98, -0.32, -1.93, -0.31, 0.48, -0.2),
}
#: Chance of what ends a diagnostic. Not measured: no commit says what an editor reported.
DIAGNOSED = 0.4
#: What a family finds and is less likely than this is not worth the model's time. At 770 moments
#: of held-out commits proposals are made at 246; from 0.03 on at 269, and 4 more are reached.
LEAST_OF_FAMILY = 0.05
#: Of one family, at most: a name that stands everywhere says little about any place.
MOST_FOUND = 60


@dataclass(frozen=True, slots=True)
class Proposed:
    """Lines [first, last) of the document, 0-based, become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    family: str
    chance: float  # that exactly this is the next edit


def propose(
    edits: Sequence[RecentEdit],
    lines: Sequence[str],
    first: int,
    last: int,
    cursor: int,
    diagnostics: Sequence[Diagnostic] = (),
) -> list[Proposed]:
    """What could follow within the lines [first, last), the likeliest first, each edit once.

    Args:
        edits: oldest first.
        lines: of the document; ``first``, ``last``, ``cursor`` (its line): 0-based.
        diagnostics: what the editor reports of it.
    """
    last = min(last, first + MOST_LINES)
    unique = {
        (one.first, one.last, one.lines): Proposed(
            one.first, one.last, one.lines, "repeat", one.chance
        )
        for one in find_repeats(edits, lines, first, last, cursor)
    }
    example = read(edits)
    for family, find in FAMILIES.items():
        found: dict[tuple[int, int, tuple[str, ...]], Found] = {}
        for one in find(example, lines, first, last):
            if tuple(lines[one.first : one.last]) != one.lines:
                found.setdefault((one.first, one.last, one.lines), one)
            if len(found) > MOST_FOUND:
                break
        for run in _runs(list(found.values())):
            found[run.first, run.last, run.lines] = run
        for key, one in found.items():
            chance = chance_of(family, features(one, list(found.values()), cursor, len(unique)))
            if chance >= LEAST_OF_FAMILY and (key not in unique or unique[key].chance < chance):
                unique[key] = Proposed(*key, family, chance)
    for one in diagnosed.find(diagnostics, example, lines, first, last):
        key = one.first, one.last, one.lines
        known = unique.get(key)
        if known is None or known.chance < DIAGNOSED:
            unique[key] = Proposed(*key, "diagnosed", DIAGNOSED)
    return sorted(unique.values(), key=lambda one: (-one.chance, one.first))


def _runs(found: Sequence[Found]) -> Iterator[Found]:
    """Neighbouring lines that change alike, as one edit: the best of each line."""
    best: dict[int, Found] = {}
    for one in found:
        if one.last == one.first + 1 == one.first + len(one.lines):
            known = best.get(one.first)
            if known is None or one.evidence > known.evidence:
                best[one.first] = one
    run: list[Found] = []
    for at in [*sorted(best), -1]:
        if run and at == run[-1].last:
            run.append(best[at])
            continue
        if len(run) > 1:
            lines = tuple(line for one in run for line in one.lines)
            age, evidence = min(one.age for one in run), max(one.evidence for one in run)
            yield Found(run[0].first, run[-1].last, lines, age, evidence)
        run = [best[at]] if at >= 0 else []


def features(one: Found, all_: Sequence[Found], cursor: int, others: int) -> tuple[float, ...]:
    """What the odds of a find depend on."""
    below = one.first >= cursor
    places = Counter(each.first for each in all_)
    return (
        1.0,
        float(one.evidence),
        float(min(one.age, 4)),
        float(below),
        math.log1p(abs(one.first - cursor)),
        math.log(len(places)),
        math.log(places[one.first]),
        math.log1p(others),
        float(one.last - one.first > 1),
    )


def chance_of(family: str, values: Sequence[float]) -> float:
    log_odds = sum(weight * value for weight, value in zip(ODDS[family], values, strict=True))
    return 1 / (1 + math.exp(-log_odds))
