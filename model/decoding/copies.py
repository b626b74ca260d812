"""Where drafts for the causal pass come from besides the canvas, and when drafting is worth it.

Code repeats itself: what followed the same few tokens elsewhere in the prompt is often what follows
them here, and a replacement repeats most of what it replaces. Such a draft costs no pass of its own
(prompt lookup decoding, https://github.com/apoorvumang/prompt-lookup-decoding). Pure; knows nothing
of canvases or networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

#: Tokens that must agree, most first: a longer match is a better omen.
MATCHES = (4, 3, 2, 1)
#: Tokens copied after a match of the same index.
LENGTHS = (12, 8, 4, 3)
#: So many drafted tokens make a causal pass hardly dearer (two cores, int8: 36 ms of processor
#: time for one token, 39 for four, 54 for thirteen): judged whatever became of the last ones.
FREE = 3
#: Tokens a canvas must bring to be worth its pass, which costs 1.6 causal ones and stands in for a
#: free copy that brings half a token; and how long canvases rest at most where they bring less.
CANVAS_WORTH, CANVAS_PAUSE = 3, 63


def continuation(source: IntArray, written: IntArray, first_text: int) -> list[int]:
    """What followed the last place in ``source`` that reads like the end of ``written``.

    Args:
        source: [n] tokens to copy from. written: [m] all tokens before the draft.
        first_text: ids below it are marks, which end a draft.
    """
    for length, copied in zip(MATCHES, LENGTHS, strict=True):
        if len(written) < length or len(source) <= length:
            continue
        places = np.lib.stride_tricks.sliding_window_view(
            source[:-1], length
        )  # [n - length, length]
        found = np.flatnonzero((places == written[-length:]).all(axis=1))
        if len(found):
            at = int(found[-1]) + length
            draft = source[at : at + copied]
            marks = np.flatnonzero(draft < first_text)
            return [int(token) for token in (draft[: marks[0]] if len(marks) else draft)]
    return []


@dataclass(slots=True)
class Pace:
    """Lets drafts of one kind rest, ever longer, after such as were not worth it."""

    worth: int = 1  # tokens of a draft that must be right for it to have paid
    longest: int = 15  # however often drafts fail, one is tried again after so many tokens
    pause: int = 0  # tokens to write without such a draft
    rested: int = 0  # written without one since then

    @property
    def due(self) -> bool:
        return self.rested >= self.pause

    def rest(self, tokens: int) -> None:
        self.rested += tokens

    def note(self, kept: int) -> None:
        """``kept`` tokens of such a draft were right."""
        self.pause = 0 if kept >= self.worth else min(2 * self.pause + 1, self.longest)
        self.rested = 0
