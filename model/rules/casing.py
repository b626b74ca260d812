"""A name's parts and its spellings: ``user_id``, ``userId``, ``UserId``, ``USER_ID``, ``user-id``.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def parts_of(name: str) -> tuple[str, ...]:
    """``HTTPServer_id2`` → http, server, id, 2."""
    return tuple(part.lower() for part in _PART.findall(name))


def spellings(parts: Sequence[str]) -> tuple[str, ...]:
    """Each way to write a name of these parts: the same way at the same place for every name."""
    title = [part.capitalize() for part in parts]
    return (
        "_".join(parts),
        "_".join(parts).upper(),
        "-".join(parts),
        parts[0] + "".join(title[1:]),
        "".join(title),
        " ".join(parts),
    )


def changed_parts(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the parts of one name that became others, without those that both begin and end with.

    None: a name only grew or shrank, or the parts are too short.
    """
    one, two = parts_of(old), parts_of(new)
    head = 0
    while head < min(len(one), len(two)) and one[head] == two[head]:
        head += 1
    tail = 0
    while tail < min(len(one), len(two)) - head and one[-1 - tail] == two[-1 - tail]:
        tail += 1
    was, is_ = one[head : len(one) - tail], two[head : len(two) - tail]
    if not was or not is_ or sum(map(len, was)) < 3:
        return None
    return was, is_
