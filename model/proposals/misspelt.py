"""A name that was just written, stands nowhere else and is one slip from one that does: that one.

A slip is a letter left out, put in, doubled, swapped with its neighbour or mistaken for another.
What is made of known words only is taken for another name, however near it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from string import ascii_letters

from ..text.names import places_of, whole_name
from .arguments import declares
from .casing import parts_of
from .code_lines import code_of, quoted_rows
from .example import NAME, PROSE, Example, Found, readable

_SHORTEST = 4  # letters of a name that can be told
_MOST_TRIED = 48  # names
#: Languages in which words are not names.
_NO_CODE = PROSE | {"json", "jsonc", "yaml", "toml", "xml"}
#: What stands before or behind a name where it is brought into being.
_BORN = re.compile(
    r"\b(?:class|def|fn|func|fun|function|struct|enum|trait|interface|type|const|let|var|val|mut|for"
    r"|import|from|as|use|package|namespace|mod|lambda|catch|except|global|goto|break|continue)\s+"
    r"(?:[\w\s,.*(]|::)*$|\|[\w\s,]*$"
)
#: As far before a name as it matters what stands there.
NEAR_CHARS = 160
_SET = re.compile(r"\s*(?::=|=(?![=>])|:(?!:)|,[\w\s,]*(?::=|=(?!=))|\s+in\b|\s*=>)")


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    if not example.come or example.language in _NO_CODE:
        return
    text, known, tried = "\n".join(lines), set[str](), 0
    quoted = quoted_rows(lines, example.language)
    for at in readable(lines, first, last):
        line = lines[at]
        if line.strip() not in example.come or at in quoted or declares(line):
            continue
        code = code_of(line)
        for found in NAME.finditer(code):
            name = found[0]
            if not _may_be_wrong(name, code, found):
                continue
            tried += 1
            if tried > _MOST_TRIED:
                return
            if not _stands_once(name, text, example):
                continue
            known = known or {*NAME.findall(text)}
            meant = _meant(name, known)
            if meant is not None:
                made = whole_name(name).sub(meant, line)
                yield Found(at, at + 1, (made,), 0, 3)


def _may_be_wrong(name: str, code: str, found: re.Match[str]) -> bool:
    """Whether it is used here, and no name of known words."""
    if len(name) < _SHORTEST or is_born(code, found):
        return False
    return any(part not in _words() for part in parts_of(name) if len(part) >= _SHORTEST)


def is_born(code: str, found: re.Match[str]) -> bool:
    """Whether a name is brought into being where it stands in a line of code."""
    before = code[: found.start()]
    if _BORN.search(code, max(0, found.start() - NEAR_CHARS), found.start()):
        return True
    owned = before.rstrip().endswith((".", "->", "::"))
    return not owned and _SET.match(code[found.end() :]) is not None


def _stands_once(name: str, text: str, example: Example) -> bool:
    """Whether a name stands once in the document, in no other, and in no line that is gone."""
    if len([*islice(places_of(name, text), 2)]) != 1:
        return False
    others = (*example.elsewhere, *example.gone)
    return not any(True for other in others for _ in places_of(name, other))


def _meant(name: str, known: AbstractSet[str]) -> str | None:
    """The one name that stands elsewhere and is a slip away; None where none is, or several."""
    near = {
        other
        for other in _near(name)
        if other in known
        and len(other) >= _SHORTEST
        and is_slip(name, other)
        and _unknown_gives_way(name, other)
    }
    return near.pop() if len(near) == 1 else None


def _near(name: str) -> Iterator[str]:
    """All that a letter more, less or other makes of a name, and two that change places."""
    for at in range(len(name)):
        head, letter, tail = name[:at], name[at], name[at + 1 :]
        yield head + tail
        yield head + tail[:1] + letter + tail[1:]
        for other in ascii_letters:
            yield head + other + tail
            yield head + other + letter + tail


def _unknown_gives_way(name: str, other: str) -> bool:
    """Whether names differ in one part alone, which is no known word, and as a slip would: hardly
    ever in its first letter (``wfile``, ``rfile``), or as what gets and what sets."""
    one, two = parts_of(name), parts_of(other)
    apart = [(a, b) for a, b in zip(one, two, strict=False) if a != b]
    if len(one) != len(two) or len(apart) != 1:
        return False
    mine, theirs = apart[0]
    if mine[0] != theirs[0] or mine.replace("set", "get") == theirs.replace("set", "get"):
        return False
    return len(mine) >= _SHORTEST and mine not in _words()


def is_slip(one: str, other: str) -> bool:
    """Whether one letter was left out, put in, swapped with the next or mistaken, but for the last
    ones, where names are meant to differ."""
    head = 0
    while head < min(len(one), len(other)) and one[head] == other[head]:
        head += 1
    a, b = one[head:], other[head:]
    if len(a) == len(b):
        swapped = len(a) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]
        mistaken = len(a) > 2 and a[1:] == b[1:] and len(one) > _SHORTEST
        return (swapped or mistaken) and a[0].isalpha() and a[0].lower() != b[0].lower()
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return len(longer) > 1 and longer[0].isalpha() and longer[1:] == shorter


@lru_cache(1)
def _words() -> frozenset[str]:
    """Parts of names that stand in files of at least eight of the training repositories."""
    text = (files("redraft.model.proposals") / "words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
