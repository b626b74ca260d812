"""Hunks: which lines of a text became which, and what recent edits are made of.

The one writer and the one reader of :class:`RecentEdit`'s diffs. Pure: lines in, lines and edits
out. Lines carry no line ends; hunks are 0-based and half-open. Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..records import RecentEdit
from ..text.common import common_head, common_tail
from .spans import Span

CONTEXT_LINES = 3  # of a hunk in the edit history


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines [first, last) of the old text become ``new``."""

    first: int
    last: int
    new: tuple[str, ...]

    @property
    def growth(self) -> int:
        """Lines the text gains."""
        return len(self.new) - (self.last - self.first)


def hunks_of(before: list[str], after: list[str]) -> list[Hunk]:
    """Line hunks from ``before`` to ``after``, top to bottom."""
    head = common_head(before, after)
    tail = common_tail(before[head + 1 :], after[head + 1 :])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    spans = [
        (head + i1, head + i2, head + j1, head + j2)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]
    hunks: list[Hunk] = []
    by = 0
    for n, (i1, i2, j1, j2) in enumerate(spans):
        # One line at least stays between two hunks, so that each keeps a place of its own.
        low = [spans[n - 1][k] + by + 1 for k in (1, 3)] if n else [0, 0]
        below = spans[n + 1] if n + 1 < len(spans) else None
        if i1 == i2:
            by = _best_slide(after, j1, j2, low[1], below[2] - 1 if below else len(after))
        elif j1 == j2:
            by = _best_slide(before, i1, i2, low[0], below[0] - 1 if below else len(before))
        else:
            by = 0
        hunks.append(Hunk(i1 + by, i2 + by, tuple(after[j1 + by : j2 + by])))
    return hunks


def _best_slide(lines: list[str], first: int, last: int, low: int, high: int) -> int:
    """By how many lines to move the inserted (or deleted) ``lines[first:last]``, so that they are a
    whole thing: a method with its comment, not the end of one comment and most of the next.

    Moving them is free as long as the line that leaves equals the one that enters; a blank line
    before and little indentation mark where a thing begins.
    """
    up, down = 0, 0
    while first - up > low and lines[first - up - 1] == lines[last - up - 1]:
        up += 1
    while last + down < high and lines[first + down] == lines[last + down]:
        down += 1

    def cost(by: int) -> tuple[int, bool, int]:
        moved = lines[first + by : last + by]
        indents = (len(line) - len(line.lstrip()) for line in moved if line.strip())
        begins = first + by == 0 or not lines[first + by - 1].strip() or not moved[0].strip()
        return next(indents, 0), not begins, abs(by)

    return min(range(-up, down + 1), key=cost)


# --- applying ---------------------------------------------------------------------------------


def apply_history(
    path: str, old: list[str], hunks: list[Hunk], target: int
) -> tuple[list[str], tuple[RecentEdit, ...], Hunk]:
    """The text after the hunks before ``target``, those as edits in order, and the target moved to
    fit. Hunks may come in any order. ``target`` = len(hunks) applies all; the returned hunk is then
    the last one, at the place behind all others."""
    state = list(old)
    edits: list[RecentEdit] = []
    for i, hunk in enumerate(hunks[:target]):
        first = hunk.first + shift_of(hunks[:i], hunk)
        last = first + hunk.last - hunk.first
        edits.append(recent_edit(path, state, first, last, hunk.new))
        state[first:last] = hunk.new
    hunk = hunks[min(target, len(hunks) - 1)]
    shift = shift_of(hunks[:target], hunk)
    if target >= len(hunks):
        shift += hunk.growth
    return state, tuple(edits), Hunk(hunk.first + shift, hunk.last + shift, hunk.new)


def shift_of(applied: Sequence[Hunk], hunk: Hunk) -> int:
    """Lines by which what was applied above ``hunk`` has moved it."""
    return sum(other.growth for other in applied if other.first < hunk.first)


def recent_edit(
    path: str, lines: list[str], first: int, last: int, new: tuple[str, ...]
) -> RecentEdit:
    """The edit "lines [first, last) become new" as a hunk with context."""
    top = max(0, first - CONTEXT_LINES)
    body = [(" ", line) for line in lines[top:first]]
    body += [("-", line) for line in lines[first:last]]
    body += [("+", line) for line in new]
    body += [(" ", line) for line in lines[last : last + CONTEXT_LINES]]
    return RecentEdit(path, top, _diff(body))


# --- reading edits ----------------------------------------------------------------------------


def lines_of(diff: str) -> list[tuple[str, str]]:
    """The lines of a :class:`RecentEdit`'s diff, each with its sign: "-", "+", or " " for one that
    stays. Only a line feed ends a line: other breaks are text."""
    lines = diff.removesuffix("\n").split("\n") if diff else []
    return [(line[:1] or " ", line[1:]) for line in lines]


def spans_of(lines: Sequence[tuple[str, str]]) -> Iterator[Span]:
    """Each run of removed and added lines, at its place among the lines that there are once it and
    those above it are made; counted from the first of ``lines``, which are as of ``lines_of``."""
    at = 0
    for is_changed, run in groupby(lines, key=lambda line: line[0] in "+-"):
        part = [*run]
        new = tuple(text for sign, text in part if sign != "-")
        if is_changed:
            yield Span(at, tuple(text for sign, text in part if sign == "-"), new)
        at += len(new)


def last_burst(edit: RecentEdit, most: int = 8) -> RecentEdit:
    """A long edit as it ended: its last ``most`` lines, behind the ones written before them."""
    lines = lines_of(edit.diff)
    new = [i for i, (sign, _) in enumerate(lines) if sign == "+"]
    gone = [i for i, (sign, _) in enumerate(lines) if sign == "-"]
    if len(new) <= most and len(gone) <= most:
        return edit
    if len(new) <= most:
        return RecentEdit(edit.path, edit.line, _diff(lines[: gone[0]] + lines[gone[-most] :]))
    begin = new[-most]
    context = [(" ", text) for sign, text in lines[begin - CONTEXT_LINES : begin] if sign != "-"]
    skipped = sum(1 for sign, _ in lines[:begin] if sign != "-") - len(context)
    return RecentEdit(edit.path, edit.line + skipped, _diff(context + lines[begin:]))


def joined(edits: Iterable[RecentEdit]) -> tuple[RecentEdit, ...]:
    """``edits``, oldest first, of which those that go on in the lines the one before wrote are one:
    a word deleted, and another written there, is one change. What is taken back is none."""
    found: list[RecentEdit] = []
    for edit in edits:
        both = _both(found[-1], edit) if found else None
        if both is None:
            found.append(edit)
        else:
            found[-1:] = both
    return tuple(found)


def _both(one: RecentEdit, then: RecentEdit) -> list[RecentEdit] | None:
    """Two edits as one, or as none; None where the second changes other lines than the first
    wrote."""
    if one.path != then.path or one.accepted != then.accepted:
        return None
    spans = [[*spans_of(lines_of(edit.diff))] for edit in (one, then)]
    if len(spans[0]) != 1 or len(spans[1]) != 1:
        return None
    (first,), (second,) = spans
    same_place = one.line + first.first == then.line + second.first
    if not same_place or not first.new or first.new != second.old:
        return None
    if first.old == second.new:
        return []
    lines = lines_of(then.diff)
    changed = [i for i, (sign, _) in enumerate(lines) if sign != " "]
    body = [("-", line) for line in first.old] + [("+", line) for line in second.new]
    diff = _diff([*lines[: changed[0]], *body, *lines[changed[-1] + 1 :]])
    return [RecentEdit(then.path, then.line, diff, then.accepted)]


def _diff(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{sign}{text}\n" for sign, text in lines)
