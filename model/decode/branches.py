"""Rewrites of a region that leave its old text at one place each, read side by side.

A branch copies the old tokens up to its start, writes new ones, and ends where it joins the old
tokens again. Only the new tokens are read in further passes: the old tokens stand in the
cache from the pass that scored the region.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..runtime.backend import Rows, Scores

#: A branch may join the old text where its last MEET tokens, a line end among them, stand there
#: once; it joins after CONFIRM further tokens of the old text were what the model writes. Without
#: the confirmation 14 % of 3,003 true edits were joined at a wrong place, with it 1 %.
MEET, CONFIRM = 4, 12
#: Tokens that a branch writes at most before it joins or ends.
LONGEST = 96


@dataclass(frozen=True, slots=True)
class OldText:
    """The region as it is."""

    tokens: tuple[int, ...]  # END included
    line_ends: frozenset[int]  # those of its tokens that hold a line end

    def find_meeting(self, start: int, written: Seq[int]) -> int | None:
        """Return where the old text goes on behind ``written``, or None where that is unclear.

        The last MEET tokens of ``written`` must stand in the old text behind ``start`` exactly
        once, with a line end among them.
        """
        tail = tuple(written[-MEET:])
        if len(tail) < MEET or not self.line_ends.intersection(tail):
            return None
        places = [
            at
            for at in range(start, len(self.tokens) - MEET)
            if self.tokens[at : at + MEET] == tail
        ]
        return places[0] + MEET if len(places) == 1 else None


@dataclass(eq=False, slots=True)
class Branch:
    """A rewrite while it is being written.

    Args:
        start: old tokens that are copied before the first new one.
        log: log-probability of copying them.
        first: the new tokens to begin with, and ``known`` the whole of them where a rule wrote the
            text: then nothing is chosen, only scored.
    """

    old: OldText
    start: int
    log: float
    tokens: list[int]
    logs: list[float]  # log-probability of each of ``tokens``, fewer while some are not scored
    known: tuple[int, ...] | None = None
    family: str = ""  # of the rule that wrote it
    prior: float = 0.0  # probability by the rule
    rows: list[int] = field(
        default_factory=list
    )  # cached rows of ``tokens``, counted from the base
    joined: int | None = None  # old tokens from here on follow
    met: int | None = None  # the old token that comes next, while a join is being confirmed
    confirmed: int = 0
    passes: int = 0
    finish: Literal["end", "joined", "length"] | None = None

    @property
    def total(self) -> float:
        """Log-probability of the branch as far as it is scored."""
        return self.log + sum(self.logs)

    def likely_tokens(self) -> Seq[int]:
        """Return the tokens that are likely to come next."""
        if self.known is not None:
            return self.known[len(self.tokens) :]
        if self.met is not None:
            return self.old.tokens[self.met : self.met + CONFIRM - self.confirmed]
        return ()

    def append(self, token: int, log: float) -> None:
        """Write ``token`` and see whether the branch ends with it."""
        self.tokens.append(token)
        self.logs.append(log)
        end = self.old.tokens[-1]
        if self.known is not None:
            if len(self.logs) == len(self.known):
                self.finish = "end" if token == end else "joined"
            return
        if token == end:
            self.finish = "end"
            return
        self._follow(token)
        if self.finish is None and len(self.tokens) >= LONGEST:
            self.finish = "length"

    def _follow(self, token: int) -> None:
        """Keep track of where the branch meets the old text."""
        if self.met is not None and token == self.old.tokens[self.met]:
            self.met, self.confirmed = self.met + 1, self.confirmed + 1
            if self.confirmed >= CONFIRM:
                self.finish, self.joined = "joined", self.met
            return
        self.met, self.confirmed = self.old.find_meeting(self.start, self.tokens), 0

    def text_tokens(self) -> list[int]:
        """Return the tokens of the whole region as this branch writes it, without END."""
        rest = self.old.tokens[self.joined :] if self.joined is not None else ()
        whole = [*self.old.tokens[: self.start], *self.tokens, *rest]
        return whole[:-1] if whole and whole[-1] == self.old.tokens[-1] else whole


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of several branches for one pass."""

    branches: tuple[Branch, ...]
    drafts: tuple[tuple[int, ...], ...]  # of each branch, behind its unread tokens
    unread: tuple[int, ...]  # own tokens of each that are read in this pass
    rows: Rows


def pack(branches: Seq[Branch], drafts: Seq[Seq[int]], base: int, cached: int) -> Packed:
    """Lay the unread tokens and drafts of ``branches`` side by side.

    Args:
        drafts: of each branch.
        base: tokens held before the region.
        cached: rows behind the base that are there already: the old text's, then earlier branches'.
    """
    tokens: list[int] = []
    targets: list[int] = []
    positions: list[int] = []
    owners: list[tuple[Branch, int]] = []  # of each row: its branch and its first row in this pass
    unread = []
    for branch, draft in zip(branches, drafts, strict=True):
        new = branch.tokens[len(branch.rows) :]
        unread.append(len(new))
        first, at = len(tokens), base + 1 + branch.start + len(branch.rows)
        read = [*new, *draft]
        following = branch.known or ()
        behind = following[len(branch.rows) + len(read) :][:1] or read[-1:]
        tokens += read
        targets += [*read[1:], *behind]
        positions += range(at, at + len(read))
        owners += [(branch, first)] * len(read)
    sees = np.zeros((len(tokens), cached + len(tokens)), np.bool_)
    for row, (branch, first) in enumerate(owners):
        sees[row, : 1 + branch.start] = True  # the token before the region, and its copied part
        sees[row, branch.rows] = True
        sees[row, cached + first : cached + row + 1] = True
    rows = Rows(
        np.asarray(tokens, np.int64),
        np.asarray(positions, np.int64),
        sees,
        np.asarray(targets, np.int64),
    )
    return Packed(tuple(branches), tuple(map(tuple, drafts)), tuple(unread), rows)


def take(packed: Packed, out: Scores, cached: int) -> None:
    """Give each branch what the pass says of it: known tokens are scored, others are chosen.

    A row holds a draft's token where the model wrote the same; the first other token is the
    model's choice.
    """
    begin = 0
    for branch, draft, unread in zip(packed.branches, packed.drafts, packed.unread, strict=True):
        at, begin = begin, begin + unread + len(draft)
        branch.passes += 1
        branch.rows += range(cached + at, cached + at + unread)
        at += unread - 1  # the row behind which the next token is chosen
        for place in range(len(draft) + 1):
            token, log = out.best(at)
            if branch.known is not None:
                token, log = branch.known[len(branch.tokens)], float(out.target_logprob[at])
            branch.append(token, log)
            if branch.finish is not None or draft[place : place + 1] != (token,):
                break
            branch.rows.append(cached + at + 1)
            at += 1


def log_of(probability: float) -> float:
    """Return the natural logarithm, finite for 0."""
    return math.log(max(probability, 1e-30))
