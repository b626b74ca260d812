"""The interface between decoding and what runs the network: onnxruntime, torch or a test's fake.

A :class:`Sequence` holds tokens with their KV cache; a :class:`Backend` opens sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig

#: Prompt tokens read in one pass: a cancel takes effect between two. More are not faster and take
#: memory: 512 tokens of a 0.5B model behind as many others take 90 MB more.
CHUNK = 256

#: Added to the logits of tokens that are never predicted.
SUPPRESSED = -1e9

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


class Cancelled(Exception):
    """The caller no longer needs the answer."""


#: Returns what a token in front adds to the logits of candidates [k] for a mask's guess, by the
#: mask's hidden state [hidden]. [k]
Follows = Callable[[FloatArray, int, IntArray], FloatArray]


@dataclass(frozen=True, slots=True)
class MaskGuesses:
    """Guesses of the masks of a pass; without a sampler only the likeliest of each."""

    token: IntArray  # [masks, k] the likeliest tokens, falling
    confidence: FloatArray  # [masks] probability of the likeliest
    logit: FloatArray | None = None  # [masks, k], for the sampler
    hidden: FloatArray | None = None  # [masks, hidden], for the sampler
    follows: Follows | None = None  # the sampler

    def guess(self, mask: int, before: int) -> tuple[int, float]:
        """Return the guess of one mask and its probability where the token ``before`` precedes it.

        Tokens below the candidates keep the weight that they have.
        """
        if self.follows is None or self.logit is None or self.hidden is None:
            return int(self.token[mask, 0]), float(self.confidence[mask])
        own = self.logit[mask].astype(np.float64)
        weight = np.exp(own - own[0])  # [k] of the likeliest's
        rest = max(1 / max(float(self.confidence[mask]), 1e-9) - float(weight.sum()), 0.0)
        change = self.follows(self.hidden[mask], before, self.token[mask])
        weight *= np.exp(change.astype(np.float64))
        best = int(weight.argmax())
        return int(self.token[mask, best]), float(weight[best] / (weight.sum() + rest))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one pass with given positions, behind the tokens of a sequence."""

    tokens: IntArray  # [n], masks last
    positions: IntArray  # [n], absolute
    sees: BoolArray  # [n, k + n]: the last k tokens held, and these rows; all see what is before
    targets: IntArray  # [n], whose log-probability is computed
    masks: int = 0  # so many of the last rows are masks, which do not stay in the cache


class Scores(NamedTuple):
    """Predictions of one pass for the token after each of n rows.

    Special tokens that are not permitted (``Sequence.permit``) are never predicted.
    """

    top: IntArray  # [n, 8] the likeliest tokens, falling
    top_logprob: FloatArray  # [n, 8]
    target_logprob: FloatArray  # [n], or [n, k] of as many targets
    logits: FloatArray | None = None  # [n, vocab], only when requested
    masks: MaskGuesses | None = None  # None: no mask was read

    def best(self, row: int) -> tuple[int, float]:
        """Return the likeliest token after a row and its log-probability."""
        return int(self.top[row, 0]), float(self.top_logprob[row, 0])


class Sequence(Protocol):
    """Tokens with their KV cache. Not safe for use by two threads at once."""

    @property
    def tokens(self) -> Seq[int]:
        """The tokens held.

        Keys and values of a few tokens at the end may be computed only by the next pass.
        """

    @property
    def capacity(self) -> int:
        """The most tokens it holds, those of a denoise step included."""

    def extend(self, tokens: IntArray) -> None:
        """Append ``tokens`` [n]."""

    def score(
        self,
        tokens: IntArray,
        targets: IntArray | None = None,
        logits: bool = False,
        short: bool = False,
    ) -> Scores:
        """Append ``tokens`` [n], n >= 1, and predict the token after each.

        Args:
            targets: [n] or [n, k]; None: the next one of ``tokens``, and nothing of use for the
                last.
            short: predict only frequent tokens, those held, the targets and permitted marks, if
                these weights can do that faster; without ``logits``.
        """

    def read(self, rows: Rows, logits: bool = False, short: bool = False) -> Scores:
        """Append rows at given positions, except masks, and predict the token after each.

        Unless they form a chain, the sequence is then of no use except for further rows, until it
        is truncated. Without anything cached, masks are left out.
        """

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` tokens; costs nothing."""

    def permit(self, marks: Seq[int]) -> None:
        """Set the special tokens that may be predicted; ``config.ends`` until then."""


@runtime_checkable
class Denoises(Protocol):
    """A sequence of weights that read canvases."""

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        """Read a canvas; the cache stays as it was.

        Args:
            window: [B] the last context token, not yet held, and tokens or masks of the canvas;
                row i predicts the token after window[i].
            behind: [m] what follows; only for weights that read all tokens in both directions.
        """


class Backend(Protocol):
    """Runs one set of weights on one device."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def variant(self) -> str:
        """The name in ``quantize.VARIANTS``."""

    @property
    def provider(self) -> str:
        """The provider of onnxruntime, such as CPU or CUDA."""

    @property
    def bytes_per_token(self) -> int:
        """Bytes of the KV cache for one token."""

    def open(self, capacity: int) -> Sequence:
        """Return an empty sequence that holds at least ``capacity`` tokens."""

    def fork(self, sequence: Sequence, length: int, capacity: int) -> Sequence:
        """Return a new sequence that starts with the first ``length`` tokens of another."""

    def release(self, sequence: Sequence) -> None:
        """Take the memory of a sequence back for reuse."""

    def interrupt(self, now: bool) -> None:
        """End the running pass and each later one with :class:`Cancelled`, or let passes run again.

        Called from another thread. The sequence is then as it was before the pass.
        """

    def why_changed(self) -> str:
        """Return why the weights are no longer those that were loaded, or ""."""

    def close(self) -> None: ...
