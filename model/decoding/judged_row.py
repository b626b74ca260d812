"""How the row of a judged pass is laid out: its tokens, their positions, and who sees whom.

The one place that decides it; whatever runs the pass only carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..runtime.backend import IntArray, Rows
from .copies import Drafts


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """n positions behind the cache; all of them see the whole cache."""

    tokens: IntArray  # [n]
    positions: IntArray  # [n] 0 is the first that is not cached
    sees: NDArray[np.bool_]  # [n, n] whether a position attends to another of the row
    judging: int  # the first so many say which token follows them, and may stay in the cache
    behind: tuple[int, ...]  # which of these have masks behind them
    group: int  # masks behind each

    def rows(self, held: int) -> Rows:
        """Return the rows of the pass behind ``held`` tokens."""
        following = np.append(self.tokens[1:], self.tokens[-1:])
        masks = len(self.tokens) - self.judging
        return Rows(self.tokens, held + self.positions, self.sees, following, masks)


def lay_out(
    last_token: int,
    drafts: Drafts,
    mask_token: int = 0,
    group: int = 0,
    behind: Sequence[int] | None = None,
) -> JudgedRow:
    """The last token known to be right and the drafts; and ``group`` masks behind some of them.

    Args:
        behind: indices of the tokens with masks behind them, ascending; None: all have.

    The tokens are read causally: what is said behind the i-th is judged against the draft that
    follows it. The masks of a token continue its position and see all tokens up to it and those
    of its masks before them, so they guess on as if the drafts behind it were not there. No token
    sees a mask, and nothing sees what stands behind it in the row: with masks and without them the
    judge runs the same causal kernel and says the same, bit by bit.

    ::

        tokens   t0     d1     …  dk      masks   M M    M M    …  M M
        position 0      1      …  k               1 2    2 3    …  k+1 k+2
    """
    judged = np.asarray([last_token, *(each.token for each in drafts)], dtype=np.int64)
    count = len(judged)
    behind = tuple(range(count) if behind is None else behind) if group else ()
    owner = np.repeat(np.asarray(behind, np.int64), group)  # of a mask: the token before it
    place = np.concatenate([np.arange(count), owner])  # [n] a token stands behind itself
    is_mask = np.arange(len(place)) >= count
    sees = (place[None, :] <= place[:, None]) & ~is_mask[None, :]
    order = np.arange(len(place))
    sees |= (place[None, :] == place[:, None]) & (order[None, :] <= order[:, None])
    within = np.tile(np.arange(1, group + 1), len(behind))
    return JudgedRow(
        tokens=np.concatenate([judged, np.full(len(owner), mask_token, np.int64)]),
        positions=np.concatenate([np.arange(count), owner + within]),
        sees=sees,
        judging=count,
        behind=behind,
        group=group if behind else 0,
    )
