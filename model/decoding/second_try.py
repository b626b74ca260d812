"""Another answer where the likeliest one does not fit: the next likeliest that does.

Whoever asks says what fits. Of an answer that does not, one more causal pass tells how likely
every other token was at each place of it; the likeliest beginnings that leave it are written on,
one after the other, until an answer fits. Runs passes; knows no language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..runtime.backend import Sequence
from ..runtime.prefix_cache import common_prefix
from .answer import Answer
from .denoise import Denoised, Run
from .judging import Judging
from .plan import Brief, Draft
from .probabilities import decode

#: A beginning less likely than this is not worth a pass.
BEGINNING_ABOVE = 0.005
#: Tokens looked at in each place, and places in a pass: logits of more take too much memory.
_CHOICES, _ROWS = 8, 32


class Misfit(Protocol):
    """How an answer does not fit."""

    def stays(self, beginning: str) -> bool:
        """Whether another that begins so does not fit either, whatever follows."""


class Surroundings(Protocol):
    """What an answer has to fit."""

    def misfit(self, written: str, ended: bool) -> Misfit | None:
        """How it does not; None: it fits, or nobody can tell.

        Args:
            ended: whether ``written`` is all that belongs there.
        """

    def only_opens_block(self, written: str) -> bool:
        """Return whether ``written`` is nothing but the head of a block without its body."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an answer begins with, each token with its probability."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """Log-probability."""
        return sum(math.log(max(each, 1e-30)) for each in self.probabilities)


def denoise_fitting(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    rng: np.random.Generator,
    around: Surroundings,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Write one answer that the causal pass judges, as :func:`~.denoise.denoise` does; where it
    does not fit, the next likeliest that does, if one of ``Plan.second_tries`` is.

    Args:
        sequence: as there; ends up with what is cached of the answer that is returned.

    Raises:
        Cancelled: ``cancelled`` said so.
    """
    run = Run(sequence, cancelled, None)
    search = _Search(run, len(sequence.tokens), last_token, brief, rng, around)
    draft = search.first()
    if draft.finish in ("end", "unsure") and around.only_opens_block(draft.text):
        draft = search.with_body(draft) or draft
    # The head of a block at the end is no misfit: it is mostly right (evals/LOG.md), and whoever
    # shows the answer drops it.
    misfit = around.misfit(draft.text, ended=False)
    if misfit is not None and brief.plan.second_tries:
        draft = search.other(draft, misfit) or draft
    return Denoised((draft,), run.passes, run.prefilled, run.tally.counts())


@dataclass(frozen=True, slots=True)
class _Search:
    """For answers to one prompt."""

    run: Run
    base: int  # tokens of the prompt that the sequence held
    last_token: int  # the prompt's
    brief: Brief
    rng: np.random.Generator
    around: Surroundings

    def first(self) -> Draft:
        """The likeliest answer, token by token."""
        return self._finished(self._answer())

    def with_body(self, head: Draft) -> Draft | None:
        """Return ``head``, which only opens a block, with the line below it; None where no such
        line is likely enough to be worth a pass."""
        end = self.brief.config.end_token
        kept = [token for token in head.token_ids if token != end]
        sure = [math.exp(log) for log in head.confidence.logs[: len(kept)]]
        begun = Beginning(tuple(kept), tuple(sure))
        least = max(self.brief.limits.total_above, begun.total + math.log(BEGINNING_ABOVE))
        limits = replace(
            self.brief.limits,
            min_tokens=len(kept) + 2,  # a line break, and some of the line
            total_above=least,
        )
        answer = Answer(replace(self.brief, limits=limits), self.last_token, self.rng)
        answer.open_with(begun.tokens, begun.probabilities)
        if answer.finish is None:
            self.run.hold(self.base, [self.last_token, *kept[:-1]])
            draft = self._finished(answer)
            if draft.text.startswith(head.text.rstrip()) and not self.around.only_opens_block(
                draft.text
            ):
                self._hold_of(draft)
                return draft
        self._hold_of(head)
        return None

    def other(self, first: Draft, misfit: Misfit) -> Draft | None:
        """The likeliest that fits among those that leave ``first`` at one token; None: of those
        that were tried none does."""
        begun = sorted(self._beginnings(first), key=lambda each: -each.total)
        left = self.brief.plan.second_tries
        for each in begun:
            if left == 0:
                break
            if misfit.stays(self._text(each)):
                continue
            answer = self._answer()
            answer.open_with(each.tokens, each.probabilities)
            if answer.finish is None:
                self.run.hold(self.base, [self.last_token, *each.tokens[:-1]])
                left -= 1
            draft = self._finished(answer)
            if draft.text != first.text and self._fits(draft):
                self._hold_of(draft)
                return draft
        self._hold_of(first)
        return None

    def _fits(self, draft: Draft) -> bool:
        """Whether something is written, and fits as it is."""
        written = draft.text[len(self.brief.limits.forced) :]
        return bool(written.strip()) and self.around.misfit(draft.text, ended=True) is None

    def _beginnings(self, first: Draft) -> Iterator[Beginning]:
        """Those that leave ``first`` at one token: one more pass, or several where it is long."""
        walk, end = self._answer(), self.brief.config.end_token
        kept = [token for token in first.token_ids if token != end]
        self.run.sequence.truncate(self.base)
        for start in range(0, len(kept) + 1, _ROWS):
            out = self.run.score([self.last_token, *kept][start : start + _ROWS], logits=True)
            for row, place in enumerate(range(start, min(start + _ROWS, len(kept) + 1))):
                probabilities = walk.distribution(row, out, walk.allowed_now())  # [vocab]
                if walk.too_short(0):
                    probabilities[end] = 0.0
                taken = first.token_ids[place] if place < len(first.token_ids) else None
                for token in np.argpartition(-probabilities, _CHOICES)[:_CHOICES].tolist():
                    sure = (*walk.settled_p, float(probabilities[token]))
                    begun = Beginning((*walk.settled, token), sure)
                    same = token == taken or (taken is None and self._was_cut(first, token))
                    if not same and begun.total >= math.log(BEGINNING_ABOVE):
                        yield begun
                if place < len(kept):
                    walk.open_with([kept[place]], [float(probabilities[kept[place]])])

    def _was_cut(self, first: Draft, token: int) -> bool:
        """Whether ``token`` behind ``first`` begins the line that was too unlikely there."""
        last, begun = (self.brief.vocab_bytes[each] for each in (first.token_ids[-1], token))
        return first.finish == "unsure" and (b"\n" in last or begun.startswith((b"\n", b"\r")))

    def _hold_of(self, draft: Draft) -> None:
        """Leave in the sequence what there is of ``draft``, and nothing else."""
        there = self.run.sequence.tokens[self.base :]
        held = common_prefix(there, [self.last_token, *draft.token_ids])
        self.run.sequence.truncate(self.base + held)

    def _answer(self) -> Answer:
        return Answer(self.brief, self.last_token, self.rng)

    def _finished(self, answer: Answer) -> Draft:
        self.run.judge(Judging(answer))
        answer.close()
        return answer.draft()

    def _text(self, begun: Beginning) -> str:
        return decode(b"".join(self.brief.vocab_bytes[token] for token in begun.tokens))
