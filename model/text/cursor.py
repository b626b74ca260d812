"""The line around a position in a text."""

from __future__ import annotations

_CLOSERS = frozenset(")]}>\"'`")


def line_before(text: str, cursor: int) -> str:
    """Return the part of the cursor's line before the cursor."""
    return text[text.rfind("\n", 0, cursor) + 1 : cursor]


def line_after(text: str, cursor: int) -> str:
    """Return the part of the cursor's line behind the cursor, without its line end."""
    return text[cursor : line_end(text, cursor)]


def line_end(text: str, at: int) -> int:
    """Return the index of the line end at or behind ``at``, or of the text's end."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def is_free(rest: str) -> bool:
    """Return whether the rest of a line holds nothing but closing brackets, quotes and spaces."""
    return all(char in _CLOSERS or char.isspace() for char in rest)


def indent_of(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]
