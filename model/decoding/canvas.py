"""The answer while it is being written: one canvas at a time, from masks to tokens.

Decides, after each denoise step, which positions to place, which placed tokens to replace and
whether the answer is finished. Pure: it sees predictions and never the network, the cache, a clock
or a file; ``denoise.py`` runs the passes and hands their outputs in.

Words used here: a position is *placed* when it holds a token and *masked* otherwise; a *guess* is
the model's most likely token at a position, with its probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..records import CanvasState, Finish
from ..runtime.backend import CanvasOutput, CausalOutput, IntArray
from .copies import CANVAS_PAUSE, CANVAS_WORTH, FREE, Pace, continuation
from .plan import Brief, Draft
from .probabilities import confidence, decode, goes_round, pieces, sample, softmax, sure_part

#: END is placed ahead of masked positions only when it is at least this sure: a wrong one squeezes
#: the rest of the answer into the positions before it.
END_AHEAD = 0.9
#: How often one position may be repaired; bounds the work where two tokens keep displacing another.
REPAIRS_PER_POSITION = 2


@dataclass(frozen=True, slots=True)
class Guess:
    token: int
    probability: float


class Answer:
    """The tokens written so far and the canvas being denoised.

    Args:
        last_token: the prompt's last token; it opens the window of the first canvas.
        rng: drawn from only at a temperature above 0.
    """

    _tokens: list[int | None]
    _guarded: bool  # did the constraint bind the first token of this canvas?

    def __init__(self, brief: Brief, last_token: int, rng: np.random.Generator) -> None:
        self.brief = brief
        self.last_token = last_token
        self.steps = 0
        self.repaired = 0
        self.closed = False  # the canvas needs no further step
        self.finish: Finish | None = None  # the answer needs no further canvas
        self._rng = rng
        self._settled: list[int] = []  # tokens of earlier canvases
        self._settled_p: list[float] = []
        self._constrained = brief.constraint is not None
        self._copy_pace = Pace()
        asked, usual = brief.plan.draft_after, brief.config.draft_after
        self._canvas_pace = Pace(CANVAS_WORTH, CANVAS_PAUSE, usual if asked is None else asked)
        self._forced = brief.limits.forced.encode("utf-8", "replace")
        self._sure: int | None = None  # bytes before the first line too unlikely to show
        self._clear()

    # -- what the next step needs -----------------------------------------------------------

    def window(self) -> IntArray:
        """[B] input of the next denoise step: last token, then all positions but the last.

        Whatever follows END is shown as END: that is the padding the weights were trained with.
        """
        config = self.brief.config
        inputs, blank = [self.last_token], config.mask_token
        for token in self._tokens[:-1]:
            ended = blank == config.end_token
            inputs.append(blank if token is None or ended else token)
            if token == config.end_token:
                blank = config.end_token
        return np.asarray(inputs, dtype=np.int64)  # [B]

    def wants_logits(self) -> bool:
        """Whether the next pass must return whole distributions."""
        plan = self.brief.plan
        return plan.temperature > 0 or self._allowed_now() is not None or self._too_short(0)

    # -- one denoise step -------------------------------------------------------------------

    def advance(self, out: CanvasOutput) -> None:
        """Take in the predictions [B] of one step: repair, place, and see what is finished."""
        self.steps += 1
        self._canvas_steps += 1
        guesses = self._guesses(out)
        was_full = not self._masked()
        repaired = self._repair(guesses)
        if was_full:
            self._checks += 1
        else:
            self._place(guesses, out)
        self._conclude(checked_clean=was_full and not repaired)

    def begin_with(self, tokens: Seq[int], probabilities: Seq[float]) -> None:
        """Place a beginning of its own, in the step whose distribution it was taken from."""
        self.steps += 1
        self._canvas_steps += 1
        for place, (token, probability) in enumerate(zip(tokens, probabilities, strict=True)):
            self._set(place, token, probability, fixed=True)
        self._conclude(checked_clean=False)

    def open_with(self, tokens: Seq[int], probabilities: Seq[float], steps: int) -> None:
        """Begin with ``tokens`` that somebody else chose in ``steps`` passes; the next canvas comes
        behind them."""
        self.steps += steps
        self._settled += tokens
        self._settled_p += probabilities
        self.last_token = tokens[-1]
        self._clear()
        self.finish = self._finish()

    @property
    def total(self) -> float:
        """Log-probability of what earlier canvases settled."""
        return sum(math.log(max(p, 1e-30)) for p in self._settled_p)

    def first_choices(
        self, out: CanvasOutput | CausalOutput, count: int
    ) -> list[tuple[int, float]]:
        """The ``count`` most likely tokens of position 0 and their probabilities, END left out."""
        probabilities = self._distribution(0, out, self._allowed_now(), end=False)
        best = np.argsort(-probabilities, kind="stable")[:count]
        return [(int(i), float(probabilities[i])) for i in best if probabilities[i] > 0]

    # -- between canvases -------------------------------------------------------------------

    def prefix(self) -> list[int]:
        """Tokens of this canvas placed without a gap from the left, END included."""
        tokens: list[int] = []
        for token in self._tokens[: self._room()]:
            if token is None:
                break
            tokens.append(token)
            if token == self.brief.config.end_token:
                break
        return tokens

    def draft_from(self, out: CanvasOutput) -> None:
        """Place what one pass guesses from the left, as far as it is worth judging."""
        self.steps += 1
        self._tried = True
        guesses = self._guesses(out)
        _, free = self._walk_constraint(guesses, out)
        for position in self._masked() if free else []:
            guess = guesses[position]
            if guess.probability < self.brief.plan.draft_above or position >= self._horizon():
                break
            self._set(position, guess.token, guess.probability)

    def review(self, out: CausalOutput) -> int:
        """Keep the drafted tokens that the causal pass over ``[last_token, *prefix()]`` stands by,
        and write its own token where it first disagrees, or behind the last.

        Returns:
            How many tokens of the canvas are right now; at least one.
        """
        self.steps += 1
        drafted = self.prefix()
        self._tokens = [None] * len(self._tokens)
        self._constrained = self._guarded
        kept = 0
        for position in range(min(len(drafted) + 1, self._room())):
            wanted = drafted[position] if position < len(drafted) else None
            chosen = self._causal_choice(position, wanted, out)
            self._set(position, chosen.token, chosen.probability)
            if chosen.token != wanted:
                self.repaired += wanted is not None
                break
            kept += 1
            if wanted == self.brief.config.end_token:
                break
        self._pace(kept)
        return len(self.prefix())

    def wants_causal_logits(self) -> bool:
        """Whether :meth:`review` needs whole distributions."""
        return self.brief.plan.temperature > 0 or self._guarded or self._too_short(0)

    def worth_drafting(self) -> bool:
        """Whether a canvas pass is likely to save causal ones: after drafts that did not, ever more
        tokens are written without."""
        return self.brief.plan.drafts and self._canvas_pace.due

    def copy(self) -> list[int]:
        """What followed the same tokens elsewhere in the prompt; [] where nothing did."""
        if not self.brief.plan.copies or self._guarded:
            return []
        whole = np.concatenate([self.brief.source, np.asarray(self._settled, np.int64)])
        return continuation(whole, whole, self.brief.config.special_tokens)[: self._room()]

    def worth_copying(self, copy: Seq[int]) -> bool:
        """Whether there is enough of a copy to be worth more than a canvas, and such were right."""
        return len(copy) > FREE and self._copy_pace.due

    def draft_copy(self, copy: Seq[int]) -> None:
        """Place a copy for the causal pass to judge."""
        for position, token in enumerate(copy):
            self._set(position, token, 0.0)
        self._copied = len(copy) > FREE

    def _pace(self, kept: int) -> None:
        for used, pace in ((self._tried, self._canvas_pace), (self._copied, self._copy_pace)):
            pace.note(kept) if used else pace.rest(kept + 1)

    def _causal_choice(self, position: int, wanted: int | None, out: CausalOutput) -> Guess:
        """The causal pass's token at ``position``: its likeliest, or ``wanted`` where a canvas
        guessed that and it is nearly as likely, or a sample."""
        plan, allowed = self.brief.plan, self._allowed_now()
        if allowed is not None or plan.temperature > 0:
            return self._draw_allowed(position, allowed, out)
        best = self._guess(position, out)
        if wanted is None or wanted == best.token:
            return best
        if not self._tried:
            return best  # a copy is nobody's opinion
        probability = math.exp(float(out.log_probability[position]))
        near = probability >= plan.accept_above * best.probability
        return Guess(wanted, probability) if near else best

    def settle(self, count: int) -> None:
        """Keep the first ``count`` tokens of the canvas for good and open a fresh canvas."""
        kept = self.prefix()[:count]
        self._settled += kept
        self._settled_p += self._p[: len(kept)]
        self.last_token = kept[-1]
        self._clear()
        self.finish = self._finish()

    # -- results ----------------------------------------------------------------------------

    def state(self) -> CanvasState:
        """The answer as people may see it: without the forced beginning and without END."""
        open_ = self._tokens[: self._horizon()] if self.finish is None else self.prefix()
        end = self.brief.config.end_token
        visible = [token for token in [*self._settled, *open_] if token != end]
        cut, _ = self._cut(self._bytes(self._written()))
        if cut is not None:
            visible = [*self._written()]
        data = [None if token is None else self.brief.vocab_bytes[token] for token in visible]
        return CanvasState(step=self.steps, pieces=tuple(pieces(data, len(self._forced), cut)))

    def draft(self) -> Draft:
        """The finished answer."""
        assert self.finish is not None, "an unfinished answer has no draft"
        tokens = self._written()
        probabilities = self._probabilities(tokens)
        written = self._bytes(tokens)
        cut, why = self._cut(written)
        # The break before an unlikely line is not held against the lines above it; the one behind
        # the last line asked for says that it ends there.
        end = (self._sure or 1) - 1 if why == "unsure" else cut
        if why == "length" and cut is not None:
            end = cut - self.brief.limits.whole_lines
        used = self._tokens_up_to(tokens, end)
        return Draft(
            text=decode(written if cut is None else written[:cut]),
            token_ids=tuple(tokens[:used]),
            confidence=confidence(probabilities[:used]),
            steps=self.steps,
            repaired=self.repaired,
            finish=self.finish,
        )

    # -- the canvas -------------------------------------------------------------------------

    def _clear(self) -> None:
        width = self.brief.config.canvas_width
        self._tokens = [None] * width
        self._p = [0.0] * width
        self._fixed = [False] * width  # placed under a constraint: neither repaired nor vetoed
        self._repairs = [0] * width
        self._canvas_steps = 0
        self._checks = 0
        self._tried = False  # to draft this canvas in one pass, for the causal pass to judge
        self._copied = False  # the draft from elsewhere
        self.closed = False
        self._guarded = self._allowed_now() is not None

    def _room(self) -> int:
        """Positions of this canvas the answer may still use."""
        left = self.brief.limits.max_tokens - len(self._settled)
        return min(self.brief.config.canvas_width, left)

    def _end(self) -> int:
        """Position of the first END, else the room."""
        room = self._room()
        end = self.brief.config.end_token
        return next((i for i, token in enumerate(self._tokens[:room]) if token == end), room)

    def _horizon(self) -> int:
        """From here on nothing can show: the first END, or what a placed line end cuts off."""
        end = self._end()
        return next((i + 1 for i in self._cutting(self._tokens[:end])), end)

    def _cutting(self, tokens: Seq[int | None]) -> Iterator[int]:
        """Positions at which these tokens of the canvas reach the line limit or lie beyond it."""
        limit = self.brief.limits.max_lines
        if limit is None:
            return
        lines = self._bytes(self._settled).count(b"\n")
        for i, token in enumerate(tokens):
            lines += 0 if token is None else self.brief.vocab_bytes[token].count(b"\n")
            if lines >= limit:
                yield i

    def _masked(self) -> list[int]:
        """Positions still to be placed."""
        return [i for i in range(self._horizon()) if self._tokens[i] is None]

    def _set(self, position: int, token: int, probability: float, fixed: bool = False) -> None:
        self._tokens[position] = token
        self._p[position] = probability
        self._fixed[position] = fixed

    # -- predictions ------------------------------------------------------------------------

    def _guesses(self, out: CanvasOutput) -> list[Guess]:
        return [self._guess(position, out) for position in range(self._room())]

    def _guess(self, position: int, out: CanvasOutput | CausalOutput) -> Guess:
        """The likeliest token; where the answer may not end yet, the likeliest besides END, with
        the probability it has all the same."""
        token, probability = int(out.token[position]), float(out.confidence[position])
        if token == self.brief.config.end_token and self._too_short(position):
            others = self._distribution(position, out)
            others[token] = 0.0
            token = int(np.argmax(others))
            probability = float(others[token])
        return Guess(token, probability)

    def _too_short(self, position: int) -> bool:
        """Whether the answer may not end at ``position`` of this canvas."""
        return len(self._settled) + position < self.brief.limits.min_tokens

    def _distribution(
        self,
        position: int,
        out: CanvasOutput | CausalOutput,
        allowed: NDArray[np.bool_] | None = None,
        end: bool = True,
    ) -> NDArray[np.float64]:
        """Probabilities [vocab] over the tokens that may stand at ``position``."""
        assert out.logits is not None, "this step was run without logits"
        config = self.brief.config
        logits = out.logits[position].astype(np.float64)  # [vocab]
        end_logit = logits[config.end_token]
        logits[: config.special_tokens] = -np.inf
        if end:
            logits[config.end_token] = end_logit
        if allowed is not None:
            logits[~allowed] = -np.inf
        return softmax(logits)

    def _draw(self, position: int, guess: Guess, out: CanvasOutput) -> Guess:
        """What to place at an unconstrained position: the guess, or a sample."""
        plan = self.brief.plan
        if plan.temperature == 0:
            return guess
        ends = guess.token == self.brief.config.end_token or position == self._masked()[0]
        ends = ends and not self._too_short(position)
        probabilities = self._distribution(position, out, end=ends)
        return Guess(*sample(probabilities, plan, self._rng))

    # -- placing ----------------------------------------------------------------------------

    def _place(self, guesses: list[Guess], out: CanvasOutput) -> None:
        placed, free = self._walk_constraint(guesses, out)
        if not free:
            return
        for position in self._choose(guesses, placed):
            if position >= self._horizon():
                return  # what was placed just now ends the answer before it
            drawn = self._draw(position, guesses[position], out)
            self._set(position, drawn.token, drawn.probability)
            if drawn.token != guesses[position].token:
                return  # what lies beyond was predicted for another text

    def _walk_constraint(self, guesses: list[Guess], out: CanvasOutput) -> tuple[int, bool]:
        """Place from left to right while the constraint lasts: the first position always, further
        ones while they are sure and the model guessed what was placed before them.

        Returns how many were placed and whether free positions may follow in the same step.
        """
        plan, end = self.brief.plan, self.brief.config.end_token
        placed = 0
        while self._constrained and len(self.prefix()) < self._room():
            allowed = self._allowed_now()
            if allowed is None:
                break
            position = len(self.prefix())
            drawn = self._draw_allowed(position, allowed, out)
            if placed and drawn.probability < plan.threshold:
                return placed, False
            self._set(position, drawn.token, drawn.probability, fixed=True)
            placed += 1
            if drawn.token == end or drawn.token != guesses[position].token:
                return placed, False
        return placed, bool(self._masked())

    def _allowed_now(self) -> NDArray[np.bool_] | None:
        """The constraint on the next token from the left; None: free."""
        if not self._constrained or self.brief.constraint is None:
            return None
        written = self._bytes([*self._settled, *self.prefix()])
        allowed = self.brief.constraint.allowed(written)
        self._constrained = allowed is not None
        return allowed

    def _draw_allowed(
        self,
        position: int,
        allowed: NDArray[np.bool_] | None,
        out: CanvasOutput | CausalOutput,
    ) -> Guess:
        plan = self.brief.plan
        probabilities = self._distribution(position, out, allowed)
        if self._too_short(position):  # what is written instead keeps its own probability
            probabilities[self.brief.config.end_token] = 0.0
        if not probabilities.any():  # nowhere to go on: whoever reads the answer judges it
            return Guess(self.brief.config.end_token, 0.0)
        if plan.temperature > 0:
            return Guess(*sample(probabilities, plan, self._rng))
        best = int(np.argmax(probabilities))
        return Guess(best, float(probabilities[best]))

    def _choose(self, guesses: list[Guess], placed: int) -> list[int]:
        """Masked positions to place in this step, ascending; ``placed`` were placed already.

        Every position at or above the threshold, and as many of the best of the rest as the plan
        demands. END is placed ahead of masked positions only when it is very sure; otherwise it
        waits until nothing masked is left before it, so it neither truncates what is still open
        nor takes the place of a position that brings the answer further.
        """
        plan, end = self.brief.plan, self.brief.config.end_token
        masked = self._masked()
        if plan.leftmost:
            return [] if placed else masked[:1]
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
        sure = max(END_AHEAD, self.brief.plan.threshold)
        last_text = max((i for i in range(self._end()) if self._tokens[i] is not None), default=-1)
        for i in masked:
            if guesses[i].token == self.brief.config.end_token and guesses[i].probability >= sure:
                return i if i > last_text else None
        return None

    def _reach(self, guesses: list[Guess]) -> int:
        """Where the answer would end if every guess were right: what lies beyond is placed when it
        is sure, but is not worth a step."""
        tokens = [
            guess.token if token is None else token
            for token, guess in zip(self._tokens, guesses, strict=False)
        ]
        ends = [i for i, token in enumerate(tokens) if token == self.brief.config.end_token]
        return min([*ends[:1], *self._cutting(tokens)], default=len(tokens))

    def _quota(self, masked: int) -> int:
        """How many to place in this step so that the canvas is full after ``max_steps``."""
        plan = self.brief.plan
        steps = self.brief.config.canvas_width if plan.max_steps is None else plan.max_steps
        left = max(1, steps - self._canvas_steps + 1)
        return max(plan.min_positions, math.ceil(masked / left))

    def _repair(self, guesses: list[Guess]) -> int:
        """Replace placed tokens the model now contradicts; returns how many.

        END never replaces a token that placed text follows: that would drop the text.
        """
        above, end = self.brief.plan.repair_above, self.brief.config.end_token
        if above is None:
            return 0
        placed = [i for i, token in enumerate(self._tokens[: self._room()]) if token is not None]
        texts = [i for i in placed if i < self._end()]
        count = 0
        for i in placed:
            guess = guesses[i]
            if guess.token == self._tokens[i] or guess.probability <= above or i > self._end():
                continue
            if self._fixed[i] or self._repairs[i] >= REPAIRS_PER_POSITION:
                continue
            if guess.token == end and texts and i < texts[-1]:
                continue
            self._set(i, guess.token, guess.probability)
            self._repairs[i] += 1
            count += 1
        self.repaired += count
        return count

    # -- finishing --------------------------------------------------------------------------

    def _conclude(self, checked_clean: bool) -> None:
        cut, _ = self._cut(self._bytes(self._written()))
        checks_left = self._checks < self.brief.plan.repair_steps and not checked_clean
        self.closed = cut is not None or (not self._masked() and not checks_left)
        if self.closed:
            self.finish = self._finish()

    def _finish(self) -> Finish | None:
        written = self._written()
        self._sure = sure_part(
            [self.brief.vocab_bytes[token] for token in written],
            self._probabilities(written),
            len(self._forced),
            self.brief.limits.line_above,
            self.brief.limits.min_tokens,
        )
        _, reason = self._cut(self._bytes(written))
        if reason is not None:
            return reason
        if written and written[-1] == self.brief.config.end_token:
            return "end"
        if goes_round(written, self.brief.vocab_bytes):
            return "length"
        return "length" if len(written) >= self.brief.limits.max_tokens else None

    def _written(self) -> list[int]:
        """All tokens placed without a gap from the answer's beginning, END included."""
        return [*self._settled, *self.prefix()]

    def _probabilities(self, written: Seq[int]) -> list[float]:
        return [*self._settled_p, *self._p[: len(written) - len(self._settled)]]

    def _bytes(self, tokens: Seq[int]) -> bytes:
        return b"".join(self.brief.vocab_bytes[token] for token in tokens)

    def _cut(self, written: bytes) -> tuple[int | None, Finish | None]:
        """Where a stop string, the line limit or the first unlikely line cuts ``written``, in
        bytes, and which of them."""
        limits, skip = self.brief.limits, len(self._forced)
        cuts: list[tuple[int, Finish]] = []
        if self._sure is not None:
            cuts.append((self._sure + limits.whole_lines, "unsure"))
        for stop in limits.stop:
            found = written.find(stop.encode("utf-8", "replace"), skip)
            if stop and found >= 0:
                cuts.append((found, "stop"))
        if limits.max_lines is not None:
            newline = skip - 1
            for _ in range(limits.max_lines):
                newline = written.find(b"\n", newline + 1)
                if newline < 0:
                    break
            else:
                cuts.append((newline + limits.whole_lines, "length"))
        return min(cuts, default=(None, None), key=lambda cut: cut[0])

    def _tokens_up_to(self, tokens: Seq[int], cut: int | None) -> int:
        """How many tokens it takes to reach byte ``cut``; None: all."""
        if cut is None:
            return len(tokens)
        length = 0
        for count, token in enumerate(tokens, start=1):
            length += len(self.brief.vocab_bytes[token])
            if length > cut:
                return count
        return len(tokens)


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
