"""Drafts for the next pass to verify: where they come from and how often they are right.

Code repeats itself: what followed the same few tokens elsewhere in the prompt is often what follows
them here, and a replacement repeats most of what it replaces. Such a draft costs no further pass
(prompt lookup decoding, https://github.com/apoorvumang/prompt-lookup-decoding). Masks behind
verified tokens guess what comes next, in the same pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

import numpy as np

from ..records import DraftCount, DraftSource
from ..runtime.backend import IntArray

#: Tokens that must agree, most first: a longer match is a better omen.
MATCHES = (4, 3, 2, 1)
#: Tokens copied after a match of the same index.
LENGTHS = (12, 8, 4, 3)
#: So many drafted tokens make a causal pass hardly dearer (two cores, int8: 36 ms of processor
#: time for one token, 39 for four, 54 for thirteen): a canvas drafts only where there are no more.
FREE = 3
#: A draft with more evidence than this is no surer.
MOST_EVIDENCE = 12
#: How often copied tokens were right by the tokens alike before them (1, 2, …), copied ones that
#: were right included: 983 verified ones of 150 gaps of training commits, smoothed.
COPIES_RIGHT = (0.33, 0.55, 0.58, 0.64, 0.66, 0.74, 0.8, 0.8, 0.82, 0.82, 0.84, 0.84)
#: What is known beforehand weighs as much as so many drafts; and drafts are forgotten so that no
#: more than so many count.
PRIOR_WEIGHT, MEMORY = 8.0, 64.0


@dataclass(frozen=True, slots=True)
class Drafted:
    """A token for the next pass to verify."""

    token: int
    source: DraftSource
    evidence: int  # copy: tokens alike before it; else tenths of the guess's probability
    chance: float  # that it is right where the drafts before it are, 0 … 1


#: In the order in which they follow the last token known to be right.
Drafts = tuple[Drafted, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Tokens that followed the same ones elsewhere."""

    tokens: tuple[int, ...] = ()
    alike: int = 0  # tokens that agreed, at most MOST_EVIDENCE


def continuation(source: IntArray, written: IntArray, text_ids: range) -> Copy:
    """Return what followed the place in ``source`` that reads most like the end of ``written``.

    That is the place with the most tokens alike, the last of several.

    Args:
        source: [n] tokens to copy from. written: [m] all tokens before the draft.
        text_ids: other ids are marks, which end a draft.
    """
    for length, copied in zip(MATCHES, LENGTHS, strict=True):
        if len(written) < length or len(source) <= length:
            continue
        places = np.lib.stride_tricks.sliding_window_view(
            source[:-1], length
        )  # [n - length, length]
        found = np.flatnonzero((places == written[-length:]).all(axis=1))
        if len(found):
            at, alike = _most_alike(source, written, found + length, length)
            draft = source[at : at + copied]
            marks = np.flatnonzero((draft < text_ids.start) | (draft >= text_ids.stop))
            text = draft[: marks[0]] if len(marks) else draft
            return Copy(tuple(text.tolist()), alike)
    return Copy()


def _most_alike(source: IntArray, written: IntArray, ends: IntArray, alike: int) -> tuple[int, int]:
    """Return the last of ``ends`` [k] with the most tokens alike before it, and their number.

    Before each place in ``source`` are the last ``alike`` tokens of ``written``. At most
    MOST_EVIDENCE are compared.
    """
    while alike < min(MOST_EVIDENCE, len(written)):
        inside = ends[ends > alike]
        longer = inside[source[inside - alike - 1] == written[-alike - 1]]
        if not len(longer):
            break
        ends, alike = longer, alike + 1
    return int(ends[-1]), alike


class Odds:
    """The share of drafts that were right lately, by source and evidence.

    It begins with what was measured beforehand and learns from every draft that is verified. One
    object serves all answers of an engine.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[DraftSource, int], tuple[float, float]] = {}  # tried, right

    def chance(self, source: DraftSource, evidence: int) -> float:
        """Return the probability that such a draft is right where those before it are."""
        tried, right = self._seen.get((source, evidence), (0.0, 0.0))
        return (right + PRIOR_WEIGHT * _PRIORS[source](evidence)) / (tried + PRIOR_WEIGHT)

    def note(self, drafts: Drafts, right: int) -> None:
        """Learn that the first ``right`` of ``drafts`` were right and the next one was not."""
        for place, each in enumerate(drafts[: right + 1]):
            self._learn(each.source, each.evidence, place < right)
            if each.source == "mask":
                self._learn("mask", -1 - place, place < right)

    def _learn(self, source: DraftSource, evidence: int, right: bool) -> None:
        tried, before = self._seen.get((source, evidence), (0.0, 0.0))
        kept = 1 - 1 / MEMORY
        self._seen[source, evidence] = (tried * kept + 1, before * kept + right)

    def of_copy(self, copy: Copy) -> Drafts:
        """Return a copy's tokens; behind each that is right, one token more is alike."""
        steps = (min(copy.alike + place, MOST_EVIDENCE) for place in range(len(copy.tokens)))
        return tuple(
            Drafted(token, "copy", alike, self.chance("copy", alike))
            for token, alike in zip(copy.tokens, steps, strict=True)
        )

    def of_guesses(
        self, source: DraftSource, tokens: Seq[int], probabilities: Seq[float]
    ) -> Drafts:
        """Return the guesses of a canvas or of masks with the probabilities it gave them."""
        return tuple(
            Drafted(int(token), source, tenths, self.chance(source, tenths))
            for token, p in zip(tokens, probabilities, strict=True)
            for tenths in (min(int(p * 10), 9),)
        )

    def of_forced(self, tokens: Seq[int]) -> Drafts:
        """Return tokens that a grammar leaves no choice about."""
        chance = self.chance("forced", 0)
        return tuple(Drafted(token, "forced", 0, chance) for token in tokens)

    def of_groups(self, masks: int) -> list[float]:
        """Return how often guesses of a group are right, by place, where those before them are."""
        return [self.chance("mask", -1 - place) for place in range(masks)]


#: What is assumed before any draft of a source was verified. Evidence below 0 is the place
#: of a mask in its group, -1 the first: how often its guess is right, whatever it will be.
_PRIORS: dict[DraftSource, Callable[[int], float]] = {
    "copy": lambda alike: COPIES_RIGHT[min(max(alike, 1), len(COPIES_RIGHT)) - 1],
    "canvas": lambda tenths: (tenths + 0.5) / 10,
    "forced": lambda _: 0.95,
    "mask": lambda tenths: (tenths + 0.5) / 10 if tenths >= 0 else 0.55 * 0.75 ** (-1 - tenths),
}


def surest(one: Drafts, other: Drafts) -> Drafts:
    """Return the draft of which more tokens are likely to be right; of equals the first."""

    def count_kept(drafts: Drafts) -> float:
        return sum(math.prod(each.chance for each in drafts[:i]) for i in range(1, len(drafts) + 1))

    return other if count_kept(other) > count_kept(one) else one


@dataclass
class DraftTally:
    """Counts of right drafts in one prediction, by source and place in their row."""

    _rows: dict[DraftSource, list[list[int]]] = field(default_factory=dict)

    def note(self, drafts: Drafts, right: int) -> None:
        """Count that of ``drafts``, verified in one pass, the first ``right`` were right."""
        for place, each in enumerate(drafts):
            rows = self._rows.setdefault(each.source, [])
            rows += [[0, 0, 0] for _ in range(place + 1 - len(rows))]
            for index, happened in enumerate((True, place <= right, place < right)):
                rows[place][index] += happened

    def counts(self) -> tuple[DraftCount, ...]:
        found = []
        for source, rows in sorted(self._rows.items()):
            drafted, reached, right = zip(*rows, strict=True)
            found.append(DraftCount(source, drafted, reached, right))
        return tuple(found)
