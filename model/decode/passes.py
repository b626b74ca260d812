"""Passes over one sequence, counted; a cancel takes effect between two."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import numpy as np

from ..records import CanvasState, StepCallback
from ..runtime.backend import Cancelled, Denoises, IntArray, Rows, Scores, Sequence
from .drafts import DraftTally


class Passes:
    """Runs passes over a sequence that holds a prompt without its last token.

    Args:
        cancelled: asked before every pass.
        on_step: receives the answer after every pass.
    """

    def __init__(
        self,
        sequence: Sequence,
        cancelled: Callable[[], bool] = lambda: False,
        on_step: StepCallback | None = None,
    ) -> None:
        self.sequence = sequence
        self.cancelled = cancelled
        self.on_step = on_step
        self.count = 0  # denoise and verifying passes
        self.prefilled = 0  # tokens run causally behind the prompt
        self.tally = DraftTally()  # of drafts that were verified
        self.tried: list[tuple[int, ...]] = []  # tokens of rewrites begun, as later drafts

    def score(
        self,
        tokens: Seq[int] | IntArray,
        logits: bool,
        targets: Seq[int] | IntArray | None = None,
        short: bool = False,
    ) -> Scores:
        """Run a causal pass over ``tokens``; see :meth:`Sequence.score`."""
        self._begin(1, len(tokens))
        following = None if targets is None else np.asarray(targets, np.int64)
        return self.sequence.score(np.asarray(tokens, np.int64), following, logits, short)

    def read(self, rows: Rows, logits: bool = False, short: bool = False) -> Scores:
        """Run a pass over rows at given positions; see :meth:`Sequence.read`."""
        self._begin(1, len(rows.tokens) - rows.masks)
        return self.sequence.read(rows, logits, short)

    def denoise(self, window: IntArray, behind: Seq[int] = (), logits: bool = False) -> Scores:
        """Run a denoise step over a canvas; see :meth:`Denoises.denoise`."""
        self._begin(1, 0)
        assert isinstance(self.sequence, Denoises), "only such weights have canvases"
        return self.sequence.denoise(window, np.asarray(behind, np.int64), logits)

    def extend(self, tokens: Seq[int]) -> None:
        """Append ``tokens`` to the cache."""
        self._begin(0, len(tokens))
        self.sequence.extend(np.asarray(tokens, np.int64))

    def show(self, state: Callable[[], CanvasState]) -> None:
        """Report the answer so far."""
        if self.on_step is not None:
            self.on_step(state())

    def _begin(self, passes: int, tokens: int) -> None:
        """Count a pass.

        Raises:
            Cancelled: the caller has cancelled.
        """
        if self.cancelled():
            raise Cancelled
        self.count += passes
        self.prefilled += tokens
