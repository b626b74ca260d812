"""Region of lines that a predicted edit may replace: whole pieces of syntax around the cursor.

A region is chosen anew only when the cursor comes near its edge. Until then it moves and grows with
the changes of the document, so that typing changes nothing before it in the prompt and the prefix
cache holds. Lengths are estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from redraft.model.text.lines import estimate
from redraft.model.text.syntax import Syntax
from tree_sitter import Node

from ..documents.open_documents import Splice

TOKENS = 350  # of a region as the prompt numbers it
MARGIN = 3  # lines from the cursor to the edge below which a region is chosen anew
_NUMBER = 3.0  # tokens of a line number and its bar
_GROWN = 1.5  # by how much typing may make a region longer than it was meant to be
_DEEPEST = 200  # levels of syntax looked at

Lines = tuple[int, int]  # 0-based, [first, last)


@dataclass(frozen=True, slots=True)
class Region:
    """Lines that an edit may replace, with the reason."""

    first: int  # 0-based line
    last: int  # behind the last line
    why: str  # for people
    cursor: int  # line of the cursor when it was chosen

    @property
    def lines(self) -> Lines:
        return self.first, self.last


def cost(line: str) -> float:
    """Return the tokens of a line of a region, with its number."""
    return tokens_of(line) + _NUMBER


def tokens_of(line: str) -> float:
    """Return the tokens of a line with its newline; three bytes each outside ASCII."""
    return estimate(line) if line.isascii() else 1.5 + len(line.strip().encode()) / 3.0


def choose(
    lines: Sequence[str], line: int, syntax: Syntax | None, tokens: float = TOKENS
) -> Region:
    """Return the region around ``line`` of about ``tokens`` tokens, or a longer ``line`` alone.

    The innermost pieces of syntax that fit are taken whole, then their neighbours, then lines.
    """
    grown, why = _Grown(lines, line, tokens - cost(lines[line])), "lines around the cursor"
    if syntax is not None:
        around = _around(syntax, lines, line)
        outer = next((n for n in around if not grown.reach(*_lines_of(n, lines))), None)
        if len(around) > 1 and outer is not around[0]:
            why = "syntax around the cursor"
        if outer is not None:
            grown.take_neighbours([_lines_of(each, lines) for each in _parts(outer)])
    grown.take_lines()
    return Region(*grown.span, why, line)


def keep(
    region: Region, lines: Sequence[str], line: int, tokens: float, fresh: Callable[[], Region]
) -> Region:
    """Return ``region``, or a fresh one if the cursor is near its edge.

    Args:
        region: moved along with the document already.
        lines: of the document.
        line: of the cursor, 0-based.
        tokens: of a region chosen now, at most.
        fresh: returns the region that would be chosen now; called only if that matters.
    """
    (first, last), total = region.lines, len(lines)
    if not (first <= line < last <= total):
        return fresh()
    if last - first > 1 and cost_of(region, lines) > _GROWN * tokens:
        return fresh()
    near_top = line - first < MARGIN and first > 0
    near_end = last - line <= MARGIN and last < total
    if not (near_top or near_end) or line == region.cursor:
        return region
    wanted = fresh()
    # A fresh one must show clearly more beyond the edge that the cursor is near.
    above, below = first - wanted.first, wanted.last - last
    gained = max(above if line - first < MARGIN else 0, below if last - line <= MARGIN else 0)
    return wanted if gained >= MARGIN else region


def follow(region: Region, splice: Splice) -> Region | None:
    """Return ``region`` after a change of its document; None if its edge was changed."""
    first, last = splice.first, splice.first + len(splice.removed)
    growth = len(splice.added) - len(splice.removed)
    below = growth if region.cursor >= last else 0
    if region.first <= first and last <= region.last and region.last + growth > region.first:
        return replace(region, last=region.last + growth, cursor=region.cursor + below)
    if first >= region.last:
        return region
    if last > region.first:
        return None
    moved = region.first + growth, region.last + growth
    return Region(*moved, region.why, region.cursor + growth)


def cost_of(region: Region, lines: Sequence[str]) -> float:
    """Return the tokens of a region with the numbers of its lines."""
    return sum(map(cost, lines[region.first : region.last]))


class _Grown:
    """Span of lines [first, last) that grows within a budget."""

    def __init__(self, lines: Sequence[str], line: int, room: float) -> None:
        self._lines = lines
        self._room = room
        self.span: Lines = (line, line + 1)

    def reach(self, first: int, last: int) -> bool:
        """Grow to include [first, last) if that fits."""
        low, high = self.span
        first, last = min(first, low), max(last, high)
        if low - first + last - high > max(self._room, 0.0):
            return False  # each line costs more than one token
        needed = sum(map(cost, self._lines[first:low])) + sum(map(cost, self._lines[high:last]))
        if needed > self._room:
            return False
        self._room -= needed
        self.span = first, last
        return True

    def take_neighbours(self, pieces: Sequence[Lines]) -> None:
        """Take pieces next to the span, by turns below and above, until one does not fit."""
        above = [piece for piece in pieces if piece[0] < self.span[0]]
        below = [piece for piece in reversed(pieces) if piece[1] > self.span[1]]
        while above or below:
            if below and not self.reach(self.span[0], below.pop()[1]):
                below = []
            if above and not self.reach(above.pop()[0], self.span[1]):
                above = []

    def take_lines(self) -> None:
        """Take single lines by turns, below first: work mostly goes downwards."""
        grew = True
        while grew:
            low, high = self.span
            grew = high < len(self._lines) and self.reach(low, high + 1)
            grew = (low > 0 and self.reach(low - 1, self.span[1])) or grew


def _around(syntax: Syntax, lines: Sequence[str], line: int) -> list[Node]:
    """Return the nodes around the text of ``line``, innermost first, the whole text last."""
    text = lines[line]
    starts = sum(map(len, lines[:line])) + line
    low = starts + len(text) - len(text.lstrip())
    high = max(low, starts + len(text.rstrip()))
    node = syntax.tree.root_node.descendant_for_byte_range(
        syntax.byte_of(low), syntax.byte_of(high)
    )
    found: list[Node] = []
    while node is not None and len(found) < _DEEPEST:
        found.append(node)
        node = node.parent
    return found


def _parts(node: Node) -> list[Node]:
    """Return the parts of a node, top to bottom: of a class its members, not name and body."""
    while node.named_child_count == 1 and (only := node.named_child(0)) is not None:
        node = only
    return (node.child_by_field_name("body") or node).named_children


def _lines_of(node: Node, lines: Sequence[str]) -> Lines:
    end = node.end_point
    first = min(node.start_point.row, len(lines) - 1)
    return first, min(max(end.row + (end.column > 0), first + 1), len(lines))
