"""Commits as the editing of one person: hunks in a likely order, definitions before their uses."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..edits.edit import LineChange
from ..edits.hunks import hunks_of

MAX_LINES = 6_000  # of a file; longer ones are skipped
_MAX_ORDERED = 40  # hunks; beyond that the order of the file is kept

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(
    r"\b(?:def|class|function|fn|func|struct|enum|trait|interface|type|const|let|var|static|import"
    r"|from|use|mod|package|namespace|record|object|val)\b\s+(?:\w+\s+(?:as|import)\s+)?"
    r"(?P<name>[^\W\d]\w*)|^\s*(?P<assigned>[^\W\d]\w*)\s*(?::[^=\n]+)?=(?!=)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """Change of one file; ``hunks`` are lines of ``old``, in the order in which they are made."""

    path: str
    old: list[str]
    new: list[str]
    hunks: list[LineChange]


def changes_of(record: dict[str, Any], rng: random.Random) -> list[FileChange]:
    """Return the usable files of a commit ``{files: [{path, before, after}]}``.

    A file that defines what others use comes before them.
    """
    found = []
    for file in record["files"]:
        if not file["before"] or not file["after"]:
            continue
        old, new = (file[side].replace("\r\n", "\n").split("\n") for side in ("before", "after"))
        if max(len(old), len(new)) > MAX_LINES:
            continue
        hunks = hunks_of(old, new)
        if hunks:
            ordered = order_hunks(hunks, old) if rng.random() < 0.8 else hunks
            found.append(FileChange(file["path"], old, new, ordered))
    if len(found) < 2:
        return found
    names = [_names(change.hunks, change.old) for change in found]
    return [found[i] for i in _users_last(names)]


def order_hunks(hunks: list[LineChange], old: list[str]) -> list[LineChange]:
    """Return the hunks top to bottom, except that definitions come before their uses."""
    if not 1 < len(hunks) <= _MAX_ORDERED:
        return hunks
    known = set(_WORD.findall("\n".join(old)))
    names = [_names([hunk], []) for hunk in hunks]
    return [hunks[i] for i in _users_last([(new - known, words) for new, words in names])]


#: Names that hunks introduce to a file, and all words that they write.
_Names = tuple[set[str], set[str]]


def _names(hunks: Sequence[LineChange], old: list[str]) -> _Names:
    text = "\n".join(line for hunk in hunks for line in hunk.new)
    defined = {match["name"] or match["assigned"] for match in _DEFINED.finditer(text)}
    known = set(_WORD.findall("\n".join(old))) if defined else set()
    return defined - known, set(_WORD.findall(text))


def _users_last(names: list[_Names]) -> list[int]:
    """Return positions, each after those that define a word it uses; ties and circles in order."""
    waits = [
        {j for j, (defined, _) in enumerate(names) if j != i and defined & words}
        for i, (_, words) in enumerate(names)
    ]
    left, order = [*range(len(names))], list[int]()
    while left:
        free = next((i for i in left if not waits[i] & set(left)), left[0])
        left.remove(free)
        order.append(free)
    return order
