"""Fit of the ranker of places: a perceptron with a loss over lists, in plain NumPy.

In each list one of the right lines is to be chosen, or "nothing is left" where no line is right.
AdamW with one cycle of the learning rate; the mean and the scale of the inputs go into the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...places.line_index import Floats
from ...places.ranker import HIDDEN, Ranker, inputs_of
from .place_rows import PlaceRows

_LISTS = 64  # of a step
_DECAY = 1e-3
_MOMENTS = 0.9, 0.999  # of AdamW


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted ranker, and its loss."""

    ranker: Ranker
    train_loss: float  # nats per list, mean of the last epoch
    held_out_loss: float
    lists: int  # trained on


class _Lists:
    """PlaceRows by list, as inputs with mean 0 and deviation 1."""

    def __init__(self, rows: PlaceRows) -> None:
        starts = np.flatnonzero(np.diff(rows.moments, prepend=-1))
        self.bounds = np.append(starts, len(rows.moments))
        self.rows = rows
        self.log_weights = np.log(rows.weights)
        held_out = rows.is_held_out[starts]
        self.train, self.held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self.mean, self.scale = self._moments_of_inputs()

    def _moments_of_inputs(self) -> tuple[Floats, Floats]:
        chosen = np.flatnonzero(~self.rows.is_held_out)[::7]  # every seventh row is enough
        inputs = inputs_of(self.rows.features[chosen].astype(np.float32))
        return inputs.mean(0), inputs.std(0) + np.float32(1e-3)

    def batch(
        self, lists: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_], Floats]:
        """Return inputs [rows, inputs], bounds [lists], labels and log weights [rows]."""
        parts = [np.arange(self.bounds[i], self.bounds[i + 1]) for i in lists]
        at = np.concatenate(parts)
        inputs = inputs_of(self.rows.features[at].astype(np.float32))
        inputs -= self.mean
        inputs /= self.scale
        starts = np.cumsum([0, *map(len, parts[:-1])])
        return inputs, starts, self.rows.is_right[at], self.log_weights[at]


def list_loss(
    scores: Floats, starts: NDArray[np.int64], is_right: NDArray[np.bool_], log_weights: Floats
) -> tuple[float, Floats]:
    """Return the mean loss of lists in nats, and its gradient by score, [rows].

    Args:
        scores: of lines; "nothing is left" has score 0. [rows]
        starts: first row of each list. [lists]
        log_weights: of the number of lines that a row represents. [rows]
    """
    sizes = np.diff(starts, append=len(scores))
    raised = np.exp(np.clip(scores, -30, 30).astype(np.float64) + log_weights)
    total = 1.0 + np.add.reduceat(raised, starts)
    right = np.add.reduceat(raised * is_right, starts)
    has_right = np.add.reduceat(is_right.astype(np.int64), starts) > 0
    chosen = np.where(has_right, np.maximum(right, 1e-12), 1.0)
    gradient = raised / np.repeat(total, sizes)
    gradient -= np.where(is_right, raised / np.repeat(chosen, sizes), 0.0)
    loss = np.log(total) - np.log(chosen)
    return float(loss.mean()), (gradient / len(starts)).astype(np.float32)


def fit(
    rows: PlaceRows, epochs: int, seed: int, progress: Callable[[int, int, float], None]
) -> Fit:
    """Fit a perceptron to rows.

    Args:
        progress: called with the step, the number of steps and the mean loss of lately.
    """
    lists, rng = _Lists(rows), np.random.default_rng(seed)
    size = len(lists.mean)
    weights = {
        "input": rng.normal(0, math.sqrt(2 / size), (size, HIDDEN)).astype(np.float32),
        "input_bias": np.zeros(HIDDEN, np.float32),
        "output": rng.normal(0, math.sqrt(1 / HIDDEN), HIDDEN).astype(np.float32),
        "output_bias": np.zeros(1, np.float32),
    }
    optimizer, step, recent = _AdamW(weights), 0, 0.0
    steps = epochs * (len(lists.train) // _LISTS)
    for epoch in range(epochs):
        order, losses = rng.permutation(lists.train), []
        for at in range(0, len(order) - _LISTS + 1, _LISTS):
            inputs, starts, is_right, log_weights = lists.batch(order[at : at + _LISTS])
            hidden, scores = _forward(weights, inputs)
            loss, gradient = list_loss(scores, starts, is_right, log_weights)
            optimizer.step(_backward(weights, inputs, hidden, gradient), _one_cycle(step / steps))
            losses.append(loss)
            step += 1
            if step % 50 == 0:
                progress(step, steps, float(np.mean(losses[-200:])))
        recent = float(np.mean(losses)) if epoch == epochs - 1 else recent
    ranker = Ranker(_unscaled(weights, lists.mean, lists.scale))
    return Fit(ranker, recent, _held_out_loss(lists, weights), len(lists.train))


def _held_out_loss(lists: _Lists, weights: dict[str, Floats]) -> float:
    total = 0.0
    for at in range(0, len(lists.held_out), _LISTS):
        part = lists.held_out[at : at + _LISTS]
        inputs, starts, is_right, log_weights = lists.batch(part)
        scores = _forward(weights, inputs)[1]
        total += list_loss(scores, starts, is_right, log_weights)[0] * len(part)
    return total / max(len(lists.held_out), 1)


def _forward(weights: dict[str, Floats], inputs: Floats) -> tuple[Floats, Floats]:
    """Return the hidden units [rows, hidden] and the scores [rows]."""
    hidden = np.maximum(inputs @ weights["input"] + weights["input_bias"], 0)
    return hidden, hidden @ weights["output"] + weights["output_bias"]


def _backward(
    weights: dict[str, Floats], inputs: Floats, hidden: Floats, gradient: Floats
) -> dict[str, Floats]:
    """Return the gradients of the weights from that of the scores, [rows]."""
    inner = gradient[:, None] * weights["output"] * (hidden > 0)  # [rows, hidden]
    return {
        "input": inputs.T @ inner,
        "input_bias": inner.sum(0),
        "output": hidden.T @ gradient,
        "output_bias": gradient.sum(keepdims=True),
    }


class _AdamW:
    """Decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(self, weights: dict[str, Floats]) -> None:
        self._weights, self._steps = weights, 0
        self._first = {name: np.zeros_like(each) for name, each in weights.items()}
        self._second = {name: np.zeros_like(each) for name, each in weights.items()}

    def step(self, gradients: dict[str, Floats], rate: float) -> None:
        """Change the weights in place."""
        self._steps += 1
        one, two = _MOMENTS
        for name, gradient in gradients.items():
            first, second = self._first[name], self._second[name]
            first += (1 - one) * (gradient - first)
            second += (1 - two) * (gradient**2 - second)
            mean = first / (1 - one**self._steps)
            deviation = np.sqrt(second / (1 - two**self._steps)) + 1e-8
            self._weights[name] *= 1 - rate * _DECAY
            self._weights[name] -= (rate * mean / deviation).astype(np.float32)


def _one_cycle(share: float, peak: float = 4e-3, rising: float = 0.3) -> float:
    """Return the learning rate after a share of the steps (Smith and Topin, 2018)."""
    if share < rising:
        low, high, part = peak / 25, peak, share / rising
    else:
        low, high, part = peak / 2.5e5, peak, 1 - (share - rising) / (1 - rising)
    return low + (high - low) * (1 - math.cos(math.pi * part)) / 2


def _unscaled(weights: dict[str, Floats], mean: Floats, scale: Floats) -> dict[str, Floats]:
    """Return weights for inputs as they are, not with mean 0 and deviation 1."""
    first = weights["input"] / scale[:, None]
    bias = weights["input_bias"] - mean @ first
    return {**weights, "input": first, "input_bias": bias.astype(np.float32)}
