"""The torch twin of a sequence of the onnxruntime backend: the reference for its graphs.

Slow and plain: keys and values are concatenated, nothing is preallocated.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
import torch
from numpy.typing import NDArray
from redraft.model.config import CANDIDATES
from redraft.model.errors import SettingsError
from redraft.model.network.layout import TOP
from redraft.model.runtime.backend import FloatArray, IntArray, MaskGuesses, Rows, Scores
from redraft.model.training.network import KeyValues, Network
from torch import Tensor


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

    def extend(self, tokens: IntArray) -> None:
        """Append ``tokens`` [n]."""
        if len(tokens):
            self._append(tokens)

    @torch.no_grad()
    def score(
        self,
        tokens: IntArray,
        targets: IntArray | None = None,
        logits: bool = False,
        short: bool = False,
    ) -> Scores:
        """Append ``tokens`` [n] and predict the token after each."""
        found = self._network.logits(self._append(tokens), self._permitted)  # [n, vocab]
        following = np.append(tokens[1:], tokens[-1:]) if targets is None else targets
        return _scores(found, following, logits)

    @torch.no_grad()
    def _append(self, tokens: IntArray) -> Tensor:
        """Hidden states [n, hidden] of ``tokens``, whose keys and values join the cache."""
        ids = torch.from_numpy(tokens).to(self._network.embed.device)  # [n]
        hidden, own = self._network.context(ids, self._past)
        self._past = own if self._past is None else _join(self._past, own)
        self._tokens += tokens.tolist()
        return hidden

    @torch.no_grad()
    def read(self, rows: Rows, logits: bool = False, short: bool = False) -> Scores:
        """Append a chain of rows, and read masks behind it.

        Raises:
            SettingsError: the rows are no chain.
        """
        n, base = len(rows.tokens), len(self._tokens)
        kept = n - rows.masks
        if not np.array_equal(rows.sees[:kept, :kept], np.tril(np.ones((kept, kept), np.bool_))):
            raise SettingsError("torch reads one branch after the other: score each.")
        scores = self.score(rows.tokens[:kept], rows.targets[:kept], logits)
        if not rows.masks:
            return scores
        assert self._past is not None
        device = self._network.embed.device
        cache = np.ones((rows.masks, base), np.bool_)
        seen = torch.from_numpy(np.concatenate([cache, rows.sees[kept:]], axis=1))
        ids = torch.from_numpy(rows.tokens[kept:]).to(device)  # [g]
        at = torch.from_numpy(rows.positions[kept:]).to(device)
        hidden = self._network.masks(ids, at, self._past, seen.to(device))
        found = self._network.logits(hidden, self._permitted)  # [g, vocab]
        logit, token = found.topk(min(CANDIDATES, found.shape[-1]))
        confidence = torch.exp(logit[:, 0] - found.logsumexp(-1))
        follows = None if self._network.sampler is None else self._follows
        guesses = MaskGuesses(
            token.cpu().numpy(), _numpy(confidence), _numpy(logit), _numpy(hidden), follows
        )
        return scores._replace(masks=guesses)

    @torch.no_grad()
    def _follows(self, mask: FloatArray, before: int, candidates: IntArray) -> FloatArray:
        device = self._network.embed.device
        own = torch.from_numpy(mask)[None].to(device)
        one = torch.tensor([before], device=device)
        ids = torch.from_numpy(candidates)[None].to(device)
        return _numpy(self._network.follow(own, one, ids)[0])

    def permit(self, marks: Seq[int]) -> None:
        self._permitted = tuple(marks)

    def truncate(self, length: int) -> None:
        if length > len(self._tokens):
            raise ValueError(f"cannot truncate {len(self._tokens)} tokens to {length}")
        del self._tokens[length:]
        if self._past is not None:
            self._past = [(k[:, :length], v[:, :length]) for k, v in self._past] if length else None

    @torch.no_grad()
    def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
        """Read a canvas behind the tokens held."""
        assert not len(behind), "this network sees nothing behind a canvas"
        device = self._network.embed.device
        batch = torch.from_numpy(window)[None, None].to(device)  # [1, 1, B]
        starts = torch.full((1, 1), len(self._tokens), device=device)
        past = self._past if self._past is not None else _nothing(self._network)
        lengths = [len(self._tokens)]
        hidden = self._network.canvas(batch, starts, past, lengths)[0, 0]  # [B, hidden]
        return _scores(self._network.logits(hidden, self._permitted), window, logits)


def _scores(logits: Tensor, targets: IntArray, whole: bool) -> Scores:
    """Return the scores of rows with ``logits`` [n, vocab]."""
    logp = torch.log_softmax(logits, -1)
    best, top = logp.topk(TOP)
    asked = torch.from_numpy(targets.reshape(len(targets), -1))  # [n, k]
    of_targets = logp.gather(1, asked.to(logp.device))
    return Scores(
        top.cpu().numpy(),
        _numpy(best),
        _numpy(of_targets).reshape(targets.shape),
        _numpy(logits) if whole else None,
    )


def _join(past: KeyValues, own: KeyValues) -> KeyValues:
    return [
        (torch.cat([pk, k], 1), torch.cat([pv, v], 1))
        for (pk, pv), (k, v) in zip(past, own, strict=True)
    ]


def _nothing(network: Network) -> KeyValues:
    c = network.config
    empty = torch.zeros(c.kv_heads, 0, c.head_dim, dtype=network.dtype, device=network.embed.device)
    return [(empty, empty)] * c.layers


def _numpy(x: Tensor) -> NDArray[np.float32]:
    out: NDArray[np.float32] = x.float().cpu().numpy()
    return out
