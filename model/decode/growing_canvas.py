"""A canvas that grows and shrinks between prefix and suffix, as DreamOn writes (2602.01326).

For weights that see what stands behind a canvas.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np

from ..records import CanvasState
from ..runtime.backend import Scores
from .canvas import Guess
from .completion import Brief, Draft, pieces, to_text
from .endings import cut_of
from .passes import Passes
from .sampling import confidence, sample, softmax

#: Masks to begin with; the published sampler begins with 4 and reaches 64.
BEGIN = 4


def grow(
    passes: Passes, between: tuple[int, Seq[int]], brief: Brief, rng: np.random.Generator
) -> Draft:
    """Write one answer between the tokens held and those behind it.

    Args:
        between: the prompt's last token before the answer, which the sequence does not hold, and
            the tokens behind the answer.

    Raises:
        Cancelled: the caller has cancelled.
    """
    canvas, (last_token, behind) = GrowingCanvas(brief, rng), between
    while None in canvas.tokens:
        *window, last = [last_token, *canvas.window()]
        canvas.advance(passes.denoise(np.asarray(window, np.int64), [last, *behind], logits=True))
        passes.show(canvas.state)
    return canvas.draft()


class GrowingCanvas:
    """A canvas that finds its length: a token at each position, None where it is masked.

    It begins with a few masks. A position that predicts *expand* becomes two masks, one that
    predicts END is taken out, and what lies masked behind it too; any other token is placed. The
    published sampler settles one position a step; here every position that is sure enough is
    settled, the surest in any case.
    """

    def __init__(self, brief: Brief, rng: np.random.Generator) -> None:
        self._brief = brief
        self._rng = rng
        self._most = max(brief.limits.max_tokens, 1)
        self.tokens: list[int | None] = [None] * min(BEGIN, self._most)
        self._p = [0.0] * len(self.tokens)
        self._budget = 2 * self._most  # expansions, so that growing and shrinking end
        self._steps = 0

    def window(self) -> list[int]:
        """Return the tokens with masks."""
        mask = self._brief.config.mask_token
        return [mask if token is None else token for token in self.tokens]

    def advance(self, scores: Scores) -> None:
        """Settle what is sure enough, and let the canvas grow and shrink."""
        self._steps += 1
        config, threshold = self._brief.config, self._brief.plan.threshold
        guesses = {i: self._guess(i, scores) for i, t in enumerate(self.tokens) if t is None}
        surest = max(guesses, key=lambda i: guesses[i].probability)
        tokens: list[int | None] = []
        sure: list[float] = []
        ended = False
        for i, token in enumerate(self.tokens):
            if token is not None:
                tokens, sure = [*tokens, token], [*sure, self._p[i]]
                continue
            guess = guesses[i]
            settles = guess.probability >= threshold or i == surest
            if ended or (settles and guess.token == config.end_token):
                ended = True
            elif settles and guess.token == config.expand_token:
                tokens, sure = [*tokens, None, None], [*sure, 0.0, 0.0]
                self._budget -= 1
            elif settles:
                tokens, sure = [*tokens, guess.token], [*sure, guess.probability]
            else:
                tokens, sure = [*tokens, None], [*sure, 0.0]
        self.tokens, self._p = tokens[: self._most], sure[: self._most]

    def _guess(self, position: int, scores: Scores) -> Guess:
        """Return the token to settle at a position."""
        config, plan = self._brief.config, self._brief.plan
        grows = len(self.tokens) < self._most and self._budget > 0
        assert scores.logits is not None, "a growing canvas is read with logits"
        logits = scores.logits[position].astype(np.float64)  # [vocab]
        if not grows:
            logits[config.expand_token] = -np.inf
        if position < self._brief.limits.min_tokens:
            logits[config.end_token] = -np.inf
        probabilities = softmax(logits)
        if plan.temperature > 0:
            return Guess(*sample(probabilities, plan.temperature, plan.top_p, self._rng))
        best = int(np.argmax(probabilities))
        return Guess(best, float(probabilities[best]))

    def state(self) -> CanvasState:
        """Return the text so far."""
        data = [None if t is None else self._brief.vocab_bytes[t] for t in self.tokens]
        return CanvasState(self._steps, tuple(pieces(data, 0, None)))

    def draft(self) -> Draft:
        """Return the finished answer."""
        tokens = [token for token in self.tokens if token is not None]
        written = b"".join(self._brief.vocab_bytes[token] for token in tokens)
        cut, why = cut_of(written, 0, self._brief.limits, None)
        return Draft(
            text=to_text(written if cut is None else written[:cut]),
            token_ids=tuple(tokens),
            confidence=confidence(self._p[: len(tokens)]),
            steps=self._steps,
            repaired=0,
            finish=why or ("length" if len(tokens) >= self._most else "end"),
        )
