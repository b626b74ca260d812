"""A canvas between prefix and suffix that finds its own length, as DreamOn writes (2602.01326).

It begins with a few masks. A position that predicts *expand* becomes two masks, one that predicts
END is taken out, and what lies masked behind it too; any other token is placed. The published
sampler settles one position a step; here every position that is sure enough is settled, the surest
in any case. Runs passes over a :class:`~redraft.model.runtime.backend.Denoises`.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import numpy as np

from ..records import CanvasState, StepCallback
from ..runtime.backend import Cancelled, Denoises, Scores
from .denoise import Denoised
from .plan import Brief, Draft
from .probabilities import confidence, cut_of, decode, pieces, sample, softmax

#: Masks to begin with; the published sampler begins with 4 and reaches 64.
BEGIN = 4


class Growing:
    """The canvas: a token at each position, None where it is masked."""

    def __init__(self, brief: Brief, rng: np.random.Generator) -> None:
        self._brief = brief
        self._rng = rng
        self._most = max(brief.limits.max_tokens, 1)
        self.tokens: list[int | None] = [None] * min(BEGIN, self._most)
        self._p = [0.0] * len(self.tokens)
        self._budget = 2 * self._most  # expansions, so that growing and shrinking end
        self.steps = 0

    @property
    def open(self) -> bool:
        """Whether anything is masked."""
        return None in self.tokens

    def window(self) -> list[int]:
        mask = self._brief.config.mask_token
        return [mask if token is None else token for token in self.tokens]

    def advance(self, out: Scores) -> None:
        """Settle what is sure enough of the predictions [m], the surest masked position at least,
        and let the canvas grow and shrink."""
        self.steps += 1
        guesses = {i: self._guess(i, out) for i, token in enumerate(self.tokens) if token is None}
        surest = max(guesses, key=lambda i: guesses[i][1])
        threshold = self._brief.plan.threshold
        chosen = {i for i, (_, p) in guesses.items() if p >= threshold} | {surest}
        tokens: list[int | None] = []
        sure: list[float] = []
        ended = False
        for i, token in enumerate(self.tokens):
            if token is not None:
                tokens, sure = [*tokens, token], [*sure, self._p[i]]
            elif ended or (i in chosen and guesses[i][0] == self._brief.config.end_token):
                ended = True
            elif i in chosen and guesses[i][0] == self._brief.config.expand_token:
                tokens, sure = [*tokens, None, None], [*sure, 0.0, 0.0]
                self._budget -= 1
            elif i in chosen:
                tokens, sure = [*tokens, guesses[i][0]], [*sure, guesses[i][1]]
            else:
                tokens, sure = [*tokens, None], [*sure, 0.0]
        self.tokens, self._p = tokens[: self._most], sure[: self._most]

    def _guess(self, position: int, out: Scores) -> tuple[int, float]:
        """The token to settle at a position, and its probability."""
        config, plan = self._brief.config, self._brief.plan
        grows = len(self.tokens) < self._most and self._budget > 0
        assert out.logits is not None, "a growing canvas is read with logits"
        logits = out.logits[position].astype(np.float64)  # [vocab]
        if not grows:
            logits[config.expand_token] = -np.inf
        if position < self._brief.limits.min_tokens:
            logits[config.end_token] = -np.inf
        probabilities = softmax(logits)
        if plan.temperature > 0:
            return sample(probabilities, plan, self._rng)
        best = int(np.argmax(probabilities))
        return best, float(probabilities[best])

    def state(self) -> CanvasState:
        data = [None if t is None else self._brief.vocab_bytes[t] for t in self.tokens]
        return CanvasState(self.steps, tuple(pieces(data, 0, None)))

    def draft(self) -> Draft:
        """The finished answer."""
        tokens = [token for token in self.tokens if token is not None]
        written = b"".join(self._brief.vocab_bytes[token] for token in tokens)
        cut, why = cut_of(written, 0, self._brief.limits, None)
        finish = why or ("length" if len(tokens) >= self._most else "end")
        return Draft(
            text=decode(written if cut is None else written[:cut]),
            token_ids=tuple(tokens),
            confidence=confidence(self._p[: len(tokens)]),
            steps=self.steps,
            repaired=0,
            finish=finish,
        )


def grow(
    sequence: Denoises,
    between: tuple[int, Seq[int]],
    brief: Brief,
    rng: np.random.Generator,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Write one answer.

    Args:
        between: the prompt's last token before the answer, which ``sequence`` does not hold, and
            the tokens behind the answer.

    Raises:
        Cancelled: ``cancelled`` said so.
    """
    canvas, (last_token, behind) = Growing(brief, rng), between
    while canvas.open:
        if cancelled():
            raise Cancelled
        *window, last = [last_token, *canvas.window()]
        after = np.asarray([last, *behind], dtype=np.int64)
        canvas.advance(sequence.denoise(np.asarray(window, np.int64), after, logits=True))
        if on_step is not None:
            on_step(canvas.state())
    return Denoised((canvas.draft(),), canvas.steps, 0)
