"""Rules learnt from the recent edits, which can be applied to a line or to whole lines again.

A rule of a line is a list of swaps: a text became another one between its neighbours. A rule of a
block is about whole lines, which were replaced, deleted, or inserted between others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..edits.edit import LineChange
from ..records import RecentEdit
from ..text.common import common_ends
from ..text.lines import is_comment
from ..text.names import PIECE, find_changed_words, places_of, sentences_in
from ..text.syntax import language_of
from .rule_edits import MOST_CHARS, NAME, changes_in, pair_lines

#: Pieces of unchanged text that must agree on both sides, most first: the more, the likelier.
CONTEXTS = (6, 3, 2, 1)
#: With so few on both sides, one more on one side is enough.
ONE_SIDED = 2
#: A rename of an identifier this long needs no neighbours.
TELLING = 3
#: Lines that are inserted between others again, at most.
MOST_INSERTED = 6
#: Rules of lines, the newest first.
MOST_RULES = 64

_NEW_NAME = re.compile(r"[\w.:$]+(?:\(\))?")


@dataclass(frozen=True, slots=True)
class Swap:
    """A change within a line: ``old`` became ``new`` between ``left`` and ``right``."""

    left: tuple[str, ...]  # pieces of text
    old: str
    new: str
    right: tuple[str, ...]
    rename: bool  # of one name to another, wherever it stood in the line


@dataclass(frozen=True, slots=True)
class LineRule:
    """The changes within one line."""

    swaps: tuple[Swap, ...]
    age: int  # of its edit: 0 is the newest

    @property
    def changes(self) -> tuple[tuple[str, str], ...]:
        """The texts that changed, wherever they stood."""
        return tuple((swap.old, swap.new) for swap in self.swaps)


@dataclass(frozen=True, slots=True)
class BlockRule:
    """Whole lines ``old`` that became ``new``, both without their common indentation.

    Of an insertion, the lines above and below it are part of both.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    age: int  # of its edit: 0 is the newest
    insertion: bool = False


def learn(edits: Sequence[RecentEdit]) -> tuple[list[LineRule], list[BlockRule]]:
    """Return the rules of ``edits``, oldest first, without changes that a later edit undid.

    The rules of the newest edit come first.
    """
    lines: list[LineRule] = []
    blocks: list[BlockRule] = []
    undone: set[tuple[str, str]] = set()  # (old, new) that a later edit undid
    put: set[str] = set()  # lines written anywhere: lines deleted elsewhere may have moved there
    for age, edit in enumerate(reversed(edits)):
        language = language_of(edit.path) or ""
        for change, around in changes_in(edit.diff):
            pairs = pair_lines(change)[: max(0, MOST_RULES - len(lines))]
            made = [learn_line(*pair, age, language) for pair in pairs]
            left = [_without(rule, undone) for rule in made]
            lines += [rule for rule in left if rule.swaps]
            undone |= {(swap.new, swap.old) for rule in made for swap in rule.swaps if swap.rename}
            written = [rule.new for rule in blocks if not rule.insertion]
            fresh = [*_block_rules(change, around, age)]
            blocks += [rule for rule in fresh if rule.insertion or rule.old not in written]
            put |= {line.strip() for line in change.new}
    return lines, [rule for rule in blocks if rule.new or not {*map(str.strip, rule.old)} <= put]


def learn_line(old: str, new: str, age: int, language: str) -> LineRule:
    """Return the rule that turns ``old`` into ``new``; without swaps if little stays."""
    if max(len(old), len(new)) > MOST_CHARS:
        return LineRule((), age)
    prose, pieces = is_comment(old, language), PIECE.findall(new)
    swaps, stays, at = list[Swap](), "", 0
    for start, end, come in find_changed_words(old, new):
        gone, stays, at = old[start:end], stays + old[at:start], end
        if gone.strip() or come.strip():
            left = PIECE.findall(old[:start])[-CONTEXTS[0] :]
            right = PIECE.findall(old[end:])[: CONTEXTS[0]]
            is_rename = _is_rename(gone, come, pieces, prose)
            swaps.append(Swap(tuple(left), gone, come, tuple(right), is_rename))
    stays += old[at:]
    if not stays.strip() and not all(swap.rename for swap in swaps):
        return LineRule((), age)
    return LineRule(tuple(swaps), age)


def _is_rename(old: str, new: str, result: list[str], prose: bool) -> bool:
    """Return whether a name became another one. A plain word of a comment is no name."""
    if prose and old.isalpha() and old.islower():
        return False
    names = len(old) >= TELLING and NAME.fullmatch(old) and _NEW_NAME.fullmatch(new)
    return bool(names) and old not in result


def _without(rule: LineRule, undone: set[tuple[str, str]]) -> LineRule:
    """Return a rule without the swaps that were undone."""
    left = tuple(swap for swap in rule.swaps if (swap.old, swap.new) not in undone)
    return LineRule(left, rule.age)


def _block_rules(change: LineChange, around: Sequence[str], age: int) -> Iterator[BlockRule]:
    if change.old:
        if _tells(change.old):
            yield BlockRule(dedent(change.old), dedent(change.new), age)
        return
    above, below = around[: change.first][-1:], around[change.end :][:1]
    between = [*above, *below]
    if len(change.new) <= MOST_INSERTED and len(between) == 2 and all(map(str.strip, between)):
        yield BlockRule(dedent(between), dedent([*above, *change.new, *below]), age, insertion=True)


def _tells(lines: Sequence[str]) -> bool:
    """Return whether lines are more than a bracket or a short word, which stand everywhere."""
    return sum(len(name) for line in lines for name in NAME.findall(line)) > TELLING


# --- application --------------------------------------------------------------------------------


def apply_to_line(rule: LineRule, line: str) -> tuple[int, str] | None:
    """Return how many pieces agree on each side of all swaps, and the line after them.

    If no neighbours agree (0), only names are renamed. None if nothing changes.
    """
    for count in CONTEXTS:
        text: str | None = line
        for swap in rule.swaps:
            text = _swapped(swap, text, count) if text is not None else None
        if text is not None and text != line:
            return count, text
    text = rename(rule, line)
    return (0, text) if text != line else None


def rename(rule: LineRule, line: str) -> str:
    """Return a line with the names that ``rule`` changed.

    A plain word within the sentence of a string is no name.
    """
    for swap in rule.swaps:
        if swap.rename and swap.old in line:
            is_plain = swap.old.isalpha() and swap.old.islower()
            told = [*sentences_in(line)] if is_plain else []
            for at in reversed([*places_of(swap.old, line)]):
                if not any(start < at < end for start, end in told):
                    line = line[:at] + swap.new + line[at + len(swap.old) :]
    return line


def _swapped(swap: Swap, line: str, count: int) -> str | None:
    """Return a line with the swap made where ``count`` pieces on both sides agree.

    If few are wanted and text is replaced, more pieces on one side are enough.
    """
    text = _between(swap, line, count)
    if text is not None or count > ONE_SIDED or not swap.old:
        return text
    left, right = "".join(swap.left[-ONE_SIDED - 1 :]), "".join(swap.right[: ONE_SIDED + 1])
    for before, after in ((left, ""), ("", right)):
        if _tells([before + after]):
            text = _replaced(line, (before, swap.old, swap.new, after))
            if text is not None:
                return text
    return None


def _between(swap: Swap, line: str, count: int) -> str | None:
    """Return a line with the swap made wherever ``count`` pieces on both sides agree.

    If the edit had fewer on a side, the line must end there too.
    """
    left, right = "".join(swap.left[-count:]), "".join(swap.right[:count])
    begins, ends = not left.strip() or len(swap.left) < count, len(swap.right) < count
    old, new = swap.old, swap.new
    if begins:
        left = left.lstrip()
        old, new = (old, new) if left else (old.lstrip(), new.lstrip())
    if not NAME.search(left + old + right):
        return None
    return _replaced(line, (left, old, new, right), begins, ends)


def _replaced(
    line: str, change: tuple[str, str, str, str], begins: bool = False, ends: bool = False
) -> str | None:
    """Return a line with a text replaced between two others.

    None if it is so already, or if the texts are not there.

    Args:
        change: the text before, the old text, the new one, and the text behind.
    """
    left, old, new, right = change
    if left + old + right not in line:
        return None
    if old in new and _pattern(left + new + right, begins, ends).search(line):
        return None
    made = (left + new + right).replace("\\", r"\\")
    text, found = _pattern(left + old + right, begins, ends).subn(rf"\g<1>{made}", line)
    return text if found else None


def _pattern(whole: str, begins: bool, ends: bool) -> re.Pattern[str]:
    """Return a pattern of a text as whole words.

    Args:
        begins: the line begins with it.
        ends: the line ends with it.
    """
    head = r"^(\s*)" if begins else r"(?<!\w)()" if re.match(r"\w", whole) else "()"
    tail = r"\s*$" if ends else r"(?!\w)" if re.search(r"\w\Z", whole) else ""
    return re.compile(head + re.escape(whole) + tail)


def apply_to_block(
    rule: BlockRule, lines: Sequence[str], at: int, last: int
) -> tuple[int, int, tuple[str, ...]] | None:
    """Return lines [first, last) and the lines that replace them, if those from ``at`` on agree.

    None if they do not agree with the rule, or if it is so already.

    Args:
        last: no line from there on may change.
    """
    size = len(rule.old)
    if at + size > last or lines[at].strip() != rule.old[0].strip():
        return None
    if dedent(lines[at : at + size]) != rule.old:
        return None
    own = len(rule.old[0]) - len(rule.old[0].lstrip())
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    indent = indent[: len(indent) - own] if own else indent
    head, tail = common_ends(rule.old, rule.new)
    new = [indent + line if line else line for line in rule.new[head : len(rule.new) - tail]]
    if rule.insertion and _stands(new, lines, at + head):
        return None
    return at + head, at + size - tail, tuple(new)


def _stands(new: Sequence[str], lines: Sequence[str], at: int) -> bool:
    """Return whether ``new`` stands right above or below place ``at`` already."""
    wanted = [line.strip() for line in new]
    above, below = lines[max(0, at - len(new)) : at], lines[at : at + len(new)]
    return wanted in ([line.strip() for line in above], [line.strip() for line in below])


def dedent(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines without the indentation that all share."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    common = min(indents, default=0)
    return tuple(line[common:] if line.strip() else "" for line in lines)
