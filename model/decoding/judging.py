"""Answers that the causal pass judges: what is drafted for it, and what it makes of a draft.

One causal pass over a draft keeps what it stands by, corrects the first token it does not and adds
one of its own, as in TiDAR (2511.08923) and speculative decoding (2211.17192). The answer is what
the causal pass alone would have written, in fewer passes. Pure; ``denoise.py`` runs the passes.
"""

from __future__ import annotations

import numpy as np

from ..runtime.backend import MaskGuesses, Scores
from .answer import Answer, Guess
from .copies import Drafts, continuation, surest
from .filling import Filling
from .judged_row import JudgedRow
from .prices import Groups, worth, worth_groups


class Judging:
    """Drafts behind what is settled of an answer, one after the other, and their judge."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.drafts: Drafts = ()  # for the next causal pass to judge
        self.right = 0  # how many of them were right when they were reviewed
        brief = answer.brief
        self._prices = brief.prices if brief.plan.priced else None
        self._masks: Drafts = ()  # what the masks behind the last token guessed

    # -- drafting -------------------------------------------------------------------------------

    def copy(self) -> Drafts:
        """Return the tokens that followed the same ones elsewhere, as far as they pay."""
        return self._worth(self._legal(self._copied()[: self.answer.room()]))

    def _copied(self, ahead: Drafts = ()) -> Drafts:
        """What followed elsewhere what is written, and ``ahead`` behind it."""
        brief = self.answer.brief
        if not brief.plan.copies:
            return ()
        written = [*self.answer.settled, *(each.token for each in ahead)]
        whole = np.concatenate([brief.source, np.asarray(written, np.int64)])
        return brief.odds.of_copy(continuation(whole, whole, brief.config.text_ids))

    def forced(self) -> Drafts:
        """What the constraint leaves no choice about. Judged like any draft: the same text may be
        cut into tokens in several ways."""
        answer, constraint = self.answer, self.answer.brief.constraint
        if not answer.guarded or constraint is None or not answer.brief.plan.drafts:
            return ()
        return answer.brief.odds.of_forced(constraint.forced(answer.written())[: answer.room()])

    def _legal(self, drafts: Drafts) -> Drafts:
        """``drafts`` as far as the constraint allows them."""
        answer, constraint = self.answer, self.answer.brief.constraint
        if not answer.guarded or constraint is None:
            return drafts
        return drafts[: constraint.legal(answer.written(), [each.token for each in drafts])]

    def masks(self) -> Drafts:
        """What masks of the last pass guessed comes next, and what followed as much of that
        elsewhere, as far as it is worth judging."""
        best: Drafts = ()
        for count in range(1, len(self._masks) + 1):
            guessed = self._masks[:count]
            best = surest((*guessed, *self._copied(guessed)), best)
        return self._worth(self._legal(best[: self.answer.room()]))

    def groups(self, drafts: Drafts) -> Groups:
        """Behind which of the last token and ``drafts`` to read masks. Without prices: all."""
        answer, config = self.answer, self.answer.brief.config
        if config.adapter != "masks" or not answer.brief.plan.drafts or answer.guarded:
            return Groups()
        if self._prices is None:
            return Groups(config.masks, tuple(range(len(drafts) + 1)))
        guesses = answer.brief.odds.of_groups(config.masks)
        return worth_groups([each.chance for each in drafts], guesses, self._prices)

    def keep_guesses(self, row: JudgedRow, out: Scores) -> None:
        """Of what the masks of a row guessed, that behind the last draft that was right, now that
        the token behind it is known."""
        self._masks = ()
        known, end = self.answer.prefix(), self.answer.brief.config.end_token
        goes_on = self.right < len(known) and known[self.right] != end
        if out.masks is None or self.right not in row.behind or not goes_on:
            return
        at = row.behind.index(self.right) * row.group
        self._masks = self._chain(out.masks, range(at, at + row.group), known[self.right])

    def _chain(self, masks: MaskGuesses, part: range, before: int) -> Drafts:
        """The guesses of a group behind the token ``before``, as many as may be worth judging: each
        takes the sampler's time."""
        odds = self.answer.brief.odds
        drafts, usual = odds.of_masks([], []), odds.of_groups(len(part))
        tokens: list[int] = []
        sure: list[float] = []
        for mask in part:
            chances = [*(each.chance for each in drafts), *usual[len(drafts) :]]
            if self._prices is not None and worth(chances, self._prices) <= len(drafts):
                break
            token, p = masks.guess(mask, (tokens or [before])[-1])
            tokens, sure = [*tokens, token], [*sure, p]
            drafts = odds.of_masks(tokens, sure)
        return drafts

    def canvas(self) -> Filling | None:
        """Return a canvas to draft on; None where these weights have none."""
        brief = self.answer.brief
        return Filling(self.answer) if brief.config.has_canvases and brief.plan.drafts else None

    def guesses(self, canvas: Filling, out: Scores) -> Drafts:
        """What one pass over ``canvas`` guesses, as far as it is worth judging."""
        canvas.draft(out)
        tokens = self.answer.prefix()
        return self._worth(self.answer.brief.odds.of_canvas(tokens, self.answer.p[: len(tokens)]))

    def _worth(self, drafts: Drafts) -> Drafts:
        """Return the first of ``drafts`` that pay; without prices all of them."""
        if self._prices is None:
            return drafts
        return drafts[: worth([each.chance for each in drafts], self._prices)]

    # -- judging --------------------------------------------------------------------------------

    def wants_logits(self) -> bool:
        """Whether :meth:`review` needs whole distributions."""
        answer = self.answer
        return answer.brief.plan.temperature > 0 or answer.guarded or answer.too_short(0)

    def review(self, out: Scores) -> int:
        """Keep the drafted tokens that the causal pass over the last token and the draft stands
        by, and write its own token where it first disagrees, or behind the last.

        Returns:
            How many tokens of the canvas are right now; at least one.
        """
        answer, self._masks = self.answer, ()
        answer.steps += 1
        answer.mask_again()
        kept = 0
        for position in range(min(len(self.drafts) + 1, answer.room())):
            wanted = self.drafts[position].token if position < len(self.drafts) else None
            chosen = self._choice(position, out)
            answer.put(position, chosen.token, chosen.probability)
            if chosen.token != wanted:
                answer.repaired += wanted is not None
                break
            kept += 1
            if wanted == answer.brief.config.end_token:
                break
        self.right = kept
        answer.brief.odds.note(self.drafts, kept)
        return len(answer.prefix())

    def settle(self, count: int) -> None:
        """Keep the first ``count`` tokens that were reviewed for good, or as far as the answer
        goes."""
        self.answer.settle_each(count)
        self.drafts = ()

    def _choice(self, position: int, out: Scores) -> Guess:
        """Return the causal pass's token at ``position``: its likeliest, or a sample."""
        answer, plan = self.answer, self.answer.brief.plan
        allowed = answer.allowed_now()
        if allowed is not None or plan.temperature > 0:
            return answer.draw_allowed(position, allowed, out)
        return answer.guess(position, out)
