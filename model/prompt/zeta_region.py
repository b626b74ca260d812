"""Which lines Zeta may rewrite, and which it sees around them, as Zed's own crate has it.

First evenly to both sides of the cursor's line for three quarters of the room, then to whole syntax
nodes around that as long as they fit, then line by line on the side that grew less. What is seen
besides grows to whole nodes, and only where none fits line by line. Where there is no grammar,
lines alone are left. Source: ``excerpt_ranges.rs`` of ``zeta_prompt``; knows nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..records import EditRequest
from ..text.syntax import language_of, parse, rows_around

Rows = tuple[int, int]  # 0-based lines, both included

_EDITABLE, _AROUND = 350, 150  # tokens by Zed's estimate


def regions_of(request: EditRequest, lines: Sequence[str], at: int) -> tuple[Rows, Rows]:
    """Lines [first, last) around line ``at`` that may be rewritten, never beyond the request's
    region; and the lines that are shown, those and more."""
    nodes = _nodes(request)
    low, high = request.region or (0, len(lines))
    if low <= at < high:
        own = _Text(lines, low, min(high, len(lines)) - 1)
        editable = _editable(own, at, nodes)
    else:
        editable = at, at
    shown = _shown(_Text(lines, 0, len(lines) - 1), editable, nodes)
    return (editable[0], editable[1] + 1), (shown[0], shown[1] + 1)


def estimate(line: str) -> int:
    """Tokens of a line, as Zed counts them: three bytes each."""
    return max(len(line.encode("utf-8", "replace")) // 3, 1)


@dataclass(frozen=True, slots=True)
class _Text:
    """Lines ``low`` to ``high`` of a document, both included."""

    lines: Sequence[str]
    low: int
    high: int

    def cost(self, first: int, last: int) -> int:
        """Tokens of lines [first, last)."""
        return sum(map(estimate, self.lines[first:last]))


def _nodes(request: EditRequest) -> list[Rows]:
    """Rows of the syntax nodes that hold the cursor, the innermost first."""
    language = request.language or language_of(request.path)
    syntax = parse(request.text, language) if language else None
    return [] if syntax is None else rows_around(syntax, request.cursor)


def _editable(text: _Text, at: int, nodes: Iterable[Rows]) -> Rows:
    begun = _EDITABLE * 3 // 4
    rows, room = _evenly(text, at, begun)
    room += _EDITABLE - begun
    whole, room = _to_nodes(text, rows, nodes, room)
    upwards = rows[0] - whole[0] <= whole[1] - rows[1]
    return _by_lines(text, whole, room, upwards)


def _shown(text: _Text, editable: Rows, nodes: Iterable[Rows]) -> Rows:
    whole, _ = _to_nodes(text, editable, nodes, _AROUND)
    return whole if whole != editable else _by_lines(text, editable, _AROUND, upwards=True)


def _evenly(text: _Text, at: int, room: int) -> tuple[Rows, int]:
    """Below and above in turns; the first line that does not fit ends it."""
    top = bottom = at
    room = max(room - text.cost(at, at + 1), 0)
    while room and (top > text.low or bottom < text.high):
        if bottom < text.high:
            if (taken := text.cost(bottom + 1, bottom + 2)) > room:
                break
            bottom, room = bottom + 1, room - taken
        if top > text.low and room:
            if (taken := text.cost(top - 1, top)) > room:
                break
            top, room = top - 1, room - taken
    return (top, bottom), room


def _to_nodes(text: _Text, rows: Rows, nodes: Iterable[Rows], room: int) -> tuple[Rows, int]:
    """``rows`` with whole nodes around them, as long as each next one fits."""
    top, bottom = rows
    for begins, ends in nodes:
        first, last = max(begins, text.low), min(ends, text.high)
        if first >= rows[0] and last <= rows[1]:
            continue
        needed = text.cost(first, top) + text.cost(bottom + 1, last + 1)
        if needed > room:
            break
        top, bottom, room = min(top, first), max(bottom, last), room - needed
    return (top, bottom), room


def _by_lines(text: _Text, rows: Rows, room: int, upwards: bool) -> Rows:
    """``rows`` with lines above and below them in turns, as far as ``room`` goes."""
    (top, bottom), stuck = rows, 0
    while stuck < 2:
        line = top - 1 if upwards else bottom + 1
        if text.low <= line <= text.high and estimate(text.lines[line]) <= room:
            room -= estimate(text.lines[line])
            top, bottom, stuck = min(top, line), max(bottom, line), 0
        else:
            stuck += 1
        upwards = not upwards
    return top, bottom
