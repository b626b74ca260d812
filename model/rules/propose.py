"""Edits by rule: those that could follow from recent edits, each with its chance.

The model scores them beside the edits that it writes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ..edits.origins import swapped
from ..edits.syntax_errors import added_errors
from ..records import EditRequest
from ..text.code_queries import prose_rows
from ..text.lines import defines, defines_function
from ..text.syntax import language_of
from .diagnostics import find_fixes
from .example import Pair, RuleEdit, pairs_of, written_lines
from .imports import find_imports
from .namesakes import namesake
from .renames import RenameScopes, find_variants
from .repeats import MOST_LINES, find_repeats

#: A logistic regression over :func:`_features`, fitted to the variants found at 6,000 moments of
#: training commits and to which of them were the next edit to the letter.
_VARIANT = (-1.44, 0.67, -0.72, 0.84, -0.58, -1.72, -1.28, 0.34, 1.77)
#: A variant that is less likely than this is not worth the model's time.
_LEAST_VARIANT = 0.05
#: So many proposals, the likeliest, must add no syntax errors: at 4,000 moments of training commits
#: 174 proposals added some, of which 1 was right. Later ones are hardly ever used.
MOST_CHECKED = 16
#: Variants at most: a name that stands everywhere says little about any place.
_MOST_VARIANTS = 60
#: Functions that are never asynchronous, and a function that is named as a keyword.
_NEVER_ASYNC = re.compile(r"\b__init__\b|\bconstructor\s*\(|\b[gs]et\s+\w+\s*\(")
_AWAIT_DEFINED = re.compile(r"\b(?:def|function|fn)\s+await\b")


def propose(
    request: EditRequest, region: tuple[int, int], most: int | None = None
) -> list[RuleEdit]:
    """Return the edits that could follow in a region, the likeliest first.

    Args:
        request: of a document. Without its path the scopes of renames are not known.
        region: the 0-based lines [first, last) that may change.
        most: the number of edits wanted; None: all. The syntax of later ones is not checked.
    """
    text, lines, edits = request.text, request.text.split("\n"), request.edits
    language = request.language or language_of(request.path) or ""
    first, last = region[0], min(region[1], region[0] + MOST_LINES)
    cursor = text.count("\n", 0, request.cursor)
    scopes = RenameScopes(edits, text, request.path, language) if request.path else None
    pairs = pairs_of(edits)
    repeats = find_repeats(edits, lines, first, last, cursor, scopes)
    found: list[RuleEdit] = [
        *repeats,
        *_variants(pairs, lines, first, last, cursor, len(repeats)),
        *find_imports(
            text,
            language,
            written_lines(edits),
            request.importable,
            [each.text for each in request.related],
        ),
        *find_fixes(request.diagnostics, pairs, lines),
    ]
    likeliest = dict[tuple[int, int, tuple[str, ...]], RuleEdit]()
    for one in found:
        inside = first <= one.first and one.last <= last
        known = likeliest.get(one.key)
        if inside and (known is None or known.chance < one.chance):
            likeliest[one.key] = one
    kept = [one for one in likeliest.values() if not _is_misplaced(one, pairs, lines)]
    if scopes is not None:
        kept = [
            one
            for one in kept
            if not scopes.leaked(one.in_text(text))
            and not namesake(one.in_text(text), edits, request.path)
        ]
    steps = _in_order_of_chains(kept, lines, cursor, prose_rows(text, language) if kept else set())
    steps.sort(key=lambda one: (-one.chance, one.first))
    return list(islice(_without_errors(steps, text, language), most))


def place_key(line: str, name: str, at: int, cursor: int) -> tuple[bool, bool, int]:
    """Return the sort key of a place to which a change of ``name`` is to be carried.

    The definition comes first, then the places from the cursor downwards, then those above.

    Args:
        line: as it stands there, in line ``at``.
        cursor: the line from which the user goes on; all 0-based.
    """
    return not (name and defines(line, name)), at < cursor, abs(at - cursor)


def _in_order_of_chains(
    found: Sequence[RuleEdit], lines: Sequence[str], cursor: int, prose: set[int]
) -> list[RuleEdit]:
    """Return the edits with the highest chance of each chain given to its first step.

    A chain replaces the same words in several lines. Lines of code come before those of ``prose``.
    """
    ordered = list(found)
    chains: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for at, one in enumerate(found):
        if one.last - one.first == len(one.lines):
            old = "\n".join(lines[one.first : one.last])
            chains.setdefault(swapped(old, "\n".join(one.lines)), []).append(at)
    for words, chain in chains.items():
        if not words or not all(old and new for old, new in words):
            continue  # insertions and deletions depend on the text around them
        keys = {
            at: min(
                (row in prose, *place_key(lines[row], words[0][0], row, cursor))
                for row in range(found[at].first, found[at].last)
            )
            for at in chain
        }
        chances = sorted((found[at].chance for at in chain), reverse=True)
        in_order = sorted(chain, key=lambda at: (keys[at], -found[at].chance))
        for at, chance in zip(in_order, chances, strict=True):
            ordered[at] = replace(found[at], chance=chance)
    return ordered


def _without_errors(steps: Sequence[RuleEdit], text: str, language: str) -> Iterator[RuleEdit]:
    """Yield the edits that add no syntax errors, each checked when it is asked for."""
    for at, one in enumerate(steps):
        if at >= MOST_CHECKED or not added_errors(one.in_text(text), "", language):
            yield one


# --- variants of renamed names ------------------------------------------------------------------


def _variants(
    pairs: Sequence[Pair], lines: Sequence[str], first: int, last: int, cursor: int, others: int
) -> list[RuleEdit]:
    """Return variants of renamed names, each with its chance."""
    found = {one.key: one for one in find_variants(pairs, lines, first, last, _MOST_VARIANTS)}
    for run in _runs([*found.values()]):
        found[run.key] = run
    all_ = [*found.values()]
    likely = (replace(one, chance=_odds(one, all_, cursor, others)) for one in all_)
    return [one for one in likely if one.chance >= _LEAST_VARIANT]


def _runs(found: Sequence[RuleEdit]) -> Iterator[RuleEdit]:
    """Yield neighbouring lines that change alike as one edit, with the best find of each line."""
    best: dict[int, RuleEdit] = {}
    for one in found:
        known = best.get(one.first)
        if known is None or one.evidence > known.evidence:
            best[one.first] = one
    run: list[RuleEdit] = []
    for at in [*sorted(best), -1]:
        if run and at == run[-1].last:
            run.append(best[at])
            continue
        if len(run) > 1:
            lines = tuple(line for one in run for line in one.lines)
            age, evidence = min(one.age for one in run), max(one.evidence for one in run)
            yield replace(run[0], last=run[-1].last, lines=lines, age=age, evidence=evidence)
        run = [best[at]] if at >= 0 else []


def _odds(one: RuleEdit, all_: Sequence[RuleEdit], cursor: int, others: int) -> float:
    """Return the chance that a variant is the next edit."""
    values = _features(one, all_, cursor, others)
    log_odds = sum(weight * value for weight, value in zip(_VARIANT, values, strict=True))
    return 1 / (1 + math.exp(-log_odds))


def _features(
    one: RuleEdit, all_: Sequence[RuleEdit], cursor: int, others: int
) -> tuple[float, ...]:
    """Return the features that the odds of a variant depend on."""
    places = Counter(each.first for each in all_)
    return (
        1.0,
        float(one.evidence),
        float(min(one.age, 4)),
        float(one.first >= cursor),
        math.log1p(abs(one.first - cursor)),
        math.log(len(places)),
        math.log(places[one.first]),
        math.log1p(others),
        float(one.last - one.first > 1),
    )


# --- edits that cannot stand where they are -----------------------------------------------------


def _is_misplaced(one: RuleEdit, pairs: Sequence[Pair], lines: Sequence[str]) -> bool:
    """Return whether an edit puts something into a line that cannot stand there.

    That is a declared parameter in a call, ``async`` before a function that cannot be
    asynchronous, or ``await`` in place of a function's name.
    """
    changed = zip(lines[one.first : one.last], one.lines, strict=False)
    return one.last - one.first == len(one.lines) and any(
        _declares_in_call(pairs, old, new) or _breaks_async(old, new)
        for old, new in changed
        if old != new
    )


def _declares_in_call(pairs: Sequence[Pair], old: str, new: str) -> bool:
    if defines_function(old):
        return False
    for pair in pairs:
        removed, added = pair.entry
        argument = added.strip().strip(",").strip()
        if removed.strip() or not defines_function(pair.new) or not re.search(r"\W", argument):
            continue
        if new.count(argument) > old.count(argument) and "(" not in argument:
            return True
    return False


def _breaks_async(old: str, new: str) -> bool:
    if "await" in new and _AWAIT_DEFINED.search(new):
        return True
    return "async" in new and "async" not in old and _NEVER_ASYNC.search(new) is not None
