"""How what is written at a cursor fits what already stands behind it on the line.

A model writes on and repeats what follows, or an editor has typed the closing bracket already:
inserted as it is, ``cart.items)`` before a ``)`` would stand there twice. The one function here
says what to insert, or what of the line to put it in place of; and nothing where the text would be
broken by it that was not broken before. Pure; knows nothing of sureness, or of who asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..text.names import is_word
from .abstained import Abstained
from .brackets import brackets_of, closing, is_call
from .cut_back import first_whole
from .ghost_rules import line_after, line_before
from .half_blocks import whole_blocks
from .replacement import Replacement
from .rules import count_errors_of

_WORD = re.compile(r"\w+")
_CLOSERS = ")]}>\"'`;, "  # what an editor puts behind the cursor, and what ends a statement

#: What may still be missing behind an unfinished statement at the end of a line: an operand, the
#: body of a definition, what a decorator stands above. The closing brackets stand at ``{}``.
_GOES_ON = (
    *("{}", "{};", "{}:", " x{}", " x{};", "{} {{}}", " x() {{}}{}"),
    *("\n{indent}class X: pass", "\n{indent}struct X;"),
)


#: How something fits, or why it does not.
Fitted = Replacement | Abstained


class At(Protocol):
    """Where something is written: a request, a query, a moment."""

    @property
    def text(self) -> str:
        """Of the document."""

    @property
    def cursor(self) -> int:
        """Index into text."""

    @property
    def path(self) -> str: ...

    @property
    def language(self) -> str:
        """LSP id, "" where nobody told."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of fitting: ``new`` in place of the next ``over`` characters."""

    new: str
    over: int = 0

    def at(self, at: At) -> Replacement:
        return Replacement(at.text, at.cursor, at.cursor + self.over, self.new)


@dataclass(frozen=True, slots=True, order=True)
class _Fault:
    """What speaks against a way; less is better. Below 0: the text is the better for it."""

    seam: bool  # a word or an opening bracket would stand right behind a call or a colon
    errors: int  # more of the parser's than without it; 0 where there is no grammar
    brackets: int  # more without their partner in the line than without it
    angles: int
    trusted: bool  # the parser understands the text without it or with it: it knows best

    @property
    def is_none(self) -> bool:
        return not self.seam and self.errors <= 0 and (self.trusted or self.brackets <= 0)


def fit(written: str, at: At, *, replaces: bool = False, ended: bool = True) -> Fitted:
    """Return what to do at the cursor, so that ``written`` stands there once.

    Of the ways to fit it, the one that breaks least: without the end that repeats what follows; as
    it is; in place of the rest of the line, all of which it holds in its first line; or cut where
    what follows begins. One that breaks something is never taken: the answer is then tried without
    its last lines, and held back where nothing whole is left.

    Args:
        replaces: what follows on the line may be replaced; else all is insertion.
        ended: the answer ended by itself, so lines at its end that open a block are dropped.
    """
    if ended and written.strip():
        written = whole_blocks(written, at.text, at.cursor, at.path, at.language)
        if not written:
            return Abstained("half_block", "the text would open a block without its body")
    lines = written.split("\n")
    worst = 0

    def made(count: int) -> Fitted | None:
        nonlocal worst
        less = written if count == len(lines) else "\n".join(lines[:count]).rstrip()
        if ended and count < len(lines):
            less = whole_blocks(less, at.text, at.cursor, at.path, at.language)
        if count < len(lines) and not (less.strip() and lines[count].strip()):
            return None  # nothing, or what was tried already
        fault, way = _least_bad(less, at, replaces)
        if not fault.is_none:
            worst = worst or max(fault.errors, fault.brackets, 1)
            return None
        if not way.new.strip():
            return Abstained("repeats_what_follows", "the same text already follows the cursor")
        return way.at(at)

    if found := first_whole(len(lines), made):
        return found
    added = f"the text would add {worst} syntax error{'s' * (worst > 1)}"
    behind = line_after(at.text, at.cursor).strip()
    return Abstained("does_not_fit", f"{added} before {behind[:20]!r}" if behind else added)


def _least_bad(written: str, at: At, replaces: bool) -> tuple[_Fault, _Way]:
    """The best way to fit it, and what speaks against that."""
    ways = [*_ways(written, at, replaces)]
    faults = [_fault(way, at) for way in ways]
    best = min(range(len(ways)), key=lambda each: (not faults[each].is_none, faults[each], each))
    return faults[best], ways[best]


# --- ways ------------------------------------------------------------------------------------


def _ways(written: str, at: At, replaces: bool) -> Iterator[_Way]:
    """The best one first, should several break nothing."""
    before, rest = line_before(at.text, at.cursor), line_after(at.text, at.cursor)
    behind = rest.strip()
    if behind:
        yield from _without_overlap(before, written, rest)
    yield _Way(written)
    if behind and replaces:
        yield from _over(before, written, rest)
    cut = _cut(before, written, behind)
    if written[:cut].strip():
        yield _Way(written[:cut])


def _without_overlap(before: str, written: str, rest: str) -> Iterator[_Way]:
    """Without an end that is the beginning of what follows, the longest first.

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
                yield _Way(left if text is written else left.rstrip())


def _between_words(text: str, follows: str, size: int) -> bool:
    """Do the last ``size`` characters of ``text`` hold whole words only, or all that follows?"""
    if size == len(follows):
        return True
    return not (_joins(text[:-size], text[-size:]) or _joins(follows[:size], follows[size:]))


def _joins(left: str, right: str) -> bool:
    """Would two texts, side by side, make one word of two?"""
    return is_word(left[-1:]) and is_word(right[:1])


def _over(before: str, written: str, rest: str) -> Iterator[_Way]:
    """In place of what follows, or of the brackets or the half word it begins with, where nothing
    of it is lost: its characters are all there in the first line that is written, in their order.
    """
    line = written.partition("\n")[0]
    closers = len(rest) - len(rest.lstrip(_CLOSERS))
    sizes = {len(rest.rstrip()), len(_half_word(before, rest)), *range(1, closers + 1)}
    for size in sorted(sizes - {0}, reverse=True):
        if is_subword("".join(rest[:size].split()), line):
            yield _Way(written, size)


def _half_word(before: str, rest: str) -> str:
    """What follows of the word that the cursor is in; "" where it is in none."""
    word = _WORD.match(rest)
    return word[0] if word and _joins(before, rest) else ""


def is_subword(word: str, line: str) -> bool:
    """Are the characters of ``word`` all in ``line``, in their order?"""
    left = iter(line)
    return all(char in left for char in word)


def _cut(before: str, written: str, behind: str) -> int:
    """Where what follows begins within ``written``, or where it closes a bracket that it never
    opened; all of its length where neither is so."""
    begin = len(before)
    found = brackets_of(before + written).pairs
    ends = [close - begin for open_, close in found if open_ < begin <= close]
    inside = [(open_ - begin, close - begin) for open_, close in found if open_ >= begin]
    for at, char in enumerate(written):
        torn = _joins(written[:at], written[at:])
        if at in ends or (behind[:1] == char and not torn and not _within(at, inside)):
            return at
    return len(written)


def _within(at: int, pairs: list[tuple[int, int]]) -> bool:
    return any(open_ < at <= close for open_, close in pairs)


# --- faults ----------------------------------------------------------------------------------


def _fault(way: _Way, at: At) -> _Fault:
    before, rest = line_before(at.text, at.cursor), line_after(at.text, at.cursor)
    left = rest[way.over :]
    made, was = brackets_of(before + way.new + left), brackets_of(before + rest)
    more = made.faults - was.faults
    if not rest.strip():  # what is open may be closed in the lines below
        more = min(0, more)
    elif not left.strip():  # so may a block
        more -= sum((before + way.new)[open_] == "{" for open_ in made.left_open)
    counted = _count_errors(way, at, may_go_on=not left.strip(_CLOSERS))
    earlier, now = counted or (0, 0)
    return _Fault(
        seam=_has_seam(before + way.new, left) or _says_again(before, way, rest),
        errors=now - earlier,
        brackets=more,
        angles=made.angles - was.angles,
        trusted=counted is not None and 0 in (earlier, now),
    )


def _has_seam(left: str, right: str) -> bool:
    """Has something begun anew between two texts that belongs to neither?"""
    if right[:1] == "(" and left.rstrip()[-1:] in (":", "{"):
        return True
    return (right[:1] == "(" or is_word(right[:1])) and is_call(left)


def _says_again(before: str, way: _Way, rest: str) -> bool:
    """Is the rest of the word at the cursor written, and stands behind it once more?"""
    half = _half_word(before, rest)
    return not way.over and half != "" and way.new.startswith(half)


def _count_errors(way: _Way, at: At, may_go_on: bool) -> tuple[int, int] | None:
    """Syntax errors without it and with it.

    Args:
        may_go_on: what is merely unfinished is none.
    """
    rest = line_after(at.text, at.cursor)
    edit = _Way(way.new + rest[way.over :].rstrip(), len(rest)).at(at)
    counted = count_errors_of(edit, at.path, at.language)
    if counted is None or not may_go_on or counted[1] <= counted[0]:
        return counted
    closers, line = closing(edit.new), line_before(edit.result, edit.start + len(edit.new))
    indent = line[: len(line) - len(line.lstrip())]
    for form in _GOES_ON:
        whole = count_errors_of(edit, at.path, at.language, form.format(closers, indent=indent))
        if whole is not None and whole[1] <= whole[0]:
            return whole
    return counted
