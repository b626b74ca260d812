"""Names and words in a text of any language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import accumulate

#: Words, white space, and single signs.
PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def is_word(char: str) -> bool:
    """Return whether a character may be part of a name; "" is no character."""
    return char.isalnum() or char == "_"


def whole_name(name: str) -> re.Pattern[str]:
    """Return a pattern of a name that is no part of another one."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def places_of(name: str, text: str) -> Iterator[int]:
    """Yield the places of a name that is no part of another one.

    This is ten times as fast as :func:`whole_name`.
    """
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (is_word(text[at - 1 : at] if at else "") or is_word(text[end : end + 1])):
            yield at
        at = text.find(name, end)


#: Strings, and neither apostrophes nor lifetimes of Rust.
_QUOTED = re.compile(r"""(?<![&<])(?<!\w\w)(["'])(?:\\.|(?!\1)[^\\])*\1(?!\w)""")
_CODE_WITHIN = re.compile(r"\{[^{}]*\}|`[^`]*`|'[^'\s]*'")


def sentences_in(line: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges [start, end) of a line that are sentences in strings.

    Fields in braces and words in quotation marks are none, nor is a string without a space.
    """
    for quoted in _QUOTED.finditer(line):
        if " " not in quoted[0].strip("\"' "):
            continue
        start, end = quoted.span()
        for code in _CODE_WITHIN.finditer(line, start + 1, end - 1):
            yield start, code.start() + 1
            start = code.end() - 1
        yield start, end


def find_changed_words(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield the ranges [start, end) of ``old`` that change, and the text that replaces each.

    Words and runs of white space change as a whole.
    """
    a, b = PIECE.findall(old), PIECE.findall(new)
    starts = [*accumulate(map(len, a), initial=0)]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[i1], starts[i2], "".join(b[j1:j2])
