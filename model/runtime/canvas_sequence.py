"""Sequences of diffusion weights, which read canvases; see ``ModelConfig.attention``.

``canvas``: the context is cached causally, and a canvas sees all of it and itself. By blocks, keys
and values of finished blocks are cached, and the unfinished block is read again in every step. In
both directions nothing can be kept: every step reads all tokens.

Row i of a window predicts the token after it. Weights without the shift predict a masked position
at that position, so they are given one mask more, and the rows one place further on are scored.
"""

from __future__ import annotations

import numpy as np

from .backend import CHUNK, FloatArray, IntArray, Scores
from .onnx_pass import Outputs, room_for
from .onnx_sequence import OnnxSequence, scores_of

#: Added to the log-probabilities of positions behind the block that is being written: they are
#: placed only where nothing else is left.
_LATER = float(np.log(1e-6))


class CanvasSequence(OnnxSequence):
    """A causal context with canvases behind it. See ``backend.Denoises``."""

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        """Read a canvas behind the cached tokens."""
        assert not len(behind), "these weights see nothing behind a canvas"
        self.settle()
        config = self._graphs.config
        read = window if config.logit_shift else np.append(window, config.mask_token)
        self._check_room(len(read))
        rows = np.arange(len(read) - len(window), len(read), dtype=np.int64)
        outputs = room_for(len(window), config.vocab if logits else 0)
        one = self._pass("denoise", outputs)
        one.run(read, len(self._tokens), rows, read[rows], outputs)
        return scores_of(outputs)


class DiffusionSequence(OnnxSequence):
    """Tokens of weights that read by blocks or in both directions."""

    def extend(self, tokens: IntArray) -> None:
        """Append ``tokens`` [n]; finished blocks are cached."""
        self._check_room(len(tokens))
        block, kept = self._block, self._kept
        if block:
            waiting = np.concatenate([self._unfinished(), tokens])
            finished = len(waiting) // block * block
            step = max(CHUNK // block, 1) * block
            for start in range(0, finished, step):
                chunk = waiting[start : min(start + step, finished)]
                self._run(chunk, kept + start, np.zeros(1, np.int64), {})
        self._tokens.extend(tokens.tolist())

    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        """Read a canvas between the tokens held and those ``behind``."""
        assert not (self._block and len(behind)), "blocks see nothing behind"
        config, width = self._graphs.config, len(window)
        ahead = 0 if config.logit_shift else 1
        known = np.concatenate([self._unfinished(), window])
        read = np.concatenate([known, behind])
        length = max(len(read), len(known) + ahead)
        if self._block:  # the block being written is as long as in training, masks to its end
            length = -(-length // self._block) * self._block
        self._check_room(self._kept + length - len(self._tokens))
        masks = np.full(length - len(read), config.mask_token, np.int64)
        rows = np.arange(width, dtype=np.int64) + (len(known) - width + ahead)
        outputs = room_for(width, config.vocab if logits else 0)
        self._run(np.concatenate([read, masks]), self._kept, rows, outputs)
        self._hold_back(window, outputs["top_logprob"])
        return scores_of(outputs)

    @property
    def _block(self) -> int:
        """Tokens of a block; 0: nothing is ever finished."""
        return self._graphs.config.block

    @property
    def _kept(self) -> int:
        """Tokens whose keys and values are in the buffer."""
        return len(self._tokens) // self._block * self._block if self._block else 0

    def _unfinished(self) -> IntArray:
        return np.asarray(self._tokens[self._kept :], dtype=np.int64)

    def _run(self, tokens: IntArray, cached: int, rows: IntArray, outputs: Outputs) -> None:
        """Run over ``tokens`` behind ``cached`` others and score ``rows``."""
        one = self._pass("denoise", outputs)
        if self._block:
            own = np.arange(cached, cached + len(tokens)) // self._block  # [n]
            sees = np.arange(cached + len(tokens)) // self._block <= own[:, None]  # [n, total]
            hidden = self._graphs.unseen
            one.feed("bias", np.where(sees, 0.0, hidden).astype(self._graphs.dtype)[None, None])
        one.run(tokens, cached, rows, np.zeros_like(rows), outputs)

    def _hold_back(self, window: IntArray, logprob: FloatArray) -> None:
        """Lower the log-probabilities behind the first block with a mask in it.

        These weights never saw a block behind an unfinished one.
        """
        if not self._block:
            return
        first = len(self._tokens) + 1  # position that the first row predicts
        masked = np.flatnonzero(window[1:] == self._graphs.config.mask_token)
        writing = first + (int(masked[0]) if len(masked) else len(window) - 1)
        later = (first + np.arange(len(window))) // self._block > writing // self._block
        logprob[later] += _LATER
