"""A cache of computed values, bounded by their bytes.

Texts from editors, clients and files have any length, so a bound on their number limits nothing:
32,768 lines of a megabyte are 32 GB.
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
    """The values computed last, by key, for any thread.

    Args:
        most_bytes: of keys and values together; a value that alone takes half of it is not kept.
        size_of: bytes of the objects that a value holds.
    """

    def __init__(self, most_bytes: int, size_of: Callable[[Value], int] = lambda _: 0) -> None:
        self._most_bytes = most_bytes
        self._size_of = size_of
        self._known: OrderedDict[Key, tuple[Value, int]] = OrderedDict()  # least recent first
        self._lock = Lock()
        self.bytes_held = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key, compute: Callable[[Key], Value]) -> Value:
        """Return ``compute(key)``, kept if possible. Two threads may compute the same value."""
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
    """Return the bytes of a key and of the texts in it."""
    if isinstance(key, tuple):
        return sys.getsizeof(key) + sum(sys.getsizeof(part) for part in key)
    return sys.getsizeof(key)
