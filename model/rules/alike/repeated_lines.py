"""Lines that recent edits changed, and pairs of them that changed alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from tree_sitter import Node

from ...records import RecentEdit
from ...text.common import find_changed_part
from ...text.syntax import Syntax, language_of
from ..patterns import learn_line
from ..rule_edits import MOST_CHARS, MOST_EDITS, changes_in, line_starts, pair_lines

_MOST = 16  # lines
_MOST_PAIRS = 8


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a document that became another one."""

    old: str
    new: str
    row: int  # 0-based, right after the edit


def find_changed_lines(edits: Sequence[RecentEdit], path: str) -> list[ChangedLine]:
    """Return the lines that edits of a file changed, oldest first.

    A line that was changed twice became the last of its texts.

    Args:
        edits: oldest first.
    """
    made: list[ChangedLine] = []
    for edit in edits[-MOST_EDITS:]:
        for change, _ in changes_in(edit.diff) if edit.path == path else ():
            for old, new in pair_lines(change):
                row = edit.line + change.first + change.new.index(new)
                earlier = next((one for one in reversed(made) if one.new == old), None)
                if earlier is not None:
                    made.remove(earlier)
                first = old if earlier is None else earlier.old
                if first != new and max(len(first), len(new)) <= MOST_CHARS:
                    made.append(ChangedLine(first, new, row))
    return made[-_MOST:]


def locate_lines(lines: Sequence[ChangedLine], text: str) -> list[ChangedLine]:
    """Return the lines that a text still has, with their rows in it."""
    wanted = {line.new for line in lines}
    rows = [(at, line) for at, line in enumerate(text.split("\n")) if line in wanted]
    found = dict[int, ChangedLine]()
    for line in lines:
        same = [at for at, other in rows if other == line.new and at not in found]
        if same:
            _, row = min((abs(at - line.row), at) for at in same)
            found[row] = replace(line, row=row)
    return list(found.values())


def find_changed_nodes(
    before: Syntax, now: Syntax, line: ChangedLine
) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes of a changed line that became others as a whole, from inside outwards.

    Args:
        before: the document in which the row of the line has its old text.
    """
    head, gone, come = find_changed_part(line.old, line.new)
    at, start = (line_starts(tree.text)[line.row] for tree in (before, now))
    longer = len(come) - len(gone)
    new = {
        (first - start, end - start - longer): node
        for node, first, end in reversed([*now.around(start + head, start + head + len(come))])
    }
    for node, first, end in before.around(at + head, at + head + len(gone)):
        became = new.get((first - at, end - at))
        if became is not None and at <= first and end - at <= len(line.old):
            yield node, became


def find_repeated(
    lines: Sequence[ChangedLine], path: str
) -> Iterator[tuple[ChangedLine, ChangedLine]]:
    """Yield pairs of lines in which a text became the same other text, the newest first."""
    pairs = [*combinations(lines, 2)][::-1]
    for first, second in pairs[:_MOST_PAIRS]:
        if _swaps(first.old, first.new, path) & _swaps(second.old, second.new, path):
            yield first, second


@lru_cache(maxsize=64)  # asked for at every key
def _swaps(old: str, new: str, path: str) -> frozenset[tuple[str, str]]:
    return frozenset(learn_line(old, new, 0, language_of(path) or "").changes)
