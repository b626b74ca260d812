"""The denoising loop: from a cached prompt to finished answers.

Runs passes over a :class:`~redraft.model.runtime.backend.Sequence` and lets ``canvas.py`` decide
what they mean. Knows nothing of prompts, threads or onnxruntime.

The shift: the sequence holds all prompt tokens but the last. A window is that last token followed
by the first B-1 positions of the canvas, and its entry i predicts position i. When a canvas fills
up without END its tokens are run once causally, and its last token opens the next window.

Decoding follows LLaDA2.1: a threshold, at least one position a step, token-to-token repair. Where
the weights were trained to judge (``ModelConfig.verifier``), a canvas is a draft of one pass: the
causal pass keeps what it stands by and corrects the first token it does not, as in TiDAR
(2511.08923) and speculative decoding (2211.17192). The answer is then what the causal pass alone
would have written, in fewer passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..records import Quality, StepCallback
from ..runtime.backend import CanvasOutput, CausalOutput, Sequence
from ..runtime.prefix_cache import common_prefix
from .canvas import Answer
from .copies import FREE
from .plan import Brief, Draft, Limits, Plan

__all__ = [
    "AUTOREGRESSIVE",
    "LEFTMOST_FIRST",
    "Brief",
    "Cancelled",
    "Denoised",
    "Draft",
    "Limits",
    "Plan",
    "denoise",
    "denoise_packed",
    "plan_for",
]

#: The control where weights cannot judge: one token a step, from left to right, no repair.
LEFTMOST_FIRST = Plan(threshold=float("inf"), repair_above=None, leftmost=True, verify=False)
#: The control where they can: the causal pass alone, one token a step.
AUTOREGRESSIVE = Plan(threshold=float("inf"), repair_above=None, drafts=False, copies=False)
#: An alternative first token less likely than this is not worth a row of the packed pass.
ALTERNATIVE_ABOVE = 0.02

_PLANS: dict[Quality, Plan] = {
    "high": Plan(threshold=0.95, repair_steps=2),
    "medium": Plan(threshold=0.9),
    "low": Plan(threshold=0.6, repair_above=None, max_steps=4, accept_above=0.3),
}


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, slots=True)
class Denoised:
    """Drafts, surest first, and what they cost together."""

    drafts: tuple[Draft, ...]
    passes: int  # denoise and verifying passes run, a packed one counted once
    prefilled: int  # tokens run causally to commit or verify canvases


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
    run.finish(answer)
    return Denoised((answer.draft(),), run.passes, run.prefilled)


def denoise_packed(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    rng: np.random.Generator,
    count: int,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Write up to ``count`` answers side by side over one cache, surest first, no two the same.

    The first row is what :func:`denoise` writes. At temperature 0 each further row begins with
    another of the most likely first tokens; above 0 each is a draw of its own. The first canvases
    share packed passes; a row that needs more goes on alone. ``on_step`` follows the first row.
    The sequence is left as it came.
    """
    run = Run(sequence, cancelled, on_step)
    base = len(sequence.tokens)
    if brief.judged:
        rows = run.write_rows(brief, last_token, rng, count)
        sequence.truncate(base)
        return _ranked(rows, run)
    rows = run.open_rows(brief, last_token, rng, count)
    run.fill(rows)
    for index, row in enumerate(rows):
        run.on_step = on_step if index == 0 else None
        run.commit(row)
        run.finish(row)
        sequence.truncate(base)
    return _ranked(rows, run)


def _ranked(rows: list[Answer], run: Run) -> Denoised:
    drafts = {row.draft().token_ids: row.draft() for row in reversed(rows)}
    ranked = sorted(drafts.values(), key=lambda draft: -draft.confidence.mean)
    return Denoised(tuple(ranked), run.passes, run.prefilled)


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

    def finish(self, answer: Answer) -> None:
        """Denoise canvas after canvas until the answer is finished."""
        while answer.finish is None:
            if answer.brief.judged:
                self.draft_and_review(answer)
                continue
            (out,) = self.step([answer])
            answer.advance(out)
            self.show(answer)
            if answer.closed:
                self.commit(answer)

    def fill(self, rows: list[Answer]) -> None:
        """Denoise the canvases of ``rows`` side by side until each is full."""
        while open_rows := [row for row in rows if not row.closed]:
            for row, out in zip(open_rows, self.step(open_rows), strict=True):
                row.advance(out)
            if rows[0] in open_rows:
                self.show(rows[0])

    def draft_and_review(self, answer: Answer) -> None:
        """One canvas: a draft where one is worth its pass, then what the causal pass makes of it,
        appended to the cache."""
        copy = answer.copy()
        if answer.worth_copying(copy):
            answer.draft_copy(copy)
        elif answer.worth_drafting():
            (out,) = self.step([answer])
            answer.draft_from(out)
            self.show(answer)
        else:
            answer.draft_copy(copy[:FREE])
        base = len(self.sequence.tokens)
        tokens = [answer.last_token, *answer.prefix()]
        kept = answer.review(self.verify(tokens, answer.wants_causal_logits()))
        self.sequence.truncate(base + kept)
        answer.settle(kept)
        self.show(answer)

    def verify(self, tokens: list[int], logits: bool) -> CausalOutput:
        if self.cancelled():
            raise Cancelled
        self.passes += 1
        self.prefilled += len(tokens)
        return self.sequence.verify(np.asarray(tokens, dtype=np.int64), logits=logits)

    def write_rows(
        self, brief: Brief, last_token: int, rng: np.random.Generator, count: int
    ) -> list[Answer]:
        """``count`` judged answers at most, one after another, out of one first causal pass."""
        first = Answer(brief, last_token, rng)
        out = self.verify([last_token], logits=count > 1 or first.wants_causal_logits())
        after = len(self.sequence.tokens)
        choices = first.first_choices(out, count)[1:] if count > 1 else []
        first.settle(first.review(out))
        self.finish(first)
        rows, self.on_step = [first], None
        if brief.plan.temperature > 0:
            children = rng.spawn(count - 1)
            alternatives = [Answer(brief, last_token, child) for child in children]
            for row in alternatives:
                row.review(out)
        else:
            likely = [choice for choice in choices if choice[1] >= ALTERNATIVE_ABOVE]
            alternatives = [Answer(brief, last_token, rng) for _ in likely]
            for row, (token, probability) in zip(alternatives, likely, strict=True):
                row.begin_with([token], [probability])
        for row in alternatives:
            self.sequence.truncate(after)
            row.settle(1)
            self.finish(row)
        return [*rows, *alternatives]

    def hold(self, base: int, tokens: list[int]) -> None:
        """Have the sequence hold ``tokens`` behind its first ``base``, computing no more than
        is not there already."""
        there = self.sequence.tokens[base : base + len(tokens)]
        common = common_prefix(there, tokens)
        self.sequence.truncate(base + common)
        if common < len(tokens):
            if self.cancelled():
                raise Cancelled
            self.sequence.prefill(np.asarray(tokens[common:], dtype=np.int64))
            self.prefilled += len(tokens) - common

    def step(self, rows: list[Answer], logits: bool = False) -> list[CanvasOutput]:
        """One denoise step for all ``rows``."""
        if self.cancelled():
            raise Cancelled
        self.passes += 1
        logits = logits or any(row.wants_logits() for row in rows)
        if len(rows) == 1:
            return [self.sequence.denoise(rows[0].window(), logits=logits)]
        windows = np.stack([row.window() for row in rows])  # [K, B]
        packed = self.sequence.denoise_packed(windows, logits=logits)
        return [_row(packed, index) for index in range(len(rows))]

    def show(self, answer: Answer) -> None:
        if self.on_step is not None:
            self.on_step(answer.state())

    def commit(self, answer: Answer) -> None:
        """Append a closed canvas to the cache and open the next; a finished answer needs none."""
        if answer.finish is not None:
            return
        if self.cancelled():
            raise Cancelled
        tokens = [answer.last_token, *answer.prefix()]
        self.sequence.prefill(np.asarray(tokens[:-1], dtype=np.int64))
        self.prefilled += len(tokens) - 1
        answer.settle(len(tokens) - 1)

    def open_rows(
        self, brief: Brief, last_token: int, rng: np.random.Generator, count: int
    ) -> list[Answer]:
        """``count`` answers at most, each after its first step, out of one shared pass."""
        first = Answer(brief, last_token, rng)
        (out,) = self.step([first], logits=count > 1)
        if brief.plan.temperature > 0:
            rows = [first, *(Answer(brief, last_token, child) for child in rng.spawn(count - 1))]
            for row in rows:
                row.advance(out)
        else:
            choices = first.first_choices(out, count)[1:] if count > 1 else []
            rows = [first]
            first.advance(out)
            for token, probability in choices:
                if probability >= ALTERNATIVE_ABOVE:
                    row = Answer(brief, last_token, rng)
                    row.begin_with([token], [probability])
                    rows.append(row)
        self.show(first)
        return rows


def _row(packed: CanvasOutput, index: int) -> CanvasOutput:
    """One row [B] of a packed output [K, B]."""
    return CanvasOutput(
        token=packed.token[index],
        confidence=packed.confidence[index],
        entropy=packed.entropy[index],
        logits=None if packed.logits is None else packed.logits[index],
    )
