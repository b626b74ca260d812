"""The answer while it is being written: the tokens that are settled, and the canvas behind them.

Says what may still be written and where the answer ends: limits, stop strings, the forced
beginning, the constraint. ``filling.py`` places tokens by canvases and ``judging.py`` by the causal
pass; neither keeps tokens of its own. Pure: it sees predictions and never the network, the cache, a
clock or a file.

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
from ..runtime.backend import Scores
from .plan import Brief, Draft
from .probabilities import (
    confidence,
    cut_of,
    decode,
    goes_round,
    pieces,
    sample,
    softmax,
    sure_part,
)


@dataclass(frozen=True, slots=True)
class Guess:
    token: int
    probability: float


class Answer:
    """The tokens written so far.

    Args:
        last_token: the prompt's last token; it opens the window of the first canvas.
        rng: drawn from only at a temperature above 0.
    """

    def __init__(self, brief: Brief, last_token: int, rng: np.random.Generator) -> None:
        self.brief = brief
        self.last_token = last_token  # of what is settled, the prompt included
        self.steps = 0  # passes it took part in
        self.repaired = 0  # drafted tokens that the causal pass replaced
        self.finish: Finish | None = None  # why it ends; None: it goes on
        self.settled: list[int] = []  # tokens of earlier canvases, kept for good
        self.settled_p: list[float] = []
        self.tokens: list[int | None] = []  # of the canvas; None: masked
        self.p: list[float] = []  # probability of each placed token
        self.constrained = brief.constraint is not None  # may it still bind the next token?
        self.guarded = False  # did the constraint bind the first token of this canvas?
        self.rng = rng
        self._forced = brief.limits.forced.encode("utf-8", "replace")
        self._sure: int | None = None  # bytes before the first line too unlikely to show
        self._clear()

    # -- what people see -------------------------------------------------------------------------

    def state(self) -> CanvasState:
        """The answer as people may see it: without the forced beginning and without END."""
        open_ = self.tokens[: self.horizon()] if self.finish is None else self.prefix()
        end = self.brief.config.end_token
        visible = [token for token in [*self.settled, *open_] if token != end]
        cut, _ = self._cut()
        if cut is not None:
            visible = [*self.written()]
        data = [None if token is None else self.brief.vocab_bytes[token] for token in visible]
        found = tuple(pieces(data, len(self._forced), cut))
        sure = 0 if cut is not None else min(len(self.settled), len(found))
        return CanvasState(self.steps, found, sure)

    def draft(self) -> Draft:
        """The finished answer."""
        assert self.finish is not None, "an unfinished answer has no draft"
        tokens = self.written()
        probabilities = self._probabilities(tokens)
        written = self.bytes_of(tokens)
        cut, why = self._cut()
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

    @property
    def total(self) -> float:
        """Log-probability of what earlier canvases settled."""
        return sum(math.log(max(p, 1e-30)) for p in self.settled_p)

    # -- what is written -------------------------------------------------------------------------

    def prefix(self) -> list[int]:
        """Tokens of this canvas placed without a gap from the left, END included."""
        tokens: list[int] = []
        for token in self.tokens[: self.room()]:
            if token is None:
                break
            tokens.append(token)
            if token == self.brief.config.end_token:
                break
        return tokens

    def written(self) -> list[int]:
        """All tokens placed without a gap from the answer's beginning, END included."""
        return [*self.settled, *self.prefix()]

    def open_with(self, tokens: Seq[int], probabilities: Seq[float]) -> None:
        """Begin with ``tokens`` that somebody else chose in one pass; the next canvas comes behind
        them."""
        self.steps += 1
        self._keep_each(tokens, probabilities)

    def settle(self, count: int) -> None:
        """Keep the first ``count`` tokens of the canvas for good and open a fresh canvas."""
        kept = self.prefix()[:count]
        self.settled += kept
        self.settled_p += self.p[: len(kept)]
        self.last_token = kept[-1]
        self._clear()
        self.see_end()

    def settle_each(self, count: int) -> None:
        """The same one by one, as far as the answer goes on: whether it ends does then not depend
        on how many tokens a pass brought."""
        self._keep_each(self.prefix()[:count], self.p[:count])

    def _keep_each(self, tokens: Seq[int], probabilities: Seq[float]) -> None:
        for token, probability in zip(tokens, probabilities, strict=True):
            self.settled.append(token)
            self.settled_p.append(probability)
            self.last_token = token
            self._clear()
            self.see_end()
            if self.finish is not None:
                return

    def _probabilities(self, written: Seq[int]) -> list[float]:
        return [*self.settled_p, *self.p[: len(written) - len(self.settled)]]

    def bytes_of(self, tokens: Seq[int]) -> bytes:
        return b"".join(self.brief.vocab_bytes[token] for token in tokens)

    def close(self) -> None:
        """Where an answer ran out of tokens before its grammar was fulfilled: go back to where it
        can still be brought to its end, as short as possible, and do so. Nobody was asked about
        these tokens: they have no probability."""
        constraint, end = self.brief.constraint, self.brief.config.end_token
        if constraint is None or self.finish != "length":
            return
        written = [token for token in self.written() if token != end]
        probabilities = self._probabilities(written)
        kept, back = len(written), 1
        while True:
            rest = constraint.closing(written[:kept], self.brief.limits.max_tokens - kept)
            if rest is not None:
                break
            if kept == 0:
                return
            kept, back = max(0, kept - back), 2 * back
        if rest:
            self.settled, self.settled_p = [*written[:kept], *rest], probabilities[:kept]
            self.tokens = [None] * len(self.tokens)

    # -- the canvas ------------------------------------------------------------------------------

    def _clear(self) -> None:
        """Open a fresh canvas."""
        width = self.brief.config.canvas_width
        self.tokens = [None] * width
        self.p = [0.0] * width
        self.guarded = self.allowed_now() is not None

    def mask_again(self) -> None:
        """Take the drafts off the canvas, and what they did to the constraint."""
        self.tokens = [None] * len(self.tokens)
        self.constrained = self.guarded

    def room(self) -> int:
        """Positions of this canvas the answer may still use."""
        left = self.brief.limits.max_tokens - len(self.settled)
        return min(self.brief.config.canvas_width, left)

    def end(self) -> int:
        """Position of the first END, else the room."""
        room = self.room()
        end = self.brief.config.end_token
        return next((i for i, token in enumerate(self.tokens[:room]) if token == end), room)

    def horizon(self) -> int:
        """From here on nothing can show: the first END, or what a placed line end cuts off."""
        end = self.end()
        return next((i + 1 for i in self.cutting(self.tokens[:end])), end)

    def cutting(self, tokens: Seq[int | None]) -> Iterator[int]:
        """Positions at which these tokens of the canvas reach the line limit or lie beyond it."""
        limit = self.brief.limits.max_lines
        if limit is None:
            return
        lines = self.bytes_of(self.settled).count(b"\n")
        for i, token in enumerate(tokens):
            lines += 0 if token is None else self.brief.vocab_bytes[token].count(b"\n")
            if lines >= limit:
                yield i

    def masked(self) -> list[int]:
        """Positions still to be placed."""
        return [i for i in range(self.horizon()) if self.tokens[i] is None]

    def put(self, position: int, token: int, probability: float) -> None:
        self.tokens[position] = token
        self.p[position] = probability

    # -- predictions -----------------------------------------------------------------------------

    def first_choices(self, out: Scores, count: int) -> list[tuple[int, float]]:
        """The ``count`` most likely tokens of position 0 and their probabilities, END left out."""
        probabilities = self.distribution(0, out, self.allowed_now(), end=False)
        best = np.argsort(-probabilities, kind="stable")[:count]
        return [(int(i), float(probabilities[i])) for i in best if probabilities[i] > 0]

    def guesses(self, out: Scores) -> list[Guess]:
        return [self.guess(position, out) for position in range(self.room())]

    def guess(self, position: int, out: Scores) -> Guess:
        """The likeliest token; where the answer may not end yet, the likeliest besides END, with
        the probability it has all the same."""
        token, log = out.best(position)
        probability = math.exp(log)
        if token == self.brief.config.end_token and self.too_short(position):
            others = self.distribution(position, out)
            others[token] = 0.0
            token = int(np.argmax(others))
            probability = float(others[token])
        return Guess(token, probability)

    def too_short(self, position: int) -> bool:
        """Whether the answer may not end at ``position`` of this canvas."""
        return len(self.settled) + position < self.brief.limits.min_tokens

    def distribution(
        self,
        position: int,
        out: Scores,
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

    def allowed_now(self) -> NDArray[np.bool_] | None:
        """The constraint on the next token from the left; None: free."""
        if not self.constrained or self.brief.constraint is None:
            return None
        allowed = self.brief.constraint.allowed([*self.settled, *self.prefix()])
        self.constrained = allowed is not None
        return allowed

    def draw_allowed(
        self,
        position: int,
        allowed: NDArray[np.bool_] | None,
        out: Scores,
    ) -> Guess:
        """The likeliest token that is allowed at ``position``, or a sample of those."""
        plan = self.brief.plan
        probabilities = self.distribution(position, out, allowed)
        if self.too_short(position):  # what is written instead keeps its own probability
            probabilities[self.brief.config.end_token] = 0.0
        if not probabilities.any():  # nowhere to go on: whoever reads the answer judges it
            return Guess(self.brief.config.end_token, 0.0)
        if plan.temperature > 0:
            return Guess(*sample(probabilities, plan, self.rng))
        best = int(np.argmax(probabilities))
        return Guess(best, float(probabilities[best]))

    # -- its end ---------------------------------------------------------------------------------

    def see_end(self) -> None:
        """Find out whether the answer ends with what is placed now, and why."""
        self.finish = self._reason()

    @property
    def is_cut(self) -> bool:
        """Whether what is placed reaches a stop string or a limit of lines."""
        return self._cut()[0] is not None

    def _reason(self) -> Finish | None:
        written = self.written()
        self._sure = sure_part(
            [self.brief.vocab_bytes[token] for token in written],
            self._probabilities(written),
            len(self._forced),
            self.brief.limits.line_above,
            self.brief.limits.min_tokens,
            self.brief.limits.total_above,
            self.brief.limits.openers,
        )
        _, reason = self._cut()
        if reason is not None:
            return reason
        if written and written[-1] == self.brief.config.end_token:
            return "end"
        if goes_round(written, self.brief.vocab_bytes):
            return "length"
        return "length" if len(written) >= self.brief.limits.max_tokens else None

    def _cut(self) -> tuple[int | None, Finish | None]:
        return cut_of(
            self.bytes_of(self.written()), len(self._forced), self.brief.limits, self._sure
        )

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
