"""Variants of a renamed name: other names with the same part, in every spelling.

If ``user_id`` became ``account_id``, then ``UserId``, ``get_user_ids``, ``"user-id"`` and ``USER``
follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from .casing import changed_parts, spellings
from .example import Example, Found, readable, words


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    known: set[tuple[str, str]] = set()
    for pair in example.pairs:
        for old, new in _names(pair.old, pair.new):
            if (new, old) in known or (old, new) in known:
                continue
            known.add((old, new))
            changed = changed_parts(old, new)
            if changed is None:
                continue
            pattern, become = _variants(*changed)
            for at in readable(lines, first, last):
                line = lines[at]
                made = pattern.sub(lambda found, table=become: table[found[0]], line)  # type: ignore[misc]
                if made != line and new not in words(line):
                    evidence = 2 if old in words(line) else 1
                    yield Found(at, at + 1, (made,), pair.age, evidence, family="variant")


def _names(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the names that changed, each with the new one."""
    one, two = words(old), words(new)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            yield from zip(one[i1:i2], two[j1:j2], strict=True)


def _variants(
    was: tuple[str, ...], become: tuple[str, ...]
) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern for the parts in any spelling, and the replacement of each."""
    table: dict[str, str] = {}
    for old, new in zip(spellings(was), spellings(become), strict=True):
        table.setdefault(old, new)
    longest = sorted(table, key=len, reverse=True)
    bounded = [
        # A part ends where another begins: not "use" in "user", but "user" in "userName".
        rf"(?<![a-z]){re.escape(each)}(?![a-z])"
        if each[0].islower()
        else rf"(?<![A-Z]){re.escape(each)}(?![a-z])"
        for each in longest
    ]
    return re.compile("|".join(bounded)), table
