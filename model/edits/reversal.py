"""Does an edit take back what the user just did, as a whole or as a part of something larger?

Pure functions of texts; knows nothing of time or of who proposes the edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from ..text.common import common_ends
from .hunks import hunks_of
from .replacement import Replacement
from .spans import Span

#: Of the user's last edits, how many an edit must not take back.
JUST_DONE = 3

_SHORTEST_BACK = 4  # characters put back that are no accident, such as a bracket would be

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_CHARS = 2_000  # of lines that became others: comparing more takes milliseconds
_SLIDE = 80  # characters by which one change may stand at another place: ", a" and "a, "


def undoes(edit: Replacement, just_done: Iterable[Span]) -> bool:
    """Does it take back what the user did, as a whole or a part of what they typed or deleted?"""
    least, result = _ended(edit).least(), edit.result + "\n"
    text, gone, back = least.text, least.text[least.start : least.end], least.new.strip()
    for span in just_done:
        at, before, after = _characters(span, text)
        end = at + len(after)
        if result == text[:at] + before + text[end:]:
            return True
        inside = at <= least.start and least.end <= end
        if inside and _same(gone, after) and _same(back, before):
            return True
        telling = any(char.isalnum() for char in gone)  # a bracket too many may well go
        if not least.new and telling and _slides_into(least, at, end):
            return True  # deletes some of what was typed
        if not gone and not after and inside and len(back) >= _SHORTEST_BACK and back in before:
            return True  # writes some of what was deleted
        if _shares_a_step(edit, Replacement(text, at, end, before)):
            return True  # among other things
    return False


def _ended(edit: Replacement) -> Replacement:
    """The same in a text whose last line has its newline, as the lines of a span have theirs."""
    last = edit.end == len(edit.text)
    new = edit.new + "\n" if last else edit.new
    return Replacement(edit.text + "\n", edit.start, edit.end + last, new)


def _slides_into(least: Replacement, low: int, high: int) -> bool:
    """Is what is deleted within ``text[low:high]``? In "a, a" either "a" may be the one that goes:
    ``least`` names the last."""
    text, start, end = least.text, least.start, least.end
    while end > high and start > 0 and text[start - 1] == text[end - 1]:
        start, end = start - 1, end - 1
    return low <= start and end <= high


def _characters(span: Span, text: str) -> tuple[int, str, str]:
    """Where in ``text`` the characters that changed begin, what they were and what they are."""
    start = 0
    for _ in range(span.first):
        start = text.find("\n", start) + 1
        if not start:  # the text has fewer lines
            start = len(text)
            break
    old = "".join(f"{line}\n" for line in span.old)
    new = "".join(f"{line}\n" for line in span.new)
    head, tail = common_ends(old, new)
    return start + head, old[head : len(old) - tail], new[head : len(new) - tail]


def _same(one: str, other: str) -> bool:
    return one == other or (_unspaced(one) == _unspaced(other) and bool(one.strip()))


# --- step by step ------------------------------------------------------------------------------


def _shares_a_step(edit: Replacement, back: Replacement) -> bool:
    """Is one step of an edit a step on the way ``back``, by which something typed goes?

    A model that knows nothing of a rename writes the old name again and something else besides.
    What only comes back where something was deleted may be what the user is about to write.
    """
    if _gap(edit, back) > _SLIDE:
        return False
    ways = [step for step in _steps(back) if _gap(edit, step) <= _SLIDE and _takes_away(step)]
    steps = [*_steps(edit)] if ways else []
    return any(_do_the_same(step, way) for step in steps for way in ways)


def _gap(one: Replacement, other: Replacement) -> int:
    """Characters between what two changes of one text replace; negative where they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)


def _takes_away(step: Replacement) -> bool:
    old, new = step.old.strip(), step.new.strip()
    return bool(old) and (bool(new) or any(map(str.isalnum, old)))


def _steps(edit: Replacement) -> Iterator[Replacement]:
    """The changes of words and signs that an edit consists of, each by itself."""
    low, high, made = edit.whole_lines()
    lines = edit.text[low:high].split("\n")
    starts = [low]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for hunk in hunks_of(lines, made.split("\n")):
        at = starts[hunk.first]
        old = "".join(f"{line}\n" for line in lines[hunk.first : hunk.last])
        new = "".join(f"{line}\n" for line in hunk.new)
        for start, end, words in _words_changed(old, new):
            yield Replacement(edit.text, at + start, at + end, words)


def _words_changed(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """What of ``old`` becomes what: [start, end) of it, and the text there."""
    if max(len(old), len(new)) > _MOST_CHARS:
        yield 0, len(old), new
        return
    a, b = _PIECE.findall(old), _PIECE.findall(new)
    starts = [0]
    for piece in a:
        starts.append(starts[-1] + len(piece))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[i1], starts[i2], "".join(b[j1:j2])


def _do_the_same(one: Replacement, other: Replacement) -> bool:
    """Do two changes of one text make the same of it, but for white space?"""
    if _gap(one, other) > _SLIDE:
        return False
    low, high = min(one.start, other.start), max(one.end, other.end)
    made, wanted = (
        each.text[low : each.start] + each.new + each.text[each.end : high] for each in (one, other)
    )
    return _unspaced(made) == _unspaced(wanted)


def _unspaced(text: str) -> str:
    return "".join(text.split())
