"""Whether the cursor stands in a body just begun, and how much code is around it.

By the lines alone. Pure.
"""

from __future__ import annotations

import re

from .ghost_rules import is_free, line_after, line_before

#: A line that opens a body: a bracket, a colon, or a word of shells, Ruby and Lua.
_OPENS = re.compile(
    r"([{:]|=>|->|\b(do|then|else|begin))\s*(#.*|//.*)?$|^\s*(def|class|module|function)\b[^;{}]*$"
)
_COMMENT = re.compile(r"\s*(#|//|/?\*|--)")
_QUOTES = ('"""', "'''")
_MOST_LINES = 40  # of comments and docstrings between the header and the cursor
_NO_CODE = re.compile(r"[\s)\]}>\"'`;,]*")
_ABOVE, _BELOW = 8_000, 2_000  # characters that are looked at, for lines and for the next one


def begins_body(text: str, cursor: int) -> bool:
    """Return whether ``cursor`` stands on a blank line of a body that holds no code yet.

    That is behind the line that opens it, comments and a docstring aside, and nothing deeper is
    below.
    """
    rest = line_after(text, cursor)
    header = opening_line(text, cursor)
    if header is None or not is_free(rest):
        return False
    below = text[cursor + len(rest) : cursor + len(rest) + _BELOW].split("\n")
    first = next((line for line in below if line.strip()), None)
    return first is None or _indent(first) <= _indent(header)


def opening_line(text: str, cursor: int) -> str | None:
    """Return the line that opens a body right above ``cursor``, comments and a docstring aside.

    None: there is none, or something stands before the cursor on its line.
    """
    if line_before(text, cursor).strip():
        return None
    header = _header(text[max(0, cursor - _ABOVE) : cursor].split("\n")[-_MOST_LINES - 1 : -1])
    return header if header is not None and _OPENS.search(header) else None


def lines_around(text: str, cursor: int) -> tuple[int, int]:
    """Return how many lines above and below the cursor's hold more than closing brackets.

    Only some thousand characters are looked at: more lines say nothing more.
    """
    above = text[max(0, cursor - _ABOVE) : cursor].split("\n")[:-1]
    below = text[cursor : cursor + _ABOVE].split("\n")[1:]
    return _count(above), _count(below)


def _count(lines: list[str]) -> int:
    return sum(not _NO_CODE.fullmatch(line) for line in lines)


def _header(above: list[str]) -> str | None:
    """Return the last line above that is neither blank nor a comment nor of a docstring."""
    while above:
        line = above.pop()
        quote = next((each for each in _QUOTES if line.rstrip().endswith(each)), None)
        if quote is not None:
            if line.count(quote) == 1:
                while above and quote not in above[-1]:
                    above.pop()
                if not above or not above.pop().lstrip().startswith(quote):
                    return None
            elif not line.lstrip(" \tru").startswith(quote):
                return line
        elif line.strip() and not _COMMENT.match(line):
            return line
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
