"""Index of the lines of a text, as arrays; a change costs the lines that it touches.

An index is immutable: :meth:`LineIndex.replace_lines` returns the index of the changed text and
shares what stays. It equals a fresh index of that text (``tests/model/places/test_line_index.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .line_facts import Kind, LineFacts, facts_of

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Postings:
    """Lines in which each token stands, sorted by token.

    Args:
        tokens: hashes, sorted. [postings]
        rows: the 0-based line of each. [postings]
        total: lines of the text.
    """

    def __init__(self, tokens: Ints, rows: Ints, total: int) -> None:
        self.tokens, self.rows, self.total = tokens, rows, total

    @classmethod
    def of(cls, lines: Sequence[tuple[int, ...]]) -> Postings:
        """Return the postings of some lines."""
        tokens, rows = _flat(lines, 0)
        return cls(tokens, rows, len(lines))

    def replace_lines(self, first: int, last: int, lines: Sequence[tuple[int, ...]]) -> Postings:
        """Return the postings once the lines [first, last) are replaced."""
        growth = len(lines) - (last - first)
        is_kept = (self.rows < first) | (self.rows >= last)
        tokens, rows = self.tokens[is_kept], self.rows[is_kept]
        if growth:
            rows = np.where(rows >= last, rows + growth, rows)
        new_tokens, new_rows = _flat(lines, first)
        places = np.searchsorted(tokens, new_tokens)
        return Postings(
            np.insert(tokens, places, new_tokens),
            np.insert(rows, places, new_rows),
            self.total + growth,
        )

    def find(self, tokens: Sequence[int]) -> tuple[Ints, Ints]:
        """Return where the postings of each token begin and end."""
        wanted = np.asarray(tokens, np.int64)
        return self.tokens.searchsorted(wanted), self.tokens.searchsorted(wanted, "right")

    def rarity(self, counts: Ints) -> NDArray[np.float64]:
        """Return how rare tokens are that stand in so many lines: about 1 in one, 0 in all."""
        found: NDArray[np.float64] = np.log((self.total + 2.0) / (counts + 0.5))
        return np.asarray(found / np.log(self.total + 2.0))

    def overlap(self, tokens: Sequence[int], weights: Sequence[float] | None = None) -> Floats:
        """Return for each line the summed rarity (times weights) of the tokens it has, [lines]."""
        begins, ends = self.find(tokens)
        counts = ends - begins
        if not counts.any():
            return np.zeros(self.total, np.float32)
        values = self.rarity(counts)
        if weights is not None:
            values *= np.asarray(weights)
        rows = [self.rows[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
        summed = np.bincount(np.concatenate(rows), np.repeat(values, counts), self.total)
        return summed.astype(np.float32)

    def similar(self, tokens: Sequence[int]) -> Floats:
        """Return the weighted Jaccard similarity of each line to a set of tokens, [lines]."""
        if not tokens:
            return np.zeros(self.total, np.float32)
        begins, ends = self.find(tokens)
        whole = float(self.rarity(ends - begins).sum())
        both = self.overlap(tokens)
        either = np.maximum(self.line_weights + (whole - both), 1e-6)
        return np.asarray(both / either, np.float32)

    @cached_property
    def line_weights(self) -> Floats:
        """The summed rarity of all tokens of each line, [lines]."""
        starts = np.flatnonzero(np.diff(self.tokens, prepend=self.tokens[:1] - 1))
        counts = np.diff(starts, append=len(self.tokens))
        rarity = np.repeat(self.rarity(counts), counts)
        return np.bincount(self.rows, rarity, self.total).astype(np.float32)


def _flat(lines: Sequence[tuple[int, ...]], first: int) -> tuple[Ints, Ints]:
    """Return the tokens of lines from ``first`` on, sorted, and the line of each."""
    counts = np.fromiter(map(len, lines), np.int64, len(lines))
    tokens = np.fromiter(chain.from_iterable(lines), np.int64, int(counts.sum()))
    rows = np.repeat(np.arange(first, first + len(lines)), counts)
    order = np.argsort(tokens, kind="stable")
    return tokens[order], rows[order]


#: Columns of :class:`.LineFacts` that are one number per line.
_NUMBERS = ("shape", "first", "first_two", "last", "kind", "indent", "length", "text")
_POSTINGS = ("words", "parts", "uses")


class LineIndex:
    """Lines of one text.

    Args:
        lines: of the text, without line ends; at least one.
        postings: of words, parts of names and uses.
        numbers: the columns of :data:`_NUMBERS`, in this order. [8, lines]
    """

    def __init__(
        self, lines: Sequence[str], postings: tuple[Postings, Postings, Postings], numbers: Ints
    ) -> None:
        self.lines, self.total = lines, len(lines)
        self.words, self.parts, self.uses = self._postings = postings
        self._numbers = numbers
        self.shape, self.first, self.first_two, self.last = numbers[:4]
        self.kind, self.indent, self.length, self.text = numbers[4:]

    @classmethod
    def of(cls, lines: Sequence[str]) -> LineIndex:
        """Read a text."""
        facts = [facts_of(line) for line in lines]
        words, parts, uses = (Postings.of([getattr(f, name) for f in facts]) for name in _POSTINGS)
        return cls(lines, (words, parts, uses), _numbers_of(facts))

    def replace_lines(
        self, first: int, last: int, lines: Sequence[str], new: Sequence[str]
    ) -> LineIndex:
        """Return the index once ``new`` lines take the place of [first, last).

        Args:
            lines: all lines of the changed text.
            new: those of them that are new.
        """
        facts = [facts_of(line) for line in new]
        words, parts, uses = (
            was.replace_lines(first, last, [getattr(f, name) for f in facts])
            for was, name in zip(self._postings, _POSTINGS, strict=True)
        )
        kept = self._numbers
        numbers = np.concatenate([kept[:, :first], _numbers_of(facts), kept[:, last:]], axis=1)
        return LineIndex(lines, (words, parts, uses), numbers)

    def follow(self, lines: Sequence[str]) -> LineIndex:
        """Return the index of a text that this one changed into; itself for the same lines."""
        if lines is self.lines or lines == self.lines:
            return self
        first = _common(self.lines, lines)
        most = min(self.total, len(lines)) - first
        tail = _common(self.lines[: -most - 1 : -1], lines[: -most - 1 : -1]) if most else 0
        last = len(lines) - tail
        return self.replace_lines(first, self.total - tail, lines, lines[first:last])

    # --- structure -------------------------------------------------------------------------------

    @cached_property
    def at(self) -> Ints:
        """The numbers of the lines, [lines]."""
        return np.arange(self.total)

    @cached_property
    def is_header(self) -> NDArray[np.bool_]:
        """Lines that begin a function or a class, [lines]."""
        return np.asarray((self.kind == Kind.FUNCTION) | (self.kind == Kind.CLASS))

    @cached_property
    def header(self) -> Ints:
        """The last header above each line, or the first line, [lines]."""
        return np.maximum.accumulate(np.where(self.is_header, self.at, 0))

    @cached_property
    def section(self) -> Ints:
        """The number of headers above each line, with it, [lines]."""
        return np.cumsum(self.is_header)

    @cached_property
    def class_header(self) -> Ints:
        """The last header of a class above each line, or the first line, [lines]."""
        return np.maximum.accumulate(np.where(self.kind == Kind.CLASS, self.at, 0))


def _numbers_of(facts: Sequence[LineFacts]) -> Ints:
    rows = [[getattr(each, name) for each in facts] for name in _NUMBERS]
    return np.array(rows, np.int64).reshape(len(_NUMBERS), len(facts))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items two lists begin with alike, compared in ever smaller halves."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def hashes(tokens: Iterable[str]) -> list[int]:
    """Return the hashes of words or parts, as :class:`.LineFacts` has them."""
    return [hash(token) for token in tokens]
