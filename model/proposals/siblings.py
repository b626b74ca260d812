"""Something was put beside its like: a field, a parameter, a variant, an entry of a list. Where the
neighbour is named elsewhere, a line for the new one follows that reads as its neighbour's does.

``b`` got a neighbour ``c``: behind ``self.b = b`` comes ``self.c = c``, and ``f(a, b)`` becomes
``f(a, b, c)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .casing import spelt
from .example import NAME, Added, Example, Found, Pair, words
from .items import KEYWORDS

_NEAR = 3  # lines around a neighbour in which the new name stands already
_BALANCED = (("(", ")"), ("[", "]"), ("{", "}"))


@dataclass(frozen=True, slots=True)
class _Sibling:
    old: str  # the neighbour's name
    new: str
    age: int
    alike: bool  # the lines or entries differ in this name alone
    done: frozenset[str]  # lines that were part of it, stripped


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for one in (*_of_lines(example.added), *_of_entries(example.pairs)):
        pattern, table = spelt(one.old, one.new)
        for at in range(first, last):
            line = lines[at]
            if line.strip() in one.done or not pattern.search(line):
                continue
            around = "\n".join(lines[max(0, at - _NEAR) : at + _NEAR + 1])
            if any(re.search(rf"(?<!\w){re.escape(new)}(?!\w)", around) for new in table.values()):
                continue
            made = pattern.sub(lambda found, table=table: table[found[0]], line)  # type: ignore[misc]
            if _is_whole(line):
                yield Found(at + 1, at + 1, (made,), one.age, 1 + one.alike)
            inline = _entry_after(line, pattern, table)
            if inline is not None:
                yield Found(at, at + 1, (inline,), one.age, one.alike)


def _of_lines(added: Sequence[Added]) -> Iterator[_Sibling]:
    for each in added:
        if len(each.lines) != 1:
            continue
        for neighbour in (each.above, each.below):
            new, old = words(each.lines[0]), words(neighbour)
            if not neighbour.strip() or not new or not old:
                continue
            pairs = _differing(old, new)
            if pairs:
                done = frozenset((each.lines[0].strip(), neighbour.strip()))
                (name, like), alike = pairs[0], len({*pairs}) == 1
                yield _Sibling(name, like, each.age, alike, done)


def _differing(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Names in the same place of two lines that read alike; [] where they do not."""
    if len(old) != len(new):
        shorter = min(len(old), len(new))
        if shorter == 0 or old[0] in KEYWORDS or new[0] in KEYWORDS:
            return []
        return [(old[0], new[0])] if old[0] != new[0] else []
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    usable = [(a, b) for a, b in pairs if a not in KEYWORDS and b not in KEYWORDS]
    return [pair for pair in usable if len(pair[0]) > 1]


def _of_entries(pairs: Sequence[Pair]) -> Iterator[_Sibling]:
    """An entry put behind another one within a line."""
    for pair in pairs:
        before, old, new, _ = pair.parts
        entry = new.strip().strip(",").strip()
        if old.strip() or "," not in new or not NAME.match(entry):
            continue
        last = before.rstrip().rstrip(",").rpartition(",")[2].rpartition("(")[2]
        neighbour = next((name for name in words(last) if name not in KEYWORDS), "")
        name = words(entry)[0]
        if len(neighbour) > 1 and name not in KEYWORDS and neighbour != name:
            done = frozenset((pair.new.strip(),))
            yield _Sibling(neighbour, name, pair.age, len(words(entry)) == 1, done)


def _is_whole(line: str) -> bool:
    """Whether a line is a statement or an entry by itself, no opening of a block."""
    if line.rstrip().endswith((":", "{", "(", "[", "\\")) or line.lstrip()[:1] in (")", "]", "}"):
        return False
    return all(line.count(one) == line.count(two) for one, two in _BALANCED)


def _entry_after(line: str, pattern: re.Pattern[str], table: dict[str, str]) -> str | None:
    """``line`` with a new entry behind the neighbour's, where that is one of a list."""
    found = list(pattern.finditer(line))
    last = found[-1] if found else None
    if last is None or re.match(r"\s*[,)\]}]", line[last.end() :]) is None:
        return None
    start = max(line.rfind(char, 0, last.start()) for char in ",([{") + 1
    entry = line[start : last.end()].strip()
    if start == 0 or not entry:
        return None
    made = pattern.sub(lambda each: table[each[0]], entry)
    return f"{line[: last.end()]}, {made}{line[last.end() :]}"
