"""Remembering what was computed, within a number of bytes.

Text of any length comes from editors, clients and files, so counting what is kept bounds nothing:
32,768 lines of a megabyte are 32 GB. Knows nothing of what it keeps.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_ENTRY = 200  # bytes of the table itself for each


class Memo(Generic[Key, Value]):
    """The values computed last, by key. Any thread may ask.

    Args:
        most_bytes: of keys and values together; one that alone would take half of it is computed
            each time anew.
        size_of: bytes of a value beyond its own object, where it holds others.
    """

    def __init__(self, most_bytes: int, size_of: Callable[[Value], int] = lambda value: 0) -> None:
        self._most_bytes = most_bytes
        self._size_of = size_of
        self._known: OrderedDict[Key, tuple[Value, int]] = OrderedDict()  # least recent first
        self._lock = Lock()
        self.bytes_held = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key, compute: Callable[[Key], Value]) -> Value:
        """What ``compute`` makes of ``key``. Two threads may compute one value at a time."""
        known = self._known.get(key)
        if known is not None:
            with self._lock:
                if key in self._known:
                    self._known.move_to_end(key)
            return known[0]
        value = compute(key)
        size = _ENTRY + _bytes_of(key) + sys.getsizeof(value) + self._size_of(value)
        if 2 * size <= self._most_bytes:
            self._keep(key, value, size)
        return value

    def _keep(self, key: Key, value: Value, size: int) -> None:
        with self._lock:
            if key in self._known:
                return
            self._known[key] = value, size
            self.bytes_held += size
            while self.bytes_held > self._most_bytes:
                self.bytes_held -= self._known.popitem(last=False)[1][1]


def _bytes_of(key: Hashable) -> int:
    """A key's, and of the texts in it."""
    if isinstance(key, tuple):
        return sys.getsizeof(key) + sum(sys.getsizeof(part) for part in key)
    return sys.getsizeof(key)
