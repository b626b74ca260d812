"""Canvases, from masks to tokens: which positions a denoise step places, and where an answer ends.

What is sure enough is placed, at least one position a step. This is how weights without a judge
write, and how a canvas drafts in one pass for the judge. Pure; ``denoise.py`` runs the passes.
"""

from __future__ import annotations

import math

import numpy as np

from ..runtime.backend import IntArray, Scores
from .answer import Answer, Guess
from .probabilities import sample

#: END is placed ahead of masked positions only when it is at least this sure: a wrong one squeezes
#: the rest of the answer into the positions before it.
END_AHEAD = 0.9


class Filling:
    """The canvas being filled behind what is settled of an answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._plan = answer.brief.plan
        self._end_token = answer.brief.config.end_token
        self._open()

    def _open(self) -> None:
        """Forget what was done to the canvas before."""
        self.closed = False  # this canvas needs no further step
        self._steps = 0  # on this canvas

    # -- one step --------------------------------------------------------------------------------

    def window(self) -> IntArray:
        """[B] input of the next denoise step: last token, then all positions but the last.

        Whatever follows END is shown as END: that is the padding the weights were trained with.
        """
        inputs = [self.answer.last_token]
        blank = self.answer.brief.config.mask_token
        for token in self.answer.tokens[:-1]:
            ended = blank == self._end_token
            inputs.append(blank if token is None or ended else token)
            if token == self._end_token:
                blank = token
        return np.asarray(inputs, dtype=np.int64)  # [B]

    def wants_logits(self) -> bool:
        """Whether the next pass must return whole distributions."""
        bound = self.answer.allowed_now() is not None
        return self._plan.temperature > 0 or bound or self.answer.too_short(0)

    def advance(self, out: Scores) -> None:
        """Take in the predictions [B] of one step: place, and see what is finished."""
        self.answer.steps += 1
        self._steps += 1
        self._place(self.answer.guesses(out), out)
        self._conclude()

    def begin_with(self, token: int, probability: float) -> None:
        """Place a first token of its own, in the step whose distribution it was taken from."""
        self.answer.steps += 1
        self._steps += 1
        self.answer.put(0, token, probability)
        self._conclude()

    def draft(self, out: Scores) -> None:
        """Place what one pass guesses from the left, as far as it is worth judging."""
        self.answer.steps += 1
        guesses = self.answer.guesses(out)
        _, free = self._walk_constraint(guesses, out)
        for position in self.answer.masked() if free else []:
            guess, beyond = guesses[position], position >= self.answer.horizon()
            if guess.probability < self._plan.draft_above or beyond:
                break
            self.answer.put(position, guess.token, guess.probability)

    def settle(self, count: int) -> None:
        """Keep the first ``count`` tokens of the canvas for good and open a fresh canvas."""
        self.answer.settle(count)
        self._open()

    # -- placing ---------------------------------------------------------------------------------

    def _draw(self, position: int, guess: Guess, out: Scores) -> Guess:
        """What to place at an unconstrained position: the guess, or a sample."""
        plan = self._plan
        if plan.temperature == 0:
            return guess
        ends = guess.token == self._end_token or position == self.answer.masked()[0]
        ends = ends and not self.answer.too_short(position)
        probabilities = self.answer.distribution(position, out, end=ends)
        return Guess(*sample(probabilities, plan, self.answer.rng))

    def _place(self, guesses: list[Guess], out: Scores) -> None:
        placed, free = self._walk_constraint(guesses, out)
        if not free:
            return
        for position in self._choose(guesses, placed):
            if position >= self.answer.horizon():
                return  # what was placed just now ends the answer before it
            drawn = self._draw(position, guesses[position], out)
            self.answer.put(position, drawn.token, drawn.probability)
            if drawn.token != guesses[position].token:
                return  # what lies beyond was predicted for another text

    def _walk_constraint(self, guesses: list[Guess], out: Scores) -> tuple[int, bool]:
        """Place from left to right while the constraint lasts: the first position always, further
        ones while they are sure and the model guessed what was placed before them.

        Returns how many were placed and whether free positions may follow in the same step.
        """
        placed = 0
        while self.answer.constrained and len(self.answer.prefix()) < self.answer.room():
            allowed = self.answer.allowed_now()
            if allowed is None:
                break
            position = len(self.answer.prefix())
            drawn = self.answer.draw_allowed(position, allowed, out)
            if placed and drawn.probability < self._plan.threshold:
                return placed, False
            self.answer.put(position, drawn.token, drawn.probability)
            placed += 1
            if drawn.token == self._end_token or drawn.token != guesses[position].token:
                return placed, False
        return placed, bool(self.answer.masked())

    def _choose(self, guesses: list[Guess], placed: int) -> list[int]:
        """Masked positions to place in this step, ascending; ``placed`` were placed already.

        Every position at or above the threshold, and as many of the best of the rest as the plan
        demands. END is placed ahead of masked positions only when it is very sure; otherwise it
        waits until nothing masked is left before it, so it neither truncates what is still open
        nor takes the place of a position that brings the answer further.
        """
        plan, end = self._plan, self._end_token
        masked = self.answer.masked()
        ahead = self._end_ahead(masked, guesses)
        if ahead is not None:
            masked = [i for i in masked if i < ahead]
        quota = self._quota(len(masked)) - placed
        chosen = {
            i
            for i in masked
            if guesses[i].token != end and guesses[i].probability >= plan.threshold
        }
        open_ = [i for i in masked if i <= self._reach(guesses)]
        while (best := _best_open(open_, chosen, guesses, end)) is not None:
            if guesses[best].probability < plan.threshold and len(chosen) >= quota:
                break
            chosen.add(best)
            if guesses[best].token == end:
                return sorted(chosen)  # all before it are chosen
        return sorted(chosen) if ahead is None else [*sorted(chosen), ahead]

    def _end_ahead(self, masked: list[int], guesses: list[Guess]) -> int | None:
        """The first masked position that is so sure to be END that it need not wait."""
        sure = max(END_AHEAD, self._plan.threshold)
        before = range(self.answer.end())
        last_text = max((i for i in before if self.answer.tokens[i] is not None), default=-1)
        for i in masked:
            if guesses[i].token == self._end_token and guesses[i].probability >= sure:
                return i if i > last_text else None
        return None

    def _reach(self, guesses: list[Guess]) -> int:
        """Where the answer would end if every guess were right: what lies beyond is placed when it
        is sure, but is not worth a step."""
        tokens = [
            guess.token if token is None else token
            for token, guess in zip(self.answer.tokens, guesses, strict=False)
        ]
        ends = [i for i, token in enumerate(tokens) if token == self._end_token]
        return min([*ends[:1], *self.answer.cutting(tokens)], default=len(tokens))

    def _quota(self, masked: int) -> int:
        """How many to place in this step so that the canvas is full after ``max_steps``."""
        plan = self._plan
        steps = self.answer.brief.config.canvas_width if plan.max_steps is None else plan.max_steps
        left = max(1, steps - self._steps + 1)
        return max(plan.min_positions, math.ceil(masked / left))

    def _conclude(self) -> None:
        self.closed = self.answer.is_cut or not self.answer.masked()
        if self.closed:
            self.answer.see_end()


def _best_open(masked: list[int], chosen: set[int], guesses: list[Guess], end: int) -> int | None:
    """The surest masked position not chosen yet; END only once all before it are chosen."""
    best: int | None = None
    gap = False
    for i in masked:
        if i in chosen:
            continue
        if (guesses[i].token != end or not gap) and (
            best is None or guesses[i].probability > guesses[best].probability
        ):
            best = i
        gap = True
    return best
