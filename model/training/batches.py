"""Batches of packed rows: which rows go together, and which of their tokens are in the loss.

Rows of a batch lie behind one another; nothing is padded. Batch ``n`` is the same on every machine
and for any number of processes, because its draws depend on its number alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import SettingsError
from .checkpoints import TrainConfig
from .masks import draw_groups
from .moments import CODE
from .shards import PackedRows


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows behind one another; every tensor is in main memory."""

    tokens: Tensor  # [n] prompt + answer + END of each row
    lengths: list[int]  # of the rows
    at: Tensor  # [m] positions whose next token is in the causal loss
    weight: Tensor  # [m] of each of those tokens
    kind: Tensor  # [m] class of each: that of its row, or CODE
    starts: Tensor  # [rows, groups] of mask drafts, within their rows; no groups without masks
    mask_weight: Tensor  # [rows, groups, masks] of each mask in the loss

    @property
    def positions(self) -> int:
        """Return the number of supervised positions."""
        return len(self.at) + int((self.mask_weight > 0).sum())


class Batches:
    """Batch number n, for every n; epoch after epoch."""

    def __init__(self, rows: PackedRows, config: TrainConfig, end_token: int) -> None:
        self._rows, self._config, self._end_token = rows, config, end_token
        self._plans: list[list[NDArray[np.int64]]] = []

    def __getitem__(self, number: int) -> Batch:
        place, epoch = number, 0
        while True:
            if epoch == len(self._plans):
                self._plans.append(plan_batches(self._rows, self._config, epoch))
            if place < len(self._plans[epoch]):
                members = self._plans[epoch][place]
                return lay_batch(self._rows, members, self._config, self._end_token, number)
            place -= len(self._plans[epoch])
            epoch += 1


def plan_batches(rows: PackedRows, config: TrainConfig, epoch: int) -> list[NDArray[np.int64]]:
    """Return the row numbers of each batch of an epoch, in random order.

    Raises:
        SettingsError: no row is short enough.
    """
    rng = np.random.default_rng((config.seed, epoch))
    length = np.diff(rows.offset) + 1  # with END
    order = rng.permutation(np.flatnonzero(rows.prompt <= config.max_context))
    if not len(order):
        raise SettingsError(f"No row has a prompt of at most {config.max_context} tokens.")
    found: list[NDArray[np.int64]] = []
    begin, tokens = 0, 0
    for i, row in enumerate(order):
        tokens += int(length[row])
        if tokens > config.batch_tokens and i > begin:
            found.append(order[begin:i])
            begin, tokens = i, int(length[row])
    return [*found, order[begin:]]


def lay_batch(
    rows: PackedRows, members: NDArray[np.int64], config: TrainConfig, end_token: int, number: int
) -> Batch:
    """Return the batch of rows ``members``, with its random part drawn from ``number``."""
    rng = np.random.default_rng((config.seed, 1, number))
    texts, at, weight, kind, starts, mask_weight = [], [], [], [], [], []
    begin = 0
    for member in members:
        tokens, prompt, plain = rows[int(member)]
        answer = len(tokens) - prompt
        texts.append(np.append(tokens, end_token))
        if config.masks:
            start, of_masks = draw_groups(prompt, answer, config.groups, config.masks, rng)
            starts.append(start)
            mask_weight.append(of_masks)
        else:
            weights = causal_weights(prompt, answer, plain, config, rng)
            targets = np.flatnonzero(weights)
            at.append(targets - 1 + begin)
            weight.append(weights[targets])
            kind.append(np.where(targets < prompt, CODE, rows.kind[member]))
        begin += len(tokens) + 1
    return Batch(
        torch.from_numpy(np.concatenate(texts)),
        [len(text) for text in texts],
        torch.from_numpy(np.concatenate(at or [np.zeros(0, np.int64)])),
        torch.from_numpy(np.concatenate(weight or [np.zeros(0, np.float32)])),
        torch.from_numpy(np.concatenate(kind or [np.zeros(0, np.int64)])),
        torch.from_numpy(np.stack(starts)) if starts else torch.zeros(len(texts), 0).long(),
        torch.from_numpy(np.stack(mask_weight)) if starts else torch.zeros(len(texts), 0, 0),
    )


def causal_weights(
    prompt: int, answer: int, plain: int, config: TrainConfig, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return the weight [prompt + answer + 1] of each token as a target of the causal pass.

    The answer and its END count 1: weights that favour the change spoil the probabilities by which
    edits are ranked. Up to ``code_tokens`` tokens of the ordinary code in the prompt after
    ``plain`` count ``code_weight``: more signal from a context that is read anyway.
    """
    weight = np.zeros(prompt + answer + 1, np.float32)
    if plain and config.code_tokens and prompt - plain > 1:
        room = np.arange(plain + 1, prompt)
        chosen = rng.choice(room, min(config.code_tokens, len(room)), replace=False)
        weight[chosen] = config.code_weight
    weight[prompt:] = 1.0
    return weight
