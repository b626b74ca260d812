"""Products of frozen matrices in 8 bits, bfloat16 or float32, and the loss over a vocabulary.

In 8 bits, inputs are rounded per token and weights per output channel; in the backward pass,
gradients per token and weights per input channel (SwitchBack, 2304.13013). Sums are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Arithmetic = Literal["int8", "bf16", "fp32"]
CHUNK = 384  # rows of a product in 8 bits: their sums of 32 bits stay in the cache
LIKELIEST = 64  # tokens that give the gradient of the head; all others count as their mean
_FASTER = 1.25  # times as fast as float32, or float32 it is: its gradients are exact


def probe(weight: Tensor) -> Arithmetic:
    """Return the arithmetic in which this processor multiplies by ``weight`` [out, in] fastest.

    Only what the processor has instructions for is tried: bfloat16 is never emulated.
    """
    if weight.is_cuda:
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    ways: list[Arithmetic] = ["fp32"]
    # These three are private to torch; the test of this function fails where one is gone.
    if torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported():
        ways.append("bf16")
    if torch.cpu._is_vnni_supported():
        ways.append("int8")
    x = torch.randn(CHUNK, weight.shape[1])
    seconds = {way: _seconds(FrozenMatrix(weight, way), x) for way in ways}
    best = min(ways, key=lambda way: seconds[way])
    return best if seconds[best] * _FASTER < seconds["fp32"] else "fp32"


def _seconds(matrix: FrozenMatrix, x: Tensor) -> float:
    """Return the least time of five products; the first of them also prepares."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        matrix(x)
        times.append(time.perf_counter() - begin)
    return min(times)


# --- 8 bits -----------------------------------------------------------------------------------


class Quantised(NamedTuple):
    """A matrix in 8 bits, one scale for each row; value · scale is the number."""

    values: Tensor  # int8 [rows, columns]
    scale: Tensor  # float32 [rows, 1]


def quantise(x: Tensor) -> Quantised:
    """Round each row of ``x`` [rows, columns] to 8 bits."""
    scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-10) / 127
    return Quantised(torch.round(x / scale).to(torch.int8), scale)


def multiply(x: Tensor, matrix: Quantised) -> Tensor:
    """Return ``x`` [n, in], rounded to 8 bits, times ``matrix`` [out, in]. float32 [n, out]."""
    rounded = quantise(x)
    columns = matrix.scale[:, 0]
    out = torch.empty(len(x), len(matrix.values))
    for begin in range(0, len(x), CHUNK):
        rows = slice(begin, begin + CHUNK)
        sums = torch._int_mm(rounded.values[rows], matrix.values.t())  # int32 [rows, out]
        torch.mul(sums, columns, out=out[rows]).mul_(rounded.scale[rows])
    return out


class _Product8(torch.autograd.Function):
    """x Wᵀ with both directions in 8 bits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Quantised, transposed: Quantised) -> Tensor:
        ctx.transposed = transposed
        return multiply(x, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return multiply(gradient, ctx.transposed), None, None


class FrozenMatrix(nn.Module):
    """A matrix [out, in] that does not train, stored for one arithmetic."""

    def __init__(self, weight: Tensor, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.eight: tuple[Quantised, Quantised] | None = None  # itself, and transposed
        if arithmetic == "int8":
            self.eight = quantise(weight), quantise(weight.t().contiguous())
            return
        dtype = torch.bfloat16 if arithmetic == "bf16" else torch.float32
        self.register_buffer("weight", weight.detach().to(dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., in] times the matrix. [..., out] float32, or bfloat16 if it is so."""
        if self.eight is None:
            weight = self.get_buffer("weight")
            return F.linear(x.to(weight.dtype), weight)
        flat = x.reshape(-1, x.shape[-1])  # [n, in]
        found: Tensor = _Product8.apply(flat, *self.eight)  # type: ignore[no-untyped-call]
        return found.view(*x.shape[:-1], -1)


# --- the loss over the vocabulary -------------------------------------------------------------


class _Nats(torch.autograd.Function):
    """Cross-entropy over a vocabulary, its gradient by the likeliest tokens alone."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        target: Tensor,
        logits_of: Callable[[Tensor], Tensor],
        rows: Tensor,
        mean: Tensor,
    ) -> Tensor:
        nats, slope = hidden.new_empty(len(hidden)), torch.empty_like(hidden)
        chunk = 1_024 if hidden.is_cuda else 128
        for begin in range(0, len(hidden), chunk):
            part = slice(begin, begin + chunk)
            logits = logits_of(hidden[part])  # [m, vocab]
            total = logits.logsumexp(-1, keepdim=True)  # [m, 1]
            nats[part] = (total - logits.gather(1, target[part, None]))[:, 0]
            best, ids = logits.topk(min(LIKELIEST, logits.shape[1]))  # [m, LIKELIEST] each
            p = (best - total).exp()
            expected = torch.einsum("mk,mkh->mh", p, rows[ids])  # [m, hidden]
            slope[part] = expected + (1 - p.sum(-1, keepdim=True)) * mean - rows[target[part]]
        ctx.save_for_backward(slope)
        return nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return slope * gradient[:, None], None, None, None, None


def sparse_nats(
    hidden: Tensor,
    target: Tensor,
    logits_of: Callable[[Tensor], Tensor],
    rows: Tensor,
    mean: Tensor,
) -> Tensor:
    """Return the cross-entropy of each position. [n] float32.

    A head over 151,936 tokens costs as much as four layers. So the logits are not kept, and the
    gradient comes from the :data:`LIKELIEST` tokens and the mean row in place of all others.

    Args:
        hidden: [n, hidden] float32.
        target: [n] token ids.
        logits_of: logits [m, vocab] float32 of hidden states [m, hidden].
        rows: of the head, [vocab, hidden] float32.
        mean: of those rows that may be predicted. [hidden].
    """
    found: Tensor = _Nats.apply(hidden, target, logits_of, rows, mean)  # type: ignore[no-untyped-call]
    return found
