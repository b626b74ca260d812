"""Lines that say the same kind of thing were taken away: the others of their kind follow.

``print("a")`` and ``print("b")`` went: ``print("c")`` goes as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from .example import Example, Found, readable

#: What a line begins with as far as the call or macro in it, or a decorator.
_HEAD = re.compile(r"\s*(@?[\w.:]+!?)\s*\(")
_MOST_OTHERS = 12  # lines of a kind: what stands everywhere says little


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    heads = Counter(head for line in example.removed if (head := _head(line)) is not None)
    written = {_head(line) for line in example.come}
    for head, count in heads.items():
        rows = [at for at in readable(lines, first, last) if _head(lines[at]) == head]
        if head in written or len(rows) > _MOST_OTHERS:
            continue
        for at in rows:
            if _is_whole(lines[at]) and not _is_alone(at, lines, example.language):
                yield Found(at, at + 1, (), 0, min(count, 3), head)


def _head(line: str) -> str | None:
    found = _HEAD.match(line)
    return found[1] if found is not None else None


def _is_whole(line: str) -> bool:
    """Whether a line is a statement by itself."""
    return line.count("(") == line.count(")") and not line.rstrip().endswith(("{", ":", ","))


def _is_alone(at: int, lines: Sequence[str], language: str) -> bool:
    """Whether a line is all that a block of Python holds, which cannot be empty."""
    if language != "python":
        return False
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    opens = above.rstrip().endswith(":") and _indent(above) < _indent(lines[at])
    return opens and _indent(below) < _indent(lines[at])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
