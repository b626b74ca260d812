"""Common beginnings and ends of sequences: texts, bytes, lists of lines.

They are compared by strides and then by bisection, because comparing item by item takes
milliseconds in a large file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

#: Items compared at once, which copies them.
_STRIDE = 16_384

Items = TypeVar("Items", str, bytes, list[Any], tuple[Any, ...])


def common_ends(first: Items, *others: Items) -> tuple[int, int]:
    """Return how many first and how many last items all share, without overlap."""
    head = common_head(first, *others)
    shortest = min(len(first), *(len(other) for other in others))
    return head, common_tail(first, *others, most=shortest - head)


def find_changed_part(old: Items, new: Items) -> tuple[int, Items, Items]:
    """Return where two sequences begin to differ, and each without the ends that they share."""
    head, tail = common_ends(old, new)
    return head, old[head : len(old) - tail], new[head : len(new) - tail]


def common_head(first: Items, *others: Items) -> int:
    """Return how many first items all share."""
    return min(_head(first, other) for other in others)


def common_tail(first: Items, *others: Items, most: int | None = None) -> int:
    """Return how many last items all share, at most ``most``."""
    return min(_tail(first, other, most) for other in others)


def _head(one: Items, other: Items) -> int:
    def agree(low: int, high: int) -> bool:
        return bool(one[low:high] == other[low:high])

    return _longest(agree, min(len(one), len(other)))


def _tail(one: Items, other: Items, most: int | None) -> int:
    m, n = len(one), len(other)
    shorter = min(m, n)

    def agree(low: int, high: int) -> bool:
        return bool(one[m - high : m - low] == other[n - high : n - low])

    return _longest(agree, shorter if most is None else min(most, shorter))


def _longest(agree: Callable[[int, int], bool], most: int) -> int:
    """Return the largest end up to which the items from 0 on agree, at most ``most``."""
    low, high = 0, min(_STRIDE, most)
    while low < most and agree(low, high):
        low, high = high, min(high + _STRIDE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if agree(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
