"""Probabilities of tokens: softmax, samples, and how likely an answer and its lines are."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from ..records import LEAST_LOG, Confidence


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities; all zero where every logit is -inf."""
    top = logits.max()
    if not np.isfinite(top):
        return np.zeros_like(logits)
    weights = np.exp(logits - top)
    result: NDArray[np.float64] = weights / weights.sum()
    return result


def sample(
    probabilities: NDArray[np.float64], temperature: float, top_p: float, rng: np.random.Generator
) -> tuple[int, float]:
    """Return a token drawn from the nucleus ``top_p`` and its untempered probability.

    At temperature 0 that is the likeliest token.
    """
    if temperature == 0:
        best = int(np.argmax(probabilities))
        return best, float(probabilities[best])
    order = np.argsort(-probabilities, kind="stable")
    order = order[: int(np.count_nonzero(probabilities))]
    logs = np.log(probabilities[order])
    # From the likeliest on, which so stays finite at any temperature: the others may overflow.
    with np.errstate(under="ignore", over="ignore"):
        weights = softmax((logs - logs.max()) / temperature)
    before = np.cumsum(weights) - weights  # mass of the likelier tokens
    nucleus = weights[: max(1, int(np.count_nonzero(before < top_p)))]
    pick = int(order[rng.choice(len(nucleus), p=nucleus / nucleus.sum())])
    return pick, float(probabilities[pick])


def confidence(probabilities: Seq[float]) -> Confidence:
    """Return how likely tokens with these probabilities are together."""
    if not probabilities:
        return Confidence(mean=0.0, minimum=0.0, first=0.0)
    clipped = np.clip(np.asarray(probabilities, dtype=np.float64), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(clipped)
    return Confidence(
        mean=float(np.exp(logs.mean())),
        minimum=float(clipped.min()),
        first=float(clipped[0]),
        total=max(float(logs.sum()), LEAST_LOG),
        logs=tuple(round(max(log, LEAST_LOG), 4) for log in logs.tolist()),
    )


def line_logs(tokens: Seq[bytes], logs: Seq[float], skip: int) -> tuple[float, ...]:
    """Return the log-probability of each line that is not blank, its break or END included.

    Args:
        tokens: the bytes of each token.
        logs: the log-probability of each token.
        skip: bytes at the beginning that are not the model's.
    """
    found, total, line, at = list[float](), 0.0, b"", 0
    for data, log in zip(tokens, logs, strict=True):
        total += log
        text, newline, rest = data[max(0, skip - at) :].partition(b"\n")
        at += len(data)
        line += text
        if newline and line.strip():
            found.append(total)
            total, line = 0.0, b""
        line += rest
    if line.strip() or not found:
        return (*found, total)
    return (*found[:-1], found[-1] + total)
