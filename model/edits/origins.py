"""Edits cut into parts of one origin each, so that one key accepts one change.

The origin of a changed line is the set of recent renames that it continues; renames of one word in
several spellings count as one. Neighbouring lines of one origin stay together, and so do all lines
that continue no rename.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..text.common import find_changed_part
from ..text.names import find_changed_words
from .edit import Edit

_ROOT = 4  # leading characters by which the spellings of a word are recognised

Rename = tuple[str, str]  # the old and the new name


def find_swap(old: str, new: str) -> tuple[Rename, ...]:
    """Return the words of a line that changed, with those in their place.

    Steps of one chain have them in common.
    """
    one, two = (re.findall(r"\w+|[^\w\s]", text) for text in (old, new))
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    return tuple(
        dict.fromkeys(
            (" ".join(one[i1:i2]), " ".join(two[j1:j2]))
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal"
        )
    )


def swaps(old: str, new: str) -> list[tuple[str, str, int]]:
    """Return the words of a line that became others, each with its 0-based column in ``old``."""
    changes = find_changed_words(old, new)
    return [(old[at:end], word, at) for at, end, word in changes if end > at and word]


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines [first, last) of the old text become ``new``."""

    first: int
    last: int
    new: tuple[str, ...]
    origin: frozenset[Rename]


def one_origin_each(edit: Edit, renames: frozenset[Rename], cursor: int) -> list[Edit]:
    """Return the edit, or its parts by origin, those at and below the cursor first.

    Args:
        renames: that recent edits made.
        cursor: 0-based line.
    """
    if not renames:
        return [edit]
    start, end, new = edit.whole_lines()
    top, old = edit.text.count("\n", 0, start), edit.text[start:end].split("\n")
    groups: list[list[_Part]] = []
    for part in _parts(old, new.split("\n"), renames):
        if groups and groups[-1][-1].origin == part.origin:
            groups[-1].append(part)
        else:
            groups.append([part])
    if len(groups) < 2:
        return [edit]
    groups.sort(key=lambda group: _away(group, cursor - top))
    return [_cut(edit.text, start, old, group) for group in groups]


def _away(group: Sequence[_Part], cursor: int) -> tuple[bool, int]:
    return group[-1].last <= cursor, abs(group[0].first - cursor)


def _parts(old: Sequence[str], new: Sequence[str], renames: frozenset[Rename]) -> Iterator[_Part]:
    """Return what changed, line by line where one line became one."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            for at, made in enumerate(new[j1:j2], i1):
                yield _Part(at, at + 1, (made,), _origin(old[at], made, renames))
        elif tag != "equal":
            old_text, new_text = "\n".join(old[i1:i2]), "\n".join(new[j1:j2])
            yield _Part(i1, i2, tuple(new[j1:j2]), _origin(old_text, new_text, renames))


def _origin(old: str, new: str, renames: frozenset[Rename]) -> frozenset[Rename]:
    found = renames.intersection((one, two) for one, two, _ in swaps(old, new))
    return frozenset(root_of(rename) for rename in found)


def root_of(rename: Rename) -> Rename:
    """Return the beginnings of the parts that differ, in lower case.

    They are the same for ``entries`` and ``MAX_ENTRY_AGE`` where both became records.
    """
    _, old, new = find_changed_part(*rename)
    return old.lower()[:_ROOT], new.lower()[:_ROOT]


def _cut(text: str, start: int, old: Sequence[str], group: Sequence[_Part]) -> Edit:
    """Return the edit that makes the changes of one group and leaves the lines between them."""
    lines: list[str] = []
    at = group[0].first
    for part in group:
        lines += [*old[at : part.first], *part.new]
        at = part.last
    first = start + sum(len(line) + 1 for line in old[: group[0].first])
    end = first + sum(len(line) + 1 for line in old[group[0].first : at])
    made = "".join(f"{line}\n" for line in lines)
    if end > len(text):  # the last line has no line end
        end, made = len(text), made[:-1]
    return Edit(text, first, end, made)
