"""Which brackets and quotes of a piece of text have no partner, told by its characters alone.

For texts of any language and none: half a line is enough. Where there is a grammar, a parse knows
better. Knows nothing of documents or cursors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENS = {"(": ")", "[": "]", "{": "}"}
_CLOSES = {close: open_ for open_, close in _OPENS.items()}
_QUOTES = "\"'`"
_NOTABLE = re.compile(r"[\"'`()\[\]{}<>\\]")
#: What may stand right before a quote and belong to it: prefixes of strings.
_STRING_PREFIX = re.compile(r"(?<!\w)[rbfuRBFU]{1,2}\Z")
_ANGLE = re.compile(r"(?<=[\w:])<(?![\s=<\-])")
_WORD = re.compile(r"\w+\Z")
#: Words whose brackets hold no arguments: a statement may follow the closing one.
_KEYWORDS = frozenset(
    (
        *("if", "elif", "elseif", "unless", "while", "until", "for", "foreach", "switch", "match"),
        *("catch", "with", "using", "lock", "synchronized", "return", "await", "in", "not", "and"),
        "or",
    )
)


@dataclass(frozen=True, slots=True)
class Brackets:
    """What was found; all numbers are indices into the text."""

    pairs: tuple[tuple[int, int], ...]  # opening, -1 where there is none, and closing
    left_open: tuple[int, ...]  # outermost first, angle brackets left out
    angles: int  # angle brackets left open: they may be operators
    quotes: int  # quotes left open at the end of a line or of the text

    @property
    def faults(self) -> int:
        """Brackets and quotes that lack their partner."""
        alone = sum(open_ < 0 for open_, _ in self.pairs)
        return alone + len(self.left_open) + self.quotes


def brackets_of(text: str) -> Brackets:
    """The brackets and quotes of ``text``; those within quotes do not count."""
    open_: list[int] = []
    pairs: list[tuple[int, int]] = []
    quotes, at = 0, 0
    while notable := _NOTABLE.search(text, at):  # a character at a time takes 0.3 s for a megabyte
        at, char = notable.start(), notable[0]
        if char in _QUOTES and _is_quote(text, at):
            end = _quote_end(text, at)
            quotes += end < 0
            at = _line_end(text, at) if end < 0 else end + 1
            continue
        if char in _OPENS or _ANGLE.match(text, at):
            open_.append(at)
        elif char in _CLOSES:
            while open_ and text[open_[-1]] == "<":
                open_.pop()  # it was an operator
            partner = open_ and text[open_[-1]] == _CLOSES[char]
            pairs.append((open_.pop() if partner else -1, at))
        elif char == ">" and open_ and text[open_[-1]] == "<" and text[at - 1] not in "-=":
            pairs.append((open_.pop(), at))
        at += 2 if char == "\\" else 1
    hard = tuple(place for place in open_ if text[place] != "<")
    return Brackets(tuple(pairs), hard, len(open_) - len(hard), quotes)


def closing(text: str) -> str:
    """What closes the brackets that ``text`` leaves open, innermost first."""
    return "".join(_OPENS[text[place]] for place in reversed(brackets_of(text).left_open))


def closes(typed: str, behind: str) -> bool:
    """Is ``behind`` nothing, or what an editor puts there once ``typed`` is typed?"""
    if not behind:
        return True
    quote = behind[0] if behind[0] in _QUOTES else ""
    if quote and not typed.endswith(quote):
        return False
    return closing(typed.removesuffix(quote)) == behind.removeprefix(quote)


def is_call(text: str) -> bool:
    """Does ``text`` end in the brackets of a call or an index, behind which no word can stand?"""
    if text[-1:] not in (")", "]"):
        return False
    pairs = brackets_of(text).pairs
    if not pairs or pairs[-1][1] != len(text) - 1 or pairs[-1][0] < 0:
        return False
    word = _WORD.search(text[: pairs[-1][0]])
    return word is not None and word[0] not in _KEYWORDS


def _is_quote(text: str, at: int) -> bool:
    """Is the quotation mark there no apostrophe, and no lifetime of Rust?"""
    if text[at] != "'":
        return True
    before = text[max(0, at - 3) : at]
    if before[-1:] in ("<", "&") or text.find("'", at + 1, _line_end(text, at)) < 0:
        return False
    return not re.search(r"\w\Z", before) or _STRING_PREFIX.search(before) is not None


def _quote_end(text: str, at: int) -> int:
    """Where the string that begins there ends; -1: not in its line."""
    many_lines = text[at] == "`"
    end, place = len(text) if many_lines else _line_end(text, at), at + 1
    while place < end:
        if text[place] == text[at]:
            return place
        place += 2 if text[place] == "\\" else 1
    return -1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
