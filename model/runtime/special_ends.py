"""Reads every special token that a model predicts as END, for weights that were trained to end in
one of several (``ModelConfig.specials_end``).

Works on the outputs of a pass, in place. Knows nothing of graphs or of what is decoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig

#: In place of the logit of a special token other than END.
NEVER = -1e9


class SpecialEnds:
    """The special tokens of a vocabulary, END among them."""

    def __init__(self, config: ModelConfig) -> None:
        self._end = config.end_token
        self._special = np.ones(config.vocab, np.bool_)
        self._special[config.text_ids.start : config.text_ids.stop] = False

    def read(self, outputs: dict[str, NDArray[Any]]) -> None:
        """Make END of any special token.

        Args:
            outputs: may hold ``token`` int64 [r, 1] and ``logits`` float32 [r, vocab]. The
                probability of a token stays that of the one special token that was likeliest.
        """
        token = outputs.get("token")
        if token is not None:
            token[self._special[token]] = self._end
        logits = outputs.get("logits")
        if logits is not None:
            ends = logits[:, self._special].max(axis=1)
            logits[:, self._special] = NEVER
            logits[:, self._end] = ends
