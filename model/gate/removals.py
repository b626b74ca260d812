"""Lines that the user removed, recognised by their text wherever an edit would write them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from ..edits.edit import Edit, LineChange
from ..edits.hunks import hunks_of
from ..text.lines import defines_function

_SHORTEST = 4  # letters and digits of what is recognised; a bracket stands anywhere
_ELLIPSIS = "..."  # the body of a function that is not written yet
_SHORTEST_PAIR = 10  # of two lines among others: "else: return" stands in many places
_ALIKE = 0.6  # share of characters that a changed line keeps of the old one
_MOST_PAIRS = 900  # of lines compared with each other: 25 ms at worst, once for a change


def brings_back(edit: Edit, changes: Iterable[LineChange]) -> bool:
    """Return whether an edit writes lines again that the user removed, at any place.

    Blanks and blank lines do not count. All that is added are removed lines then, or two that
    followed each other, or the head of a function. A line that still stands elsewhere in the text
    is a common one: it comes back as one of several, or beside what the user put in its place.
    """
    gone = [(change, lines) for change in changes if (lines := _removed(change))]
    placed = [*_added(edit)] if gone else []
    added = [text for _, text in placed]
    if _size("".join(added)) < _SHORTEST:
        return False
    for change, removed in gone:
        back = [line in removed for line in added]
        pairs = {*pairwise(removed)}
        again = (pair for pair in pairwise(added) if pair in pairs)
        if any(_size("".join(pair)) >= _SHORTEST_PAIR for pair in again):
            return True
        heads = (line for line in _heads(edit.new) if line in removed)
        if any(heads) or (all(back) and not _is_common(edit.text, added)):
            return True
        if all(back) and all(
            hunk.first <= change.end and hunk.last >= change.first for hunk, _ in placed
        ):
            return True
    return False


@lru_cache(maxsize=64)
def _removed(change: LineChange) -> tuple[str, ...]:
    """Return the lines that a change removed, without blanks; not those that it only altered."""
    old = [text for line in change.old if _size(text := _unspaced(line))]
    new = [text for line in change.new if (text := _unspaced(line))]
    stay = Counter(new)
    stay.subtract(old)
    left = Counter({text: -count for text, count in stay.items() if count < 0})
    gone = [text for text in old if left[text] > 0]
    written = [text for text, count in stay.items() if count > 0]
    if len(gone) * len(written) > _MOST_PAIRS:
        return ()
    for text in written:  # each is an altered form of one old line at most
        alike = [each for each in gone if _is_alike(each, text)]
        if alike:
            gone.remove(max(alike, key=lambda each: SequenceMatcher(None, each, text).ratio()))
    return tuple(gone)


def _is_alike(one: str, other: str) -> bool:
    if one.startswith(other) or other.startswith(one):
        return True  # typed in part
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


def _added(edit: Edit) -> Iterator[tuple[LineChange, str]]:
    """Yield the lines that an edit adds, without blanks, each with its hunk of the whole text.

    Lines that the edit goes on with are not among them.
    """
    low, high, made = edit.whole_lines()
    above = edit.text.count("\n", 0, low)
    for hunk in hunks_of(edit.text[low:high].split("\n"), made.split("\n")):
        placed = replace(hunk, first=above + hunk.first)
        begun = [line.strip() for line in hunk.old if line.strip()]
        for line in hunk.new:
            is_new = not any(line.strip().startswith(each) for each in begun)
            if is_new and _size(text := _unspaced(line)):
                yield placed, text


def _heads(new: str) -> Iterable[str]:
    """Return the whole lines of a new text that begin a function, without blanks."""
    return [_unspaced(line) for line in new.split("\n") if defines_function(line)]


def _is_common(text: str, added: Sequence[str]) -> bool:
    """Return whether a single line is one that the text has already, or "..."."""
    if len(added) != 1:
        return False
    return added[0] == _ELLIPSIS or any(_unspaced(line) == added[0] for line in text.split("\n"))


def _size(text: str) -> int:
    """Return how many letters and digits a text has; "..." counts as a body."""
    return _SHORTEST if text == _ELLIPSIS else sum(map(str.isalnum, text))


def _unspaced(line: str) -> str:
    """Return a line without blanks and without the semicolon at its end."""
    return "".join(line.split()).rstrip(";")
