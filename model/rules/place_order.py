"""The order in which a change is carried through a file: the definition, then the nearest places.

One order for the edits proposed around the cursor and for the places that are asked about
elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text.lines import defines


def place_key(line: str, name: str, at: int, cursor: int) -> tuple[bool, bool, int]:
    """Return the sort key of a place to which a change of ``name`` is to be carried.

    The definition comes first, then the places from the cursor downwards, then those above.

    Args:
        line: as it stands there, in line ``at``.
        cursor: the line from which the user goes on; all 0-based.
    """
    return not (name and defines(line, name)), at < cursor, abs(at - cursor)


def in_order(chances: Sequence[float], keys: Sequence[tuple[int, ...]]) -> list[float]:
    """Return the chances of steps that belong together, the highest given to the first in order."""
    order = sorted(range(len(keys)), key=lambda at: (keys[at], -chances[at]))
    made = [0.0] * len(order)
    for chance, at in zip(sorted(chances, reverse=True), order, strict=True):
        made[at] = chance
    return made
