"""A completion while it is written: its tokens, what may follow, and where it ends.

Pure: it takes scores and never runs a pass.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from ..network.layout import TOP
from ..records import CanvasState, Confidence, Finish, Quality, Source
from ..runtime.backend import BoolArray, IntArray, Scores
from .drafts import Odds
from .endings import AnswerLimits, cut_of, goes_round, sure_part
from .grammar import Constraint
from .pass_costs import PassPrices
from .sampling import confidence, sample, softmax


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of decoding."""

    threshold: float  # probability from which a position of a canvas is placed without waiting;
    # inf: one token a step
    max_steps: int | None = None  # per canvas; None: as many as it has positions
    drafts: bool = True  # False, where drafts are verified: neither canvases nor masks draft
    copies: bool = True  # False, there: nothing is copied from Brief.source
    draft_above: float = 0.3  # probability from which the guess of a canvas is worth verifying
    line_above: float = 0.3  # an infill's further lines end before the first less likely than this
    second_tries: int = 3  # of an infill that does not fit the lines around it; 0: it stays
    deadline_ms: float | None = None  # of the search for next edits; None: as the quality has it
    temperature: float = 0.0
    top_p: float = 1.0


#: The control: one token a step; where drafts are verified, without drafts.
AUTOREGRESSIVE = Plan(threshold=float("inf"), drafts=False, copies=False)

_PLANS: dict[Quality, Plan] = {
    "high": Plan(threshold=0.95),
    "medium": Plan(threshold=0.9),
    "low": Plan(threshold=0.6, max_steps=4, second_tries=0),
}


def plan_for(quality: Quality, temperature: float = 0.0, top_p: float = 1.0) -> Plan:
    """Return the settings of a request."""
    return replace(_PLANS[quality], temperature=temperature, top_p=top_p)


@dataclass(frozen=True, slots=True)
class Brief:
    """All that stays the same while one answer is written."""

    config: ModelConfig
    vocab_bytes: Seq[bytes]
    plan: Plan
    limits: AnswerLimits
    constraint: Constraint | None = None
    source: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # [n] tokens that
    # answers often repeat, the prompt's last; drafts are copied from them
    prices: PassPrices | None = None  # of causal passes; None: all drafts are verified
    odds: Odds = field(default_factory=Odds)  # how often drafts were right; learns while it writes

    @property
    def verifies(self) -> bool:
        """Return whether the causal pass verifies and corrects drafts."""
        return self.config.verifier == "ar"

    def bytes_of(self, tokens: Seq[int]) -> bytes:
        """Return the bytes of ``tokens``."""
        return b"".join(self.vocab_bytes[token] for token in tokens)


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished answer."""

    text: str  # the forced beginning included; cut at a stop or at the line limit
    token_ids: tuple[int, ...]  # END included
    confidence: Confidence
    steps: int  # passes this answer took part in
    repaired: int  # drafted tokens that the causal pass replaced
    finish: Finish
    source: Source = "model"
    family: str = ""  # of rules that proposed it
    copied: int = 0  # tokens of a rewritten region besides ``token_ids``, which stay as they were

    @property
    def ended(self) -> bool:
        """Return whether the model wrote END."""
        return self.finish == "end"


class Completion:
    """The tokens written so far, END included, and why they end.

    Args:
        last_token: the prompt's last token.
        rng: drawn from only at a temperature above 0.
    """

    def __init__(self, brief: Brief, last_token: int, rng: np.random.Generator) -> None:
        self.brief = brief
        self.tokens: list[int] = []
        self.p: list[float] = []  # probability of each token
        self.steps = 0
        self.repaired = 0
        self.finish: Finish | None = None  # None: it goes on
        self.rng = rng
        self.prompt_end = last_token
        self._constrained = brief.constraint is not None  # it may still bind the next token
        self._known: dict[int, BoolArray | None] = {}  # tokens allowed, by tokens written
        self._forced = brief.limits.forced.encode("utf-8", "replace")
        self._sure: int | None = None  # bytes before the first line too unlikely to show

    @property
    def last(self) -> int:
        """The last token known to be right, the prompt included."""
        return self.tokens[-1] if self.tokens else self.prompt_end

    # -- writing ---------------------------------------------------------------------------------

    def append(self, token: int, probability: float) -> None:
        """Write one token and see whether the answer ends with it."""
        self.tokens.append(token)
        self.p.append(probability)
        self.finish = self._reason()

    def open_with(self, tokens: Seq[int], probabilities: Seq[float]) -> None:
        """Begin with tokens that one pass has chosen, as far as the answer goes on."""
        self.steps += 1
        for token, probability in zip(tokens, probabilities, strict=True):
            self.append(token, probability)
            if self.finish is not None:
                return

    def verify(self, draft: Seq[int], scores: Scores) -> int:
        """Append what the model writes by the scores of the last token and a draft behind it.

        Returns:
            How many tokens of the draft were right.
        """
        self.steps += 1
        for row in range(len(draft) + 1):
            token, probability = self.choose(row, scores)
            self.append(token, probability)
            if row == len(draft) or token != draft[row]:
                self.repaired += row < len(draft)
                return row
            if self.finish is not None:
                return row + 1
        raise AssertionError("the last row returns")

    def choose(self, row: int, scores: Scores) -> tuple[int, float]:
        """Return the next token and its probability: the likeliest, or a sample, of the allowed."""
        if self.needs_logits():
            return self.choose_allowed(row, scores, self.token_mask())
        token, log = scores.best(row)
        return token, math.exp(log)

    def choose_allowed(
        self, row: int, scores: Scores, allowed: BoolArray | None, ahead: int = 0
    ) -> tuple[int, float]:
        """Return the likeliest token of the allowed, or a sample of them, and its probability.

        Args:
            ahead: tokens of a canvas before it.
        """
        plan, end = self.brief.plan, self.brief.config.end_token
        probabilities = self.distribution(row, scores, allowed)
        if self.too_short(ahead):  # what is written instead keeps the probability that it has
            probabilities[end] = 0.0
        if not probabilities.any():  # there is no way to go on
            return end, 0.0
        return sample(probabilities, plan.temperature, plan.top_p, self.rng)

    def needs_logits(self) -> bool:
        """Return whether the next pass has to return whole distributions."""
        return self.brief.plan.temperature > 0 or self.too_short() or self.token_mask() is not None

    def room(self) -> int:
        """Return how many tokens of a draft or a canvas the answer may still use."""
        left = self.brief.limits.max_tokens - len(self.tokens)
        return min(self.brief.config.canvas_width, left)

    def too_short(self, ahead: int = 0) -> bool:
        """Return whether the answer may not end ``ahead`` tokens further on."""
        return len(self.tokens) + ahead < self.brief.limits.min_tokens

    def token_mask(self, ahead: Seq[int] = ()) -> BoolArray | None:
        """Return which tokens [vocab] may follow these and those ``ahead``; None: any."""
        if not self._constrained or self.brief.constraint is None:
            return None
        if ahead:
            return self.brief.constraint.token_mask([*self.tokens, *ahead])
        count = len(self.tokens)
        if count not in self._known:
            self._known = {count: self.brief.constraint.token_mask(self.tokens)}
            self._constrained = self._known[count] is not None
        return self._known[count]

    def distribution(
        self, row: int, scores: Scores, allowed: BoolArray | None = None, end: bool = True
    ) -> NDArray[np.float64]:
        """Return the probabilities [vocab] of the allowed tokens after a row.

        Args:
            end: whether END is one of them.
        """
        assert scores.logits is not None, "this pass was run without logits"
        config = self.brief.config
        logits = scores.logits[row].astype(np.float64)  # [vocab]
        end_logit = logits[config.end_token] if end else -np.inf
        logits[: config.special_tokens] = -np.inf
        logits[config.end_token] = end_logit
        if allowed is not None:
            logits[~allowed] = -np.inf
        return softmax(logits)

    def probability(self, row: int, scores: Scores, target: int) -> float:
        """Return the probability of the target after a row."""
        if scores.logits is None:
            return math.exp(float(scores.target_logprob[row]))
        return float(self.distribution(row, scores, self.token_mask())[target])

    def likeliest(self, row: int, scores: Scores) -> list[tuple[int, float]]:
        """Return the likeliest tokens after a row, with their probabilities."""
        if scores.logits is None:
            logs = scores.top_logprob[row].astype(np.float64)
            return [*zip(scores.top[row].tolist(), np.exp(logs).tolist(), strict=True)]
        probabilities = self.distribution(row, scores, self.token_mask())
        if self.too_short():
            probabilities[self.brief.config.end_token] = 0.0
        best = np.argsort(-probabilities, kind="stable")[:TOP]
        return [(int(token), float(probabilities[token])) for token in best]

    def first_choices(self, scores: Scores, count: int) -> list[tuple[int, float]]:
        """Return the ``count`` likeliest first tokens and their probabilities, without END."""
        probabilities = self.distribution(0, scores, self.token_mask(), end=False)
        best = np.argsort(-probabilities, kind="stable")[:count]
        return [(int(i), float(probabilities[i])) for i in best if probabilities[i] > 0]

    def close(self) -> None:
        """Fulfil the grammar of an answer that ran out of tokens.

        Go back to where it can still be brought to its end, as short as possible, and do so. These
        tokens were not predicted and have no probability.
        """
        constraint, end = self.brief.constraint, self.brief.config.end_token
        if constraint is None or self.finish != "length":
            return
        written = [token for token in self.tokens if token != end]
        kept, back = len(written), 1
        while True:
            rest = constraint.shortest_end(written[:kept], self.brief.limits.max_tokens - kept)
            if rest is not None:
                break
            if kept == 0:
                return
            kept, back = max(0, kept - back), 2 * back
        if rest:
            self.tokens, self.p = [*written[:kept], *rest], self.p[:kept]

    # -- results ---------------------------------------------------------------------------------

    def state(self, ahead: Seq[int | None] = ()) -> CanvasState:
        """Return the text so far, without the forced beginning and END.

        Args:
            ahead: positions of a canvas behind the tokens; None is masked.
        """
        end = self.brief.config.end_token
        cut, _ = self.cut(place_text(ahead, end))
        shown = [*self.tokens, *(place_text(ahead, end) if cut is not None else ahead)]
        data = [
            None if token is None else self.brief.vocab_bytes[token]
            for token in shown
            if token != end or cut is not None
        ]
        found = tuple(pieces(data, len(self._forced), cut))
        kept = 0 if cut is not None else min(len(found), len(self.tokens))
        return CanvasState(self.steps, found, kept)

    def draft(self) -> Draft:
        """Return the finished answer."""
        assert self.finish is not None, "an unfinished answer has no draft"
        written = self.brief.bytes_of(self.tokens)
        cut, why = self.cut()
        # The break before an unlikely line is not held against the lines above it; the one behind
        # the last line asked for says that it ends there.
        end = (self._sure or 1) - 1 if why == "unsure" else cut
        if why == "length" and cut is not None:
            end = cut - self.brief.limits.whole_lines
        used = self._tokens_up_to(end)
        return Draft(
            text=to_text(written if cut is None else written[:cut]),
            token_ids=tuple(self.tokens[:used]),
            confidence=confidence(self.p[:used]),
            steps=self.steps,
            repaired=self.repaired,
            finish=self.finish,
        )

    # -- its end ---------------------------------------------------------------------------------

    def cut(self, ahead: Seq[int] = ()) -> tuple[int | None, Finish | None]:
        """Return where the answer is cut with the tokens ``ahead``, in bytes, and why."""
        written = self.brief.bytes_of([*self.tokens, *ahead])
        return cut_of(written, len(self._forced), self.brief.limits, self._sure)

    def is_cut(self, ahead: Seq[int]) -> bool:
        """Return whether something cuts the answer with the tokens ``ahead``."""
        return self.cut(ahead)[0] is not None

    def _reason(self) -> Finish | None:
        limits, vocab = self.brief.limits, self.brief.vocab_bytes
        data = [vocab[token] for token in self.tokens]
        self._sure = sure_part(data, self.p, len(self._forced), limits)
        _, reason = self.cut()
        if reason is not None:
            return reason
        if self.tokens[-1] == self.brief.config.end_token:
            return "end"
        if goes_round(self.tokens, vocab):
            return "length"
        return "length" if len(self.tokens) >= limits.max_tokens else None

    def _tokens_up_to(self, cut: int | None) -> int:
        """Return how many tokens it takes to reach byte ``cut``; None: all."""
        if cut is None:
            return len(self.tokens)
        ends = accumulate(len(self.brief.vocab_bytes[token]) for token in self.tokens)
        return next((n for n, end in enumerate(ends, start=1) if end > cut), len(self.tokens))


def place_text(canvas: Seq[int | None], end: int) -> list[int]:
    """Return the tokens placed without a gap from the left, END included."""
    tokens: list[int] = []
    for token in canvas:
        if token is None:
            break
        tokens.append(token)
        if token == end:
            break
    return tokens


def to_text(data: bytes) -> str:
    """Return the text of ``data``.

    A character cut off at its end is left out; other broken UTF-8 becomes U+FFFD.
    """
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def pieces(tokens: Seq[bytes | None], skip: int, cut: int | None) -> list[str | None]:
    """Return the text of each position; a character in several tokens shows with its last one.

    Shown are the bytes from ``skip`` on, before ``cut``.
    """
    pieces: list[str | None] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    at: int | None = 0  # bytes so far; None behind a mask
    for data in tokens:
        if data is None:
            pieces.append(None)
            decoder, at = codecs.getincrementaldecoder("utf-8")("ignore"), None
        elif at is None:
            pieces.append(decoder.decode(data))
        elif cut is None or at < cut:
            stop = len(data) if cut is None else cut - at
            pieces.append(decoder.decode(data[max(0, skip - at) : max(0, stop)]))
            at += len(data)
    return pieces
