"""Gaps where people start to write: a body just begun, the middle of a line, a new file.

Taken out of real files by syntax, so that the real text shows what belongs there. Kept apart from
the training rows on purpose.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Literal

from redraft.model.gate.blocks import begins_body, find_opening_line
from redraft.model.text.cursor import is_free, line_after, line_before
from redraft.model.text.syntax import parse
from redraft.model.training.middles import Piece, pieces

from ..example import Example, gap
from .commits import CommitChange
from .gaps import gap_of, gaps_of

#: Where ghost text stands, for people and for tables.
Position = Literal["empty body", "new line", "middle of a line", "end of a line"]
POSITIONS: tuple[Position, ...] = ("empty body", "new line", "middle of a line", "end of a line")

_LONGEST_BODY = 2_000  # characters
_MOST_LINES = 30  # of what follows in a new file
_LONGEST_MIDDLE = 60  # characters
_MOST_BODIES, _MOST_MIDDLES = 2, 1  # of one file
_ALONE_SHARE = 0.5  # of the bodies at the margin with nothing below: with the imports alone above
_CLOSED_SHARE = 0.5  # of the bodies in brackets: the closing one stands already
_CUT_SHARE = 0.4  # of other gaps at the end of a line: nothing stands below
_DOCSTRING_SHARE = 0.5  # of the bodies that begin with a docstring: it stands already
_DOCSTRING = re.compile(r'[rRuU]?("""|\'\'\')(.|\n)*?\1[ \t]*\n\s*(?=\S)')
#: Data and markup have no bodies that people begin.
_WITHOUT_BODIES = frozenset(("json", "jsonc", "html", "css"))
#: What a value begins with, unlike a body: an object, a list, an argument.
_VALUE = re.compile(r"[=:(\[,?]\s*[{\[(]$|\breturn\s*[{\[(]$")
_CLOSERS = re.compile(r"\s*[)\]};,]+\s*$|\s*end\s*$")
_IMPORT = re.compile(r"\s*(import\b|from\b|#include\b|use\b|using\b|package\b|require\b|<\?php)")
_ABOVE_A_HEADER = re.compile(r"\s*(@|#|//|/?\*|--|\[)")


def position_of(text: str, cursor: int) -> Position:
    """Return where in the code ``cursor`` stands."""
    if not is_free(line_after(text, cursor)):
        return "middle of a line"
    if line_before(text, cursor).strip():
        return "end of a line"
    return "empty body" if begins_body(text, cursor) else "new line"


def gaps_in_new_code(change: CommitChange) -> Iterator[Example]:
    """Return some gaps of the file as the commit left it.

    They are bodies, parts of lines, and gaps of ``gaps_of`` with nothing below.
    """
    syntax = parse(change.after, change.language)
    if syntax is None:
        return
    rng = random.Random(f"{change.id}:begun")
    found = pieces(syntax, 0, len(change.after), longest=_LONGEST_BODY)
    bodies = [each for each in found if _is_body(change, each)]
    for at, piece in enumerate(rng.sample(bodies, min(len(bodies), _MOST_BODIES))):
        yield _body(change, piece, at, is_new=at % 2 == rng.randrange(2), rng=rng)
    middles = [each for each in found if _is_middle(change.after, each)]
    for at, piece in enumerate(rng.sample(middles, min(len(middles), _MOST_MIDDLES))):
        yield gap_of(change, f"middle {at}", piece.start, piece.end)
    for each in gaps_of(change):
        prefix = each.moment.prefix
        if each.moment.suffix.startswith("\n") and rng.random() < _CUT_SHARE:
            parts = prefix, _next_lines(change.after, len(prefix)), ""
            yield _new_file(change, each.kind, f"{each.id}:new", parts)


def _is_body(change: CommitChange, piece: Piece) -> bool:
    """Return whether the piece is a body on separate lines, behind the line that begins it."""
    if piece.kind != "body" or change.language in _WITHOUT_BODIES:
        return False
    above, newline, indentation = change.after[: piece.start].rpartition("\n")
    header = above.rpartition("\n")[2].rstrip()
    if not newline or indentation.strip() or not header or _VALUE.search(header):
        return False
    return piece.end - piece.start >= 4 and find_opening_line(change.after, piece.start) is not None


def _is_middle(text: str, piece: Piece) -> bool:
    if piece.kind in ("body", "statement") or not 3 <= piece.end - piece.start <= _LONGEST_MIDDLE:
        return False
    rest = line_after(text, piece.end)
    is_inside = bool(line_before(text, piece.start).strip()) and not is_free(rest)
    return is_inside and "\n" not in text[piece.start : piece.end]


def _body(change: CommitChange, piece: Piece, at: int, is_new: bool, rng: random.Random) -> Example:
    text, start, end = change.after, piece.start, piece.end
    docstring = _DOCSTRING.match(text, start, end)
    if docstring and rng.random() < _DOCSTRING_SHARE:
        start = docstring.end()
    closing = re.match(r"\s*[}\])]|\s*end\b", text[end:])
    if closing and rng.random() >= _CLOSED_SHARE:
        end += closing.end()
    if not is_new:
        return gap_of(change, f"body {at}", start, end)
    prefix = text[:start]
    if rng.random() < _ALONE_SHARE:
        prefix = _alone(prefix)
    closed = closing is not None and end == piece.end
    suffix = "\n".join(("", *_closers_below(text, end))) if closed else ""
    middle = text[start:end] if closed else _next_lines(text, start)
    name = f"{change.id}:body {at}, new file"
    return _new_file(change, f"body {at}", name, (prefix, middle, suffix))


def _new_file(change: CommitChange, kind: str, name: str, parts: tuple[str, str, str]) -> Example:
    tags = {"kind": f"{kind}, new file", "language": change.language}
    return gap(name, change.commit, tags, change.path, parts)


def _next_lines(text: str, start: int) -> str:
    """Return what a file with nothing below goes on with."""
    return "\n".join(text[start:].split("\n")[:_MOST_LINES])


def _alone(prefix: str) -> str:
    """Return the imports of a file and the header of its last definition.

    Where that definition is not at the margin, return all of the file.
    """
    lines = prefix.split("\n")
    first = len(lines) - 2
    while first > 0 and (lines[first][:1].isspace() or lines[first][:1] in ("", ")", "{")):
        if not lines[first].strip():
            return prefix
        first -= 1
    if lines[first][:1].isspace():
        return prefix
    while first > 0 and _ABOVE_A_HEADER.match(lines[first - 1]):
        first -= 1
    imports = [line for line in lines[: min(first, 60)] if _IMPORT.match(line)]
    return "\n".join([*imports, *([""] if imports else []), *lines[first:]])


def _closers_below(text: str, end: int) -> list[str]:
    """Return the lines below that close what is still open around a body.

    An editor that closes brackets by itself has them.
    """
    found: list[str] = []
    deepest: int | None = None
    for line in text[end:].split("\n")[1:]:
        depth = len(line) - len(line.lstrip())
        is_closer = _CLOSERS.match(line) is not None
        if is_closer and (deepest is None or depth < deepest):
            found.append(line)
        if line.strip() and (deepest is None or depth < deepest):
            deepest = depth
    return found
