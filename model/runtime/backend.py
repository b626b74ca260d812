"""The seam between denoising and whatever runs the network: torch, onnxruntime or a test's fake.

A :class:`Sequence` is one row of tokens with its exact causal KV cache. ``prefill`` appends to it,
``truncate`` forgets its tail, ``denoise`` reads it and leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig

#: Tokens run through prefill at once: a cancel takes effect soon, and more are not faster and take
#: memory: 512 tokens of a 0.5B model behind as many others 90 MB more.
CHUNK = 256

#: Added to the logits of tokens that are never predicted.
SUPPRESSED = -1e9

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, slots=True)
class CanvasOutput:
    """Output of one denoise step for each of the B predictions.

    Special tokens that are not permitted (``Sequence.permit``) are never predicted: every
    backend suppresses them.
    """

    token: IntArray  # [B] most likely token
    confidence: FloatArray  # [B] its probability
    logits: FloatArray | None = None  # [B, vocab], only when asked for


@dataclass(frozen=True, slots=True)
class CausalOutput:
    """What the causal pass over n tokens says; entry i has seen tokens 0 to i.

    Special tokens that are not permitted (``Sequence.permit``) are never predicted: every
    backend suppresses them.
    """

    token: IntArray  # [n] most likely next token
    confidence: FloatArray  # [n] its probability
    log_probability: FloatArray  # [n - 1] of tokens[1:], each given all before it
    logits: FloatArray | None = None  # [n, vocab], only when asked for


#: What a token in front adds to the logits of candidates [k] for a mask's guess, by the mask's
#: hidden state [hidden]. [k]
Follows = Callable[[FloatArray, int, IntArray], FloatArray]


def _nothing() -> FloatArray:
    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class MaskGuesses:
    """What masks guess that were read in a pass; without a sampler the likeliest alone."""

    token: IntArray  # [masks, k] the likeliest tokens, falling
    confidence: FloatArray  # [masks] probability of the likeliest
    logit: FloatArray = field(default_factory=_nothing)  # [masks, k], for the sampler
    hidden: FloatArray = field(default_factory=_nothing)  # [masks, hidden], for the sampler
    follows: Follows | None = None  # the sampler

    def chain(self, part: range, before: int) -> tuple[list[int], list[float]]:
        """The guesses of the masks ``part``, each behind the one before it and the first behind the
        token ``before``, which the pass has settled; and their probabilities."""
        if self.follows is None:
            return self.token[part, 0].tolist(), self.confidence[part].tolist()
        tokens: list[int] = []
        sure: list[float] = []
        for mask in part:
            before, p = self._behind(mask, before, self.follows)
            tokens, sure = [*tokens, before], [*sure, p]
        return tokens, sure

    def _behind(self, mask: int, before: int, follows: Follows) -> tuple[int, float]:
        """The likeliest where the token ``before`` stands in front. What lies below the candidates
        keeps the weight it has."""
        own = self.logit[mask].astype(np.float64)
        weight = np.exp(own - own[0])  # [k] of the likeliest's
        rest = max(1 / max(float(self.confidence[mask]), 1e-9) - float(weight.sum()), 0.0)
        weight *= np.exp(follows(self.hidden[mask], before, self.token[mask]).astype(np.float64))
        best = int(weight.argmax())
        return int(self.token[mask, best]), float(weight[best] / (weight.sum() + rest))


@dataclass(frozen=True, slots=True)
class JudgedOutput:
    """What one pass says of judged tokens and of the masks behind them."""

    causal: CausalOutput  # of the judged tokens
    masks: MaskGuesses | None = None  # None: none was read


class Sequence(Protocol):
    """Tokens with their KV cache. Not safe for use by two threads at once."""

    @property
    def tokens(self) -> Seq[int]:
        """The tokens whose keys and values are in the cache, or will be when they are needed: a few
        at the end may wait to be read in one pass with what follows them."""

    @property
    def capacity(self) -> int:
        """The most tokens it holds, the window of a denoise step included."""

    def prefill(self, tokens: IntArray) -> None:
        """Append ``tokens`` [n] causally."""

    def verify(self, tokens: IntArray, logits: bool = False) -> CausalOutput:
        """Append ``tokens`` [n], n >= 1, causally and say what the weights think of them."""

    def judge(
        self,
        tokens: IntArray,
        positions: IntArray,
        sees: NDArray[np.bool_],
        judging: int,
        logits: bool = False,
    ) -> JudgedOutput:
        """The same with masks behind the tokens, where ``config.adapter`` is "masks".

        Args:
            tokens: [n] of which the first ``judging`` are appended; the others are masks.
            positions: [n] of each; 0 is the first that is not cached.
            sees: [n, n] whether a position attends to another of the row; all see the cache.
            logits: of the judged tokens, whole.
        """

    @property
    def branches(self) -> bool:
        """Whether :meth:`branch` can be called."""

    def branch(
        self, tokens: IntArray, depths: IntArray, sees: NDArray[np.bool_], base: int
    ) -> CausalOutput:
        """Append ``tokens`` [n] as nodes of a tree behind the first ``base`` tokens, with logits.

        The sequence is then of no use but for further branches, until it is truncated to ``base``.

        Args:
            depths: [n] of each node; 0 is the first position behind ``base``.
            sees: [n, m + n] whether a node attends to another: the m that were appended before, in
                order, and these. All see the first ``base`` tokens.
        """

    def permit(self, marks: Seq[int]) -> None:
        """Which special tokens may be predicted from here on: ``config.end_token`` until this says
        otherwise. Conversations end what is said by another one than infills."""

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` tokens; costs nothing."""

    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        """One denoise step. ``window`` [B] is the last context token, not yet in the cache,
        followed by B-1 canvas tokens or masks; entry i predicts the token after window[i].
        The cache is as before afterwards.
        """


class Backend(Protocol):
    """Runs one set of weights on one device."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def variant(self) -> str:
        """One of ``quantize.VARIANTS``."""

    @property
    def provider(self) -> str:
        """CPU or CUDA."""

    @property
    def bytes_per_token(self) -> int:
        """KV cache bytes of one token."""

    def new_sequence(self, capacity: int) -> Sequence:
        """An empty sequence holding at least ``capacity`` tokens."""

    def fork(self, sequence: Sequence, length: int, capacity: int) -> Sequence:
        """A new sequence that starts with the first ``length`` cached tokens of another."""

    def release(self, sequence: Sequence) -> None:
        """Give the sequence's memory back for reuse."""

    def close(self) -> None: ...


@runtime_checkable
class Interruptible(Protocol):
    """A backend whose passes end before their time when another thread says so."""

    def interrupt(self) -> None:
        """End the pass under way, and each after it, with :class:`Cancelled`. Its sequence is then
        as it was before that pass."""

    def resume(self) -> None:
        """Passes run to their end again; to be called while none is under way."""


@runtime_checkable
class SeesBehind(Protocol):
    """A sequence of weights that see what stands behind a canvas too."""

    def denoise_between(self, canvas: IntArray, behind: IntArray) -> CanvasOutput:
        """One pass over ``canvas`` [m] between the tokens held and those ``behind``; entry i, with
        its logits, predicts position i of the canvas."""
