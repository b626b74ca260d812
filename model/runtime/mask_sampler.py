"""The sampler of masks: it adapts a mask's guess to the token before it, once that is known.

The sampler of masked multi-token prediction (2507.11851) in numpy, some two million products a
guess; ``training/network.py`` trains it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .backend import FloatArray, IntArray
from .embedding import Embedding


class MaskSampler:
    """A :data:`redraft.model.runtime.backend.Follows`.

    Args:
        tensors: by their names of :class:`~redraft.model.config.ModelConfig`, float32.
        embedding: of the tokens before, and of the candidates.
    """

    def __init__(self, tensors: Mapping[str, NDArray[np.float32]], embedding: Embedding) -> None:
        self._embedding = embedding
        self._enter, self._enter_bias = (
            tensors["sampler.enter.weight"],
            tensors["sampler.enter.bias"],
        )
        self._mix, self._mix_bias = tensors["sampler.mix.weight"], tensors["sampler.mix.bias"]
        self._leave = tensors["sampler.leave.weight"]

    def __call__(self, mask: FloatArray, before: int, candidates: IntArray) -> FloatArray:
        tokens = np.append(candidates, before)
        rows = self._embedding.rows(tokens, canvas=False)[0].astype(np.float32)  # [k + 1, hidden]
        x = np.concatenate([_normed(mask), _normed(rows[-1])])  # [2 hidden]
        x = _silu(_times(self._enter, x) + self._enter_bias)  # [width]
        x += _silu(_times(self._mix, x) + self._mix_bias)
        return _times(rows[:-1], _times(self._leave, x))


#: Products of a matrix and a vector from which on OpenBLAS takes several threads.
_THREADS_FROM = 9_216


def _times(matrix: FloatArray, x: FloatArray) -> FloatArray:
    """Multiply ``matrix`` [n, m] by ``x`` [m] in this thread, in stacks of rows.

    Each stack is too small for a second thread: those that a BLAS wakes go on spinning for a while,
    and the pass that follows has as many threads as there are cores.
    """
    n, m = matrix.shape
    rows = max((_THREADS_FROM - 1) // m, 1)
    while n % rows:
        rows -= 1
    found: FloatArray = np.matmul(matrix.reshape(n // rows, rows, m), x).reshape(n)
    return found


def _normed(x: FloatArray) -> FloatArray:
    """Return x / rms(x), as torch's rms_norm without weights."""
    out: FloatArray = x / np.sqrt(np.mean(np.square(x)) + np.finfo(np.float32).eps)
    return out


def _silu(x: FloatArray) -> FloatArray:
    out: FloatArray = x / (1 + np.exp(-x))
    return out
