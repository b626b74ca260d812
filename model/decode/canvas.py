"""Canvases of diffusion weights, from masks to tokens.

A canvas behind the answer is filled by confidence: a denoise step places what is sure enough, at
least one position. Where the causal pass verifies drafts, a canvas guesses in one step. Weights
that see what stands behind a canvas let it grow and shrink between prefix and suffix, as DreamOn
does (2602.01326).
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq
from functools import partial
from typing import NamedTuple

import numpy as np

from ..records import CanvasState
from ..runtime.backend import IntArray, Scores
from .completion import Brief, Completion, Draft, pieces, place_text, to_text
from .endings import cut_of
from .passes import Passes
from .sampling import confidence, sample, softmax

#: END is placed ahead of masked positions only when it is at least this sure: a wrong one squeezes
#: the rest of the answer into the positions before it.
END_AHEAD = 0.9
#: Masks that a growing canvas begins with; the published sampler begins with 4 and reaches 64.
BEGIN = 4


class Guess(NamedTuple):
    """The likeliest token of a position."""

    token: int
    probability: float


def fill(passes: Passes, out: Completion, canvas: Canvas | None = None) -> None:
    """Fill canvas after canvas until the answer is finished.

    A full canvas is run once causally, all but its last token, which opens the next.
    """
    while out.finish is None:
        canvas = canvas or Canvas(out)
        while not canvas.closed:
            canvas.advance(passes.denoise(canvas.window(), logits=canvas.needs_logits()))
            _show(passes, canvas)
        before, count = out.last, len(out.tokens)
        canvas.settle()
        passes.show(out.state)
        if out.finish is None:
            passes.extend([before, *out.tokens[count:-1]])
        canvas = None


def fill_rows(
    passes: Passes, first: Completion, count: int, alternative_above: float
) -> list[Completion]:
    """Write at most ``count`` answers in turn, out of one shared first step.

    Args:
        alternative_above: probability that another first token needs.
    """
    brief, base = first.brief, len(passes.sequence.tokens)
    canvases = [Canvas(first)]
    scores = passes.denoise(canvases[0].window(), logits=True)
    if brief.plan.temperature > 0:
        drawn = (Completion(brief, first.prompt_end, each) for each in first.rng.spawn(count - 1))
        canvases += map(Canvas, drawn)
        for canvas in canvases:
            canvas.advance(scores)
    else:
        choices = first.first_choices(scores, count)[1:]
        canvases[0].advance(scores)
        for token, probability in choices:
            if probability >= alternative_above:
                canvases.append(Canvas(Completion(brief, first.prompt_end, first.rng)))
                canvases[-1].advance(scores, (token, probability))
    _show(passes, canvases[0])
    for canvas in canvases:
        fill(passes, canvas.out, canvas)
        passes.sequence.truncate(base)
        passes.on_step = None
    return [canvas.out for canvas in canvases]


def guess(passes: Passes, out: Completion) -> tuple[list[int], list[float]]:
    """Return what one step over an empty canvas guesses, from the left, as far as it is sure."""
    canvas = Canvas(out)
    scores = passes.denoise(canvas.window(), logits=out.needs_logits())
    out.steps += 1
    found: list[Guess] = []
    for each in canvas.guesses(scores):
        if each.probability < out.brief.plan.draft_above:
            break
        found.append(each)
        if each.token == out.brief.config.end_token or out.is_cut([g.token for g in found]):
            break
    return [each.token for each in found], [each.probability for each in found]


def _show(passes: Passes, canvas: Canvas) -> None:
    if not canvas.closed:  # else it is shown when it is settled
        passes.show(lambda: canvas.out.state(canvas.tokens[: canvas.horizon()]))


class Canvas:
    """The canvas behind a completion: a token at each position, None where it is masked."""

    def __init__(self, out: Completion) -> None:
        config = self._config = out.brief.config
        self.out, self._plan, self._end = out, out.brief.plan, config.end_token
        self.tokens: list[int | None] = [None] * config.canvas_width
        self._p = [0.0] * config.canvas_width
        self.closed = False  # it needs no further step
        self._bound = out.token_mask() is not None  # the constraint may bind the next token
        self._steps = 0

    def window(self) -> IntArray:
        """Return the input [B] of the next step: the last token, and all positions but the last.

        Whatever follows END is given as END: that is the padding the weights were trained with.
        """
        inputs = [self.out.last]
        blank = self._config.mask_token
        for token in self.tokens[:-1]:
            ended = blank == self._end
            inputs.append(blank if token is None or ended else token)
            if token == self._end:
                blank = token
        return np.asarray(inputs, dtype=np.int64)  # [B]

    def needs_logits(self) -> bool:
        """Return whether the next step has to return whole distributions."""
        return self._plan.temperature > 0 or self._bound or self.out.too_short()

    def advance(self, scores: Scores, first: tuple[int, float] | None = None) -> None:
        """Place what one step predicts [B], and see whether the canvas is finished.

        Args:
            first: another first token and its probability; then nothing else is placed.
        """
        self.out.steps += 1
        self._steps += 1
        if first is None:
            self._place(self.guesses(scores), scores)
        else:
            self._put(0, *first)
        self.closed = self.out.is_cut(self._prefix()) or not self._masked()

    def settle(self) -> None:
        """Append the tokens to the completion, as far as it goes on."""
        for token, probability in zip(self._prefix(), self._p, strict=False):
            self.out.append(token, probability)
            if self.out.finish is not None:
                return

    def guesses(self, scores: Scores) -> list[Guess]:
        """Return the likeliest token of each position; of one that may not be END, another."""
        found = []
        for position in range(self.out.room()):
            token, log = scores.best(position)
            probability = math.exp(log)
            if token == self._end and self.out.too_short(position):
                probabilities = self.out.distribution(position, scores)
                probabilities[token] = 0.0
                token = int(np.argmax(probabilities))
                probability = float(probabilities[token])
            found.append(Guess(token, probability))
        return found

    def horizon(self) -> int:
        """Return the position from which on nothing can show: END, or the end of the lines."""
        end = self._first_end()
        return next((i + 1 for i in self._cutting(self.tokens[:end])), end)

    # -- placing ---------------------------------------------------------------------------------

    def _put(self, position: int, token: int, probability: float) -> None:
        self.tokens[position], self._p[position] = token, probability

    def _prefix(self) -> list[int]:
        """Return the tokens placed without a gap from the left, END included."""
        return place_text(self.tokens[: self.out.room()], self._end)

    def _masked(self) -> list[int]:
        return [i for i in range(self.horizon()) if self.tokens[i] is None]

    def _place(self, guesses: list[Guess], scores: Scores) -> None:
        count, free = self._walk_constraint(guesses, scores)
        if not free:
            return
        for position in self._choose(guesses, count):
            if position >= self.horizon():
                return  # what was placed just now ends the answer before it
            drawn = self._draw(position, guesses[position], scores)
            self._put(position, drawn.token, drawn.probability)
            if drawn.token != guesses[position].token:
                return  # what lies beyond was predicted for another text

    def _draw(self, position: int, guess: Guess, scores: Scores) -> Guess:
        """Return what to place at an unconstrained position: the guess, or a sample."""
        plan = self._plan
        if plan.temperature == 0:
            return guess
        ends = guess.token == self._end or position == self._masked()[0]
        ends = ends and not self.out.too_short(position)
        probabilities = self.out.distribution(position, scores, end=ends)
        return Guess(*sample(probabilities, plan.temperature, plan.top_p, self.out.rng))

    def _walk_constraint(self, guesses: list[Guess], scores: Scores) -> tuple[int, bool]:
        """Place from left to right while the constraint lasts.

        The first position is always placed, further ones while they are sure and the model guessed
        what was placed before them.

        Returns:
            How many were placed, and whether free positions may follow in the same step.
        """
        count = 0
        while self._bound and len(prefix := self._prefix()) < self.out.room():
            allowed = self.out.token_mask(prefix)
            if allowed is None:
                self._bound = False
                break
            position = len(prefix)
            drawn = Guess(*self.out.choose_allowed(position, scores, allowed, position))
            if count and drawn.probability < self._plan.threshold:
                return count, False
            self._put(position, drawn.token, drawn.probability)
            count += 1
            if drawn.token == self._end or drawn.token != guesses[position].token:
                return count, False
        return count, bool(self._masked())

    def _choose(self, guesses: list[Guess], count: int) -> list[int]:
        """Return masked positions to place in this step, ascending; ``count`` were placed already.

        Every position at or above the threshold, and so many of the best of the rest that the
        canvas is full after ``Plan.max_steps``. END is placed ahead of masked positions only when
        it is very sure. Otherwise it waits until nothing masked is left before it.
        """
        plan, end, masked = self._plan, self._end, self._masked()
        threshold, steps = plan.threshold, plan.max_steps
        ahead = self._end_ahead(masked, guesses)
        if ahead is not None:
            masked = [i for i in masked if i < ahead]
        left = (self._config.canvas_width if steps is None else steps) - self._steps + 1
        quota = max(1, math.ceil(len(masked) / max(1, left))) - count
        chosen = {
            i for i in masked if guesses[i].token != end and guesses[i].probability >= threshold
        }
        open_ = [i for i in masked if i <= self._reach(guesses)]
        while (best := _best_open(open_, chosen, guesses, end)) is not None:
            if guesses[best].probability < threshold and len(chosen) >= quota:
                break
            chosen.add(best)
            if guesses[best].token == end:
                return sorted(chosen)  # all before it are chosen
        return sorted(chosen) if ahead is None else [*sorted(chosen), ahead]

    def _end_ahead(self, masked: list[int], guesses: list[Guess]) -> int | None:
        """Return the first masked position that is so sure to be END that it need not wait."""
        sure = max(END_AHEAD, self._plan.threshold)
        text = [i for i in range(self._first_end()) if self.tokens[i] is not None]
        ends = [i for i in masked if guesses[i].token == self._end]
        first = next((i for i in ends if guesses[i].probability >= sure), None)
        return None if first is None or (text and first < text[-1]) else first

    def _reach(self, guesses: list[Guess]) -> int:
        """Return where the answer would end if every guess were right.

        What lies beyond is placed when it is sure, but is not worth a step.
        """
        tokens = [
            guess.token if token is None else token
            for token, guess in zip(self.tokens, guesses, strict=False)
        ]
        ends = [i for i, token in enumerate(tokens) if token == self._end]
        return min([*ends[:1], *self._cutting(tokens)], default=len(tokens))

    def _first_end(self) -> int:
        """Return the position of the first END, or the room."""
        room = self.out.room()
        return next((i for i, token in enumerate(self.tokens[:room]) if token == self._end), room)

    def _cutting(self, tokens: Seq[int | None]) -> list[int]:
        """Return positions at which these tokens reach the line limit or lie beyond it."""
        brief = self.out.brief
        limit, lines = brief.limits.max_lines, brief.bytes_of(self.out.tokens).count(b"\n")
        found = []
        for i, token in enumerate(tokens):
            lines += 0 if token is None else brief.vocab_bytes[token].count(b"\n")
            if limit is not None and lines >= limit:
                found.append(i)
        return found


def _best_open(masked: list[int], chosen: set[int], guesses: list[Guess], end: int) -> int | None:
    """Return the surest masked position not chosen yet; END only once all before it are chosen."""
    rest = [i for i in masked if i not in chosen]
    open_ = [i for i in rest if guesses[i].token != end or i == rest[0]]
    return max(open_, key=lambda i: guesses[i].probability, default=None)


# --- between prefix and suffix --------------------------------------------------------------------


def grow(
    passes: Passes, between: tuple[int, Seq[int]], brief: Brief, rng: np.random.Generator
) -> Draft:
    """Write one answer on a canvas that finds its length, between the tokens held and others.

    It begins with a few masks. A position that predicts *expand* becomes two masks, one that
    predicts END is taken out, and what lies masked behind it too; any other token is placed. The
    published sampler settles one position a step; here every position that is sure enough is
    settled, the surest in any case.

    Args:
        between: the prompt's last token before the answer, which the sequence does not hold, and
            the tokens behind the answer.

    Raises:
        Cancelled: the caller has cancelled.
    """
    (before, behind), mask = between, brief.config.mask_token
    most = max(brief.limits.max_tokens, 1)
    canvas: list[Guess | None] = [None] * min(BEGIN, most)
    expansions = steps = 0
    while None in canvas:
        *window, last = [before, *(mask if each is None else each.token for each in canvas)]
        scores = passes.denoise(np.asarray(window, np.int64), [last, *behind], logits=True)
        may_expand = len(canvas) < most and expansions < 2 * most  # so that it comes to an end
        canvas, expanded = _settle(canvas, scores, brief, rng, may_expand)
        expansions, steps, canvas = expansions + expanded, steps + 1, canvas[:most]
        data = [None if each is None else brief.vocab_bytes[each.token] for each in canvas]
        passes.show(partial(CanvasState, steps, tuple(pieces(data, 0, None))))
    placed_ = [each for each in canvas if each is not None]
    written = brief.bytes_of([each.token for each in placed_])
    cut, why = cut_of(written, 0, brief.limits, None)
    return Draft(
        text=to_text(written if cut is None else written[:cut]),
        token_ids=tuple(each.token for each in placed_),
        confidence=confidence([each.probability for each in placed_]),
        steps=steps,
        repaired=0,
        finish=why or ("length" if len(placed_) >= most else "end"),
    )


def _settle(
    canvas: Seq[Guess | None],
    scores: Scores,
    brief: Brief,
    rng: np.random.Generator,
    may_expand: bool,
) -> tuple[list[Guess | None], int]:
    """Return the canvas after one step, and how many of its positions became two masks."""
    config, found, expanded = brief.config, list[Guess | None](), 0
    masked = [i for i, each in enumerate(canvas) if each is None]
    guesses = {i: _guess(i, scores, brief, rng, may_expand) for i in masked}
    surest = max(masked, key=lambda i: guesses[i].probability)
    for i, each in enumerate(canvas):
        if each is not None:
            found.append(each)
            continue
        guess = guesses.get(i)  # None behind a position that was taken out
        if guess is None:
            continue
        if guess.probability < brief.plan.threshold and i != surest:
            found.append(None)
        elif guess.token == config.end_token:
            guesses.clear()
        elif guess.token == config.expand_token:
            found += [None, None]
            expanded += 1
        else:
            found.append(guess)
    return found, expanded


def _guess(
    position: int, scores: Scores, brief: Brief, rng: np.random.Generator, may_expand: bool
) -> Guess:
    """Return the token to settle at a position."""
    config, plan = brief.config, brief.plan
    assert scores.logits is not None, "a growing canvas is read with logits"
    logits = scores.logits[position].astype(np.float64)  # [vocab]
    if not may_expand:
        logits[config.expand_token] = -np.inf
    if position < brief.limits.min_tokens:
        logits[config.end_token] = -np.inf
    return Guess(*sample(softmax(logits), plan.temperature, plan.top_p, rng))
