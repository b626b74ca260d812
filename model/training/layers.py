"""Layers of the network: adapted products, attention, the feed-forward part, the sampler of masks.

Everything works on one sequence [length, hidden]; :class:`Segment` says which rows lie in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import ModelConfig
from .arithmetic import Arithmetic, FrozenMatrix


class Segment(NamedTuple):
    """A row among those that lie behind one another."""

    own: slice  # of the tokens that are read
    cached: slice  # of those whose keys and values are held
    sees: Tensor | None  # bool [own, cached + own]; None: each token those before it, no cache


class AdaptedLinear(nn.Module):
    """y = W x + b, plus scale · B(A x) where the adapter is active; only A and B train."""

    def __init__(self, inputs: int, outputs: int, bias: bool, rank: int, scale: float) -> None:
        super().__init__()
        self.weight: nn.Parameter | None = constant_parameter(outputs, inputs)
        self.bias = nn.Parameter(torch.zeros(outputs), requires_grad=False) if bias else None
        self.frozen: FrozenMatrix | None = None
        self.scale = scale
        self.lora_a: nn.Parameter | None = None
        self.lora_b: nn.Parameter | None = None
        if rank:
            self.lora_a = nn.Parameter(torch.empty(rank, inputs))
            self.lora_b = nn.Parameter(torch.zeros(outputs, rank))
            nn.init.kaiming_uniform_(self.lora_a, a=5**0.5)

    def freeze(self, arithmetic: Arithmetic) -> None:
        """Keep the weight for ``arithmetic`` alone."""
        assert self.weight is not None
        self.frozen, self.weight = FrozenMatrix(self.weight.data, arithmetic), None

    def forward(self, x: Tensor, adapted: bool) -> Tensor:
        if self.frozen is not None:
            y: Tensor = self.frozen(x)
        else:
            assert self.weight is not None
            y = F.linear(x, self.weight)
        if self.bias is not None:
            y = y + self.bias.to(y.dtype)
        if adapted and self.lora_a is not None and self.lora_b is not None:
            low = F.linear(x.to(y.dtype), self.lora_a.to(y.dtype))  # [..., rank]
            y = y + F.linear(low, (self.lora_b * self.scale).to(y.dtype))
        return y


def constant_parameter(*shape: int) -> nn.Parameter:
    """Return a parameter of this shape, not filled yet, that does not train."""
    return nn.Parameter(torch.empty(*shape), requires_grad=False)


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


def _activation(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


#: What is no product, shared by all layers so that it is compiled once.
_pointwise: dict[str, Callable[..., Tensor]] = {"norm": _norm, "activation": _activation}


def compile_pointwise() -> None:
    """Compile norms and activations for all networks of this process; needs a C++ compiler."""
    _pointwise["norm"] = torch.compile(_norm, dynamic=True)
    _pointwise["activation"] = torch.compile(_activation, dynamic=True)


class RMSNorm(nn.Module):
    """x / rms(x) · weight, computed in fp32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return _pointwise["norm"](x, self.weight, self.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate halves of x [length, heads, head_dim] by cos, sin [length, 1, half]."""
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return turned.to(x.dtype)


class Attention(nn.Module):
    """Grouped-query attention; the segments decide who sees whom."""

    def __init__(self, config: ModelConfig, rank: int, scale: float) -> None:
        super().__init__()
        self.config = config
        width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim

        def linear(inputs: int, outputs: int, bias: bool) -> AdaptedLinear:
            return AdaptedLinear(inputs, outputs, bias, rank, scale)

        self.q = linear(config.hidden, width, config.qkv_bias)
        self.k = linear(config.hidden, kv_width, config.qkv_bias)
        self.v = linear(config.hidden, kv_width, config.qkv_bias)
        self.o = linear(width, config.hidden, False)
        if config.qk_norm:
            self.q_norm = RMSNorm(config.head_dim, config.norm_eps)
            self.k_norm = RMSNorm(config.head_dim, config.norm_eps)

    def forward(
        self,
        x: Tensor,  # [length, hidden]
        cos: Tensor,
        sin: Tensor,
        past: tuple[Tensor, Tensor] | None,
        segments: Sequence[Segment],
        adapted: bool,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        c = self.config
        q = self.q(x, adapted).view(-1, c.heads, c.head_dim)  # [length, heads, head_dim]
        k = self.k(x, adapted).view(-1, c.kv_heads, c.head_dim)
        v = self.v(x, adapted).view(-1, c.kv_heads, c.head_dim)
        if c.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q = rotate(q, cos, sin).transpose(0, 1)  # [heads, length, head_dim]
        k = rotate(k, cos, sin).transpose(0, 1)  # [kv_heads, length, head_dim]
        v = v.transpose(0, 1)  # [kv_heads, length, head_dim]
        y = torch.cat([_attend(q, k, v, past, segment) for segment in segments], dim=1)
        y = y.transpose(0, 1).reshape(len(x), -1)  # [length, heads * head_dim]
        return self.o(y, adapted), (k, v)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, past: tuple[Tensor, Tensor] | None, segment: Segment
) -> Tensor:
    """Return what the tokens of one segment see. [heads, own, head_dim]."""
    own, cached, sees = segment
    keys, values = k[:, own], v[:, own]  # [kv_heads, own, head_dim]
    if past is not None:
        keys = torch.cat([past[0][:, cached], keys], dim=1)  # [kv_heads, cached + own, head_dim]
        values = torch.cat([past[1][:, cached], values], dim=1)
    groups = len(q) // len(k)
    return F.scaled_dot_product_attention(
        q[None, :, own],
        keys.repeat_interleave(groups, 0)[None],
        values.repeat_interleave(groups, 0)[None],
        attn_mask=sees,
        is_causal=sees is None,
    )[0]


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: ModelConfig, rank: int, scale: float) -> None:
        super().__init__()
        # An adapter on masks is on the way in alone: each product it is in costs two small ones.
        below = 0 if config.adapter == "masks" else rank
        self.gate = AdaptedLinear(config.hidden, config.intermediate, False, rank, scale)
        self.up = AdaptedLinear(config.hidden, config.intermediate, False, rank, scale)
        self.down = AdaptedLinear(config.intermediate, config.hidden, False, below, scale)

    def forward(self, x: Tensor, adapted: bool) -> Tensor:
        inner = _pointwise["activation"](self.gate(x, adapted), self.up(x, adapted))
        out: Tensor = self.down(inner, adapted)
        return out


class Sampler(nn.Module):
    """A change of a mask's hidden state by the token in front of the one that it guesses.

    A mask is read before that token is known; the sampler runs when it is. Source:
    masked multi-token prediction (2507.11851).
    """

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Linear(2 * hidden, width)
        self.mix = nn.Linear(width, width)
        self.leave = nn.Linear(width, hidden, bias=False)
        nn.init.zeros_(self.leave.weight)

    def forward(self, masks: Tensor, before: Tensor) -> Tensor:
        """Return the change of hidden states. [..., hidden] float32.

        Args:
            masks: hidden states. before: embeddings of the tokens before. [..., hidden] each.
        """
        parts = [F.rms_norm(x.float(), (x.shape[-1],)) for x in (masks, before)]
        x = F.silu(self.enter(torch.cat(parts, -1)))  # [..., width]
        out: Tensor = self.leave(x + F.silu(self.mix(x)))
        return out


class Block(nn.Module):
    def __init__(self, config: ModelConfig, rank: int, scale: float) -> None:
        super().__init__()
        self.norm_attn = RMSNorm(config.hidden, config.norm_eps)
        # An adapter on masks leaves attention as it is.
        self.attn = Attention(config, 0 if config.adapter == "masks" else rank, scale)
        self.norm_mlp = RMSNorm(config.hidden, config.norm_eps)
        self.mlp = FeedForward(config, rank, scale)

    def forward(
        self,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        past: tuple[Tensor, Tensor] | None,
        segments: Sequence[Segment],
        adapted: bool,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, own = self.attn(self.norm_attn(x), cos, sin, past, segments, adapted)
        x = x + y
        return x + self.mlp(self.norm_mlp(x), adapted), own
