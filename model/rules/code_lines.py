"""Distinguish code from strings and comments within lines, by patterns, as lines may be broken.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text.comments import WITHIN, is_comment

_COMMENT = re.compile(WITHIN)
_QUOTED = re.compile(r"(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`)")
_INSERTED = re.compile(r"\$?\{([^{}\\]*)\}")
#: Beginning of a string or a comment that may span several lines.
_OPENS = re.compile(r"(?<!['\"\\])(?:\"\"\"|''')|(?:^|(?<=[\s;{(,]))/\*")


def code_of(line: str) -> str:
    """Return the line with strings and comments blanked, but not the code within strings."""

    def blank(found: re.Match[str]) -> str:
        kept = [" "] * len(found[0])
        for inner in _INSERTED.finditer(found[0]):
            kept[slice(*inner.span(1))] = inner[1]
        return "".join(kept)

    code = _QUOTED.sub(blank, line)
    return _COMMENT.sub(lambda found: " " * len(found[0]), code)


def quoted_rows(lines: Sequence[str], language: str) -> set[int]:
    """Return the lines of strings and comments that span several lines."""
    rows, ends = set[int](), ""
    for at, line in enumerate(lines):
        if ends:
            rows.add(at)
        if '"""' not in line and "'''" not in line and "/*" not in line and "*/" not in line:
            continue
        place = 0
        while True:
            if ends:
                place = line.find(ends, place)
                if place < 0:
                    break
                place, ends = place + len(ends), ""
            opened = _OPENS.search(line, place)
            if opened is None:
                break
            place = opened.end()
            if opened[0] != "/*":
                ends = opened[0]
            elif language != "python":
                ends = "*/"
        if ends:
            rows.add(at)
    return rows


def prose_rows(lines: Sequence[str], language: str) -> set[int]:
    """Return the lines that are comments or docstrings."""
    quoted = quoted_rows(lines, language)
    opening = ('"""', "'''")
    return quoted | {
        at
        for at, line in enumerate(lines)
        if is_comment(line, language) or line.lstrip().startswith(opening)
    }
