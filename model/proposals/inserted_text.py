"""Something was put before or behind a call or a name: ``await``, an argument, a modifier. Where
the same stands on that side alone, it follows; and of several changes in a line, each by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..edits.edit_patterns import LineRule, Swap, apply_to_line, learn_line
from .example import NAME, Example, Found, readable

_PIECES = 3  # of text that must agree on the one side


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        rule = learn_line(pair.old, pair.new, pair.age, example.language)
        for swap in rule.swaps:
            for at in readable(lines, first, last):
                line = lines[at]
                if not line.strip():
                    continue
                if len(rule.swaps) > 1:
                    alone = apply_to_line(LineRule((swap,), pair.age), line)
                    if alone is not None and alone[0] > 0:
                        yield Found(at, at + 1, (alone[1],), pair.age, min(alone[0], 3))
                if not swap.old:
                    for made, evidence in _beside(swap, line):
                        yield Found(at, at + 1, (made,), pair.age, evidence)


def _beside(swap: Swap, line: str) -> Iterator[tuple[str, int]]:
    """``line`` with what was inserted before what followed it, or behind what it followed."""
    for evidence in (_PIECES, _PIECES - 1):
        right, left = "".join(swap.right[:evidence]), "".join(swap.left[-evidence:])
        if _tells(right):
            at = line.find(right)
            if at >= 0 and line.count(right) == 1 and not line[:at].endswith(swap.new):
                if _bounded(line, at):
                    yield line[:at] + swap.new + line[at:], evidence - 1
                return
        if _tells(left):
            at = line.find(left)
            end = at + len(left)
            if at >= 0 and line.count(left) == 1 and not line.startswith(swap.new, end):
                if _bounded(line, at):
                    yield line[:end] + swap.new + line[end:], evidence - 1
                return


def _tells(text: str) -> bool:
    return any(len(name) > 3 for name in NAME.findall(text))


def _bounded(line: str, at: int) -> bool:
    """Whether no word goes on over ``at``."""
    return re.match(r"\w", line[at : at + 1]) is None or re.match(r"\w", line[at - 1 : at]) is None
