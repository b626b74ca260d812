"""Edits that follow from changed names, and edits that miss them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from redraft.model.edits.edit import Edit
from redraft.model.rules.touched_names import Grown, Touched
from redraft.model.text.lines import defines_function

NOT_IMPORTED = "it is not imported"
NO_LONGER_USED = "this import is no longer used"
_NAME = re.compile(r"[^\W\d]\w*")
_NEAR = 2  # lines from a name that an edit may be away and still follow from it
_NEAR_IMPORTS = 12  # lines from a place where an import is missing


def is_astray(edit: Edit, grown: Grown) -> bool:
    """Return whether an edit adds changed parameters to the wrong function.

    That is: to the parameters or the body of a definition that names no function whose parameters
    changed.
    """
    if not grown.functions:
        return False
    first, last = edit.lines
    lines = edit.text.split("\n")
    header = next((row for row in _outwards(lines, first) if defines_function(lines[row])), None)
    if header is None or _names_any(_block(lines, header), grown.functions):
        return False
    if header == first:
        return True
    start, end, new = edit.whole_lines()
    come = {*_NAME.findall(new.lower())} - {*_NAME.findall(edit.text[start:end].lower())}
    near = lines[max(0, first - _NEAR) : last + _NEAR]
    return not come.isdisjoint(grown.words) and not _names_any(near, grown.functions)


def _names_any(lines: Iterable[str], names: Collection[str]) -> bool:
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return any(pattern.search(line) for line in lines)


def _outwards(lines: Sequence[str], row: int) -> Iterator[int]:
    """Yield the line and the lines above it with ever less indentation."""
    depth = len(lines[row]) + 1
    for at in range(row, -1, -1):
        indent = len(lines[at]) - len(lines[at].lstrip())
        if lines[at].strip() and indent < depth:
            depth = indent
            yield at


def _block(lines: Sequence[str], at: int) -> Iterator[str]:
    """Yield the line of a definition and those of its body."""
    yield lines[at]
    depth = len(lines[at]) - len(lines[at].lstrip())
    for line in lines[at + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            return
        yield line


def follows(edit: Edit, names: Iterable[Touched]) -> bool:
    """Return whether an edit changes a line that has one of the names.

    Names that were not renamed may be in the next lines. A name that is not imported may be some
    lines away, or in the new text.
    """
    first, last = edit.lines
    lines = edit.text.split("\n")

    def near(one: Touched) -> Sequence[str]:
        if one.why == NOT_IMPORTED:
            return [*lines[max(0, first - _NEAR_IMPORTS) : last + _NEAR_IMPORTS], edit.new]
        away = 0 if one.why == "renamed" else _NEAR
        return lines[max(0, first - away) : last + away]

    return any(
        re.search(rf"\b{re.escape(one.name)}\b", line) for one in names for line in near(one)
    )
