"""Brackets and quotes without a partner in a piece of text of any language.

Half a line is enough. Where there is a grammar, a parse is more exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .cursor import line_end

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
    """Brackets and quotes of a text, as indices into it."""

    pairs: tuple[tuple[int, int], ...]  # opening, -1 where there is none, and closing
    left_open: tuple[int, ...]  # outermost first, angle brackets left out
    angles: int  # angle brackets left open: they may be operators
    quotes: int  # quotes left open at the end of a line or of the text

    @property
    def faults(self) -> int:
        """Brackets and quotes without a partner."""
        alone = sum(open_ < 0 for open_, _ in self.pairs)
        return alone + len(self.left_open) + self.quotes


def brackets_of(text: str) -> Brackets:
    """Return the brackets and quotes of ``text``, without those in quotes."""
    open_: list[int] = []
    pairs: list[tuple[int, int]] = []
    quotes, at = 0, 0
    while notable := _NOTABLE.search(text, at):  # a character at a time takes 0.3 s for a megabyte
        at, char = notable.start(), notable[0]
        if char in _QUOTES and _is_quote(text, at):
            end = _quote_end(text, at)
            quotes += end < 0
            at = line_end(text, at) if end < 0 else end + 1
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


def find_closing(text: str) -> str:
    """Return what closes the brackets that ``text`` leaves open, innermost first."""
    return "".join(_OPENS[text[place]] for place in reversed(brackets_of(text).left_open))


def closes(typed: str, behind: str) -> bool:
    """Return whether ``behind`` is "" or what an editor adds once ``typed`` is typed."""
    if not behind:
        return True
    quote = behind[0] if behind[0] in _QUOTES else ""
    if quote and not typed.endswith(quote):
        return False
    return find_closing(typed.removesuffix(quote)) == behind.removeprefix(quote)


def is_call(text: str) -> bool:
    """Return whether ``text`` ends in the brackets of a call or an index: no word can follow."""
    if text[-1:] not in (")", "]"):
        return False
    pairs = brackets_of(text).pairs
    if not pairs or pairs[-1][1] != len(text) - 1 or pairs[-1][0] < 0:
        return False
    word = _WORD.search(text[: pairs[-1][0]])
    return word is not None and word[0] not in _KEYWORDS


def _is_quote(text: str, at: int) -> bool:
    """Return whether the mark there is neither an apostrophe nor a lifetime of Rust."""
    if text[at] != "'":
        return True
    before = text[max(0, at - 3) : at]
    if before[-1:] in ("<", "&") or text.find("'", at + 1, line_end(text, at)) < 0:
        return False
    return not re.search(r"\w\Z", before) or _STRING_PREFIX.search(before) is not None


def _quote_end(text: str, at: int) -> int:
    """Return where the string that begins there ends; -1 if it does not end in its line."""
    many_lines = text[at] == "`"
    end, place = len(text) if many_lines else line_end(text, at), at + 1
    while place < end:
        if text[place] == text[at]:
            return place
        place += 2 if text[place] == "\\" else 1
    return -1
