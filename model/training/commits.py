"""A commit as a person's editing: hunks in a likely order, some applied, the next one to predict.

Pure: lines in, lines and hunks out; randomness arrives as ``random.Random``. Knows nothing of
tokens, prompts or rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..edits.edit import LineChange
from ..edits.hunks import apply_history, hunks_of, shift_of
from ..records import RecentEdit
from ..text.common import common_ends, common_tail

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
class FileChange:
    """What one commit did to one file; ``hunks`` in the order a person would make them."""

    path: str
    old: list[str]
    new: list[str]
    hunks: list[LineChange]


def changes_of(record: dict[str, Any], rng: random.Random) -> list[FileChange]:
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
            found.append(FileChange(file["path"], old, new, ordered))
    if len(found) < 2:
        return found
    added = [_added(change.hunks, change.old) for change in found]
    return [found[i] for i in _users_last([a.defined for a in added], [a.words for a in added])]


# --- order ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Added:
    """Names that hunks introduce to a file, and all words they write."""

    defined: set[str]
    words: set[str]


def _added(hunks: Sequence[LineChange], old: list[str]) -> _Added:
    text = "\n".join(line for hunk in hunks for line in hunk.new)
    names = {m["name"] or m["assigned"] for m in _DEFINED.finditer(text)}
    known = set(_WORD.findall("\n".join(old))) if names else set()
    return _Added(names - known, set(_WORD.findall(text)))


def order_hunks(hunks: list[LineChange], old: list[str]) -> list[LineChange]:
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


def end_of_edits(old: list[str], applied: Sequence[LineChange]) -> tuple[int, int] | None:
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
        column -= common_tail(written, replaced)
    return line, max(column, len(written) - len(written.lstrip()))


# --- cutting a hunk up ------------------------------------------------------------------------


def begin_block(hunk: LineChange, rng: random.Random) -> tuple[LineChange, LineChange] | None:
    """A long hunk as what has been written of it and the next few lines; None for a short one.

    The second hunk's place holds once the first is applied.
    """
    if len(hunk.new) < 3:
        return None
    at = rng.randrange(1, len(hunk.new))
    until = at + rng.randint(1, 5)
    blank = next((i for i in range(at + 1, until) if not "".join(hunk.new[i : i + 1]).strip()), 0)
    written = replace(hunk, new=hunk.new[:at])
    place = hunk.first + at
    return written, LineChange(place, (), hunk.new[at : blank or until])


def begin_typing(
    lines: list[str], hunk: LineChange, cut: int
) -> tuple[list[str], LineChange, tuple[int, int]] | None:
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
        begin, ending = common_ends(written, replaced)
        kept = written[len(written) - ending :] if ending else ""
    typed = written[begin : len(written) - len(kept)]
    if len(typed) < 2:
        return None
    column = begin + 1 + cut % (len(typed) - 1)
    typed = written[:column] + kept
    state = [*lines[: hunk.first], typed, *lines[hunk.last :]]
    return state, LineChange(hunk.first, (typed,), hunk.new), (hunk.first, column)


# --- cursor and region ------------------------------------------------------------------------


def cursor_line_of(hunk: LineChange, last_edit: int | None, total: int, rng: random.Random) -> int:
    """Where the person is: at the last edit when it is near, else around the target. A cursor that
    stood at the target as a rule would teach that nothing is to be done elsewhere."""
    if last_edit is not None and abs(last_edit - hunk.first) <= 24 and rng.random() < 0.85:
        return min(last_edit, total - 1)
    around = hunk.first + round(rng.gauss(0, 4))
    return min(max(around, 0), total - 1)


# --- moments ----------------------------------------------------------------------------------

_FAR = 40  # lines between the cursor and an edit that its region does not reach


@dataclass(frozen=True, slots=True)
class TrainingMoment:
    """A document in the middle of a commit, and the edit to predict."""

    kind: Literal["edit", "typing", "none"]
    lines: list[str]
    edits: tuple[RecentEdit, ...]
    target: LineChange | None  # None: nothing is left to do here
    cursor: tuple[int, int]  # line, column


def draw_moment(change: FileChange, typing: float, rng: random.Random) -> TrainingMoment:
    """Some hunks are done, the next one is to be predicted: whole, its next few lines, or the rest
    of a line that is being typed.

    Args:
        typing: the share of moments within a line being typed; a larger one where there is no
            history, as little else tells what comes then.
    """
    hunks = change.hunks
    at = rng.randrange(len(hunks))
    if at == 0 and rng.random() < 0.7:
        at = rng.randrange(len(hunks))  # moments with a history are worth more
    state, edits, hunk = apply_history(change.path, change.old, hunks, at)
    if rng.random() < (typing if edits else max(typing, 0.5)):
        started = begin_typing(state, hunk, rng.randrange(1_000))
        if started:
            return TrainingMoment("typing", started[0], edits, *started[1:])
    block = begin_block(hunk, rng) if rng.random() < (0.7 if len(hunk.new) > 6 else 0.1) else None
    if block:
        written, rest = block
        state, more, _ = apply_history(change.path, state, [written], 1)
        end = rest.first - 1
        return TrainingMoment("edit", state, edits + more, rest, (end, len(state[end])))
    here = end_of_edits(change.old, hunks[:at])
    line = cursor_line_of(hunk, here[0] if here else None, len(state), rng)
    return TrainingMoment("edit", state, edits, hunk, _cursor(state, line, here, rng))


def nothing_left(change: FileChange, rng: random.Random) -> TrainingMoment:
    """All is done, or what remains is far from the cursor."""
    hunks = change.hunks
    done = len(hunks)
    if rng.random() < 0.4:
        done = rng.randint(1, done)
    here = end_of_edits(change.old, hunks[:done])
    assert here is not None  # at least one hunk is applied
    left = (h.first + shift_of(hunks[:done], h) for h in hunks[done:])
    if any(abs(place - here[0]) <= _FAR for place in left):
        done = len(hunks)
        here = end_of_edits(change.old, hunks)
        assert here is not None
    state, edits, _ = apply_history(change.path, change.old, hunks, done)
    line = min(here[0] + rng.choice((0, rng.randint(0, 6))), len(state) - 1)
    return TrainingMoment("none", state, edits, None, _cursor(state, line, here, rng))


def _cursor(
    lines: list[str], line: int, here: tuple[int, int] | None, rng: random.Random
) -> tuple[int, int]:
    """Return the cursor in ``line``: ``here`` if that is in the line, else mostly its end or the
    beginning of its text."""
    if here and here[0] == line:
        return here
    text = lines[line]
    indent = len(text) - len(text.lstrip())
    return line, rng.choice((len(text), len(text), indent, rng.randint(0, len(text))))
