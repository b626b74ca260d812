"""The short head: predictions among frequent tokens and those of the text at hand.

See ``network/frequent.py``. A token is meant by its index: first come the frequent tokens, whose
part of the head is in the graph, then the extra ones, whose embeddings are given to a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from .backend import FloatArray, IntArray
from .embedding import Embedding

#: Tokens besides the frequent ones at most. A text with more of them, such as one in Chinese, is
#: read with the whole head.
MOST_EXTRA = 256


@dataclass(frozen=True, slots=True)
class Predictable:
    """The tokens that one pass may predict."""

    tokens: IntArray  # [f + e] by index
    extra: FloatArray  # [hidden, e] embeddings
    _sorted: IntArray
    _order: IntArray

    def indices(self, tokens: IntArray) -> IntArray:
        """Return the index of each token, all of which are among them."""
        return self._order[np.searchsorted(self._sorted, tokens)]


class ShortHead:
    """The short head of one model.

    Args:
        frequent: ids, rising.
    """

    def __init__(
        self, config: ModelConfig, frequent: NDArray[np.int64], embedding: Embedding
    ) -> None:
        self._text_ids = config.text_ids
        self._embedding = embedding
        self._frequent = frequent
        self._is_frequent = np.zeros(config.vocab, np.bool_)
        self._is_frequent[self._frequent] = True

    def choice(self, held: IntArray, others: IntArray) -> Predictable | None:
        """Return what a pass may predict, or None if it takes the whole head.

        Args:
            held: tokens of the text before, of which marks are not predicted.
            others: tokens that are needed besides, marks among them.
        """
        text = held[(held >= self._text_ids.start) & (held < self._text_ids.stop)]
        named = np.unique(np.concatenate([text, others.ravel()]))
        extra = named[~self._is_frequent[named]]
        if len(extra) > MOST_EXTRA:
            return None
        tokens = np.concatenate([self._frequent, extra])
        order = np.argsort(tokens)
        rows = self._embedding.rows(extra, canvas=False)[0]
        return Predictable(tokens, np.ascontiguousarray(rows.T), tokens[order], order)
