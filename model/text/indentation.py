"""Indentation of Python: lines that do not fit their neighbours.

The parser recovers from a line that is too deep and from a header without a body, and reports no
error. Here strings and comments are blanked, continued lines are joined, and each line that touches
the written text is compared with its neighbours. Nothing is reported within brackets or a string,
with tabs and spaces mixed, and on lines with an f-string whose fields hold the quote around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from .names import is_word

#: Languages whose blocks are indentation.
LANGUAGES = ("python",)

#: Reasons why a line does not fit the one above.
DEEPER = "a line is deeper than the one above it, which opens no block"
NO_BODY = "a block has no body"
NO_LEVEL = "a line is as deep as no block around it"
NO_HEAD = "a clause has no statement to belong to"
UNCLOSED = "a bracket stays open"

#: Lines read above the written text, and below it.
_AROUND = 200
#: Indents tried where the cursor's column is none.
_LEVELS = 3

#: Strings and comments. An unclosed one ends with the text, or with its line.
_QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)|\'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\Z)'
    r'|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?|#[^\n]*',
    re.DOTALL,
)
_WITHIN = "\0"  # replaces each character between quotes
_UNREAD = "\1"  # replaces the quote of an f-string whose fields hold that quote again
_FORMATTED = re.compile(r"(?:^|\W)(?:[ft]r?|r[ft])$", re.IGNORECASE)
_BRACE = re.compile(r"[{}]")
_MARKS = re.compile(r"[()\[\]{}\n]")
_OPENERS = (
    *("if", "elif", "else", "for", "while", "with", "try", "except", "finally"),
    *("def", "class", "async", "match", "case"),
)
_CLAUSE = re.compile(r"(else|elif|except|finally)\b")
_HEADS = {
    "else": re.compile(r"(if|elif|for|while|try|except|async)\b"),
    "elif": re.compile(r"(if|elif)\b"),
    "except": re.compile(r"(try|except)\b"),
    "finally": re.compile(r"(try|except|else)\b"),
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A line that does not fit the one above it; places are indices into the whole text."""

    reason: str
    start: int  # of the line above, which may continue over several lines of the file
    end: int  # behind it
    indent: str  # of the line above
    first: int  # the first character of the line that does not fit
    within: bool  # that line is part of the written text

    def stays(self, text: str, same: int) -> bool:
        """Return whether another beginning of the text does not fit either, whatever follows.

        Args:
            text: the other beginning, cut anywhere.
            same: characters that it shares with the text of the misfit.
        """
        cut_line = text.rpartition("\n")[2]
        if self.within and same > self.first:  # both lines are there as they were
            return self.reason in (DEEPER, NO_BODY, NO_LEVEL)
        if self.reason != DEEPER or same < self.start:
            return False  # what is above them is another: so may they be
        if not self.within:  # which stays: the one above has to open a block, if none follows it
            in_line = same <= self.end and "\n" not in text[same:]
            return _opens_nothing(text[self.start :] if in_line else cut_line)
        begun = cut_line.lstrip()
        spaces = cut_line[: len(cut_line) - len(begun)]
        deeper = spaces != self.indent and spaces.startswith(self.indent)
        between = text[self.end : len(text) - len(cut_line)].split("\n")
        next_to_it = not any(line.partition("#")[0].strip() for line in between)
        return same > self.end and deeper and next_to_it and begun[:1] not in ("", "#")


@dataclass(frozen=True, slots=True)
class _Line:
    """The header of a statement, or a simple statement, over one or several lines of the file."""

    start: int  # of its first line, and ...
    first: int  # ... of its first character that is no space
    end: int  # behind its last one
    indent: str
    code: str  # without spaces around it

    @property
    def opens(self) -> bool:
        """Return whether a block belongs below it."""
        return self.code.endswith(":")

    def deeper(self, other: _Line) -> bool:
        """Return whether the line is deeper than another one."""
        return self.indent != other.indent and self.indent.startswith(other.indent)


def misfit(
    above: str,
    written: str,
    below: str,
    language: str | None,
    ended: bool = True,
    *,
    heeds_column: bool = False,
) -> Misfit | None:
    """Return the line of ``written``, or around it, that does not fit; None if none is found.

    Args:
        above: the whole text before it.
        below: the text behind it.
        ended: it is complete. If not, a header at its end may get a body, and an open bracket may
            be closed.
        heeds_column: the first line has to be at an indent, also where the user chose its column.
    """
    if language not in LANGUAGES or not written.strip():
        return None
    if above[-1:] in ("", "\n") and below[:1] not in ("", "\n", "\r") and written[-1:] != "\n":
        written += "\n"  # lines above a line, of which the last lacks its end
    code = _QUOTED.sub(_blank, above + written + below)
    begin, end = len(above), len(above) + len(written)
    if _WITHIN in code[end - 1 : end + 1]:
        return None
    if opened := _depth(code, end):
        opened -= _depth(code, begin)
        unclosed = opened > 0 and _depth(code, len(code)) == opened and _UNREAD not in code
        return Misfit(UNCLOSED, begin, end, "", end, False) if unclosed and ended else None
    low, high = _around(code, begin, end)
    lines = [*_lines(code, low, high)]
    for index, next_ in enumerate(lines[1:], start=1):
        line = lines[index - 1]
        if line.first >= end:
            break
        is_chosen = line.end <= begin and next_.first <= begin != next_.start
        if is_chosen and not (heeds_column and next_.first == begin):
            continue  # both are older, or the user chose how deep the second is
        reason, within = _between(lines[:index], next_, whole=low == 0), next_.first < end
        if is_chosen and reason not in (DEEPER, NO_LEVEL):
            continue
        if reason and (ended or reason != NO_BODY or within):
            return Misfit(reason, line.start, line.end, line.indent, next_.first, within)
    return None


def at_indent(above: str, written: str, below: str, language: str | None) -> str | None:
    """Return ``written`` at an indent, where the cursor's column is none; None if there is none.

    Only blanks are added: to the first line, or to all lines.
    """
    column = above[above.rfind("\n") + 1 :]
    if column.strip():
        return written
    first = len(above) + len(written) - len(written.lstrip())
    found = misfit(above, written, below, language, ended=False, heeds_column=True)
    if found is None or found.first != first or found.reason not in (DEEPER, NO_LEVEL):
        return written
    depth = len(column) + first - len(above)
    lines = above.split("\n")[-_AROUND:-1]
    levels = {len(line) - len(line.lstrip()) for line in lines if line.strip()}
    for level in sorted(each for each in levels if each > depth)[:_LEVELS]:
        blanks = " " * (level - depth)
        for whole in (blanks + written, blanks + written.replace("\n", "\n" + blanks)):
            if misfit(above, whole, below, language, ended=False, heeds_column=True) is None:
                return whole
    return None


def lacks_body(above: str, written: str, below: str) -> bool:
    """Return whether the last line of ``written`` opens a block that has no body below it.

    Args:
        above: the text before it. below: the text behind it.
    """
    code = _QUOTED.sub(_blank, above + written + below)
    end = len(above) + len(written.rstrip())
    if _WITHIN in code[end - 1 : end + 1] or _depth(code, end):
        return False
    low, high = _around(code, len(above), end)
    lines = [*_lines(code, low, high)]
    last = next((at for at in reversed(range(len(lines))) if lines[at].first < end), None)
    if last is None or lines[last].end <= len(above) or not lines[last].opens:
        return False
    return last + 1 == len(lines) or not lines[last + 1].deeper(lines[last])


def _opens_nothing(line: str) -> bool:
    """Return whether a line with this beginning cannot open a block."""
    begun = line.lstrip()
    word = "".join(takewhile(is_word, begun))
    behind = begun[len(word) :]
    if behind:
        return word not in _OPENERS
    return not any(each.startswith(word) for each in _OPENERS)


def _between(lines: Sequence[_Line], next_: _Line, whole: bool) -> str:
    """Return the reason why ``next_`` does not fit below ``lines``, "" if it fits.

    Args:
        whole: the first of them is the first of the text.
    """
    line = lines[-1]
    if _UNREAD in line.code + next_.code:
        return ""
    if {" ", "\t"} <= {*line.indent, *next_.indent}:
        return ""
    if next_.deeper(line):
        return "" if line.opens else DEEPER
    if line.opens:
        return NO_BODY
    clause = _CLAUSE.match(next_.code)
    for each in reversed(lines):
        if each.indent == next_.indent:
            return NO_HEAD if clause and not _HEADS[clause[1]].match(each.code) else ""
        if next_.deeper(each):
            return NO_LEVEL
    return NO_LEVEL if whole and next_.indent else ""


def _blank(found: re.Match[str]) -> str:
    """Return as many characters in place of a string or a comment, on one line."""
    size = len(found[0])
    if found[0][0] == "#":
        return " " * size
    if _FORMATTED.search(found.string, max(0, found.start() - 3), found.start()):
        at = _open_field(found[0])
        if at and found[0][-1] == found[0][0]:  # what follows on the line is half within it
            return _UNREAD + _WITHIN * (size - 1)
        if at:  # a field over several lines is open as a bracket is
            return f"{_UNREAD}{_WITHIN * (at - 1)}{{{_WITHIN * (size - at - 1)}"
    return f'"{_WITHIN * (size - 2)}"' if size > 1 else '"'


def _open_field(string: str) -> int:
    """Return the place of the first unclosed field of an f-string; 0 if there is none."""
    opened: list[int] = []
    at = 0
    while brace := _BRACE.search(string, at):
        at = brace.end()
        if not opened and string[at : at + 1] == brace[0]:
            at += 1  # the character itself, written twice
        elif brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            opened.pop()
    return opened[0] if opened else 0


def _depth(code: str, at: int) -> int:
    """Return the number of brackets that are open at a place."""
    return sum(code.count(mark, 0, at) for mark in "([{") - sum(
        code.count(mark, 0, at) for mark in ")]}"
    )


def _around(code: str, low: int, high: int) -> tuple[int, int]:
    """Return the part of the code to read, from the start of a line to the end of one."""
    for _ in range(_AROUND):
        low = code.rfind("\n", 0, max(low - 1, 0)) + 1
        high = code.find("\n", min(high + 1, len(code)))
        high = len(code) if high < 0 else high
    return low, high


def _lines(code: str, low: int, high: int) -> Iterator[_Line]:
    """Yield the lines of ``code[low:high]`` that are not blank.

    Lines within brackets or behind a backslash belong to the line before them.
    """
    depth = _depth(code, low)
    start = low if depth == 0 else None  # of a line; None: it began further up
    for mark in [*(each.start() for each in _MARKS.finditer(code, low, high)), high]:
        char = code[mark : mark + 1] if mark < high else "\n"
        if char != "\n":
            depth += 1 if char in "([{" else -1
            continue
        if depth > 0 or code[max(low, mark - 2) : mark].rstrip("\r")[-1:] == "\\":
            continue
        if start is not None:
            text = code[start:mark]
            body = text.lstrip(" \t\f\r")
            if body.strip():
                spaces = text[: len(text) - len(body)]
                end = start + len(text.rstrip())
                # Behind a form feed columns are counted anew, as Python does.
                indent = spaces.rpartition("\f")[2]
                yield _Line(start, start + len(spaces), end, indent, body.rstrip())
        start = mark + 1
