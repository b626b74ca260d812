"""In which order a change is carried through a file: its definition first, then what is nearest.

One order for what is proposed around the cursor and for the places that are asked about elsewhere.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_DEFINING = (
    r"(?:def|class|func|fn|fun|function|struct|enum|union|trait|interface|type|typedef|protocol"
    r"|record|object|module|namespace|mod|const|let|var|val|static|sub|macro_rules!|#\s*define)"
)
#: Words that no name follows which they declare, as a type would.
NO_TYPES = frozenset(
    re.findall(
        r"\w+",
        "return new await yield throw raise else case in not and or is print del delete if elif "
        "for while import from as assert with go defer echo typeof instanceof lambda when unless",
    )
)


def place_key(line: str, name: str, at: int, cursor: int) -> tuple[bool, bool, int]:
    """Return what sorts places to which a change of ``name`` is to be carried: its definition
    first, then downwards from the cursor, then upwards.

    Args:
        line: as it stands there, in line ``at``.
        cursor: the line from which the user goes on; all 0-based.
    """
    return not (name and defines(line, name)), at < cursor, abs(at - cursor)


def in_order(chances: Sequence[float], keys: Sequence[tuple[int, ...]]) -> list[float]:
    """The chances of one chain's steps dealt out anew: the highest to the first in order."""
    order = sorted(range(len(keys)), key=lambda at: (keys[at], -chances[at]))
    made = [0.0] * len(order)
    for chance, at in zip(sorted(chances, reverse=True), order, strict=True):
        made[at] = chance
    return made


def defines(line: str, name: str) -> bool:
    """Does a line of code look like the definition of ``name``?"""
    place = re.search(rf"(?<![\w.]){re.escape(name)}\b", line)
    if place is None:
        return False
    before, after = line[: place.start()], line[place.end() :]
    if re.search(rf"\b{_DEFINING}\s+(?:\([^()]*\)\s*)?[*&]*$", before):
        return True
    if re.match(r"\s*(?::[^=]*)?=(?![=>])", after):
        return not before.strip()  # an assignment
    typed = re.search(r"([^\W\d]\w*)[\w<>\[\],:.?]*[\s*&]+$", before)
    if re.match(r"\s*(?:<[^<>]*>)?\(", after):
        if typed is not None:  # int area(…
            return typed[1] not in NO_TYPES and "(" not in before and "=" not in before
        return not before.strip() and line.rstrip().endswith("{")  # area(…) {
    return False
