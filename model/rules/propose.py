"""Edits by rule: those that could follow from recent edits, each with its chance.

Pure. The model judges the proposals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..edits.origins import swapped
from ..edits.replacement import Replacement
from ..records import Diagnostic, Importable, RecentEdit
from ..text.code_queries import prose_rows
from . import imports, renamed_variants
from .diagnostics import find_fixes
from .example import Example, Found, read
from .misplaced import is_misplaced
from .namesakes import namesake
from .place_order import in_order, place_key
from .rename_scopes import RenameScopes
from .repeats import MOST_LINES, find_repeats
from .unbroken import Unbroken

#: A logistic regression over :func:`_features`, fitted to the variants found at 6,000 moments of
#: training commits and to which of them were the next edit to the letter.
_VARIANT = (-1.44, 0.67, -0.72, 0.84, -0.58, -1.72, -1.28, 0.34, 1.77)
#: Chances of the other families. Commits do not record what an editor reported. Imports precede
#: their use in the order of our commits: left to the end 307 times, they were proposed 96 times, 62
#: times to the letter, and falsely at 14 of 16,000 moments. Of 4,017 imports of a project's own
#: names taken out of files of training repositories, "workspace" proposed 2,603, 1,838 of them to
#: the letter, and falsely at 4 of 21,744 moments of whole files.
FIXED = {"diagnosed": 0.4, "imported": 0.5, "standard": 0.5, "workspace": 0.55}
#: An edit that is less likely than this is not worth the model's time.
LEAST_OF_FAMILY = 0.05
#: So many proposals, the likeliest, must add no syntax errors: at 4,000 moments of training commits
#: 174 proposals added some, of which 1 was right. Later ones are hardly ever used.
MOST_CHECKED = 16
#: Finds of one family, at most: a name that stands everywhere says little about any place.
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
    language: str = "",
    elsewhere: Sequence[str] = (),
    importable: Sequence[Importable] = (),
    most: int | None = None,
    path: str = "",
) -> list[Proposed]:
    """Return the edits that could follow in lines [first, last), the likeliest first.

    Args:
        edits: the recent edits, oldest first.
        lines: the lines of the document; ``first``, ``last`` and ``cursor`` are 0-based lines.
        diagnostics: the errors that the editor reports in the document.
        language: the LSP id of the document's language.
        elsewhere: the texts of other places that come with the request.
        importable: names that the workspace defines, as the document would import them.
        most: the number of edits wanted; None: all. The syntax of later ones is not checked.
        path: the document's path; "": unknown, and then the scopes of renames are not known.
    """
    text = "\n".join(lines)
    scopes = RenameScopes(edits, text, path, language) if path else None
    last = min(last, first + MOST_LINES)
    unique = {
        (one.first, one.last, one.lines): Proposed(
            one.first, one.last, one.lines, "repeat", one.chance
        )
        for one in find_repeats(edits, lines, first, last, cursor, scopes)
    }
    example = read(edits, language, elsewhere, importable)
    for find in (renamed_variants.find, imports.find):
        for family, found in _by_family(find(example, lines, first, last), lines).items():
            for one in found:
                chance = FIXED.get(family) or _odds(one, found, cursor, len(unique))
                if chance >= LEAST_OF_FAMILY:
                    known = Proposed(one.first, one.last, one.lines, family, chance)
                    _keep_likelier(unique, known)
    for one in find_fixes(diagnostics, example, lines, first, last):
        chance = FIXED["diagnosed"]
        _keep_likelier(unique, Proposed(one.first, one.last, one.lines, "diagnosed", chance))
    for key in [key for key in unique if _is_misplaced(key, example, lines)]:
        del unique[key]
    if scopes is not None:
        for key in [
            key
            for key in unique
            if _is_out_of_reach(_edit_of(text, lines, key), edits, path, scopes)
        ]:
            del unique[key]
    steps = _chained([*unique.values()], lines, cursor, prose_rows(text, language))
    steps.sort(key=lambda one: (-one.chance, one.first))
    return list(islice(_checked(steps, lines, language) if language else steps, most))


def _is_out_of_reach(
    edit: Replacement, edits: Sequence[RecentEdit], path: str, scopes: RenameScopes
) -> bool:
    """Return whether an edit continues a recent one in another scope, or in a namesake's class."""
    return bool(scopes.leaked(edit) or namesake(edit, edits, path))


def _edit_of(text: str, lines: Sequence[str], key: tuple[int, int, tuple[str, ...]]) -> Replacement:
    first, last, new = key
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first:last])
    made = "".join(f"{line}\n" for line in new)
    if end > len(text):  # the last line has no line end
        end, made = len(text), made[:-1]
    return Replacement(text, min(start, end), end, made)


def _by_family(all_: Iterable[Found], lines: Sequence[str]) -> dict[str, list[Found]]:
    """Return the edits found by family, each edit once and neighbours together."""
    families: dict[str, dict[tuple[int, int, tuple[str, ...]], Found]] = {}
    for one in all_:
        found = families.setdefault(one.family, {})
        if tuple(lines[one.first : one.last]) != one.lines:
            found.setdefault((one.first, one.last, one.lines), one)
        if len(found) > MOST_FOUND:
            break
    for found in families.values():
        for run in _runs(list(found.values())):
            found[run.first, run.last, run.lines] = run
    return {name: list(found.values()) for name, found in families.items()}


def _checked(steps: Sequence[Proposed], lines: Sequence[str], language: str) -> Iterator[Proposed]:
    """Yield the edits that add no syntax errors, each checked when it is asked for."""
    document = Unbroken(lines, language)
    for at, one in enumerate(steps):
        if at >= MOST_CHECKED or document.keeps(one.first, one.last, one.lines):
            yield one


def _keep_likelier(unique: dict[tuple[int, int, tuple[str, ...]], Proposed], one: Proposed) -> None:
    """Add an edit, or keep the likelier one of two families."""
    key = one.first, one.last, one.lines
    known = unique.get(key)
    if known is None or known.chance < one.chance:
        unique[key] = one


def _chained(
    found: Sequence[Proposed], lines: Sequence[str], cursor: int, prose: Collection[int]
) -> list[Proposed]:
    """Return the edits with the steps of each chain in its order.

    A chain replaces the same words in several lines. Lines of code come before those of ``prose``.
    """
    made = list(found)
    chains: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for at, one in enumerate(made):
        if one.last - one.first == len(one.lines):
            old = "\n".join(lines[one.first : one.last])
            chains.setdefault(swapped(old, "\n".join(one.lines)), []).append(at)
    for words, chain in chains.items():
        if not words or not all(old and new for old, new in words):
            continue  # insertions and deletions depend on the text around them
        keys = [
            min(
                (row in prose, *place_key(lines[row], words[0][0], row, cursor))
                for row in range(made[at].first, made[at].last)
            )
            for at in chain
        ]
        dealt = in_order([made[at].chance for at in chain], keys)
        for at, chance in zip(chain, dealt, strict=True):
            made[at] = replace(made[at], chance=chance)
    return made


def _runs(found: Sequence[Found]) -> Iterator[Found]:
    """Yield neighbouring lines that change alike as one edit, with the best find of each line."""
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
            yield replace(run[0], last=run[-1].last, lines=lines, age=age, evidence=evidence)
        run = [best[at]] if at >= 0 else []


def _odds(one: Found, all_: Sequence[Found], cursor: int, others: int) -> float:
    """Return the chance that a variant is the next edit."""
    values = _features(one, all_, cursor, others)
    log_odds = sum(weight * value for weight, value in zip(_VARIANT, values, strict=True))
    return 1 / (1 + math.exp(-log_odds))


def _features(one: Found, all_: Sequence[Found], cursor: int, others: int) -> tuple[float, ...]:
    """Return the features that the odds of a variant depend on."""
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


def _is_misplaced(
    key: tuple[int, int, tuple[str, ...]], example: Example, lines: Sequence[str]
) -> bool:
    """Return whether an edit puts something into a line that cannot stand there."""
    first, last, new = key
    if last - first != len(new):
        return False
    pairs = zip(lines[first:last], new, strict=True)
    return any(is_misplaced(example, old, made) for old, made in pairs if old != made)
