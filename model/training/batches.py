"""Batches of packed rows: which rows go together, and what of each counts in the loss.

Batch ``n`` is the same on every machine and for any number of processes: it is drawn from its
number alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..config import ModelConfig
from ..errors import SettingsError
from .mask_drafts import LaidGroups, draw_groups
from .shards import Rows

#: Rows of one pool are sorted by length, so that a batch is padded little.
POOL = 2_048


@dataclass(frozen=True, slots=True)
class Laying:
    """What of the training's configuration decides the batches."""

    batch_tokens: int  # context tokens of a batch, padding included
    max_context: int  # rows with a longer prompt are skipped
    code_tokens: int  # see causal_weights
    code_weight: float
    seed: int
    masks: int = 0  # of a group of mask drafts, which take the place of the causal loss; 0: none
    groups: int = 0  # of mask drafts per row


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded to one length; every tensor lives on the CPU."""

    tokens: Tensor  # [rows, length] prompt + answer + END padding
    starts: Tensor  # [rows, groups] of mask drafts; no groups where the causal loss trains
    weights: Tensor  # [rows, groups, masks] of each mask in the loss
    causal: Tensor  # [rows, length] weight of each token as the causal pass's target

    def pin_memory(self) -> Batch:
        """Return the batch in memory that a CUDA device reads without waiting."""
        return Batch(**{each.name: getattr(self, each.name).pin_memory() for each in fields(self)})


class Batches(Dataset[Batch]):
    """Batch number n, for every n; epoch after epoch."""

    def __init__(self, rows: Rows, laying: Laying, model: ModelConfig) -> None:
        self._rows, self._laying, self._model = rows, laying, model
        self._plans: list[list[NDArray[np.int64]]] = []

    def __getitem__(self, number: int) -> Batch:
        place, epoch = number, 0
        while True:
            if epoch == len(self._plans):
                self._plans.append(plan_batches(self._rows, self._laying, epoch))
            if place < len(self._plans[epoch]):
                members = self._plans[epoch][place]
                return lay_batch(self._rows, members, self._laying, self._model, number)
            place -= len(self._plans[epoch])
            epoch += 1


def stream(batches: Batches, first: int, stride: int, workers: int, pin: bool) -> Iterator[Batch]:
    """Batches ``first``, ``first + stride``, … for ever, laid ahead by ``workers`` processes."""
    return iter(
        DataLoader(
            batches,
            batch_size=None,
            sampler=itertools.count(first, stride),
            num_workers=workers,
            prefetch_factor=4 if workers else None,
            pin_memory=pin,
        )
    )


def plan_batches(rows: Rows, laying: Laying, epoch: int) -> list[NDArray[np.int64]]:
    """Row numbers of each batch: rows of like length together, batches in random order.

    Raises:
        SettingsError: no row is short enough.
    """
    rng = np.random.default_rng((laying.seed, epoch))
    length = np.diff(rows.offset)
    fitting = np.flatnonzero(rows.prompt <= laying.max_context)
    order = rng.permutation(fitting)
    found: list[NDArray[np.int64]] = []
    for begin in range(0, len(order), POOL):
        part = order[begin : begin + POOL]
        part = part[np.argsort(length[part], kind="stable")]
        start, longest = 0, 0
        for i in range(len(part)):
            longest = max(longest, int(length[part[i]]) + 16)
            if longest * (i + 1 - start) > laying.batch_tokens and i > start:
                found.append(part[start:i])
                start, longest = i, int(length[part[i]]) + 16
        found.append(part[start:])
    if not found:
        raise SettingsError(f"No row has a prompt of at most {laying.max_context} tokens.")
    return [found[i] for i in rng.permutation(len(found))]


def lay_batch(
    rows: Rows, members: NDArray[np.int64], laying: Laying, model: ModelConfig, number: int
) -> Batch:
    """Return the batch of rows ``members``, with what is random of it drawn from ``number``."""
    rng = np.random.default_rng((laying.seed, 1, number))
    texts: list[NDArray[np.int64]] = []
    causal: list[NDArray[np.float32]] = []
    drawn: list[LaidGroups] = []
    for member in members:
        tokens, prompt, plain = rows[int(member)]
        answer = len(tokens) - prompt
        if laying.masks:
            drawn.append(draw_groups(prompt, answer, laying.groups, laying.masks, rng))
        texts.append(np.append(tokens, model.end_token))
        weights = causal_weights(prompt, answer, plain, laying.code_tokens, laying.code_weight, rng)
        causal.append(np.zeros_like(weights) if laying.masks else weights)
    starts, counted = _groups_of(drawn, len(texts))
    return Batch(_padded(texts, model.end_token), starts, counted, _padded(causal, 0.0))


def causal_weights(
    prompt: int,
    answer: int,
    plain: int,
    code_tokens: int,
    code_weight: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return the weight [prompt + answer + 1] of each token as a target of the causal pass.

    The answer and its END count 1. Up to ``code_tokens`` tokens of the ordinary code in the prompt
    after ``plain``, drawn anew for every batch, count ``code_weight``: more signal from a context
    that is read anyway.
    """
    weight = np.zeros(prompt + answer + 1, np.float32)
    if plain and code_tokens and prompt - plain > 1:
        room = np.arange(plain + 1, prompt)
        chosen = rng.choice(room, min(code_tokens, len(room)), replace=False)
        weight[chosen] = code_weight
    weight[prompt:] = 1.0
    return weight


def _padded(rows: list[NDArray[Any]], filler: float) -> Tensor:
    """[rows, length]"""
    out = np.full((len(rows), max(map(len, rows))), filler, rows[0].dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)


def _groups_of(drawn: list[LaidGroups], rows: int) -> tuple[Tensor, Tensor]:
    """Return starts and weights; see :class:`Batch`."""
    if not drawn:
        return torch.zeros(rows, 0, dtype=torch.int64), torch.zeros(rows, 0, 0)
    start = torch.from_numpy(np.stack([groups.start for groups in drawn]))
    return start, torch.from_numpy(np.stack([groups.weight for groups in drawn]))
