"""Answers that the causal pass judges: what is drafted for it, and what it makes of a draft.

One causal pass over a draft keeps what it stands by, corrects the first token it does not and adds
one of its own, as in TiDAR (2511.08923) and speculative decoding (2211.17192). The answer is what
the causal pass alone would have written, in fewer passes. Pure; ``denoise.py`` runs the passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq

import numpy as np

from .answer import Answer, Guess
from .backend import CanvasOutput, CausalOutput
from .drafting import CANVAS_PAUSE, CANVAS_WORTH, FREE, Pace, continuation
from .filling import Filling


class Judging:
    """Drafts behind what is settled of an answer, one after the other, and their judge."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.draft: list[int] = []  # for the next causal pass to judge
        asked, usual = answer.brief.plan.draft_after, answer.brief.config.draft_after
        self._canvas_pace = Pace(CANVAS_WORTH, CANVAS_PAUSE, usual if asked is None else asked)
        self._copy_pace = Pace()
        self._guessed = False  # the draft is a canvas's
        self._copied = False  # it is a long copy

    # -- drafting -------------------------------------------------------------------------------

    def copy(self) -> list[int]:
        """What followed the same tokens elsewhere in the prompt; [] where nothing did."""
        answer, brief = self.answer, self.answer.brief
        if not brief.plan.copies or answer.guarded:
            return []
        whole = np.concatenate([brief.source, np.asarray(answer.settled, np.int64)])
        return continuation(whole, whole, brief.config.special_tokens)[: answer.room()]

    def draft_copy(self, copy: Seq[int]) -> None:
        """Have a copy judged."""
        self.draft = list(copy)
        self._copied = len(copy) > FREE

    def worth_copying(self, copy: Seq[int]) -> bool:
        """Whether there is enough of a copy to be worth more than a canvas, and such were right."""
        return len(copy) > FREE and self._copy_pace.due

    def canvas(self) -> Filling | None:
        """A canvas to draft on, where its pass is likely to save causal ones: after canvases that
        did not, ever more tokens are written without."""
        if self.answer.brief.plan.drafts and self._canvas_pace.due:
            return Filling(self.answer)
        return None

    def draft_from(self, canvas: Filling, out: CanvasOutput) -> None:
        """Have judged what one pass over ``canvas`` guesses."""
        canvas.draft(out)
        self.draft = self.answer.prefix()
        self._guessed = True

    # -- judging --------------------------------------------------------------------------------

    def wants_logits(self) -> bool:
        """Whether :meth:`review` needs whole distributions."""
        answer = self.answer
        return answer.brief.plan.temperature > 0 or answer.guarded or answer.too_short(0)

    def review(self, out: CausalOutput) -> int:
        """Keep the drafted tokens that the causal pass over the last token and the draft stands
        by, and write its own token where it first disagrees, or behind the last.

        Returns:
            How many tokens of the canvas are right now; at least one.
        """
        answer = self.answer
        answer.steps += 1
        answer.mask_again()
        kept = 0
        for position in range(min(len(self.draft) + 1, answer.room())):
            wanted = self.draft[position] if position < len(self.draft) else None
            chosen = self._choice(position, wanted, out)
            answer.put(position, chosen.token, chosen.probability)
            if chosen.token != wanted:
                answer.repaired += wanted is not None
                break
            kept += 1
            if wanted == answer.brief.config.end_token:
                break
        self._note(kept)
        return len(answer.prefix())

    def settle(self, count: int) -> None:
        """Keep the first ``count`` tokens that were reviewed for good."""
        self.answer.settle(count)
        self.draft, self._guessed, self._copied = [], False, False

    def _note(self, kept: int) -> None:
        for used, pace in ((self._guessed, self._canvas_pace), (self._copied, self._copy_pace)):
            pace.note(kept) if used else pace.rest(kept + 1)

    def _choice(self, position: int, wanted: int | None, out: CausalOutput) -> Guess:
        """The causal pass's token at ``position``: its likeliest, or ``wanted`` where a canvas
        guessed that and it is nearly as likely, or a sample."""
        answer, plan = self.answer, self.answer.brief.plan
        allowed = answer.allowed_now()
        if allowed is not None or plan.temperature > 0:
            return answer.draw_allowed(position, allowed, out)
        best = answer.guess(position, out)
        if wanted is None or wanted == best.token or not self._guessed:
            return best  # a copy is nobody's opinion
        probability = math.exp(float(out.log_probability[position]))
        near = probability >= plan.accept_above * best.probability
        return Guess(wanted, probability) if near else best
