"""A commit as a person's editing: hunks in a likely order, some applied, the next one to predict.

Pure: lines in, lines and edits out; randomness arrives as ``random.Random``. Knows nothing of
tokens, prompts or rows. Lines carry no line ends; hunks are 0-based and half-open.
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from ..records import RecentEdit

CONTEXT_LINES = 3  # of a hunk in the edit history
MAX_LINES = 6_000  # of a file; longer ones are skipped
_MAX_ORDERED = 40  # hunks; beyond that the order of the file is kept

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(
    r"\b(?:def|class|function|fn|func|struct|enum|trait|interface|type|const|let|var|static|import"
    r"|from|use|mod|package|namespace|record|object|val)\b\s+(?:\w+\s+(?:as|import)\s+)?"
    r"(?P<name>[^\W\d]\w*)|^\s*(?P<assigned>[^\W\d]\w*)\s*(?::[^=\n]+)?=(?!=)",
    re.MULTILINE,
)


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


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did to one file; ``hunks`` in the order a person would make them."""

    path: str
    old: list[str]
    new: list[str]
    hunks: list[Hunk]


def changes_of(record: dict[str, Any], rng: random.Random) -> list[Change]:
    """The usable files of a commit ``{files: [{path, before, after}]}``, the file that defines
    what others use first where that can be told."""
    found = []
    for file in record["files"]:
        if not file["before"] or not file["after"]:
            continue
        old = file["before"].replace("\r\n", "\n").split("\n")
        new = file["after"].replace("\r\n", "\n").split("\n")
        if max(len(old), len(new)) > MAX_LINES:
            continue
        hunks = hunks_of(old, new)
        if hunks:
            ordered = order_hunks(hunks, old) if rng.random() < 0.8 else hunks
            found.append(Change(file["path"], old, new, ordered))
    if len(found) < 2:
        return found
    added = [_added(change.hunks, change.old) for change in found]
    return [found[i] for i in _users_last([a.defined for a in added], [a.words for a in added])]


def hunks_of(before: list[str], after: list[str]) -> list[Hunk]:
    """Line hunks from ``before`` to ``after``, top to bottom."""
    head = common(before, after)
    tail = common(before[:head:-1], after[:head:-1]) if head < min(len(before), len(after)) else 0
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


def common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many leading items agree."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


# --- order ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Added:
    """Names that hunks introduce to a file, and all words they write."""

    defined: set[str]
    words: set[str]


def _added(hunks: Sequence[Hunk], old: list[str]) -> _Added:
    text = "\n".join(line for hunk in hunks for line in hunk.new)
    names = {m["name"] or m["assigned"] for m in _DEFINED.finditer(text)}
    known = set(_WORD.findall("\n".join(old))) if names else set()
    return _Added(names - known, set(_WORD.findall(text)))


def order_hunks(hunks: list[Hunk], old: list[str]) -> list[Hunk]:
    """Definitions before the hunks that use them, else top to bottom."""
    if not 1 < len(hunks) <= _MAX_ORDERED:
        return hunks
    known = set(_WORD.findall("\n".join(old)))
    added = [_added([hunk], []) for hunk in hunks]
    order = _users_last([a.defined - known for a in added], [a.words for a in added])
    return [hunks[i] for i in order]


def _users_last(defined: list[set[str]], words: list[set[str]]) -> list[int]:
    """Positions, each after those that define a word it uses; ties and circles by position."""
    waits = [
        {j for j, names in enumerate(defined) if j != i and names & used}
        for i, used in enumerate(words)
    ]
    left = list(range(len(words)))
    order: list[int] = []
    while left:
        free = next((i for i in left if not waits[i] & set(left)), left[0])
        left.remove(free)
        order.append(free)
    return order


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
    body = [f" {line}\n" for line in lines[top:first]]
    body += [f"-{line}\n" for line in lines[first:last]]
    body += [f"+{line}\n" for line in new]
    body += [f" {line}\n" for line in lines[last : last + CONTEXT_LINES]]
    return RecentEdit(path, top, "".join(body))


def last_burst(edit: RecentEdit, most: int = 8) -> RecentEdit:
    """A long edit as it ended: its last ``most`` lines, behind the ones written before them."""
    lines = [f"{line}\n" for line in edit.diff.split("\n")[:-1]]  # other breaks are text
    new = [i for i, line in enumerate(lines) if line.startswith("+")]
    gone = [i for i, line in enumerate(lines) if line.startswith("-")]
    if len(new) <= most and len(gone) <= most:
        return edit
    if len(new) <= most:
        return RecentEdit(edit.path, edit.line, "".join(lines[: gone[0]] + lines[gone[-most] :]))
    begin = new[-most]
    context = [f" {line[1:]}" for line in lines[begin - CONTEXT_LINES : begin] if line[0] != "-"]
    skipped = sum(1 for line in lines[:begin] if line[0] != "-") - len(context)
    return RecentEdit(edit.path, edit.line + skipped, "".join(context + lines[begin:]))


def end_of_edits(old: list[str], applied: Sequence[Hunk]) -> tuple[int, int] | None:
    """Line and column where the last of ``applied`` left the cursor; None where there is none."""
    if not applied:
        return None
    hunk = applied[-1]
    line = hunk.first + shift_of(applied[:-1], hunk) + max(0, len(hunk.new) - 1)
    if not hunk.new:
        return line, 0
    written = hunk.new[-1]
    column = len(written)
    if hunk.growth == 0:  # lines were changed in place: the cursor stands behind the change
        replaced = old[hunk.last - 1]
        column -= common(written[::-1], replaced[::-1])
    return line, max(column, len(written) - len(written.lstrip()))


# --- cutting a hunk up ------------------------------------------------------------------------


def begin_block(hunk: Hunk, rng: random.Random) -> tuple[Hunk, Hunk] | None:
    """A long hunk as what has been written of it and the next few lines; None for a short one.

    The second hunk's place holds once the first is applied.
    """
    if len(hunk.new) < 3:
        return None
    at = rng.randrange(1, len(hunk.new))
    until = at + rng.randint(1, 5)
    blank = next((i for i in range(at + 1, until) if not "".join(hunk.new[i : i + 1]).strip()), 0)
    written = Hunk(hunk.first, hunk.last, hunk.new[:at])
    place = hunk.first + at
    return written, Hunk(place, place, hunk.new[at : blank or until])


def begin_typing(
    lines: list[str], hunk: Hunk, cut: int
) -> tuple[list[str], Hunk, tuple[int, int]] | None:
    """``lines`` with the first changed line of ``hunk`` typed up to ``cut``; the hunk that finishes
    it, and the cursor behind what is typed. None where nothing is typed in it.

    Where one line gives way to one, what both end in stands behind the cursor as in an editor.

    Args:
        cut: characters of the changed part that are typed, taken modulo its length.
    """
    if not hunk.new:
        return None
    written = hunk.new[0]
    replaced = lines[hunk.first] if hunk.last > hunk.first else ""
    kept = ""
    begin = len(written) - len(written.lstrip())
    if len(hunk.new) == hunk.last - hunk.first == 1:
        begin = common(written, replaced)
        ending = common(written[begin:][::-1], replaced[begin:][::-1])
        kept = written[len(written) - ending :] if ending else ""
    typed = written[begin : len(written) - len(kept)]
    if len(typed) < 2:
        return None
    column = begin + 1 + cut % (len(typed) - 1)
    state = [*lines[: hunk.first], written[:column] + kept, *lines[hunk.last :]]
    return state, Hunk(hunk.first, hunk.first + 1, hunk.new), (hunk.first, column)


# --- cursor and region ------------------------------------------------------------------------


def cursor_line_of(hunk: Hunk, last_edit: int | None, total: int, rng: random.Random) -> int:
    """Where the person is: at the last edit when it is near, else around the target. A cursor that
    stood at the target as a rule would teach that nothing is to be done elsewhere."""
    if last_edit is not None and abs(last_edit - hunk.first) <= 24 and rng.random() < 0.85:
        return min(last_edit, total - 1)
    around = hunk.first + round(rng.gauss(0, 4))
    return min(max(around, 0), total - 1)


def region_of(
    cursor_line: int, hunk: Hunk, total: int, rng: random.Random
) -> tuple[int, int] | None:
    """12 to 36 lines around the cursor that hold the hunk."""
    half = rng.randint(6, 18)
    first = max(0, min(cursor_line - half, hunk.first))
    last = min(total, max(cursor_line + half, hunk.last))
    return (first, last) if last - first <= 48 else None
