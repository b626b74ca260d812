"""The two loops of decoding: from a cached prompt to finished answers.

:meth:`Run.fill` fills canvas after canvas, for weights without a judge; :meth:`Run.judge` has the
causal pass judge draft after draft, where the weights were trained to (``ModelConfig.verifier``).
Both run passes over a :class:`~redraft.model.runtime.backend.Sequence` and let ``filling.py`` and
``judging.py`` decide what they mean. Knows nothing of prompts, threads or onnxruntime.

The shift: the sequence holds all prompt tokens but the last. A window is that last token followed
by the first B-1 positions of the canvas, and its entry i predicts position i. When a canvas fills
up without END its tokens are run once causally, and its last token opens the next window.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np

from ..records import DraftCount, Quality, StepCallback
from ..runtime.backend import Cancelled, Denoises, IntArray, Rows, Scores, Sequence
from ..runtime.prefix_cache import common_prefix
from .answer import Answer
from .copies import FREE, Drafts, DraftTally, surest
from .filling import Filling
from .judged_row import JudgedRow, lay_out
from .judging import Judging
from .plan import Brief, Draft, Plan

#: The control: one token a step; where the causal pass judges, by that alone.
AUTOREGRESSIVE = Plan(threshold=float("inf"), drafts=False, copies=False)
#: An alternative first token less likely than this is not worth an answer.
ALTERNATIVE_ABOVE = 0.02

_PLANS: dict[Quality, Plan] = {
    "high": Plan(threshold=0.95),
    "medium": Plan(threshold=0.9),
    "low": Plan(threshold=0.6, max_steps=4, second_tries=0),
}


@dataclass(frozen=True, slots=True)
class Denoised:
    """Drafts, surest first, and what they cost together."""

    drafts: tuple[Draft, ...]
    passes: int  # denoise and verifying passes run
    prefilled: int  # tokens run causally to commit or verify canvases
    drafted: tuple[DraftCount, ...] = ()  # what became of drafts that the causal pass judged


def plan_for(quality: Quality, temperature: float = 0.0, top_p: float = 1.0) -> Plan:
    return replace(_PLANS[quality], temperature=temperature, top_p=top_p)


def denoise(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    rng: np.random.Generator,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Write one answer.

    Args:
        sequence: holds the prompt without its last token; ends up with the committed canvases
            appended.
        last_token: the prompt's last token.
        cancelled: asked before every pass.

    Raises:
        Cancelled: ``cancelled`` said so.
    """
    answer = Answer(brief, last_token, rng)
    run = Run(sequence, cancelled, on_step)
    run.judge(Judging(answer)) if brief.judged else run.fill(Filling(answer))
    answer.close()
    return Denoised((answer.draft(),), run.passes, run.prefilled, run.tally.counts())


def denoise_several(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    rng: np.random.Generator,
    count: int,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Write up to ``count`` answers over one cache, surest first, no two the same.

    The first answer is that of :func:`denoise`. At temperature 0 each further answer begins with
    another of the most likely first tokens; above 0 each is a draw of its own. All share the first
    pass and are then written in turn. ``on_step`` follows the first one. The sequence is left as it
    came.
    """
    run = Run(sequence, cancelled, on_step)
    base = len(sequence.tokens)
    write = run.judge_rows if brief.judged else run.fill_rows
    answers = write(brief, last_token, rng, count)
    sequence.truncate(base)
    return _ranked(answers, run)


def _ranked(answers: list[Answer], run: Run) -> Denoised:
    for each in answers:
        each.close()
    drafts = {each.draft().token_ids: each.draft() for each in reversed(answers)}
    ranked = sorted(drafts.values(), key=lambda draft: -draft.confidence.mean)
    return Denoised(tuple(ranked), run.passes, run.prefilled, run.tally.counts())


class Run:
    """Passes over one sequence, counted."""

    def __init__(
        self,
        sequence: Sequence,
        cancelled: Callable[[], bool],
        on_step: StepCallback | None,
    ) -> None:
        self.sequence = sequence
        self.cancelled = cancelled
        self.on_step = on_step
        self.passes = 0
        self.prefilled = 0
        self.tally = DraftTally()  # of drafts that the causal pass judged

    # -- canvases -------------------------------------------------------------------------------

    def fill(self, row: Filling) -> None:
        """Fill canvas after canvas until the answer is finished.

        1. One denoise step over the canvas.
        2. Place the tokens that are sure enough, see what is finished.
        3. A canvas that is full is run once causally, all but its last token, which opens the next.
        """
        while row.answer.finish is None:
            if row.closed:
                self.commit(row)  # 3
            row.advance(self.step(row))  # 1, 2
            self.show(row.answer)

    def fill_rows(
        self, brief: Brief, last_token: int, rng: np.random.Generator, count: int
    ) -> list[Answer]:
        """Write at most ``count`` answers in turn, out of one shared first step."""
        base = len(self.sequence.tokens)
        first = Filling(Answer(brief, last_token, rng))
        out = self.step(first, logits=count > 1)
        rows = [first]
        if brief.plan.temperature > 0:
            rows += [Filling(Answer(brief, last_token, child)) for child in rng.spawn(count - 1)]
            for row in rows:
                row.advance(out)
        else:
            choices = first.answer.first_choices(out, count)[1:] if count > 1 else []
            first.advance(out)
            for token, probability in choices:
                if probability >= ALTERNATIVE_ABOVE:
                    row = Filling(Answer(brief, last_token, rng))
                    row.begin_with(token, probability)
                    rows.append(row)
        self.show(first.answer)
        for row in rows:
            self.fill(row)
            self.sequence.truncate(base)
            self.on_step = None
        return [row.answer for row in rows]

    def step(self, row: Filling, logits: bool = False) -> Scores:
        """Run one denoise step."""
        if self.cancelled():
            raise Cancelled
        self.passes += 1
        assert isinstance(self.sequence, Denoises), "only such weights have canvases"
        nothing = np.empty(0, np.int64)
        return self.sequence.denoise(row.window(), nothing, logits or row.wants_logits())

    def commit(self, row: Filling) -> None:
        """Append a closed canvas to the cache and open the next."""
        if self.cancelled():
            raise Cancelled
        tokens = [row.answer.last_token, *row.answer.prefix()]
        self.sequence.extend(np.asarray(tokens[:-1], dtype=np.int64))
        self.prefilled += len(tokens) - 1
        row.settle(len(tokens) - 1)

    # -- the judge ------------------------------------------------------------------------------

    def judge(self, judging: Judging) -> None:
        """Have the causal pass judge draft after draft until the answer is finished."""
        while judging.answer.finish is None:
            self.keep(judging, *self.read_draft(judging))

    def read_draft(self, judging: Judging, logits: bool = False) -> tuple[JudgedRow, Scores]:
        """The first half of a pass of the judge; :meth:`keep` is the other.

        1. Draft: what a grammar forces, a copy, what masks of the last pass guessed, or what a
           canvas guesses in a pass of its own where that may pay.
        2. Run the last token and the draft causally, and masks behind some of them.
        """
        answer, config = judging.answer, judging.answer.brief.config
        judging.drafts = self._drafts(judging)  # 1
        groups = judging.groups(judging.drafts)
        row = lay_out(
            answer.last_token, judging.drafts, config.mask_token, groups.masks, groups.behind
        )
        logits = logits or judging.wants_logits()
        if row.group == 0:
            return row, self.score(row.tokens, logits)  # 2
        return row, self.read(row.rows(len(self.sequence.tokens)), logits)  # 2

    def keep(self, judging: Judging, row: JudgedRow, out: Scores) -> None:
        """Keep what a pass stands by and its own next token, in the cache too, and what the masks
        behind them guess comes then."""
        before = len(self.sequence.tokens) - row.judging
        kept = judging.review(out)
        self.tally.note(judging.drafts, judging.right)
        self.sequence.truncate(before + kept)
        judging.keep_guesses(row, out)
        judging.settle(kept)
        self.show(judging.answer)

    def _drafts(self, judging: Judging) -> Drafts:
        drafts = surest(judging.forced(), surest(judging.copy(), judging.masks()))
        canvas = judging.canvas() if len(drafts) <= FREE else None
        if canvas is None:
            return drafts
        drafts = judging.guesses(canvas, self.step(canvas))
        self.show(judging.answer)
        return drafts

    def read(self, rows: Rows, logits: bool = False) -> Scores:
        """Run a pass over rows at given positions."""
        self._count(len(rows.tokens) - rows.masks)
        return self.sequence.read(rows, logits)

    def score(
        self, tokens: Seq[int] | IntArray, logits: bool, targets: Seq[int] | None = None
    ) -> Scores:
        """Run a causal pass over ``tokens``; see :meth:`Sequence.score`."""
        self._count(len(tokens))
        following = None if targets is None else np.asarray(targets, np.int64)
        return self.sequence.score(np.asarray(tokens, np.int64), following, logits)

    def _count(self, tokens: int) -> None:
        """Count a pass.

        Raises:
            Cancelled: the caller has cancelled.
        """
        if self.cancelled():
            raise Cancelled
        self.passes += 1
        self.prefilled += tokens

    def judge_rows(
        self, brief: Brief, last_token: int, rng: np.random.Generator, count: int
    ) -> list[Answer]:
        """``count`` judged answers at most, one after another, out of one first causal pass."""
        first = Judging(Answer(brief, last_token, rng))
        after = len(self.sequence.tokens) + 1
        read, out = self.read_draft(first, logits=count > 1)
        choices = first.answer.first_choices(out, count)[1:] if count > 1 else []
        self.keep(first, read, out)
        self.judge(first)
        self.on_step = None
        rows = [first]
        if brief.plan.temperature > 0:
            for child in rng.spawn(count - 1):
                row = Judging(Answer(brief, last_token, child))
                row.settle(row.review(out))
                rows.append(row)
        else:
            for token, probability in choices:
                if probability >= ALTERNATIVE_ABOVE:
                    row = Judging(Answer(brief, last_token, rng))
                    row.answer.open_with([token], [probability])
                    rows.append(row)
        for row in rows[1:]:
            self.sequence.truncate(after)
            self.judge(row)
        return [row.answer for row in rows]

    # -- the cache ------------------------------------------------------------------------------

    def hold(self, base: int, tokens: list[int]) -> None:
        """Have the sequence hold ``tokens`` behind its first ``base``, computing no more than
        is not there already."""
        there = self.sequence.tokens[base : base + len(tokens)]
        common = common_prefix(there, tokens)
        self.sequence.truncate(base + common)
        if common < len(tokens):
            if self.cancelled():
                raise Cancelled
            self.sequence.extend(np.asarray(tokens[common:], dtype=np.int64))
            self.prefilled += len(tokens) - common

    def show(self, answer: Answer) -> None:
        if self.on_step is not None:
            self.on_step(answer.state())
