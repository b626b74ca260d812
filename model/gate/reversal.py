"""Edits that take back what the user just did, as a whole or as a part of something larger.

Changed text is compared at its place; removed lines are recognised wherever they would stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ..edits.edit import Edit, LineChange
from ..edits.hunks import hunks_of
from ..text.common import find_changed_part
from ..text.names import find_changed_words
from .removals import brings_back

_SHORTEST_BACK = 4  # characters put back that are no accident, such as a bracket would be

_MOST_CHARS = 2_000  # of lines that became others: comparing more takes milliseconds
_SLIDE = 80  # characters by which one change may stand at another place: ", a" and "a, "


def undoes(edit: Edit, changes: Sequence[LineChange]) -> bool:
    """Return whether an edit takes back one of the user's changes, or a part of it."""
    least, result = _with_last_line_end(edit).least(), edit.result + "\n"
    if any(_takes_back(edit, least, result, each) for each in changes):
        return True
    return brings_back(edit, changes)


def _takes_back(edit: Edit, least: Edit, result: str, change: LineChange) -> bool:
    """Return whether an edit takes back a change at its place, or a part of it.

    Args:
        least: the edit without what stays, of a text whose last line has an end.
        result: the text after it.
    """
    text, gone, back = least.text, least.old, least.new.strip()
    at, before, after = _characters(change, text)
    end = at + len(after)
    if result == text[:at] + before + text[end:]:
        return True
    inside = at <= least.start and least.end <= end
    if inside and _same(gone, after) and _same(back, before):
        return True
    is_text = any(char.isalnum() for char in gone)  # a bracket too many may well go
    if not least.new and is_text and _slides_into(least, at, end):
        return True  # deletes some of what was typed
    if not gone and not after and inside and len(back) >= _SHORTEST_BACK and back in before:
        return True  # writes some of what was deleted
    return _shares_a_step(edit, Edit(text, at, end, before))  # among other things


def _with_last_line_end(edit: Edit) -> Edit:
    """Return the edit of a text whose last line has a line end, as the lines of changes have."""
    last = edit.end == len(edit.text)
    new = edit.new + "\n" if last else edit.new
    return Edit(edit.text + "\n", edit.start, edit.end + last, new)


def _slides_into(least: Edit, low: int, high: int) -> bool:
    """Return whether the deleted text may be one within ``text[low:high]``.

    In "a, a" either "a" may be the one that goes; ``least`` names the last.
    """
    text, start, end = least.text, least.start, least.end
    while end > high and start > 0 and text[start - 1] == text[end - 1]:
        start, end = start - 1, end - 1
    return low <= start and end <= high


def _characters(change: LineChange, text: str) -> tuple[int, str, str]:
    """Return where in ``text`` the changed characters begin, and what they were and are."""
    start = 0
    for _ in range(change.first):
        start = text.find("\n", start) + 1
        if not start:  # the text has fewer lines
            start = len(text)
            break
    old, new = _joined(change.old), _joined(change.new)
    head, gone, written = find_changed_part(old, new)
    return start + head, gone, written


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _same(one: str, other: str) -> bool:
    return one == other or (_unspaced(one) == _unspaced(other) and bool(one.strip()))


# --- step by step --------------------------------------------------------------------------------


def _shares_a_step(edit: Edit, back: Edit) -> bool:
    """Return whether a step of an edit is one of ``back`` by which typed text goes.

    A model that does not see a rename writes the old name again and something else besides. A step
    that only writes deleted text again is allowed: the user may be about to write it.
    """
    if _gap(edit, back) > _SLIDE:
        return False
    ways = [step for step in _steps(back) if _gap(edit, step) <= _SLIDE and _takes_away(step)]
    steps = [*_steps(edit)] if ways else []
    return any(_do_the_same(step, way) for step in steps for way in ways)


def _gap(one: Edit, other: Edit) -> int:
    """Return the characters between two edits of one text; negative if they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)


def _takes_away(step: Edit) -> bool:
    old, new = step.old.strip(), step.new.strip()
    return bool(old) and (bool(new) or any(map(str.isalnum, old)))


def _steps(edit: Edit) -> Iterator[Edit]:
    """Yield the changes of words and signs that an edit consists of."""
    low, high, made = edit.whole_lines()
    lines = edit.text[low:high].split("\n")
    starts = [*accumulate((len(line) + 1 for line in lines), initial=low)]
    for hunk in hunks_of(lines, made.split("\n")):
        at = starts[hunk.first]
        old, new = _joined(hunk.old), _joined(hunk.new)
        is_long = max(len(old), len(new)) > _MOST_CHARS
        for start, end, words in [(0, len(old), new)] if is_long else find_changed_words(old, new):
            yield Edit(edit.text, at + start, at + end, words)


def _do_the_same(one: Edit, other: Edit) -> bool:
    """Return whether two edits of one text have the same result, but for white space."""
    if _gap(one, other) > _SLIDE:
        return False
    low, high = min(one.start, other.start), max(one.end, other.end)
    made, wanted = (
        each.text[low : each.start] + each.new + each.text[each.end : high] for each in (one, other)
    )
    return _unspaced(made) == _unspaced(wanted)


def _unspaced(text: str) -> str:
    return "".join(text.split())
