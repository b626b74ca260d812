"""A literal got another value, or a text other quotes: the same elsewhere follows, whatever stands
around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .example import Example, Found, readable

_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`[^`\n]*`|(?<![\w.])\d[\w.]*")
_QUOTES = ("'''", '"""', "```")
_TELLING = 3  # characters


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for pair in example.pairs:
        changed = _changed(pair.old, pair.new)
        for at in readable(lines, first, last) if changed else ():
            line = made = lines[at]
            for old, new in changed:
                made = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", lambda _, n=new: n, made)  # type: ignore[misc]
            if made != line:
                yield Found(at, at + 1, (made,), pair.age, min(len(changed), 3))


def _changed(old: str, new: str) -> list[tuple[str, str]]:
    """Literals that became others where as many stand in both lines."""
    for a in _QUOTES:
        for b in _QUOTES:
            if a != b and old.count(a) == new.count(b) == 1 and a not in new:
                return [(a, b)]
    one, two = _LITERAL.findall(old), _LITERAL.findall(new)
    if len(one) != len(two):
        return []
    return [
        (a, b) for a, b in zip(one, two, strict=True) if a != b and len(a.strip("'\"`")) >= _TELLING
    ]
