"""Batches of packed rows: which rows go together, and what noise each canvas gets.

Batch ``n`` is the same on every machine and for any number of processes: it is drawn from its
number alone. Knows nothing of networks or optimisers; ``train.py`` consumes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..config import ModelConfig
from ..errors import SettingsError
from .mask_drafts import LaidGroups, draw_groups
from .noise import NOISE, Canvas, Noise, canvases_of, causal_weights
from .shards import Rows

#: Rows of one pool are sorted by length, so that a batch is padded little.
POOL = 2_048


@dataclass(frozen=True, slots=True)
class Laying:
    """What of the training's configuration decides the batches."""

    batch_tokens: int  # context tokens of a batch, padding included
    max_context: int  # rows with a longer prompt are skipped
    canvases: int  # per row
    code_tokens: int  # see noise.causal_weights
    code_weight: float
    seed: int
    noise: Noise = NOISE
    late_noise: Noise = NOISE  # from batch ``late_from`` on
    sharpen: float = 0.0  # see TrainConfig, from batch ``late_from`` on
    late_from: int = 0  # 0: never
    masks: int = 0  # of a group of mask drafts, which take the place of canvases; 0: canvases
    groups: int = 0  # of mask drafts per row

    def is_late(self, number: int) -> bool:
        return bool(self.late_from) and number >= self.late_from


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded to one length; every array lives on the CPU. Of mask drafts ``windows`` and
    ``targets`` are empty, ``starts`` [rows, groups] and ``weights`` [rows, groups, masks]."""

    tokens: Tensor  # [rows, length] prompt + answer + END padding
    windows: Tensor  # [rows, C, B]
    starts: Tensor  # [rows, C]
    targets: Tensor  # [rows, C, B]
    weights: Tensor  # [rows, C, B]
    causal: Tensor  # [rows, length] weight of each token as the causal pass's target
    sharpen: float = 0.0  # see TrainConfig

    def pin_memory(self) -> Batch:
        """For the loader: in memory a CUDA device reads without waiting."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sharpen"}
        return replace(self, **{name: tensor.pin_memory() for name, tensor in tensors.items()})


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
    """The batch of rows ``members``, its noise drawn from the batch's number."""
    rng = np.random.default_rng((laying.seed, 1, number))
    late = laying.is_late(number)
    noise = laying.late_noise if late else laying.noise
    texts: list[NDArray[np.int64]] = []
    causal: list[NDArray[np.float32]] = []
    laid: list[list[Canvas]] = []
    drawn: list[LaidGroups] = []
    for member in members:
        tokens, prompt, plain = rows[int(member)]
        answer = len(tokens) - prompt
        if laying.masks:
            drawn.append(draw_groups(prompt, answer, laying.groups, laying.masks, rng))
        elif laying.canvases:
            laid.append(_canvases(tokens, prompt, plain, laying, noise, model, rng))
        texts.append(np.append(tokens, model.end_token))
        weights = causal_weights(prompt, answer, plain, laying.code_tokens, laying.code_weight, rng)
        causal.append(np.zeros_like(weights) if laying.masks else weights)
    windows = _groups_of(drawn) if laying.masks else _windows_of(laid, len(texts))
    sharpen = laying.sharpen if late and not laying.masks else 0.0
    return Batch(_padded(texts, model.end_token), *windows, _padded(causal, 0.0), sharpen)


def _canvases(
    tokens: NDArray[np.int64],
    prompt: int,
    plain: int,
    laying: Laying,
    noise: Noise,
    model: ModelConfig,
    rng: np.random.Generator,
) -> list[Canvas]:
    width, answer = model.canvas_width, len(tokens) - prompt
    padded = np.concatenate([tokens, np.full(2 * width + 1, model.end_token)])
    return canvases_of(
        padded, prompt, answer, plain, laying.canvases, width, model.mask_token, rng, noise
    )


def _padded(rows: list[NDArray[Any]], filler: float) -> Tensor:
    """[rows, length]"""
    out = np.full((len(rows), max(map(len, rows))), filler, rows[0].dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)


def _windows_of(laid: list[list[Canvas]], rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Windows, starts, targets and weights; see :class:`Batch`."""
    if not laid:
        nothing = torch.zeros(rows, 0, dtype=torch.int64)
        return nothing, nothing, nothing, nothing

    def stack(name: str) -> Tensor:
        return torch.from_numpy(np.stack([[getattr(c, name) for c in row] for row in laid]))

    return stack("window"), stack("start"), stack("target"), stack("weight")


def _groups_of(drawn: list[LaidGroups]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same of mask drafts."""
    nothing = torch.zeros(len(drawn), 0, 0, dtype=torch.int64)
    start = torch.from_numpy(np.stack([groups.start for groups in drawn]))
    weight = torch.from_numpy(np.stack([groups.weight for groups in drawn]))
    return nothing, start, nothing, weight
