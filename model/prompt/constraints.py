"""What an answer may begin with: the rest of an unfinished word, or a range of lines.

A constraint says which tokens may follow what is written; how they are chosen among is decoding's.
What a whole answer must be is in ``grammars.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence as Seq
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .tokens import Tokenizer


class Constraint(Protocol):
    """What an answer must be, or begin with. ``written`` are the answer's tokens so far."""

    def allowed(self, written: Seq[int]) -> NDArray[np.bool_] | None:
        """Mask [vocab] over the next token; None: free from here on."""

    def legal(self, written: Seq[int], draft: Seq[int]) -> int:
        """How many tokens of ``draft`` are worth judging behind ``written``."""

    def forced(self, written: Seq[int]) -> tuple[int, ...]:
        """Tokens between which there is no choice; they are drafts like others."""

    def closing(self, written: Seq[int], most: int) -> tuple[int, ...] | None:
        """The fewest tokens found that make a whole answer of ``written``, ``most`` at most;
        None: none were. Where the end is free: nothing."""


class Beginning:
    """A constraint on the beginning alone: nothing is drafted as long as it binds."""

    def legal(self, written: Seq[int], draft: Seq[int]) -> int:
        return 0

    def forced(self, written: Seq[int]) -> tuple[int, ...]:
        return ()

    def closing(self, written: Seq[int], most: int) -> tuple[int, ...] | None:
        return ()


class ForcedText(Beginning):
    """The answer begins with ``text``, cut into tokens in any way."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._bytes = text.encode("utf-8", "replace")
        self._index = _vocab_index(tokenizer)
        self._vocab = tokenizer.vocab_bytes
        self._size = len(self._vocab)

    def allowed(self, written: Seq[int]) -> NDArray[np.bool_] | None:
        done = sum(len(self._vocab[token]) for token in written)
        if done >= len(self._bytes):
            return None
        rest = self._bytes[done:]
        mask = np.zeros(self._size, dtype=np.bool_)
        for ids in self._index.beginning_with(rest), self._index.beginnings_of(rest):
            mask[ids] = True
        return mask


class ValidRange(Beginning):
    """The answer begins with a range of lines within the region, or is END at once."""

    def __init__(self, count: int, tokenizer: Tokenizer, end_token: int) -> None:
        self.count = count
        self._end = end_token
        self._vocab = tokenizer.vocab_bytes
        self._size = len(self._vocab)
        self._index = _vocab_index(tokenizer)

    @property
    def chars(self) -> dict[str, int]:
        """The token of each character that a range is made of."""
        return {char: self._index.exactly(char.encode())[0] for char in "0123456789-\n"}

    def next_chars(self, written: str) -> set[str]:
        """Characters that keep ``written`` the beginning of a valid range line."""
        return next_chars(written, self.count)

    def allowed(self, written: Seq[int]) -> NDArray[np.bool_] | None:
        text = b"".join(self._vocab[token] for token in written)
        if b"\n" in text:
            return None
        mask = np.zeros(self._size, dtype=np.bool_)
        for char in self.next_chars(text.decode("ascii", "replace")):
            mask[self._index.exactly(char.encode())] = True
        if not written:
            mask[self._end] = True
        return mask


def next_chars(written: str, count: int) -> set[str]:
    """Characters that keep ``written`` the beginning of a valid range line of ``count`` lines."""
    first, dash, last = written.partition("-")
    if not dash:
        found = _next_digits(first, 1, count + 1)
        return found | {"-"} if first else found
    low = int(first) - 1
    found = _next_digits(last, low, count)
    complete = last and str(int(last)) == last and low <= int(last) <= count
    return found | {"\n"} if complete else found


def _next_digits(written: str, low: int, high: int) -> set[str]:
    """Digits that may follow ``written`` as the beginning of a number in low … high."""
    place = len(written)
    return {
        text[place]
        for text in map(str, range(low, high + 1))
        if len(text) > place and text.startswith(written)
    }


class _VocabIndex:
    """Tokens sorted by their bytes."""

    def __init__(self, vocab: list[bytes]) -> None:
        pairs = sorted((b, i) for i, b in enumerate(vocab) if b)
        self._bytes = [b for b, _ in pairs]
        self._ids = [i for _, i in pairs]

    def beginning_with(self, prefix: bytes) -> list[int]:
        low = bisect_left(self._bytes, prefix)
        high = bisect_left(self._bytes, prefix + b"\xff" * 40)
        return self._ids[low:high]

    def beginnings_of(self, text: bytes) -> list[int]:
        return [i for end in range(1, len(text)) for i in self.exactly(text[:end])]

    def exactly(self, token: bytes) -> list[int]:
        at = bisect_left(self._bytes, token)
        return [self._ids[at]] if at < len(self._bytes) and self._bytes[at] == token else []


@lru_cache(maxsize=4)
def _vocab_index(tokenizer: Tokenizer) -> _VocabIndex:
    return _VocabIndex(tokenizer.vocab_bytes)
