"""Draws samples that stay: the same ones on every machine, a smaller one part of a larger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def some(
    items: Iterable[Item], name: Callable[[Item], str], limit: int | None, seed: int
) -> list[Item]:
    """``limit`` of the items, chosen and ordered by a hash of their names; None: all."""
    ordered = sorted(items, key=lambda item: _rank(seed, name(item)))
    return ordered[:limit]


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()
