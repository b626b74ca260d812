"""The torch twin of the onnxruntime backend: the reference for tests, and evaluation in training.

Slow and plain: keys and values are concatenated, nothing is preallocated. Never imported by
serving.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import CANDIDATES, ModelConfig
from ..errors import SettingsError
from ..network.torch_network import KeyValues, Network
from .backend import (
    CanvasOutput,
    CausalOutput,
    FloatArray,
    IntArray,
    JudgedOutput,
    MaskGuesses,
    Sequence,
)


class TorchSequence:
    """See :class:`redraft.model.runtime.backend.Sequence`."""

    def __init__(self, network: Network, capacity: int) -> None:
        self._network = network
        self._tokens: list[int] = []
        self._past: KeyValues | None = None
        self._permitted: tuple[int, ...] = (network.config.end_token,)
        self.capacity = capacity

    @property
    def tokens(self) -> Seq[int]:
        return self._tokens

    def prefill(self, tokens: IntArray) -> None:
        if len(tokens):
            self._append(tokens)

    @torch.no_grad()
    def verify(self, tokens: IntArray, logits: bool = False) -> CausalOutput:
        found = self._network.logits(self._append(tokens), self._permitted)  # [n, vocab]
        logp = torch.log_softmax(found, -1)
        best, token = logp.max(-1)
        targets = torch.from_numpy(tokens[1:, None]).to(logp.device)
        return CausalOutput(
            token.cpu().numpy(),
            _numpy(best.exp()),
            _numpy(logp[:-1].gather(1, targets)[:, 0]),
            _numpy(found) if logits else None,
        )

    @torch.no_grad()
    def _append(self, tokens: IntArray) -> Tensor:
        """Hidden states [n, hidden] of ``tokens``, whose keys and values join the cache."""
        ids = torch.from_numpy(tokens)[None].to(self._network.embed.device)  # [1, n]
        hidden, own = self._network.context(ids, self._past, len(self._tokens))
        self._past = own if self._past is None else _join(self._past, own)
        self._tokens += tokens.tolist()
        return hidden[0]

    @torch.no_grad()
    def judge(
        self,
        tokens: IntArray,
        positions: IntArray,
        sees: NDArray[np.bool_],
        judging: int,
        logits: bool = False,
    ) -> JudgedOutput:
        base = len(self._tokens)
        causal = self.verify(tokens[:judging], logits)
        if judging == len(tokens):
            return JudgedOutput(causal)
        assert self._past is not None
        device = self._network.embed.device
        cache = np.ones((len(tokens) - judging, base), np.bool_)
        seen = torch.from_numpy(np.concatenate([cache, sees[judging:]], axis=1))
        ids = torch.from_numpy(tokens[None, judging:]).to(device)  # [1, g]
        at = torch.from_numpy(base + positions[None, judging:]).to(device)
        hidden = self._network.masks(ids, at, self._past, seen[None, None].to(device))
        found = self._network.logits(hidden[0], self._permitted)  # [g, vocab]
        logit, token = found.topk(min(CANDIDATES, found.shape[-1]))
        confidence = torch.exp(logit[:, 0] - found.logsumexp(-1))
        follows = None if self._network.sampler is None else self._follows
        guesses = MaskGuesses(
            token.cpu().numpy(), _numpy(confidence), _numpy(logit), _numpy(hidden[0]), follows
        )
        return JudgedOutput(causal, guesses)

    @torch.no_grad()
    def _follows(self, mask: FloatArray, before: int, candidates: IntArray) -> FloatArray:
        device = self._network.embed.device
        own = torch.from_numpy(mask)[None].to(device)
        one = torch.tensor([before], device=device)
        ids = torch.from_numpy(candidates)[None].to(device)
        return _numpy(self._network.follow(own, one, ids)[0])

    @property
    def branches(self) -> bool:
        return False

    def branch(
        self, tokens: IntArray, depths: IntArray, sees: NDArray[np.bool_], base: int
    ) -> CausalOutput:
        raise SettingsError("torch reads one branch after the other; ask it to verify each.")

    def permit(self, marks: Seq[int]) -> None:
        self._permitted = tuple(marks)

    def truncate(self, length: int) -> None:
        if length > len(self._tokens):
            raise ValueError(f"cannot truncate {len(self._tokens)} tokens to {length}")
        del self._tokens[length:]
        if self._past is not None:
            self._past = (
                [(k[:, :, :length], v[:, :, :length]) for k, v in self._past] if length else None
            )

    @torch.no_grad()
    def denoise(self, window: IntArray, logits: bool = False) -> CanvasOutput:
        device = self._network.embed.device
        batch = torch.from_numpy(window)[None, None].to(device)  # [1, 1, B]
        starts = torch.full((1, 1), len(self._tokens), device=device)
        past = self._past if self._past is not None else _nothing(self._network)
        hidden = self._network.canvas(batch, starts, past)[0, 0]  # [B, hidden]
        found = self._network.logits(hidden, self._permitted)  # [B, vocab]
        confidence, token = torch.softmax(found, -1).max(-1)
        return CanvasOutput(
            token.cpu().numpy(),
            confidence.cpu().numpy(),
            _numpy(found) if logits else None,
        )


class TorchBackend:
    """See :class:`redraft.model.runtime.backend.Backend`."""

    variant = "torch"

    def __init__(self, network: Network) -> None:
        self._network = network.eval()

    @property
    def config(self) -> ModelConfig:
        return self._network.config

    @property
    def provider(self) -> str:
        return self._network.embed.device.type.upper()

    @property
    def bytes_per_token(self) -> int:
        c = self.config
        return 2 * c.layers * c.kv_heads * c.head_dim * self._network.dtype.itemsize

    def new_sequence(self, capacity: int) -> TorchSequence:
        return TorchSequence(self._network, capacity)

    def fork(self, sequence: Sequence, length: int, capacity: int) -> TorchSequence:
        assert isinstance(sequence, TorchSequence)
        twin = TorchSequence(self._network, capacity)
        twin._tokens = list(sequence._tokens)
        twin._past = None if sequence._past is None else list(sequence._past)
        twin.truncate(length)
        return twin

    def release(self, sequence: Sequence) -> None:
        """Nothing to give back: Python frees it."""

    def close(self) -> None:
        """Nothing to close."""


def _join(past: KeyValues, own: KeyValues) -> KeyValues:
    return [
        (torch.cat([pk, k], 2), torch.cat([pv, v], 2))
        for (pk, pv), (k, v) in zip(past, own, strict=True)
    ]


def _nothing(network: Network) -> KeyValues:
    c = network.config
    empty = torch.zeros(
        1, c.kv_heads, 0, c.head_dim, dtype=network.dtype, device=network.embed.device
    )
    return [(empty, empty)] * c.layers


def _numpy(x: Tensor) -> NDArray[np.float32]:
    out: NDArray[np.float32] = x.float().cpu().numpy()
    return out
