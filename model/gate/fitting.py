"""Fits ghost text to what already follows the cursor, on its line and below.

A model writes on and repeats what follows, or an editor has typed the closing bracket already:
inserted as it is, ``cart.items)`` before a ``)`` would stand there twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Protocol

from ..edits.edit import Edit
from ..edits.syntax_errors import count_errors_of, longest_valid
from ..text.brackets import brackets_of, find_closing, is_call
from ..text.cursor import indent_of, line_after, line_before
from ..text.indentation import at_indent
from ..text.names import is_word
from ..text.syntax import language_of
from .blocks import whole_blocks
from .lines_below import without_repeats
from .reasons import Abstain

_WORD = re.compile(r"\w+")
_CLOSERS = ")]}>\"'`;, "  # what an editor puts behind the cursor, and what ends a statement

#: What may still be missing behind an unfinished statement at the end of a line: an operand, the
#: body of a definition, what a decorator stands above. The closing brackets stand at ``{}``.
_GOES_ON = (
    *("{}", "{};", "{}:", " x{}", " x{};", "{} {{}}", " x() {{}}{}"),
    *("\n{indent}class X: pass", "\n{indent}struct X;"),
)


class At(Protocol):
    """A place where something is written: a request, a query, a situation."""

    @property
    def text(self) -> str:
        """The document."""

    @property
    def cursor(self) -> int:
        """Index into text."""

    @property
    def path(self) -> str: ...

    @property
    def language(self) -> str:
        """LSP id, "" if unknown."""


@dataclass(frozen=True, slots=True, order=True)
class _Fault:
    """Faults of an edit; less is better. Numbers below 0 mean an improvement."""

    seam: bool  # a word or an opening bracket would stand right behind a call or a colon
    errors: int  # more of the parser's than without it; 0 where there is no grammar
    brackets: int  # more without their partner in the line than without it
    angles: int
    trusted: bool  # the text parses without it or with it: brackets need no second look

    @property
    def is_none(self) -> bool:
        return not self.seam and self.errors <= 0 and (self.trusted or self.brackets <= 0)


def fit(written: str, at: At, *, replaces: bool = False, ended: bool = True) -> Edit | Abstain:
    """Return the edit at the cursor by which ``written`` stands there once, or why there is none.

    Of the ways to fit it, the one that breaks least: without the end that repeats what follows, on
    the line or below; as it is; in place of the rest of the line, if its first line holds all of
    that; or cut where what follows begins. A way that breaks something is never taken: the text is
    then tried without its last lines, and refused if no part of it fits.

    Args:
        replaces: what follows on the line may be replaced, as in an editor; else the edit inserts.
        ended: the answer ended by itself, so last lines that open a block are dropped.
    """
    if replaces:
        written = strip_end(written, at)
    if ended and written.strip():
        written = whole_blocks(written, at.text, at.cursor, at.path, at.language)
        if not written:
            return Abstain("half_block", "the text would open a block without its body")
    lines = written.split("\n")
    worst, in_language = 0, language_of(at.path)

    def of(count: int) -> Edit | Abstain | None:
        """Return how the first ``count`` lines fit; None if they break something."""
        nonlocal worst
        less = written if count == len(lines) else "\n".join(lines[:count]).rstrip()
        if ended and count < len(lines):
            less = whole_blocks(less, at.text, at.cursor, at.path, at.language)
        if count < len(lines) and not (less.strip() and lines[count].strip()):
            return None  # nothing, or what was tried already
        ways = [*_ways(less, at, replaces)]  # the first of equally good ones is taken
        fault, edit = min(
            ((_fault(way, at), way) for way in ways),
            key=lambda found: (not found[0].is_none, found[0]),
        )
        if not fault.is_none:
            worst = worst or max(fault.errors, fault.brackets, 1)
            return None
        if not edit.new.strip():
            return Abstain("repeats_what_follows", "the same text already follows the cursor")
        below = edit.text[edit.end :]
        indented = at_indent(at.text[: at.cursor], edit.new, below, at.language or in_language)
        if indented is None:
            return Abstain("does_not_fit", "the cursor's column is no indent here")
        return replace(edit, new=indented)

    found = longest_valid(len(lines), of)
    if found is not None:
        return found
    added = f"the text would add {worst} syntax error{'s' * (worst > 1)}"
    behind = line_after(at.text, at.cursor).strip()
    return Abstain("does_not_fit", f"{added} before {behind[:20]!r}" if behind else added)


def strip_end(written: str, at: At) -> str:
    """Return ``written`` without white space at its end, if the line ends at the cursor anyway.

    Ghost text does not show it, and it would be in the file once the text is accepted.
    """
    return written if line_after(at.text, at.cursor).strip() else written.rstrip()


# --- ways ----------------------------------------------------------------------------------------


def _ways(written: str, at: At, replaces: bool) -> Iterator[Edit]:
    """Yield the ways to fit a text; of several that break nothing the first is the best."""
    before, rest = line_before(at.text, at.cursor), line_after(at.text, at.cursor)
    behind = rest.strip()
    language = at.language or language_of(at.path) or PurePath(at.path).suffix[1:].lower()
    for left in without_repeats(written, at.text, at.cursor, language):
        yield _edit(left, at)
    if behind:
        for left in _without_overlap(before, written, rest):
            yield _edit(left, at)
    yield _edit(written, at)
    if behind and replaces:
        for size in _over(before, written, rest):
            yield _edit(written, at, size)
    cut = _cut(before, written, behind)
    if written[:cut].strip():
        # The cut leaves the indent of the line that it removes.
        yield _edit(strip_end(written[:cut], at) if cut < len(written) else written, at)


def _edit(new: str, at: At, over: int = 0) -> Edit:
    """Return the edit that writes ``new`` in place of the next ``over`` characters."""
    return Edit(at.text, at.cursor, at.cursor + over, new)


def _without_overlap(before: str, written: str, rest: str) -> Iterator[str]:
    """Yield the text without an end that is the beginning of what follows, the longest first.

    In front of a line of code, which may be another line than the one that is written, words count
    only where they begin a line or are all of that line: ``ind = i`` above ``i += 1`` repeats
    nothing.
    """
    above = not before.strip() and is_word(rest.strip()[:1])
    whole_lines = "\n" in written[len(written.rstrip()) :]
    for text, follows in ((written, rest.rstrip()), (written.rstrip(), rest.strip())):
        for size in range(min(len(text), len(follows)), 0, -1):
            left = text[: len(text) - size]
            all_of_it = size == len(follows) and not whole_lines
            if above and left.rpartition("\n")[2].strip() and not all_of_it:
                continue
            if text.endswith(follows[:size]) and _between_words(text, follows, size):
                yield left if text is written else left.rstrip()


def _between_words(text: str, follows: str, size: int) -> bool:
    """Return whether the last ``size`` characters hold whole words only, or all that follows."""
    if size == len(follows):
        return True
    return not (_joins(text[:-size], text[-size:]) or _joins(follows[:size], follows[size:]))


def _joins(left: str, right: str) -> bool:
    """Return whether two texts, side by side, make one word of two."""
    return is_word(left[-1:]) and is_word(right[:1])


def _over(before: str, written: str, rest: str) -> Iterator[int]:
    """Yield how many characters may be replaced: what follows, or its first brackets or half word.

    Nothing is lost: the first line that is written holds the replaced characters, in their order.
    """
    line = written.partition("\n")[0]
    closers = len(rest) - len(rest.lstrip(_CLOSERS))
    sizes = {len(rest.rstrip()), len(_half_word(before, rest)), *range(1, closers + 1)}
    for size in sorted(sizes - {0}, reverse=True):
        left = iter(line)
        if all(char in left for char in "".join(rest[:size].split())):
            yield size


def _half_word(before: str, rest: str) -> str:
    """Return what follows of the word that the cursor is in; "" if it is in none."""
    word = _WORD.match(rest)
    return word[0] if word and _joins(before, rest) else ""


def _cut(before: str, written: str, behind: str) -> int:
    """Return where what follows begins within ``written``, or its length.

    A bracket that closes one which ``written`` did not open ends it, too.
    """
    begin = len(before)
    found = brackets_of(before + written).pairs
    ends = [close - begin for open_, close in found if open_ < begin <= close]
    inside = [(open_ - begin, close - begin) for open_, close in found if open_ >= begin]
    for at, char in enumerate(written):
        torn = _joins(written[:at], written[at:])
        is_within = any(open_ < at <= close for open_, close in inside)
        if at in ends or (behind[:1] == char and not torn and not is_within):
            return at
    return len(written)


# --- faults --------------------------------------------------------------------------------------


def _fault(way: Edit, at: At) -> _Fault:
    before, rest = line_before(at.text, at.cursor), line_after(at.text, at.cursor)
    left = rest[len(way.old) :]
    made, was = brackets_of(before + way.new + left), brackets_of(before + rest)
    more = made.faults - was.faults
    if not rest.strip():  # what is open may be closed in the lines below
        more = min(0, more)
    elif not left.strip():  # so may a block
        more -= sum((before + way.new)[open_] == "{" for open_ in made.left_open)
    counted = _count_errors(way, at, may_go_on=not left.strip(_CLOSERS))
    earlier, now = counted or (0, 0)
    half = _half_word(before, rest)
    is_again = not way.old and half != "" and way.new.startswith(half)
    return _Fault(
        seam=_has_seam(before + way.new, left) or is_again,
        errors=now - earlier,
        brackets=more,
        angles=made.angles - was.angles,
        trusted=counted is not None and 0 in (earlier, now),
    )


def _has_seam(left: str, right: str) -> bool:
    """Return whether ``right`` cannot go on behind ``left``: a word or a bracket behind a call."""
    if right[:1] == "(" and left.rstrip()[-1:] in (":", "{"):
        return True
    return (right[:1] == "(" or is_word(right[:1])) and is_call(left)


def _count_errors(way: Edit, at: At, may_go_on: bool) -> tuple[int, int] | None:
    """Return the syntax errors without a way and with it; None without a grammar.

    Args:
        may_go_on: an unfinished statement is no error.
    """
    rest = line_after(at.text, at.cursor)
    edit = _edit(way.new + rest[len(way.old) :].rstrip(), at, len(rest))
    counted = count_errors_of(edit, at.path, at.language)
    if counted is None or not may_go_on or counted[1] <= counted[0]:
        return counted
    closers = find_closing(edit.new)
    indent = indent_of(line_before(edit.result, edit.start + len(edit.new)))
    for form in _GOES_ON:
        whole = count_errors_of(edit, at.path, at.language, form.format(closers, indent=indent))
        if whole is not None and whole[1] <= whole[0]:
            return whole
    return counted
