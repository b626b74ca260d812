"""The ends of an answer besides END: limits, stop strings, unlikely lines and repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from ..records import LEAST_LOG, Finish

#: An answer that repeats the same tokens so often, and so many of them, would go on until its
#: limit. Lists of zeros and the like stay below.
_TURNS, _CIRCLE_TOKENS, _LONGEST_TURN = 3, 24, 16


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The limits of an answer."""

    max_tokens: int
    min_tokens: int = 0
    max_lines: int | None = None
    line_above: float = 0.0  # a line after the first has to be this likely; 0: any
    openers: tuple[str, ...] = ()  # ends of lines that are only cut together with the line below
    total_above: float = LEAST_LOG  # log: what the answer has to be as a whole, or it is given up
    whole_lines: bool = False  # an answer cut behind a line keeps that line's break
    stop: tuple[str, ...] = ()
    forced: str = ""  # what the answer begins with that is not part of the shown text


def sure_part(
    tokens: Seq[bytes], probabilities: Seq[float], skip: int, limits: AnswerLimits
) -> int | None:
    """Return where the lines end that are likely enough, in bytes, or None where all are.

    That is before the first line break that, with the line it begins and END behind it, is less
    likely than ``limits.line_above``; or before the line in which all together get less likely than
    ``limits.total_above`` (log), ``skip`` where that is the first.

    A line that ends with one of ``limits.openers`` opens a block: it is as likely as it is together
    with the line below it, so that neither is shown without the other.

    A line that is still being written counts with what there is of it: it only gets less likely.
    The first line that is not blank always stays, and so do ``limits.min_tokens``; blank lines go
    with the line behind them. The bytes before ``skip`` are not the model's.
    """
    least, least_total = limits.line_above, limits.total_above
    if least <= 0 and least_total <= LEAST_LOG:
        return None
    text = b""
    ends = tuple(each.encode() for each in limits.openers)
    broken: int | None = None  # where the line break stands that began the line
    chance, total = 1.0, 0.0
    for count, (data, probability) in enumerate(zip(tokens, probabilities, strict=True)):
        line, newline, _ = data.partition(b"\n")
        before = text + line
        opened = bool(ends) and before.rstrip().endswith(ends)
        if newline and before[skip:].strip() and count >= limits.min_tokens and not opened:
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
    """Return where ``written`` is cut, in bytes, and why: None where nothing cuts it.

    A stop string, the line limit or the first unlikely line does.

    Args:
        skip: bytes that are not the model's. sure: the :func:`sure_part` of ``written``.
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


def goes_round(tokens: Seq[int], vocab_bytes: Seq[bytes]) -> bool:
    """Return whether ``tokens`` end in the same few tokens again and again, not in a ruler."""
    for period in range(1, _LONGEST_TURN + 1):
        tail = tokens[-max(_TURNS * period, _CIRCLE_TOKENS) :]
        if len(tail) < max(_TURNS * period, _CIRCLE_TOKENS):
            return False
        if tail[period:] == tail[:-period]:
            turn = b"".join(vocab_bytes[token] for token in tail[:period])
            return any(char.isalnum() for char in turn.decode("utf-8", "ignore"))
    return False
