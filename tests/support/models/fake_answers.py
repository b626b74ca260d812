"""A stand-in that knows how likely each whole answer is, and so every probability on the way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from redraft.model.runtime.backend import FloatArray

from support.models.fake_backend import END, MASK, VOCAB, ids

#: Of every token, beside what the answers give it: anything may be written, if need be.
FLOOR = 1e-6


class Mixture:
    """A causal and a canvas model in one over a list of answers.

    Args:
        answers: text -> how likely it is; "" is no edit.
        mark: the token behind which answers begin.
    """

    def __init__(self, answers: Mapping[str, float], mark: int) -> None:
        self.answers = [([*ids(text), END], weight) for text, weight in answers.items()]
        self.mark = mark
        self.calls = 0

    def causal(self, context: list[int]) -> FloatArray:
        self.calls += 1
        return self._row(self._written(context), {})

    def __call__(self, context: list[int], window: list[int]) -> FloatArray:
        self.calls += 1
        written = self._written([*context, window[0]])
        seen = {len(written) + i: token for i, token in enumerate(window[1:]) if token != MASK}
        rows = [self._row(written, seen, len(written) + i) for i in range(len(window))]
        return np.stack(rows)  # [B, vocab]

    def _written(self, tokens: list[int]) -> list[int]:
        return tokens[len(tokens) - tokens[::-1].index(self.mark) :]

    def _row(self, written: list[int], seen: dict[int, int], at: int | None = None) -> FloatArray:
        """Log-probabilities [vocab] of the token at place ``at`` (None: the next one)."""
        known = {**dict(enumerate(written)), **seen}
        at = len(written) if at is None else at
        row = np.full(len(VOCAB), FLOOR)
        for tokens, weight in self.answers:
            if all(_token(tokens, place) == token for place, token in known.items()):
                row[_token(tokens, at)] += weight
        return np.log(row / row.sum()).astype(np.float32)


def _token(tokens: list[int], place: int) -> int:
    return tokens[place] if place < len(tokens) else END
