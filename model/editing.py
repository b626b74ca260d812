"""Several next edits over one prefix cache, where the weights judge: ranges, drafts, texts, rank.

1. One causal pass prices "no edit" and where an edit may begin.
2. Each draft that somebody proposes (a repeated edit) is priced as it stands: one pass.
3. The likeliest ranges are written by the model, as :func:`~redraft.model.denoise.denoise` would:
   what is said of a range's draft, or of its lines as they are, is the beginning of its text.
4. What is the same is merged, the rest ranked.

Knows nothing of prompts or documents; ``answering.py`` says what the lines are and what to propose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np

from .backend import CausalOutput, Sequence
from .canvas import Answer
from .denoise import Denoised, Run
from .drawing import confidence, decode
from .plan import Brief, Draft
from .ranges import Opening, RangeTree
from .records import LEAST_LOG, CanvasState, Quality, Source, StepCallback

#: From this probability of "no edit" on, where that may be the answer, nothing else is looked at.
QUIET_ABOVE = 0.5
#: A text is given up once the answer is this much less likely than the best one, in nats.
HOPELESS = 8.0
#: A range is not written where it alone is this much less likely than the likeliest one.
FAR_FETCHED = 5.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to look for."""

    ranges: int  # that the model writes
    drafts: int  # of others that it prices
    passes: int  # after which nothing new is begun


EFFORTS: dict[Quality, Effort] = {
    "low": Effort(ranges=1, drafts=2, passes=16),
    "medium": Effort(ranges=3, drafts=4, passes=32),
    "high": Effort(ranges=6, drafts=8, passes=80),
}


def effort_for(quality: Quality, candidates: int) -> Effort:
    """As the quality says, and more where more candidates are asked for."""
    effort = EFFORTS[quality]
    return replace(effort, ranges=max(effort.ranges, candidates))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Somebody's draft: lines first-last, 1-based within the region, become ``tokens``."""

    first: int
    last: int
    tokens: tuple[int, ...]  # without END
    chance: float  # that exactly this is the next edit, by what the proposer knows


@dataclass(frozen=True, slots=True)
class Field:
    """What may be edited."""

    count: int  # lines of the region
    cursor: int  # 1-based line
    chars: dict[str, int]  # token of each character of a range
    lines: Callable[[int, int], Seq[int]]  # tokens of lines first-last as they are
    proposals: tuple[Proposal, ...] = ()  # the most promising first


@dataclass(frozen=True, slots=True)
class _Priced:
    """A whole answer with what the causal pass said of it."""

    opening: str  # its range
    tokens: tuple[int, ...]  # behind the range, END included
    logs: tuple[float, ...]  # of those
    best: tuple[int, ...]  # likeliest token in the place of each
    best_logs: tuple[float, ...]


def write_edits(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    field: Field,
    effort: Effort,
    rng: np.random.Generator,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Candidates, the best first; where no edit is the answer, that alone.

    Args:
        sequence: holds the prompt without its last token; left with some answer appended.
        on_step: follows the likeliest range, and is shown the best candidate at the end.

    Raises:
        Cancelled: ``cancelled`` said so, between two passes.
    """
    return _Editor(sequence, last_token, brief, field, effort, rng, on_step, cancelled).write()


class _Editor:
    """The candidates of one moment."""

    def __init__(
        self,
        sequence: Sequence,
        last_token: int,
        brief: Brief,
        field: Field,
        effort: Effort,
        rng: np.random.Generator,
        on_step: StepCallback | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self._run = Run(sequence, cancelled, on_step)
        self._base = len(sequence.tokens)
        self._last_token = last_token
        self._brief, self._field, self._effort, self._rng = brief, field, effort, rng
        config = brief.config
        self._tree = RangeTree(
            field.count, field.cursor, field.chars, config.end_token, config.special_tokens
        )
        self._priced: dict[str, _Priced] = {}  # by range: what its text may begin with
        self._drafts: list[Draft] = []

    def write(self) -> Denoised:
        self._note("", self._look([]))
        if self._brief.limits.min_tokens == 0 and self._tree.nothing >= math.log(QUIET_ABOVE):
            return self._denoised([self._nothing()])
        for proposal in self._field.proposals[: self._effort.drafts]:
            self._price(proposal)
        self._write_ranges()
        drafts = merged(self._drafts)
        self._show(drafts)
        return self._denoised(sorted(drafts, key=rank, reverse=True) or [self._nothing()])

    # -- looking ------------------------------------------------------------------------------

    def _look(self, tokens: list[int]) -> CausalOutput:
        """What the causal pass says of ``tokens`` behind the prompt."""
        self._run.hold(self._base, [])
        return self._run.verify([self._last_token, *tokens], logits=True)

    def _note(self, opening: str, out: CausalOutput) -> None:
        """Price every character along ``opening``, and of what may follow it."""
        assert out.logits is not None
        for place in range(len(opening) + 1):
            if not opening[:place].endswith("\n"):
                self._tree.note(opening[:place], out.logits[place])

    def _examine(self, opening: str, text: Seq[int]) -> _Priced:
        """One pass over a range and a text that ends."""
        tokens = (*text, self._brief.config.end_token)
        out = self._look([*self._tree.tokens(opening), *tokens])
        self._note(opening, out)
        begin = len(opening)
        priced = _Priced(
            opening,
            tokens,
            tuple(out.log_probability[begin:].tolist()),
            tuple(out.token[begin : begin + len(tokens)].tolist()),
            tuple(np.log(np.maximum(out.confidence[begin : begin + len(tokens)], 1e-30)).tolist()),
        )
        known = self._priced.get(opening)
        if known is None or _agreed(priced) > _agreed(known):
            self._priced[opening] = priced
        return priced

    def _price(self, proposal: Proposal) -> None:
        opening = f"{proposal.first}-{proposal.last}\n"
        length = len(opening) + len(proposal.tokens) + 1
        limits = self._brief.limits
        if not limits.min_tokens <= length <= limits.max_tokens or not self._allowed(proposal):
            return
        priced = self._examine(opening, proposal.tokens)
        found = self._tree.opening(opening)
        assert found is not None, "the pass priced it"
        self._keep(found, priced, proposal.chance)

    def _allowed(self, proposal: Proposal) -> bool:
        return 1 <= proposal.first <= self._field.count + 1 and (
            proposal.first - 1 <= proposal.last <= self._field.count
        )

    # -- writing ------------------------------------------------------------------------------

    def _write_ranges(self) -> None:
        """The likeliest ranges, one after the other, until enough are written."""
        written: set[str] = set()
        best: float | None = None
        while len(written) < self._effort.ranges:
            if written and self._run.passes >= self._effort.passes:
                return
            chosen = self._choose(written)
            if chosen is None or (best is not None and chosen.total < best - FAR_FETCHED):
                return
            if not chosen.whole or chosen.text not in self._priced:
                self._look_ahead(chosen)
                continue
            best = chosen.total if best is None else best
            self._write_text(chosen, first=not written)
            written.add(chosen.text)

    def _choose(self, written: set[str]) -> Opening | None:
        """The likeliest range or beginning of one not dealt with yet."""
        left = (opening for opening in self._tree.open() if opening.text not in written)
        return max(left, key=lambda opening: opening.total, default=None)

    def _look_ahead(self, opening: Opening) -> None:
        """Price what may follow, along the range it most probably becomes and its lines."""
        guess = opening.text if opening.whole else self._tree.guess(opening.text)
        first, last = Opening(guess, ()).range
        room = self._brief.limits.max_tokens - len(guess) - 1
        lines = self._field.lines(first, last) if self._brief.plan.copies else ()
        self._examine(guess, lines[: max(room, 0)])

    def _write_text(self, opening: Opening, first: bool) -> None:
        """The model's own text for a range, begun with what it agrees to of one priced before."""
        begun, logs = self._begun(opening, self._priced[opening.text])
        answer = Answer(self._brief, self._last_token, self._rng)
        self._run.hold(self._base, [self._last_token, *begun[:-1]])
        answer.open_with(begun, [math.exp(log) for log in logs], steps=1)
        on_step, self._run.on_step = self._run.on_step, self._run.on_step if first else None
        try:
            self._run.show(answer)
            while answer.finish is None:
                if not first and self._hopeless(answer):
                    return
                self._run.draft_and_review(answer)
        finally:
            self._run.on_step = on_step
        draft = self._completed(answer.draft(), opening)
        if draft.text != opening.text + self._text(self._field.lines(*opening.range)):
            self._drafts.append(draft)

    def _begun(self, opening: Opening, priced: _Priced) -> tuple[list[int], list[float]]:
        """The range, what the model agrees to behind it and its own next token; and their logs."""
        limits, end = self._brief.limits, self._brief.config.end_token
        tokens = [*self._tree.tokens(opening.text), *priced.best[: _agreed(priced) + 1]]
        room = limits.max_tokens
        if tokens[-1] == end and len(tokens) <= limits.min_tokens:
            room = min(room, len(tokens) - 1)  # it may not end yet
        return tokens[:room], [*opening.logs, *priced.best_logs][: len(tokens[:room])]

    def _hopeless(self, answer: Answer) -> bool:
        best = max((draft.confidence.total for draft in self._drafts), default=LEAST_LOG)
        return self._run.passes >= self._effort.passes or answer.total < best - HOPELESS

    # -- candidates ---------------------------------------------------------------------------

    def _keep(self, opening: Opening, priced: _Priced, chance: float) -> None:
        """Somebody's draft as it stands."""
        tokens = (*self._tree.tokens(opening.text), *priced.tokens)
        sure = confidence([math.exp(log) for log in (*opening.logs, *priced.logs)])
        sure = replace(sure, repeat=chance)
        draft = Draft(self._text(tokens), tokens, sure, 1, 0, "end", "repeat")
        self._drafts.append(self._completed(draft, opening))

    def _text(self, tokens: Seq[int]) -> str:
        return decode(b"".join(self._brief.vocab_bytes[token] for token in tokens))

    def _completed(self, draft: Draft, opening: Opening) -> Draft:
        sure = replace(draft.confidence, place=opening.total, nothing=self._tree.nothing)
        return replace(draft, confidence=sure)

    def _nothing(self) -> Draft:
        sure = confidence([math.exp(self._tree.nothing)])
        sure = replace(sure, nothing=self._tree.nothing)
        return Draft("", (self._brief.config.end_token,), sure, 1, 0, "end")

    def _show(self, drafts: Seq[Draft]) -> None:
        if drafts and self._run.on_step is not None:
            best = max(drafts, key=rank)
            self._run.on_step(CanvasState(max(best.steps, self._run.passes), (best.text,)))

    def _denoised(self, drafts: Seq[Draft]) -> Denoised:
        return Denoised(tuple(drafts), self._run.passes, self._run.prefilled)


def rank(draft: Draft) -> float:
    """How good a candidate is, of those of one moment."""
    return draft.confidence.total


def merged(drafts: Seq[Draft]) -> list[Draft]:
    """Each text once, at its likeliest; what the model and somebody else wrote alike is both's."""
    found: dict[str, Draft] = {}
    for draft in drafts:
        known = found.get(draft.text)
        if known is None:
            found[draft.text] = draft
            continue
        best = max(known, draft, key=rank)
        source: Source = draft.source if draft.source == known.source else "both"
        chances = [one.confidence.repeat for one in (known, draft)]
        chance = max((one for one in chances if one is not None), default=None)
        found[draft.text] = replace(
            best,
            source=source,
            steps=known.steps + draft.steps,
            confidence=replace(best.confidence, repeat=chance),
        )
    return list(found.values())


def _agreed(priced: _Priced) -> int:
    """How many tokens the model would have written itself."""
    pairs = zip(priced.tokens, priced.best, strict=True)
    return next((i for i, (token, best) in enumerate(pairs) if token != best), len(priced.tokens))
