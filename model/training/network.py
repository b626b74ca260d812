"""The network in torch: what trains, and the reference for the ONNX graphs.

One Llama-style stack of weights. :meth:`Network.context` reads tokens causally and returns their
keys and values; rows that lie behind one another see nothing of each other, so nothing is padded.
:meth:`Network.canvas` reads windows that each see the context before them and themselves;
:meth:`Network.whole` reads a sequence in the attention of imported weights.

Sources: Llama (2302.13971), grouped-query attention (2305.13245), LoRA (2106.09685); causal context
with a bidirectional canvas as in Set Block Decoding (2509.04185) and TiDAR (2511.08923).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import ModelConfig
from ..runtime.rope import rope_tables
from .arithmetic import Arithmetic, FrozenMatrix, Quantised, multiply, quantise, sparse_nats
from .layers import AdaptedLinear, Block, RMSNorm, Sampler, Segment, constant_parameter

#: Keys and values per layer, each [kv_heads, length, head_dim], keys already rotated.
KeyValues = list[tuple[Tensor, Tensor]]


class Network(nn.Module):
    """See the module. ``config.adapter`` says in which modes the adapter is active.

    Args:
        rank: of the adapter to train or to hold apart; 0: none.
        low: layers below this one have no adapter, so they need no backward pass.
        reach: positions to prepare rotary tables for; past config.max_positions they are scaled.
    """

    cos: Tensor
    sin: Tensor
    mean_row: Tensor

    def __init__(
        self, config: ModelConfig, rank: int = 0, scale: float = 1.0, reach: int = 0, low: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.arithmetic: Arithmetic = "fp32"
        self.embed = constant_parameter(config.vocab, config.hidden)
        self.mask_embedding = nn.Parameter(
            torch.zeros(config.hidden), requires_grad=config.adapter == "masks"
        )
        self.blocks = nn.ModuleList(
            Block(config, rank if i >= low else 0, scale) for i in range(config.layers)
        )
        self.norm = RMSNorm(config.hidden, config.norm_eps)
        if not config.tied:
            self.head = constant_parameter(config.vocab, config.hidden)
        self.sampler = Sampler(config.hidden, config.sampler) if config.sampler else None
        self._head_in_8_bits: Quantised | None = None
        self._head_in_bf16: FrozenMatrix | None = None
        self.register_buffer("mean_row", torch.empty(0), persistent=False)  # of the head
        cos, sin = rope_tables(config, reach or config.max_positions)
        self.register_buffer("cos", torch.from_numpy(cos), persistent=False)
        self.register_buffer("sin", torch.from_numpy(sin), persistent=False)

    def freeze(self, arithmetic: Arithmetic) -> None:
        """Keep the matrices of the base for ``arithmetic`` alone; :meth:`load` is over then."""
        self.arithmetic = arithmetic
        for module in self.modules():
            if isinstance(module, AdaptedLinear):
                module.freeze(arithmetic)
        self.mean_row = self._output.data[~self._forbidden(None)].mean(0)  # [hidden]
        if arithmetic == "int8":
            self._head_in_8_bits = quantise(self._output)
        elif arithmetic == "bf16":
            self._head_in_bf16 = FrozenMatrix(self._output, arithmetic)

    def context(
        self,
        tokens: Tensor,
        past: KeyValues | None = None,
        lengths: Sequence[int] | None = None,
    ) -> tuple[Tensor, KeyValues]:
        """Read tokens [n] causally, behind those of ``past``.

        Args:
            lengths: of rows that lie behind one another, without ``past``; None: one row.

        Returns:
            Hidden states [n, hidden], and keys and values of the tokens.
        """
        n, start = len(tokens), 0 if past is None else past[0][0].shape[1]
        lengths = [n] if lengths is None else lengths
        positions = torch.cat([torch.arange(length) for length in lengths]) + start
        positions = positions.to(tokens.device)
        segments = [Segment(own, slice(0), None) for own in slices(lengths)]
        if past is not None:
            seen = torch.arange(start + n, device=tokens.device)
            segments = [Segment(slice(n), slice(start), seen <= positions[:, None])]
        x = F.embedding(tokens, self.embed)  # [n, hidden]
        return self._run(x, positions, past, segments, self.config.adapter == "all")

    def canvas(
        self,
        windows: Tensor,
        starts: Tensor,
        past: KeyValues,
        lengths: Sequence[int],
        causal: bool = False,
    ) -> Tensor:
        """Read C windows behind each row; none sees another.

        Args:
            windows: [rows, C, B] token ids; masks are ``config.mask_token``.
            starts: [rows, C] position of each window's first token: it sees its row before it.
            past: keys and values of the rows' causal pass.
            lengths: of the rows in ``past``, where they lie behind one another.
            causal: within a window, each position sees those before it alone.

        Returns:
            Hidden states [rows, C, B, hidden]; entry i predicts token i + 1 with logit_shift.
        """
        rows, count, width = windows.shape
        offsets = torch.arange(width, device=windows.device)
        positions = (starts[..., None] + offsets).flatten()  # [rows * C * B]
        segments = [
            Segment(own, cached, canvas_mask(row, cached.stop - cached.start, width, causal))
            for own, cached, row in zip(
                slices([count * width] * rows), slices(lengths), starts, strict=True
            )
        ]
        x = self._embed_canvas(windows.flatten())  # [rows * C * B, hidden]
        hidden, _ = self._run(x, positions, past, segments, self.config.adapter != "none")
        return hidden.view(rows, count, width, -1)

    def masks(self, tokens: Tensor, positions: Tensor, past: KeyValues, sees: Tensor) -> Tensor:
        """Read masks behind verified tokens with the adapter that acts on them alone.

        Args:
            tokens, positions: [g]. past: keys and values of the cache and the verified tokens.
            sees: bool [g, past + g], whom each looks at.

        Returns:
            Hidden states [g, hidden].
        """
        segment = Segment(slice(len(tokens)), slice(past[0][0].shape[1]), sees)
        return self._run(self._embed_canvas(tokens), positions, past, [segment], True)[0]

    def whole(self, tokens: Tensor) -> Tensor:
        """Read tokens [n] as ``config.attention`` says. [n, hidden]."""
        positions = torch.arange(len(tokens), device=tokens.device)
        segment = Segment(slice(len(tokens)), slice(0), whole_mask(self.config, positions))
        x = F.embedding(tokens, self.embed)  # [n, hidden]
        return self._run(x, positions, None, [segment], self.config.adapter == "all")[0]

    def logits(self, hidden: Tensor, permitted: Sequence[int] | None = None) -> Tensor:
        """Return the logits of hidden states [..., hidden]. [..., vocab] fp32.

        Args:
            permitted: special tokens that keep their logits, None: END; the others get -1e9.
        """
        if self._head_in_bf16 is not None:
            out: Tensor = self._head_in_bf16(hidden).float()
        else:
            out = F.linear(hidden, self._output)
        return out.masked_fill(self._forbidden(permitted), -1e9)

    def nats(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy of hidden states [n, hidden] with the tokens [n]. [n].

        The gradient is sparse, see :func:`sparse_nats`. The network has to be frozen.
        """
        forbidden, head = self._forbidden(None), self._head_in_8_bits

        def logits_of(part: Tensor) -> Tensor:
            if head is None:
                return self.logits(part)
            return multiply(part, head).masked_fill_(forbidden, -1e9)

        return sparse_nats(hidden, target, logits_of, self._output.data, self.mean_row)

    def _forbidden(self, permitted: Sequence[int] | None) -> Tensor:
        """Return which tokens are never predicted. bool [vocab]."""
        ids = torch.arange(self.config.vocab, device=self.embed.device)
        text = self.config.text_ids
        forbidden = (ids < text.start) | (ids >= text.stop)
        forbidden[[self.config.end_token] if permitted is None else list(permitted)] = False
        return forbidden

    @property
    def largest_matrix(self) -> Tensor:
        """Return a matrix of the layers that is as large as any, before :meth:`freeze`."""
        return self.get_parameter("blocks.0.mlp.gate.weight").data

    @property
    def _output(self) -> Tensor:
        """Return the rows of the head. [vocab, hidden]."""
        return self.embed if self.config.tied else self.head

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
        """Return the type of keys and values."""
        return torch.bfloat16 if self.arithmetic == "bf16" else torch.float32

    def _embed_canvas(self, tokens: Tensor) -> Tensor:
        x = F.embedding(tokens, self.embed)
        if self.config.adapter == "none":
            return x
        masked = (tokens == self.config.mask_token)[..., None]
        return torch.where(masked, self.mask_embedding, x)

    def _run(
        self,
        x: Tensor,  # [length, hidden] float32
        positions: Tensor,  # [length]
        past: KeyValues | None,
        segments: Sequence[Segment],
        adapted: bool,
    ) -> tuple[Tensor, KeyValues]:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]  # [length, 1, half]
        own: KeyValues = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, cos, sin, None if past is None else past[i], segments, adapted)
            own.append(kv)
        return self.norm(x), own

    def load(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Fill from tensors named as in :class:`ModelConfig` (and lora_a / lora_b where held).

        Raises:
            KeyError: a tensor of the network is missing from ``weights``.
        """
        for name, parameter in self.named_parameters():
            ends = ("weight", "bias", "lora_a", "lora_b", "mask_embedding")
            key = name if name.endswith(ends) else f"{name}.weight"
            of_adapter = key.endswith(ends[2:]) or key.startswith("sampler.")
            if key in weights or not of_adapter:
                parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(weights[key])))


def slices(lengths: Sequence[int]) -> list[slice]:
    """Return the slices of consecutive rows of these lengths."""
    return [slice(*ends) for ends in pairwise(accumulate(lengths, initial=0))]


def canvas_mask(starts: Tensor, past: int, width: int, causal: bool = False) -> Tensor:
    """Return the attention mask of windows: bool [C*B, past + C*B], True where attended to.

    A window attends to cached positions before its start [C] and to itself; with ``causal`` only to
    earlier positions of itself.
    """
    cache = torch.arange(past, device=starts.device)
    to_cache = (cache < starts[:, None]).repeat_interleave(width, dim=0)  # [C*B, past]
    owner = torch.arange(len(starts), device=starts.device).repeat_interleave(width)
    own = owner[:, None] == owner  # [C*B, C*B]
    return torch.cat([to_cache, own.tril() if causal else own], dim=1)


def whole_mask(config: ModelConfig, positions: Tensor) -> Tensor | None:
    """Return who sees whom in a sequence: bool [n, n]; None: each those before it."""
    if config.attention == "canvas":
        return None
    block = config.block if config.attention == "block" else len(positions)
    own = positions // block
    return own <= own[:, None]
