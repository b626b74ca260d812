"""Runs imported weights that attend otherwise than to a canvas; see ``ModelConfig.attention``.

By blocks, keys and values of finished blocks are cached and exact; the unfinished one is read again
with every denoise step. In both directions nothing can be kept: a prefill only remembers tokens,
and every step reads all of them. The rest is that of ``onnx_backend.py``.

A window means the same as everywhere: its entry i predicts the token after it. Weights without the
shift predict a masked position in its own place, so they are given one mask more and the answers
are read one place further on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import InvalidRequest, SettingsError
from ..weights.manifest import read_json
from .backend import CHUNK, CanvasOutput, CausalOutput, FloatArray, IntArray
from .kv_memory import MOST_TOKENS, size_class
from .onnx_backend import DEFAULT_KV_BYTES, OnnxBackend
from .onnx_pass import Outputs, room_for
from .onnx_sequence import OnnxSequence

#: Confidence of positions behind the block being written: placed only where nothing else is left.
_LATER = 1e-6


def open_backend(
    folder: Path,
    provider: str | None = None,
    threads: int | None = None,
    kv_bytes: int = DEFAULT_KV_BYTES,
) -> OnnxBackend:
    """The backend that the attention of a model folder calls for; see :class:`OnnxBackend`."""
    attention = read_json(folder / "config.json").get("attention", "canvas")
    kind = OnnxBackend if attention == "canvas" else BlockBackend
    return kind(folder, provider, threads, kv_bytes)


class BlockBackend(OnnxBackend):
    """See the module."""

    def new_sequence(self, capacity: int) -> BlockSequence:
        if self.config.attention == "bidirectional" and capacity > MOST_TOKENS:
            raise InvalidRequest(
                f"{capacity:,} tokens are asked for; {self.config.name} reads all of them in every "
                f"step and takes {MOST_TOKENS:,} at most. Send less context."
            )
        return BlockSequence(self.graphs, self._pool.take(size_class(capacity)))


class BlockSequence(OnnxSequence):
    """Tokens, of which the finished blocks are in the buffer. See ``backend.Sequence``."""

    def prefill(self, tokens: IntArray) -> None:
        self._check_room(len(tokens))
        block, kept = self._block, self._kept
        if block:
            waiting = np.concatenate([self._unfinished(), tokens])
            finished = len(waiting) // block * block
            step = max(CHUNK // block, 1) * block
            for start in range(0, finished, step):
                chunk = waiting[start : min(start + step, finished)]
                self._read(chunk, kept + start, np.zeros(1, np.int64), {})
        self._tokens.extend(tokens.tolist())

    def verify(self, tokens: IntArray, logits: bool = False) -> CausalOutput:
        raise SettingsError(
            f"{self._graphs.config.name} never reads from left to right alone, so its drafts "
            "cannot be verified that way. Set verifier to none."
        )

    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        config, width = self._graphs.config, len(window)
        ahead = 0 if config.logit_shift else 1
        known = np.concatenate([self._unfinished(), window])
        length = len(known) + ahead
        if self._block:  # the block being written is as long as in training, masks to its end
            length = -(-length // self._block) * self._block
        self._check_room(self._kept + length - len(self._tokens))
        masks = np.full(length - len(known), config.mask_token, np.int64)
        rows = np.arange(width, dtype=np.int64) + (len(known) - width + ahead)
        outputs = room_for(width, vocab=config.vocab if logits else 0)
        self._read(np.concatenate([known, masks]), self._kept, rows, outputs)
        return CanvasOutput(
            outputs["token"][:, 0],
            self._held_back(window, outputs["confidence"][:, 0]),
            outputs.get("logits"),
        )

    def denoise_between(self, canvas: IntArray, behind: IntArray) -> CanvasOutput:
        assert not self._block, "weights that read by blocks see nothing behind"
        config, held, width = self._graphs.config, len(self._tokens), len(canvas)
        self._check_room(width + len(behind))
        rows = held + np.arange(width, dtype=np.int64) - config.logit_shift
        outputs = room_for(width, vocab=config.vocab)
        whole = np.concatenate([np.asarray(self._tokens, np.int64), canvas, behind])
        self._read(whole, 0, rows, outputs)
        token, confidence = outputs["token"][:, 0], outputs["confidence"][:, 0]
        return CanvasOutput(token, confidence, outputs["logits"])

    @property
    def _block(self) -> int:
        """0: nothing is ever finished."""
        return self._graphs.config.block

    @property
    def _kept(self) -> int:
        """Tokens whose keys and values are in the buffer."""
        return len(self._tokens) // self._block * self._block if self._block else 0

    def _unfinished(self) -> IntArray:
        return np.asarray(self._tokens[self._kept :], dtype=np.int64)

    def _read(self, tokens: IntArray, cached: int, rows: IntArray, outputs: Outputs) -> None:
        """Run over ``tokens`` behind ``cached`` others; ``outputs`` speak of ``rows``."""
        one = self._pass("denoise", outputs)
        if self._block:
            own = np.arange(cached, cached + len(tokens)) // self._block  # [n]
            sees = np.arange(cached + len(tokens)) // self._block <= own[:, None]  # [n, total]
            hidden = self._graphs.unseen
            one.feed("bias", np.where(sees, 0.0, hidden).astype(self._graphs.dtype)[None, None])
        one.run(tokens, cached, rows, np.zeros_like(rows), outputs)

    def _held_back(self, window: IntArray, confidence: FloatArray) -> FloatArray:
        """Block by block: what lies behind the first block with a mask in it has to wait, since
        these weights never saw a block behind an unfinished one."""
        if not self._block:
            return confidence
        first = len(self._tokens) + 1  # position that the first entry predicts
        masked = np.flatnonzero(window[1:] == self._graphs.config.mask_token)
        writing = first + (int(masked[0]) if len(masked) else len(window) - 1)
        later = (first + np.arange(len(window))) // self._block > writing // self._block
        return np.where(later, confidence * _LATER, confidence).astype(np.float32)
