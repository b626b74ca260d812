"""Hunks between two texts, and the diffs of recent edits that are made of them.

Only this module writes and reads the diffs of :class:`RecentEdit`. Lines carry no line ends.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from ..records import RecentEdit
from ..text.common import common_head, common_tail
from .edit import LineChange

CONTEXT_LINES = 3  # of a hunk in the edit history


def hunks_of(before: list[str], after: list[str]) -> list[LineChange]:
    """Return the changes from ``before`` to ``after``, top to bottom, as lines of ``before``."""
    head = common_head(before, after)
    tail = common_tail(before[head + 1 :], after[head + 1 :])  # one line may repeat the one above
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    ranges = [
        (head + i1, head + i2, head + j1, head + j2)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]
    hunks: list[LineChange] = []
    by = 0
    for n, (i1, i2, j1, j2) in enumerate(ranges):
        # At least one line stays between two hunks, so that their places differ.
        low = [ranges[n - 1][k] + by + 1 for k in (1, 3)] if n else [0, 0]
        below = ranges[n + 1] if n + 1 < len(ranges) else None
        if i1 == i2:
            by = _best_slide(after, j1, j2, low[1], below[2] - 1 if below else len(after))
        elif j1 == j2:
            by = _best_slide(before, i1, i2, low[0], below[0] - 1 if below else len(before))
        else:
            by = 0
        gone, come = before[i1 + by : i2 + by], after[j1 + by : j2 + by]
        hunks.append(LineChange(i1 + by, tuple(gone), tuple(come)))
    return hunks


def _best_slide(lines: list[str], first: int, last: int, low: int, high: int) -> int:
    """Return by how many lines to move the inserted or deleted ``lines[first:last]``.

    They become a whole unit then: a method with its comment, not the end of one comment and most
    of the next. Moving costs nothing while the line that leaves equals the one that enters. A unit
    begins behind a blank line and with little indentation.
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
    path: str, old: list[str], hunks: list[LineChange], target: int
) -> tuple[list[str], tuple[RecentEdit, ...], LineChange]:
    """Apply the hunks before ``target``.

    Args:
        hunks: as lines of ``old``, in any order.
        target: index of a hunk; ``len(hunks)`` applies all of them.

    Returns:
        The text; the applied hunks as edits, in order; and the target moved to fit the text, or
        the last hunk at the place behind all others if there is no target.
    """
    state = list(old)
    edits: list[RecentEdit] = []
    for i, hunk in enumerate(hunks[:target]):
        first = hunk.first + shift_of(hunks[:i], hunk)
        last = first + len(hunk.old)
        edits.append(recent_edit(path, state, first, last, hunk.new))
        state[first:last] = hunk.new
    hunk = hunks[min(target, len(hunks) - 1)]
    shift = shift_of(hunks[:target], hunk)
    if target >= len(hunks):
        shift += hunk.growth
    return state, tuple(edits), replace(hunk, first=hunk.first + shift)


def shift_of(applied: Sequence[LineChange], hunk: LineChange) -> int:
    """Return by how many lines the ``applied`` hunks above ``hunk`` moved it."""
    return sum(other.growth for other in applied if other.first < hunk.first)


def recent_edit(
    path: str, lines: list[str], first: int, last: int, new: tuple[str, ...]
) -> RecentEdit:
    """Return the edit "lines [first, last) become ``new``" as a hunk with context."""
    top = max(0, first - CONTEXT_LINES)
    body = [(" ", line) for line in lines[top:first]]
    body += [("-", line) for line in lines[first:last]]
    body += [("+", line) for line in new]
    body += [(" ", line) for line in lines[last : last + CONTEXT_LINES]]
    return RecentEdit(path, top, _diff(body))


# --- reading edits ----------------------------------------------------------------------------


def lines_of(diff: str) -> list[tuple[str, str]]:
    """Return the lines of a :class:`RecentEdit`'s diff, each with its sign "-", "+" or " ".

    Only a line feed ends a line; other line breaks are text.
    """
    lines = diff.removesuffix("\n").split("\n") if diff else []
    return [(line[:1] or " ", line[1:]) for line in lines]


def line_changes(lines: Sequence[tuple[str, str]]) -> Iterator[LineChange]:
    """Yield each run of removed and added ``lines`` of :func:`lines_of`.

    Its place is counted from the first of ``lines``, after it and the changes above it are made.
    """
    at = 0
    for is_changed, run in groupby(lines, key=lambda line: line[0] in "+-"):
        part = [*run]
        new = tuple(text for sign, text in part if sign != "-")
        if is_changed:
            yield LineChange(at, tuple(text for sign, text in part if sign == "-"), new)
        at += len(new)


def last_burst(edit: RecentEdit, most: int = 8) -> RecentEdit:
    """Return a long edit as its last ``most`` lines, behind the ones written before them."""
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


def merge_edits(edits: Iterable[RecentEdit]) -> tuple[RecentEdit, ...]:
    """Return ``edits``, oldest first, with each that goes on in the lines of the one before merged.

    A word deleted and another written there is one change. A change that is taken back is dropped.
    """
    found: list[RecentEdit] = []
    for edit in edits:
        both = _both(found[-1], edit) if found else None
        if both is None:
            found.append(edit)
        else:
            found[-1:] = both
    return tuple(found)


def _both(one: RecentEdit, then: RecentEdit) -> list[RecentEdit] | None:
    """Return two edits as one or none; None if the second changes other lines than the first."""
    if one.path != then.path or one.accepted != then.accepted:
        return None
    changes = [[*line_changes(lines_of(edit.diff))] for edit in (one, then)]
    if len(changes[0]) != 1 or len(changes[1]) != 1:
        return None
    (first,), (second,) = changes
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
