"""Lines in a body where the user is about to write, so that ghost text comes before next edits.

Told by indentation and line ends, the same for every language. Pure.
"""

from __future__ import annotations

import re

from redraft.model.edits.edit import Edit

_OPENS = re.compile(r"(?:[:{(\[]|\bdo|\bthen|=>)\s*(?:(?:#|//).*)?$")
_DOCSTRING = re.compile(r"(?:\"\"\"|''')\s*$")


def is_empty_body_line(text: str, cursor: int) -> bool:
    """Return whether the cursor stands in an empty line of a body: an indented one, or one right
    below a line that opens a block."""
    start, end = _line(text, cursor)
    line = text[start:end]
    return not line.strip() and (bool(line) or _opens(_above(text, start)))


def is_empty_body(text: str, cursor: int) -> bool:
    """Return whether the body around such a line has no statement yet."""
    start, end = _line(text, cursor)
    above = _above(text, start)
    if text[start:end].strip() or not (_opens(above) or _DOCSTRING.search(above)):
        return False
    below = next((line for line in text[end:].split("\n")[1:] if line.strip()), "")
    return _depth(below) < max(_depth(text[start:end]), 1) or _depth(below) <= _opener_depth(above)


def writes_body(edit: Edit, cursor: int) -> bool:
    """Return whether an edit writes the body that is empty at the cursor."""
    rows = [at for at, line in enumerate(edit.text[:cursor].split("\n")[:-1]) if line.strip()]
    if not rows or edit.lines[0] <= rows[-1]:
        return False
    lines = edit.result.split("\n")
    below = next((line for line in lines[rows[-1] + 1 :] if line.strip()), "")
    return _depth(below) > _opener_depth(lines[rows[-1]])


def _opener_depth(above: str) -> int:
    return _depth(above) if _opens(above) else _depth(above) - 1


def _opens(line: str) -> bool:
    return _OPENS.search(line) is not None


def _above(text: str, start: int) -> str:
    """Return the nearest line above that is not blank."""
    return next((line for line in reversed(text[:start].split("\n")) if line.strip()), "")


def _line(text: str, cursor: int) -> tuple[int, int]:
    end = text.find("\n", cursor)
    return text.rfind("\n", 0, cursor) + 1, len(text) if end < 0 else end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
