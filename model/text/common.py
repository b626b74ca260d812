"""What sequences share at their ends: texts, bytes, lists of lines.

By bisection, as comparing item by item takes milliseconds in a large file.
"""

from __future__ import annotations

from typing import Any, TypeVar

Items = TypeVar("Items", str, bytes, list[Any], tuple[Any, ...])


def common_ends(first: Items, *others: Items) -> tuple[int, int]:
    """How many first and how many last items all share; in none of them do the two overlap."""
    head = common_head(first, *others)
    shortest = min(len(first), *(len(other) for other in others))
    return head, common_tail(first, *others, most=shortest - head)


def common_head(first: Items, *others: Items) -> int:
    """How many items all begin with in common."""
    return min(_head(first, other) for other in others)


def common_tail(first: Items, *others: Items, most: int | None = None) -> int:
    """How many items all end with in common, at most ``most``."""
    found = min(_tail(first, other) for other in others)
    return found if most is None else min(found, most)


def _head(one: Items, other: Items) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tail(one: Items, other: Items) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
