"""A call or an expression was wrapped in another call: other calls of the same name are wrapped
too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .arguments import closing_bracket
from .example import Example, Found, Pair, readable

_HEAD = re.compile(r"(?:[\w.]+[!?]?\(|await |new |\*|&|!)\Z")
_CALL = re.compile(r"(?<![\w.])(?:[\w.]+\.)?([^\W\d]\w*)[!?]?\(")


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        wrapped = _wrapped(pair)
        if wrapped is None:
            continue
        head, tail, inner = wrapped
        for at in readable(lines, first, last):
            line = lines[at]
            if head + inner in line or line == pair.new:
                continue
            if len(inner) > 3 and inner in line:
                yield Found(at, at + 1, (line.replace(inner, head + inner + tail),), pair.age, 3)
                continue
            for made in _calls(line, inner, head, tail):
                yield Found(at, at + 1, (made,), pair.age, 1)


def _wrapped(pair: Pair) -> tuple[str, str, str] | None:
    """What stands before and behind now, and what it is around."""
    _, old, new, after = pair.parts
    if old and old in new and new.count(old) == 1:
        head, _, tail = new.partition(old)
        whole = old
    elif not old and (found := _HEAD.search(new.lstrip())) and new.lstrip() == found[0]:
        call = re.match(r"[\w.]+[!?]?\(", after)
        end = closing_bracket(after, call.end() - 1) if call else None
        if end is None:
            return None
        head, tail, whole = new.lstrip(), "", after[: end + 1]
    else:
        return None
    if not _HEAD.search(head) or head.count("(") != tail.count(")"):
        return None
    return head, tail, whole


def _calls(line: str, inner: str, head: str, tail: str) -> Iterator[str]:
    """``line`` with each call wrapped that is of the same name as ``inner``."""
    name = _CALL.match(inner)
    if name is None:
        return
    for call in _CALL.finditer(line):
        end = closing_bracket(line, call.end() - 1)
        if call[1] != name[1] or end is None or line[: call.start()].endswith(head):
            continue
        yield line[: call.start()] + head + line[call.start() : end + 1] + tail + line[end + 1 :]
