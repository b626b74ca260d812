"""The lines that Zeta may rewrite and those it sees around them, as Zed's own crate chooses them.

A region grows evenly to both sides of the cursor's line for three quarters of its room, then to
whole syntax nodes as long as they fit, then line by line on the side that grew less. What is shown
around it grows to whole nodes, and line by line where none fits. Without a grammar only lines are
left. Source: ``excerpt_ranges.rs`` of ``zeta_prompt``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..records import EditRequest
from ..text.syntax import language_of, parse, rows_around

_EDITABLE, _AROUND = 350, 150  # tokens by Zed's estimate


def regions_of(
    request: EditRequest, lines: Sequence[str], at: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the lines [first, last) around line ``at`` that may be rewritten, and those shown.

    The first are never outside the request's region, the second include them.
    """
    language = request.language or language_of(request.path)
    syntax = parse(request.text, language) if language else None
    nodes = [] if syntax is None else rows_around(syntax, request.cursor)  # the innermost first
    low, high = request.region or (0, len(lines))
    region = _Rows(lines, at, at, 0, len(lines) - 1)
    if low <= at < high:
        region = _Rows(lines, at, at, low, min(high, len(lines)) - 1)
        region.room = _EDITABLE * 3 // 4
        region.grow_evenly()
        region.room += _EDITABLE - _EDITABLE * 3 // 4
        top, bottom = region.top, region.bottom
        region.grow_to_nodes(nodes)
        region.grow_by_lines(upwards=top - region.top <= region.bottom - bottom)
    shown = _Rows(lines, region.top, region.bottom, 0, len(lines) - 1, _AROUND)
    shown.grow_to_nodes(nodes)
    if (shown.top, shown.bottom) == (region.top, region.bottom):
        shown.grow_by_lines(upwards=True)
    return (region.top, region.bottom + 1), (shown.top, shown.bottom + 1)


class _Rows:
    """Lines ``top`` to ``bottom`` that grow within ``low`` to ``high``, all included.

    ``room`` are the tokens that they may still take.
    """

    def __init__(
        self, lines: Sequence[str], top: int, bottom: int, low: int, high: int, room: int = 0
    ) -> None:
        self.lines = lines
        self.top, self.bottom, self.low, self.high = top, bottom, low, high
        self.room = room

    def _cost(self, first: int, last: int) -> int:
        """Return the tokens of lines [first, last) as Zed counts them: three bytes each."""
        lines = self.lines[first:last]
        return sum(max(len(line.encode("utf-8", "replace")) // 3, 1) for line in lines)

    def grow_evenly(self) -> None:
        """Add lines below and above in turns until one does not fit."""
        self.room = max(self.room - self._cost(self.top, self.bottom + 1), 0)
        while self.room and (self.top > self.low or self.bottom < self.high):
            if self.bottom < self.high and not self._add(self.bottom + 1):
                return
            if self.top > self.low and self.room and not self._add(self.top - 1):
                return

    def grow_to_nodes(self, nodes: Iterable[tuple[int, int]]) -> None:
        """Add whole nodes as long as each next one fits."""
        for begins, ends in nodes:
            first, last = max(begins, self.low), min(ends, self.high)
            needed = self._cost(first, self.top) + self._cost(self.bottom + 1, last + 1)
            if needed > self.room:
                return
            self.top, self.bottom = min(self.top, first), max(self.bottom, last)
            self.room -= needed

    def grow_by_lines(self, upwards: bool) -> None:
        """Add lines above and below in turns, the first on the side that is named."""
        stuck = 0
        while stuck < 2:
            stuck = 0 if self._add(self.top - 1 if upwards else self.bottom + 1) else stuck + 1
            upwards = not upwards

    def _add(self, line: int) -> bool:
        if not self.low <= line <= self.high or (cost := self._cost(line, line + 1)) > self.room:
            return False
        self.top, self.bottom = min(self.top, line), max(self.bottom, line)
        self.room -= cost
        return True
