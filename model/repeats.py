"""What the recent edits did to some lines, done to other lines that read the same: repeated edits.

A renamed identifier, an added argument, a changed literal, a replaced block: what was substituted
once is often substituted again. Found by comparing tokens of text, not by a model: each find is a
draft for the model to judge. Pure: lines and diffs in, lines out. Knows nothing of prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from .records import RecentEdit

#: Pieces of unchanged text that must stand on both sides, most first: more is a better omen.
CONTEXTS = (6, 3, 2, 1)
#: An identifier this long is told apart by itself: a rename needs no context.
TELLING = 3
#: Of an edit and of a region, at most: what is larger is no repetition and takes time to compare.
MOST_LINES = 400
MOST_CHARS = 2_000  # of a line

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Repeat:
    """Lines [first, last) of the document, 0-based, become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]
    context: int  # pieces of unchanged text that agreed, up to a whole line: the more the surer
    age: int  # of the edit it repeats: 0 is the newest


@dataclass(frozen=True, slots=True)
class _Swap:
    """Within a line, ``old`` became ``new`` between ``left`` and ``right``."""

    left: tuple[str, ...]  # pieces of text
    old: str
    new: str
    right: tuple[str, ...]
    rename: bool  # one name for another, everywhere in the edit


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of an edit: all its swaps. ``age`` 0 is the newest edit."""

    old: str
    new: str
    swaps: tuple[_Swap, ...]
    age: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole lines of an edit: ``old`` became ``new``; without their common indentation."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    age: int


def find_repeats(
    edits: Sequence[RecentEdit], lines: Sequence[str], first: int, last: int, cursor: int
) -> list[Repeat]:
    """Edits that repeat recent ones within the lines [first, last), the likeliest first: runs of
    lines changed alike before single ones of them, then those with most context, then the nearest
    below the cursor.

    Args:
        edits: oldest first.
        lines: of the document; ``first``, ``last``, ``cursor`` (its line): 0-based.
    """
    rules, blocks = _learn(edits)
    if not rules and not blocks:
        return []
    last = min(last, first + MOST_LINES)
    single = [one for at in range(first, last) if (one := _rewrite(rules, lines[at], at))]
    found = [*_blocks(blocks, lines, first, last), *_runs(single), *single]
    total = len(lines)

    def order(repeat: Repeat) -> tuple[int, int, int]:
        below = repeat.first - cursor
        return -repeat.context, repeat.age, below if below >= 0 else total - below

    seen: set[tuple[int, int, tuple[str, ...]]] = set()
    unique = []
    for repeat in sorted(found, key=order):
        key = (repeat.first, repeat.last, repeat.lines)
        if key not in seen and tuple(lines[repeat.first : repeat.last]) != repeat.lines:
            seen.add(key)
            unique.append(repeat)
    return unique


# --- learning ---------------------------------------------------------------------------------


def _learn(edits: Sequence[RecentEdit]) -> tuple[list[_Rule], list[_Block]]:
    """What the edits did, newest first; without what a later one took back."""
    rules: list[_Rule] = []
    blocks: list[_Block] = []
    undone: set[tuple[str, str]] = set()  # (old, new) that a later edit turned round
    for age, edit in enumerate(reversed(edits)):
        for old, new in _changes(edit.diff):
            made = [rule for pair in _paired(old, new) if (rule := _rule(*pair, age))]
            kept = [_without(rule, undone) for rule in made]
            rules += [rule for rule in kept if rule.swaps]
            undone |= {(swap.new, swap.old) for rule in made for swap in rule.swaps if swap.rename}
            block = _Block(_dedent(old), _dedent(new), age)
            if (
                old
                and "".join(block.old).strip()
                and (block.old, block.new) not in ((other.new, other.old) for other in blocks)
            ):
                blocks.append(block)
    return rules, blocks


def _changes(diff: str) -> Iterator[tuple[list[str], list[str]]]:
    """Each run of removed and added lines of a hunk's body."""
    body = [(line[0], line[1:]) for line in diff.split("\n")[:MOST_LINES] if line]
    for changed, run in groupby(body, key=lambda line: line[0] in "+-"):
        if changed:
            found = list(run)
            yield (
                [text for sign, text in found if sign == "-"],
                [text for sign, text in found if sign == "+"],
            )


def _paired(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Lines of which one became the other."""
    if len(old) == len(new):
        return [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    pairs: list[tuple[str, str]] = []
    matcher = SequenceMatcher(None, [_likeness(a) for a in old], [_likeness(b) for b in new], False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            pairs += zip(old[i1:i2], new[j1:j2], strict=True)
    return pairs


def _likeness(line: str) -> str:
    return line.strip()


def _rule(old: str, new: str, age: int) -> _Rule | None:
    """What turns ``old`` into ``new``; None where little stays."""
    if max(len(old), len(new)) > MOST_CHARS:
        return None
    a, b = _PIECE.findall(old), _PIECE.findall(new)
    swaps = []
    kept = 0
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, False).get_opcodes():
        if tag == "equal":
            kept += sum(1 for piece in a[i1:i2] if not piece.isspace())
            continue
        gone, come = "".join(a[i1:i2]), "".join(b[j1:j2])
        if not gone.strip() and not come.strip():
            continue  # white space alone
        rename = _is_rename(gone, come, b)
        swaps.append(
            _Swap(tuple(a[max(0, i1 - 6) : i1]), gone, come, tuple(a[i2 : i2 + 6]), rename)
        )
    if not swaps or (not kept and not all(swap.rename for swap in swaps)):
        return None
    return _Rule(old, new, tuple(swaps), age)


def _is_rename(old: str, new: str, result: list[str]) -> bool:
    return (
        len(old) >= TELLING and _NAME.fullmatch(old) is not None and bool(new) and old not in result
    )


def _without(rule: _Rule, undone: set[tuple[str, str]]) -> _Rule:
    left = tuple(swap for swap in rule.swaps if (swap.old, swap.new) not in undone)
    return _Rule(rule.old, rule.new, left, rule.age)


# --- applying ---------------------------------------------------------------------------------


def _rewrite(rules: Sequence[_Rule], line: str, at: int) -> Repeat | None:
    """``line`` with what some rule did; None where none applies."""
    if not line.strip() or len(line) > MOST_CHARS:
        return None
    best: tuple[int, int, str] | None = None  # context, -age, text
    for rule in rules:
        found = _apply(rule, line)
        if found and found[1] != line and (best is None or (found[0], -rule.age) > best[:2]):
            best = (found[0], -rule.age, found[1])
    if best is None:
        return None
    text = best[2]
    for rule in rules:  # other names that changed too
        text = _renamed(rule, text)
    return Repeat(at, at + 1, (text,), best[0], -best[1])


def _apply(rule: _Rule, line: str) -> tuple[int, str] | None:
    """All swaps of ``rule`` where their surroundings agree, with how much did; else its renames."""
    for count in CONTEXTS:
        text: str | None = line
        for swap in rule.swaps:
            text = _swapped(swap, text, count) if text is not None else None
        if text is not None:
            return count, text
    text = _renamed(rule, line)
    return (0, text) if text != line else None


def _renamed(rule: _Rule, line: str) -> str:
    for swap in rule.swaps:
        if swap.rename and swap.old in line:
            new = swap.new.replace("\\", r"\\")
            line = re.sub(rf"(?<!\w){re.escape(swap.old)}(?!\w)", new, line)
    return line


def _swapped(swap: _Swap, line: str, count: int) -> str | None:
    """``line`` with the swap made wherever ``count`` pieces on both sides agree; a side with fewer
    pieces ends the line there."""
    left, right = "".join(swap.left[-count:]), "".join(swap.right[:count])
    begins, ends = not left.strip() or len(swap.left) < count, len(swap.right) < count
    left = left.lstrip() if begins else left
    if not _NAME.search(left + swap.old + right):
        return None
    come = swap.new.lstrip() if begins and not left else swap.new
    gone = swap.old.lstrip() if begins and not left else swap.old
    if (not gone or gone in come) and _pattern(left, come, right, begins, ends).search(line):
        return None  # it is so already
    pattern = _pattern(left, gone, right, begins, ends)
    text, found = pattern.subn(lambda match: match[1] + left + come + right, line)
    return text if found else None


def _pattern(left: str, middle: str, right: str, begins: bool, ends: bool) -> re.Pattern[str]:
    """The text as whole words; ``begins`` and ``ends``: the line begins, ends with it."""
    whole = left + middle + right
    head = r"^(\s*)" if begins else r"(?<!\w)()" if re.match(r"\w", whole) else "()"
    tail = r"\s*$" if ends else r"(?!\w)" if re.search(r"\w\Z", whole) else ""
    return re.compile(head + re.escape(whole) + tail)


def _runs(single: Sequence[Repeat]) -> Iterator[Repeat]:
    """Neighbouring lines that change alike, as one edit."""
    run: list[Repeat] = []
    for repeat in single:
        if run and run[-1].last == repeat.first:
            run.append(repeat)
            continue
        if len(run) > 1:
            yield _joined(run)
        run = [repeat]
    if len(run) > 1:
        yield _joined(run)


def _joined(run: Sequence[Repeat]) -> Repeat:
    text = tuple(line for repeat in run for line in repeat.lines)
    context = max(repeat.context for repeat in run)
    return Repeat(run[0].first, run[-1].last, text, context, min(repeat.age for repeat in run))


# --- blocks -----------------------------------------------------------------------------------


def _blocks(
    blocks: Sequence[_Block], lines: Sequence[str], first: int, last: int
) -> Iterator[Repeat]:
    """Places that read like the old lines of an edit from start to end."""
    for block in blocks:
        size = len(block.old)
        opening = block.old[0].strip()
        for at in range(first, last - size + 1):
            if lines[at].strip() != opening:
                continue
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            there = lines[at : at + size]
            if _dedent(there) == block.old:
                own = len(block.old[0]) - len(block.old[0].lstrip())
                base = indent[: len(indent) - own] if own else indent
                new = tuple(base + line if line else line for line in block.new)
                yield Repeat(at, at + size, new, max(CONTEXTS) + size, block.age)


def _dedent(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without the indentation that all share."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    common = min(indents, default=0)
    return tuple(line[common:] if line.strip() else "" for line in lines)
