"""Repeated edits: what the recent edits did to some lines, done to others that read the same.

A renamed identifier, an added argument, a changed literal, a replaced block: what was done once is
often done again. Found by comparing text, not by a model: each find is a draft for the model to
judge, with the odds that it is the next edit. Pure. Knows nothing of prompts or tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..edits.origins import root_of, swapped
from ..records import RecentEdit
from .patterns import (
    CONTEXTS,
    MOST_CHARS,
    BlockRule,
    LineRule,
    apply_to_block,
    apply_to_line,
    learn,
    rename,
)
from .rename_scopes import RenameScopes

#: Lines looked at, at most.
MOST_LINES = 400
#: Repetitions less likely than this are not worth a look.
LEAST_CHANCE = 0.03


@dataclass(frozen=True, slots=True)
class Repeat:
    """Lines [first, last) of the document, 0-based, become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    context: int  # pieces of text that agreed on each side; more than CONTEXTS[0]: whole lines
    age: int  # of the edit it repeats: 0 is the newest
    support: int = 1  # recent edits that did the same
    deeds: frozenset[tuple[str, str]] = frozenset()  # what gave way to what
    chance: float = 0.0  # that exactly this is the next edit, by what is known without a model


def find_repeats(
    edits: Sequence[RecentEdit],
    lines: Sequence[str],
    first: int,
    last: int,
    cursor: int,
    scopes: RenameScopes | None = None,
) -> list[Repeat]:
    """Edits that repeat recent ones within the lines [first, last), the likeliest first.

    Args:
        edits: oldest first.
        lines: of the document; ``first``, ``last``, ``cursor`` (its line): 0-based.
        scopes: where renames stop; None: nowhere.
    """
    rules, blocks = learn(edits)
    if not rules and not blocks:
        return []
    last = min(last, first + MOST_LINES)
    single = [one for at in range(first, last) if (one := _of_line(rules, lines[at], at, scopes))]
    found = [*_of_blocks(blocks, lines, first, last), *_runs(single), *single]
    unique: dict[tuple[int, int, tuple[str, ...]], Repeat] = {}
    for repeat in found:
        if tuple(lines[repeat.first : repeat.last]) != repeat.lines:
            unique.setdefault((repeat.first, repeat.last, repeat.lines), repeat)
    priced = [
        replace(repeat, chance=_chance(repeat, [*unique.values()], cursor))
        for repeat in unique.values()
    ]
    likely = (repeat for repeat in priced if repeat.chance >= LEAST_CHANCE)
    return sorted(likely, key=lambda repeat: (-repeat.chance, repeat.first))


def _of_line(
    rules: Sequence[LineRule], line: str, at: int, scopes: RenameScopes | None
) -> Repeat | None:
    """``line`` with what the best fitting rule did; None where none fits."""
    if not line.strip() or len(line) > MOST_CHARS:
        return None
    best: tuple[int, str, LineRule] | None = None
    for rule in rules:  # newest first
        found = _done_again(rule, line, at, scopes)
        if found and (best is None or found[0] > best[0]):
            best = (*found, rule)
    if best is None:
        return None
    context, text, chosen = best
    for rule in rules:  # other names that changed too
        if scopes is None or text == line or not _stops(rule, line, at, scopes):
            text = rename(rule, text)
    support = len({rule.age for rule in rules if rule.deed == chosen.deed})
    deeds = frozenset(map(root_of, swapped(line, text)))
    return Repeat(at, at + 1, (text,), context, chosen.age, support, deeds)


def _done_again(
    rule: LineRule, line: str, at: int, scopes: RenameScopes | None
) -> tuple[int, str] | None:
    """What :func:`apply_to_line` makes of a line; where a rename stops, the rest of its renames."""
    found = apply_to_line(rule, line)
    if found is None or scopes is None or not _stops(rule, line, at, scopes):
        return found
    text = line
    for swap in rule.swaps:
        if swap.rename and text == line:
            text = scopes.renamed(swap.old, swap.new, line, at)
    return (0, text) if text != line else None


def _stops(rule: LineRule, line: str, at: int, scopes: RenameScopes) -> bool:
    """Whether a rename of the rule stops before a place in a line."""
    return any(
        swap.rename and swap.old in line and not scopes.allows(swap.old, swap.new, at)
        for swap in rule.swaps
    )


def _runs(single: Sequence[Repeat]) -> Iterator[Repeat]:
    """Neighbouring lines that change alike, as one edit: by the same rules and no others."""
    run: list[Repeat] = []
    for repeat in [*single, None]:
        goes_on = run and repeat is not None and run[-1].last == repeat.first
        if goes_on and repeat is not None and run[-1].deeds == repeat.deeds:
            run.append(repeat)
            continue
        if len(run) > 1:
            yield Repeat(
                run[0].first,
                run[-1].last,
                tuple(line for one in run for line in one.lines),
                context=max(one.context for one in run),
                age=min(one.age for one in run),
                support=max(one.support for one in run),
            )
        run = [repeat] if repeat is not None else []


def _of_blocks(
    rules: Sequence[BlockRule], lines: Sequence[str], first: int, last: int
) -> Iterator[Repeat]:
    done = Counter((rule.old, rule.new) for rule in rules)
    for rule in rules:
        for at in range(first, last):
            found = apply_to_block(rule, lines, at, last)
            if found is not None:
                support = done[rule.old, rule.new]
                yield Repeat(*found, CONTEXTS[0] + 1, rule.age, support)


def _chance(repeat: Repeat, all_: Sequence[Repeat], cursor: int) -> float:
    """A logistic regression over 1,850 repetitions found at 2,500 moments of training commits: of
    those it calls likelier than 0.5, 69 % were the next edit to the letter.

    People go down a file: what lies above the cursor, or far below it, was mostly left alone on
    purpose. The more places there are, the less likely is each.
    """
    inside = any(
        other.first <= repeat.first
        and repeat.last <= other.last
        and len(other.lines) > len(repeat.lines)
        for other in all_
    )
    log_odds = (
        0.56
        - 0.62 * (repeat.context == 0)
        - 1.06 * (repeat.context == 1)
        + 0.73 * (repeat.context > CONTEXTS[0])
        - 0.22 * min(repeat.age, 4)
        + 0.59 * (min(repeat.support, 4) - 1)
        + 1.61 * (repeat.first >= cursor)
        - 1.07 * math.log1p(abs(repeat.first - cursor))
        - 2.00 * (repeat.first == cursor)
        + 0.48 * (repeat.last - repeat.first > 1)
        - 1.15 * inside
        - 0.31 * (not repeat.lines)
        - 1.27 * math.log(len(all_))
    )
    return 1 / (1 + math.exp(-log_odds))
