"""The cost of a pass by its width, and how many drafts and masks pay in one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True, slots=True)
class PassPrices:
    """Milliseconds of one causal pass with these weights on this machine, by its positions."""

    positions: tuple[int, ...]  # widths that were measured, ascending
    ms: tuple[float, ...]  # of a pass so wide; nowhere falling
    masks_ms: float = 0.0  # more, where any of the positions are masks behind judged tokens
    mask_ms: float = 0.0  # more, for each that is one

    @classmethod
    def from_probe(
        cls, table: Mapping[int, float], masks_ms: float = 0.0, mask_ms: float = 0.0
    ) -> PassPrices:
        """Return the prices of a probe, ``{positions: ms}``; one position must be among them.

        A wider pass is never cheaper: where the clock says so, by noise or because a single
        position is run as two, all that contradict each other cost their mean (the least squares
        fit that does not fall, found by pooling adjacent violators).
        """
        widths = sorted(table)
        assert widths and widths[0] == 1 and min(table.values()) > 0, table
        pools: list[tuple[float, int]] = []  # mean ms, widths that share it
        for width in widths:
            mean, count = table[width], 1
            while pools and pools[-1][0] >= mean:
                before, shared = pools.pop()
                mean = (before * shared + mean * count) / (shared + count)
                count += shared
            pools.append((mean, count))
        ms = tuple(mean for mean, count in pools for _ in range(count))
        return cls(tuple(widths), ms, max(masks_ms, 0.0), max(mask_ms, 0.0))

    def of(self, positions: int) -> float:
        """Return the milliseconds of a pass over ``positions``.

        Between two measured widths they lie on the line between their prices, beyond the last as
        steep as from the first to the last.
        """
        return _price(self.positions, self.ms, positions)


@lru_cache(maxsize=1_024)  # asked for some hundred times a pass, where masks draft
def _price(widths: tuple[int, ...], ms: tuple[float, ...], positions: int) -> float:
    if positions <= widths[-1]:
        return float(np.interp(positions, widths, ms))
    rise = (ms[-1] - ms[0]) / max(widths[-1] - widths[0], 1)
    return ms[-1] + rise * (positions - widths[-1])


def worth(chances: Sequence[float], prices: PassPrices) -> int:
    """Return how many drafts, from the first on, to verify in one pass.

    Draft j is right with chance a_j where those before it are, so it is reached and right with
    r_j = a_1 a_2 … a_j. Each right draft is a token that no later pass has to write: it saves what
    a pass over one position costs, P(1). Beside the last token, k drafts make a pass of 1 + k
    positions, P(1 + k) - P(1) dearer than one without. What k drafts bring is

        G(k) = P(1) (r_1 + … + r_k) - (P(1 + k) - P(1))

    and the k-th alone is worth its position where r_k P(1) > P(1 + k) - P(k). Steps of P may fall
    again behind a dear one, so the k of the largest G is taken, the smallest of several.

    Args:
        chances: a_1, a_2, …, 0 … 1 each.
    """
    return _best(chances, prices)[0]


#: What a right guess of masks saves, beside a whole pass over one position: without it other drafts
#: would have brought some of the same tokens. Measured (evals/LOG.md, 2026-11-23): at 0.55 and 0.65
#: masks save a fourteenth of the time, at 0.75 and 1 half of that, at 0.45 hardly any is read.
SAVES = 0.65


def _best(chances: Sequence[float], prices: PassPrices, saves: float = 1.0) -> tuple[int, float]:
    """Return the k of :func:`worth` and its G(k), milliseconds.

    Args:
        saves: the part of P(1) that each right draft saves.
    """
    alone = prices.of(1)
    best, best_gain, reached, saved = 0, 0.0, 1.0, 0.0
    for count, chance in enumerate(chances, 1):
        reached *= chance
        saved += reached * alone * saves
        gain = saved - (prices.of(1 + count) - alone)
        if gain > best_gain:
            best, best_gain = count, gain
    return best, best_gain


@dataclass(frozen=True, slots=True)
class Groups:
    """Masks to read behind the tokens of a pass."""

    masks: int = 0  # behind each of these tokens
    behind: tuple[int, ...] = ()  # indices into the last token and the drafts, ascending


def worth_groups(chances: Sequence[float], guesses: Sequence[float], prices: PassPrices) -> Groups:
    """Return behind which tokens of a pass how many masks pay.

    The row is the last token and drafts that are right with ``chances`` a_1 … a_k, so it ends in
    being right up to draft i with e_i = a_1 … a_i (1 - a_{i+1}). Only the masks behind that draft
    are of use then: they are the drafts of the next pass, where m of them, right with b_1 … b_m,
    bring G(m) of :func:`worth`, of which :data:`SAVES` counts. So a group behind token i brings
    e_i G(m) and costs its m positions in this pass, what masks add to theirs, and the first of all
    what any mask adds to a pass besides. Groups are added by falling e_i, for each m; the best sum
    is taken.

    Args:
        guesses: b_1, b_2, … of the masks of one group, as many as there may be.
    """
    reached = [math.prod(chances[:i]) for i in range(len(chances) + 1)]
    ends = [r * (1 - a) for r, a in zip(reached, [*chances, 0.0], strict=True)]
    order = sorted(range(len(ends)), key=lambda i: -ends[i])
    best, best_gain = Groups(), 0.0
    for masks in range(1, len(guesses) + 1):
        each = _best(guesses[:masks], prices, SAVES)[1]
        brought = 0.0
        for count, token in enumerate(order, 1):
            brought += ends[token] * each
            width = len(ends) + count * masks
            wider = prices.of(width) - prices.of(len(ends))
            gain = brought - wider - prices.masks_ms - count * masks * prices.mask_ms
            if gain > best_gain:
                best, best_gain = Groups(masks, tuple(sorted(order[:count]))), gain
    return best
