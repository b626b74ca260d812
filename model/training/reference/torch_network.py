"""The network: one Llama-style stack of weights, read in two attention modes (torch).

``context`` runs tokens causally and returns their keys and values; ``canvas`` runs several windows
that each see the cached context before them and themselves in both directions. ``whole`` runs a
sequence at once, in the attention of imported weights too. The reference for the ONNX graphs and
the module that trains. Knows nothing of prompts, noise or files.

Sources: Llama (2302.13971), grouped-query attention (2305.13245), LoRA (2106.09685); causal context
with a bidirectional canvas as in Set Block Decoding (2509.04185) and TiDAR (2511.08923).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import ModelConfig
from ...runtime.rope import rope_tables

#: Keys and values per layer, each [batch, kv_heads, length, head_dim], keys already rotated.
KeyValues = list[tuple[Tensor, Tensor]]


class AdaptedLinear(nn.Module):
    """y = W x + b, plus scale · B(A x) where the adapter is active; W trains only at rank 0."""

    def __init__(self, inputs: int, outputs: int, bias: bool, rank: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs), requires_grad=rank == 0)
        self.bias = nn.Parameter(torch.zeros(outputs), requires_grad=rank == 0) if bias else None
        self.scale = scale
        self.lora_a: nn.Parameter | None = None
        self.lora_b: nn.Parameter | None = None
        if rank:
            self.lora_a = nn.Parameter(torch.empty(rank, inputs))
            self.lora_b = nn.Parameter(torch.zeros(outputs, rank))
            nn.init.kaiming_uniform_(self.lora_a, a=5**0.5)

    def forward(self, x: Tensor, adapted: bool) -> Tensor:
        y = F.linear(
            x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype)
        )
        if adapted and self.lora_a is not None and self.lora_b is not None:
            low = F.linear(x, self.lora_a.to(x.dtype))  # [..., rank]
            y = y + F.linear(low, (self.lora_b * self.scale).to(x.dtype))
        return y


class RMSNorm(nn.Module):
    """x / rms(x) · weight, computed in fp32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight.float(), self.eps).to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate halves of x [batch, heads, length, head_dim] by cos, sin [batch, 1, length, half]."""
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return turned.to(x.dtype)


class Attention(nn.Module):
    """Grouped-query attention; the caller decides by ``mask`` or ``causal`` who sees whom."""

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
        x: Tensor,  # [batch, length, hidden]
        cos: Tensor,
        sin: Tensor,
        past: tuple[Tensor, Tensor] | None,
        mask: Tensor | None,  # bool [batch, 1, length, past + length]; None: causal, no past
        adapted: bool,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        c = self.config
        batch, length, _ = x.shape
        q = self.q(x, adapted).view(batch, length, c.heads, c.head_dim)
        k = self.k(x, adapted).view(batch, length, c.kv_heads, c.head_dim)
        v = self.v(x, adapted).view(batch, length, c.kv_heads, c.head_dim)
        if c.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q = rotate(q.transpose(1, 2), cos, sin)  # [batch, heads, length, head_dim]
        k = rotate(k.transpose(1, 2), cos, sin)  # [batch, kv_heads, length, head_dim]
        v = v.transpose(1, 2)  # [batch, kv_heads, length, head_dim]
        own = (k, v)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)  # [batch, kv_heads, past + length, head_dim]
            v = torch.cat([past[1], v], dim=2)  # [batch, kv_heads, past + length, head_dim]
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=c.heads != c.kv_heads
        )  # [batch, heads, length, head_dim]
        y = y.transpose(1, 2).reshape(batch, length, -1)  # [batch, length, heads * head_dim]
        return self.o(y, adapted), own


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
        out: Tensor = self.down(F.silu(self.gate(x, adapted)) * self.up(x, adapted), adapted)
        return out


class Sampler(nn.Module):
    """What the token before changes of a mask's guess: a vector to add to its hidden state.

    A mask is read before the token in front of the one it guesses is known; this is asked when it
    is. The sampler of masked multi-token prediction (2507.11851).
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
        mask: Tensor | None,
        adapted: bool,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, own = self.attn(self.norm_attn(x), cos, sin, past, mask, adapted)
        x = x + y
        return x + self.mlp(self.norm_mlp(x), adapted), own


class Network(nn.Module):
    """See the module. ``config.adapter`` says in which modes the adapter is active.

    Args:
        rank: of the adapter to train or to hold apart; 0: none, every weight trains.
        reach: positions to prepare rotary tables for; past config.max_positions they are scaled.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self, config: ModelConfig, rank: int = 0, scale: float = 1.0, reach: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(torch.empty(config.vocab, config.hidden), requires_grad=rank == 0)
        self.mask_embedding = nn.Parameter(torch.zeros(config.hidden))
        self.blocks = nn.ModuleList(Block(config, rank, scale) for _ in range(config.layers))
        self.norm = RMSNorm(config.hidden, config.norm_eps)
        if not config.tied:
            self.head = nn.Parameter(
                torch.empty(config.vocab, config.hidden), requires_grad=rank == 0
            )
        if rank:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_(name.endswith(("lora_a", "lora_b", "mask_embedding")))
        self.sampler = Sampler(config.hidden, config.sampler) if config.sampler else None
        cos, sin = rope_tables(config, reach or config.max_positions)
        self.register_buffer("cos", torch.from_numpy(cos), persistent=False)
        self.register_buffer("sin", torch.from_numpy(sin), persistent=False)

    def context(
        self, tokens: Tensor, past: KeyValues | None = None, start: int = 0
    ) -> tuple[Tensor, KeyValues]:
        """Causal pass. tokens [batch, n] at positions start … -> hidden [batch, n, hidden], KV."""
        n = tokens.shape[1]
        positions = torch.arange(start, start + n, device=tokens.device)
        mask = None
        if past is not None:
            seen = torch.arange(past[0][0].shape[2] + n, device=tokens.device)
            mask = (seen[None, :] <= positions[:, None])[None, None]  # [1, 1, n, past + n]
        x = F.embedding(tokens, self.embed).to(self.dtype)  # [batch, n, hidden]
        return self._run(x, positions[None], past, mask, self.config.adapter == "all")

    def canvas(
        self, windows: Tensor, starts: Tensor, past: KeyValues, causal: bool = False
    ) -> Tensor:
        """Bidirectional pass over C windows a row; none sees another.

        Args:
            causal: within a window, too, each position sees those before it alone.
            windows: [batch, C, B] token ids; masks are ``config.mask_token``.
            starts: [batch, C] position of each window's first token: it sees cache [0, start).
            past: keys and values of the row's causal pass, at least max(starts) long.

        Returns:
            Hidden states [batch, C, B, hidden]; entry i predicts token i + 1 with logit_shift.
        """
        batch, count, width = windows.shape
        offsets = torch.arange(width, device=windows.device)
        positions = (starts[..., None] + offsets).view(batch, -1)  # [batch, C*B]
        mask = canvas_mask(starts, past[0][0].shape[2], width, causal)
        x = self._embed_canvas(windows.view(batch, -1))  # [batch, C*B, hidden]
        hidden, _ = self._run(x, positions, past, mask, self.config.adapter != "none")
        return hidden.view(batch, count, width, -1)

    def masks(self, tokens: Tensor, positions: Tensor, past: KeyValues, sees: Tensor) -> Tensor:
        """Masks behind judged tokens, read with the adapter that acts on them alone.

        Args:
            tokens, positions: [1, g]. past: keys and values of the cache and the judged tokens.
            sees: bool [1, 1, g, past + g], whom each looks at.

        Returns:
            Hidden states [1, g, hidden].
        """
        x = self._embed_canvas(tokens)
        return self._run(x, positions, past, sees, True)[0]

    def whole(self, tokens: Tensor) -> Tensor:
        """Read tokens [batch, n] as ``config.attention`` says. [batch, n, hidden]."""
        n = tokens.shape[1]
        positions = torch.arange(n, device=tokens.device)
        x = F.embedding(tokens, self.embed).to(self.dtype)  # [batch, n, hidden]
        mask = whole_mask(self.config, positions)
        return self._run(x, positions[None], None, mask, self.config.adapter == "all")[0]

    def logits(self, hidden: Tensor, permitted: Sequence[int] | None = None) -> Tensor:
        """Return the logits of hidden states [..., hidden]. [..., vocab] fp32.

        Args:
            permitted: special tokens that keep their logits, None: END; the others get -1e9.
        """
        permitted = (self.config.end_token,) if permitted is None else permitted
        head = self.embed if self.config.tied else self.head
        out = F.linear(hidden, head.to(hidden.dtype)).float()
        ids = torch.arange(self.config.vocab, device=out.device)
        text = self.config.text_ids
        forbidden = (ids < text.start) | (ids >= text.stop)
        forbidden[list(permitted)] = False
        return out.masked_fill(forbidden, -1e9)

    def follow(self, masks: Tensor, before: Tensor, candidates: Tensor) -> Tensor:
        """Return what the sampler adds to the logits of candidates. [n, k] float32.

        Args:
            masks: hidden states [n, hidden] of masks.
            before: [n] the token before each.
            candidates: [n, k].
        """
        assert self.sampler is not None, "this network has no sampler"
        change = self.sampler(masks, F.embedding(before, self.embed))  # [n, hidden]
        rows = F.embedding(candidates, self.embed)  # [n, k, hidden]
        return torch.einsum("nkh,nh->nk", rows, change.to(rows.dtype)).float()

    @property
    def dtype(self) -> torch.dtype:
        """Activations compute in the type the big frozen matrices are stored in."""
        return self.embed.dtype

    def _embed_canvas(self, tokens: Tensor) -> Tensor:
        x = F.embedding(tokens, self.embed).to(self.dtype)
        if self.config.adapter == "none":
            return x
        masked = (tokens == self.config.mask_token)[..., None]
        return torch.where(masked, self.mask_embedding.to(self.dtype), x)

    def _run(
        self,
        x: Tensor,
        positions: Tensor,  # [batch or 1, length]
        past: KeyValues | None,
        mask: Tensor | None,
        adapted: bool,
    ) -> tuple[Tensor, KeyValues]:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        own: KeyValues = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, cos, sin, None if past is None else past[i], mask, adapted)
            own.append(kv)
        return self.norm(x), own

    def load(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Fill from tensors named as in :class:`ModelConfig` (and lora_a / lora_b where held).

        Raises:
            KeyError: a tensor of the network is missing from ``weights``.
        """
        own = dict(self.named_parameters())
        for name, parameter in own.items():
            key = (
                name if name.endswith(("weight", "bias", "lora_a", "lora_b")) else f"{name}.weight"
            )
            if name.startswith("sampler.") and name not in weights:
                continue
            if name == "mask_embedding":
                if name in weights:
                    parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(weights[name])))
                continue
            if key not in weights and key.endswith(("lora_a", "lora_b")):
                continue
            parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(weights[key])))


def canvas_mask(starts: Tensor, past: int, width: int, causal: bool = False) -> Tensor:
    """Who sees whom: bool [batch, 1, C*B, past + C*B]; True may look.

    A window sees cached positions before its own start, and itself, or of itself what is before.
    """
    batch, count = starts.shape
    cache = torch.arange(past, device=starts.device)
    to_cache = cache[None, None] < starts[..., None]  # [batch, C, past]
    to_cache = to_cache.repeat_interleave(width, dim=1)  # [batch, C*B, past]
    owner = torch.arange(count, device=starts.device).repeat_interleave(width)
    own = owner[:, None] == owner[None]
    to_self = (own.tril() if causal else own).expand(batch, -1, -1)  # [batch, C*B, C*B]
    return torch.cat([to_cache, to_self], dim=2)[:, None]


def whole_mask(config: ModelConfig, positions: Tensor) -> Tensor | None:
    """Who sees whom in a sequence: bool [1, 1, n, n]; None: each those before it."""
    if config.attention == "canvas":
        return None
    block = config.block if config.attention == "block" else len(positions)
    own = positions // block
    return (own[None] <= own[:, None])[None, None]
