"""Several next edits over one prefix cache, where the weights judge: ranges, drafts, texts, rank.

1. One causal pass prices "no edit" and where an edit may begin.
2. Each draft that somebody proposes (a repeated edit) is priced as it stands: one pass.
3. The likeliest ranges are written by the model, as :func:`~redraft.model.decoding.denoise.denoise`
   would:
   what is said of a range's draft, or of its lines as they are, is the beginning of its text.
4. What is the same is merged, the rest ranked.

Knows nothing of prompts or documents; ``engine/answer.py`` says what the lines are and what to
propose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np

from ..records import LEAST_LOG, CanvasState, Source, StepCallback
from ..runtime.backend import CausalOutput, Sequence
from .candidates import (
    DRAFT_TOKENS,
    FAR_FETCHED,
    Effort,
    Field,
    Proposal,
    good_enough,
    is_edit,
    is_quiet,
    merged,
    no_edit,
    priced,
    range_tree,
    text_of,
    usable,
)
from .canvas import Answer
from .denoise import Denoised, Run
from .plan import Brief, Draft
from .probabilities import confidence
from .ranges import Opening


@dataclass(frozen=True, slots=True)
class _Judged:
    """A whole answer with what the causal pass said of it."""

    tokens: tuple[int, ...]  # behind the range, END included
    logs: tuple[float, ...]  # of those
    best: tuple[int, ...]  # likeliest token in the place of each
    best_logs: tuple[float, ...]

    @property
    def agreed(self) -> int:
        """How many tokens the model would have written itself."""
        pairs = zip(self.tokens, self.best, strict=True)
        differing = (i for i, (token, best) in enumerate(pairs) if token != best)
        return next(differing, len(self.tokens))


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
        on_step: follows the range written first, and is shown the best candidate at the end.

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
        self._tree = range_tree(brief, field)
        self._judged: dict[str, _Judged] = {}  # by range: what its text may begin with
        self._promise: dict[str, float] = {}  # by range: log of the best proposal's chance
        self._drafts: list[Draft] = []

    def write(self) -> Denoised:
        self._note("", self._look([]))
        quiet = is_quiet(self._tree, self._brief)
        for proposal in usable(self._brief, self._field, self._effort, quiet):
            self._judge_proposal(proposal)
        if not quiet:
            self._write_ranges()
        drafts = merged(self._drafts)
        if drafts and self._run.on_step is not None:
            steps = max(self._run.passes, drafts[0].steps)
            self._run.on_step(CanvasState(steps, (drafts[0].text,)))
        return self._denoised(drafts or [no_edit(self._tree, self._brief)])

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

    def _judge(self, opening: str, text: Seq[int]) -> _Judged:
        """One pass over a range and a text that ends."""
        tokens = (*text, self._brief.config.end_token)
        out = self._look([*self._tree.tokens(opening), *tokens])
        self._note(opening, out)
        there = slice(len(opening), len(opening) + len(tokens))
        judged = _Judged(
            tokens,
            logs=tuple(out.log_probability[there].tolist()),
            best=tuple(out.token[there].tolist()),
            best_logs=tuple(np.log(np.maximum(out.confidence[there], 1e-30)).tolist()),
        )
        known = self._judged.get(opening)
        if known is None or judged.agreed > known.agreed:
            self._judged[opening] = judged
        return judged

    def _judge_proposal(self, proposal: Proposal) -> None:
        """A candidate of somebody's draft as it stands."""
        text = proposal.range
        judged = self._judge(text, proposal.tokens)
        opening = self._tree.opening(text)
        assert opening is not None, "the pass priced it"
        tokens = (*self._tree.tokens(text), *judged.tokens)
        sure = confidence([math.exp(log) for log in (*opening.logs, *judged.logs)])
        sure = replace(sure, repeat=proposal.chance)
        source: Source = "both" if judged.agreed == len(judged.tokens) else "repeat"
        draft = Draft(text_of(tokens, self._brief), tokens, sure, 1, 0, "end", source)
        self._drafts.append(priced(draft, opening, self._tree))
        promise = math.log(max(proposal.chance, 1e-30))
        self._promise[text] = max(promise, self._promise.get(text, LEAST_LOG))

    # -- writing ------------------------------------------------------------------------------

    def _write_ranges(self) -> None:
        """The most promising ranges, one after the other, until enough are written."""
        written: set[str] = set()
        best = LEAST_LOG
        while len(written) < self._effort.ranges:
            if written and self._run.passes >= self._effort.passes:
                return
            left = [each for each in self._tree.open() if each.text not in written]
            chosen = max(left, key=self._worth, default=None)
            if chosen is None or self._worth(chosen) < best - FAR_FETCHED:
                return
            if max(each.total for each in left) < good_enough(self._drafts, self._effort.wanted):
                return  # no text can make up for its place
            if chosen.text not in self._judged:
                self._look_ahead(chosen)
                continue
            best = max(best, self._worth(chosen))
            self._write_text(chosen, first=not written)
            written.add(chosen.text)

    def _worth(self, opening: Opening) -> float:
        """How promising a range is: as likely as it is, or as somebody's draft for it is."""
        return max(opening.total, self._promise.get(opening.text, LEAST_LOG))

    def _look_ahead(self, opening: Opening) -> None:
        """Price what may follow, along the range it most probably becomes and its lines."""
        guess = opening.text if opening.whole else self._tree.guess(opening.text)
        lines = self._field.lines(*Opening(guess, ()).range) if self._brief.plan.copies else ()
        room = min(self._brief.limits.max_tokens, DRAFT_TOKENS) - len(guess) - 1
        self._judge(guess, lines[: max(room, 0)])

    def _write_text(self, opening: Opening, first: bool) -> None:
        """The model's own text for a range, begun with what it agrees to of one judged before."""
        tokens, logs = self._begun(opening, self._judged[opening.text])
        answer = Answer(self._brief, self._last_token, self._rng)
        answer.open_with(tokens, [math.exp(log) for log in logs], steps=1)
        if answer.finish is None:
            self._run.hold(self._base, [self._last_token, *tokens[:-1]])
        on_step, self._run.on_step = self._run.on_step, self._run.on_step if first else None
        try:
            self._run.show(answer)
            while answer.finish is None:
                if (self._drafts or not first) and self._is_hopeless(answer):
                    return
                self._run.draft_and_review(answer)
        finally:
            self._run.on_step = on_step
        draft = priced(answer.draft(), opening, self._tree)
        if is_edit(draft, opening, self._brief, self._field):
            self._drafts.append(draft)

    def _begun(self, opening: Opening, judged: _Judged) -> tuple[list[int], list[float]]:
        """The range, what the model agrees to behind it and its own next token; and their logs."""
        limits, end = self._brief.limits, self._brief.config.end_token
        tokens = [*self._tree.tokens(opening.text), *judged.best[: judged.agreed + 1]]
        room = limits.max_tokens
        if tokens[-1] == end and len(tokens) <= limits.min_tokens:
            room = min(room, len(tokens) - 1)  # it may not end yet
        return tokens[:room], [*opening.logs, *judged.best_logs][: len(tokens[:room])]

    def _is_hopeless(self, answer: Answer) -> bool:
        if self._run.passes >= self._effort.passes:
            return True
        return answer.total < good_enough(self._drafts, self._effort.wanted)

    def _denoised(self, drafts: Seq[Draft]) -> Denoised:
        return Denoised(tuple(drafts), self._run.passes, self._run.prefilled)
