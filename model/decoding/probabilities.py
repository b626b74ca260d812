"""Small sums over probabilities and bytes that answers need: sampling, confidence, text and
where it is cut."""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from ..records import LEAST_LOG, Confidence, Finish
from .plan import AnswerLimits, Plan


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities; all zero where every logit is -inf."""
    top = logits.max()
    if not np.isfinite(top):
        return np.zeros_like(logits)
    weights = np.exp(logits - top)
    result: NDArray[np.float64] = weights / weights.sum()
    return result


def sample(
    probabilities: NDArray[np.float64], plan: Plan, rng: np.random.Generator
) -> tuple[int, float]:
    """A token drawn at the plan's temperature from its nucleus, and its untempered probability."""
    order = np.argsort(-probabilities, kind="stable")
    order = order[: int(np.count_nonzero(probabilities))]
    logs = np.log(probabilities[order])
    # From the likeliest on, which so stays finite at any temperature: the others may overflow.
    with np.errstate(under="ignore", over="ignore"):
        scaled = (logs - logs.max()) / plan.temperature
        weights = softmax(scaled)
    before = np.cumsum(weights) - weights  # mass of the likelier tokens
    nucleus = weights[: max(1, int(np.count_nonzero(before < plan.top_p)))]
    pick = int(order[rng.choice(len(nucleus), p=nucleus / nucleus.sum())])
    return pick, float(probabilities[pick])


def confidence(probabilities: Seq[float]) -> Confidence:
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


def decode(data: bytes) -> str:
    """Text of ``data``; a character cut off at its end is left out, other broken UTF-8 shows as
    U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def pieces(tokens: Seq[bytes | None], skip: int, cut: int | None) -> list[str | None]:
    """Text of each position; a character spread over several tokens shows with its last one.

    Shown are the bytes from ``skip`` on, before ``cut``.
    """
    pieces: list[str | None] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    at: int | None = 0  # bytes so far; None behind a mask
    for data in tokens:
        if data is None:
            pieces.append(None)
            decoder, at = codecs.getincrementaldecoder("utf-8")("ignore"), None
        elif at is None:
            pieces.append(decoder.decode(data))
        elif cut is None or at < cut:
            stop = len(data) if cut is None else cut - at
            pieces.append(decoder.decode(data[max(0, skip - at) : max(0, stop)]))
            at += len(data)
    return pieces


def sure_part(
    tokens: Seq[bytes],
    probabilities: Seq[float],
    skip: int,
    least: float,
    min_tokens: int = 0,
    least_total: float = LEAST_LOG,
    openers: tuple[str, ...] = (),
) -> int | None:
    """Return where the lines end that are likely enough, in bytes: before the first line break
    that, with the line it begins and END behind it, is less likely than ``least``; or before the
    line in which all together get less likely than ``least_total`` (log), ``skip`` where that is
    the first. None: all are.

    A line that ends with one of ``openers`` opens a block: it is as likely as it is together with
    the line below it, so that neither is shown without the other.

    A line that is still being written counts with what there is of it: it only gets less likely.
    The first line that is not blank always stays, and so do ``min_tokens``; blank lines go with the
    line behind them. The bytes before ``skip`` are not the model's.
    """
    if least <= 0 and least_total <= LEAST_LOG:
        return None
    text = b""
    ends = tuple(each.encode() for each in openers)
    broken: int | None = None  # where the line break stands that began the line
    chance, total = 1.0, 0.0
    for count, (data, probability) in enumerate(zip(tokens, probabilities, strict=True)):
        line, newline, _ = data.partition(b"\n")
        before = text + line
        opened = bool(ends) and before.rstrip().endswith(ends)
        if newline and before[skip:].strip() and count >= min_tokens and not opened:
            if broken is None or before[broken:].strip():
                broken = len(before)
            # A token that ends the line's text with its break says nothing of the next line alone.
            chance = 1.0 if line.strip() else probability
        else:
            chance *= probability
        total += math.log(max(probability, 1e-30))
        if broken is not None and (chance < least or total < least_total):
            return broken
        if total < least_total:
            return skip
        text += data
    return None


def cut_of(
    written: bytes, skip: int, limits: AnswerLimits, sure: int | None
) -> tuple[int | None, Finish | None]:
    """Where a stop string, the line limit or the first unlikely line cuts ``written``, in bytes,
    and which of them; None: nothing does.

    Args:
        skip: bytes that are not the model's. sure: what :func:`sure_part` says of ``written``.
    """
    cuts: list[tuple[int, Finish]] = []
    if sure is not None:
        cuts.append((sure + (limits.whole_lines and sure > skip), "unsure"))
    for stop in limits.stop:
        found = written.find(stop.encode("utf-8", "replace"), skip)
        if stop and found >= 0:
            cuts.append((found, "stop"))
    if limits.max_lines is not None:
        newline = skip - 1
        for _ in range(limits.max_lines):
            newline = written.find(b"\n", newline + 1)
            if newline < 0:
                break
        else:
            cuts.append((newline + limits.whole_lines, "length"))
    return min(cuts, default=(None, None), key=lambda cut: cut[0])


#: The same tokens so often in a row, and so many of them: the model has lost its way and would go
#: on until the limit. Lists of zeros and the like stay below.
_TURNS, _CIRCLE_TOKENS, _LONGEST_TURN = 3, 24, 16


def goes_round(tokens: Seq[int], vocab_bytes: Seq[bytes]) -> bool:
    """Whether ``tokens`` end in the same few tokens again and again, rulers of dashes left out."""
    for period in range(1, _LONGEST_TURN + 1):
        tail = tokens[-max(_TURNS * period, _CIRCLE_TOKENS) :]
        if len(tail) < max(_TURNS * period, _CIRCLE_TOKENS):
            return False
        if tail[period:] == tail[:-period]:
            turn = b"".join(vocab_bytes[token] for token in tail[:period])
            return any(char.isalnum() for char in turn.decode("utf-8", "ignore"))
    return False
