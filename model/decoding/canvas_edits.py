"""Several next edits over one prefix cache, where only canvases judge: ranges, texts, drafts, rank.

1. One pass over an empty canvas prices "no edit" and the first character of a range; packed passes
   with the likeliest beginnings placed price the characters that follow.
2. The likeliest ranges, and those of somebody's drafts, stand on a canvas each; all are denoised
   side by side, and what does not fit on one canvas goes on alone.
3. Each draft is priced in halves: every other token hidden while its neighbours show.
4. What is the same is merged, the rest ranked.

Knows nothing of prompts or documents. The twin of ``judged_edits.py``, for weights that do not
judge causally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..records import CanvasState, StepCallback
from ..runtime.backend import Cancelled, FloatArray, IntArray, Sequence
from .answer import Answer
from .candidates import (
    FAR_FETCHED,
    Effort,
    Field,
    Proposal,
    is_edit,
    is_quiet,
    merged,
    no_edit,
    priced,
    range_tree,
    text_of,
    usable,
)
from .denoise import Denoised, Run
from .filling import Filling
from .plan import Brief, Draft
from .probabilities import confidence, softmax
from .ranges import Opening, RangeTree


def write_canvas_edits(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    field: Field,
    effort: Effort,
    rng: np.random.Generator,
    on_step: StepCallback | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    late: Callable[[], bool] = lambda: False,
) -> Denoised:
    """Candidates, the best first; where no edit is the answer, that alone.

    Args:
        sequence: holds the prompt without its last token; left as it came.
        on_step: follows the likeliest range, and is shown the best candidate at the end.
        late: whether the time is up: nothing more is written then than one text.

    Raises:
        Cancelled: ``cancelled`` said so, between two passes.
    """
    return _Editor(
        sequence, last_token, brief, field, effort, rng, on_step, cancelled, late
    ).write()


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
        late: Callable[[], bool],
    ) -> None:
        self._run, self._late = Run(sequence, cancelled, None), late
        self._on_step = on_step
        self._base = len(sequence.tokens)
        self._last_token = last_token
        self._brief, self._field, self._effort, self._rng = brief, field, effort, rng
        self._tree: RangeTree = range_tree(brief, field)

    def write(self) -> Denoised:
        self._price_beginnings([""])
        quiet = is_quiet(self._tree, self._brief)
        usable_ = usable(self._brief, self._field, self._effort, quiet)
        proposals = [one for one in usable_ if self._fits(one.range)]
        openings = [] if quiet else self._likeliest()
        for proposal in proposals:
            opening = self._price_range(proposal.range)
            openings += [] if quiet or opening in openings else [opening]
        written = self._write_texts(openings)
        texts = [
            draft for opening, draft in written if is_edit(draft, opening, self._brief, self._field)
        ]
        drafts = merged([*texts, *(self._price_proposal(proposal) for proposal in proposals)])
        if drafts and self._on_step is not None:
            self._on_step(CanvasState(self._run.passes, (drafts[0].text,)))
        return self._denoised(drafts or [no_edit(self._tree, self._brief)])

    # -- ranges -------------------------------------------------------------------------------

    def _likeliest(self) -> list[Opening]:
        """As many whole ranges as are wanted, the likeliest first; their beginnings are priced
        side by side."""
        wanted = self._effort.ranges
        while True:
            fitting = (opening for opening in self._tree.open() if self._fits(opening.text))
            ranked = sorted(fitting, key=lambda opening: -opening.total)[:wanted]
            begun = [opening.text for opening in ranked if not opening.whole]
            if not begun:
                best = ranked[0].total if ranked else 0.0
                return [opening for opening in ranked if opening.total >= best - FAR_FETCHED]
            self._price_beginnings(begun)

    def _fits(self, text: str) -> bool:
        """Whether a range stands on one canvas, with a place for what follows its beginning."""
        width = self._brief.config.canvas_width + text.endswith("\n")
        return len(text) < width and len(text) <= self._brief.limits.max_tokens

    def _price_range(self, text: str) -> Opening:
        """A range, whatever it is worth."""
        while (opening := self._tree.opening(text)) is None:
            known = max(
                place for place in range(len(text)) if self._tree.opening(text[:place]) is not None
            )
            self._price_beginnings([text[:known]])
        return opening

    def _price_beginnings(self, beginnings: Seq[str]) -> None:
        """What may follow each of ``beginnings``, in one pass."""
        windows = np.stack([self._window(self._tree.tokens(text)) for text in beginnings])
        logits = self._pass(windows)
        for text, row in zip(beginnings, logits, strict=True):
            self._tree.note(text, row[len(text)])

    def _window(self, placed: Seq[int | None], first: int | None = None) -> IntArray:
        """[B] behind ``first`` (None: the prompt), what is placed; the rest, and None, masked."""
        config = self._brief.config
        first = self._last_token if first is None else first
        tokens = [first, *(config.mask_token if token is None else token for token in placed)]
        tokens += [config.mask_token] * (config.canvas_width - len(tokens))
        return np.asarray(tokens[: config.canvas_width], dtype=np.int64)

    def _pass(self, windows: IntArray) -> FloatArray:
        """Logits [K, B, vocab] of K windows [K, B]."""
        if self._run.cancelled():
            raise Cancelled
        self._run.passes += 1
        out = self._run.sequence.denoise_packed(windows, logits=True)
        assert out.logits is not None
        return out.logits

    # -- texts --------------------------------------------------------------------------------

    def _write_texts(self, openings: Seq[Opening]) -> list[tuple[Opening, Draft]]:
        """The model's text for each range: side by side on one canvas each, then alone."""
        rows = [Filling(Answer(self._brief, self._last_token, self._rng)) for _ in openings]
        for row, opening in zip(rows, openings, strict=True):
            sure = [math.exp(log) for log in opening.logs]
            row.begin_with(self._tree.tokens(opening.text), sure)
        self._run.fill_together(rows)
        written: list[tuple[Opening, Draft]] = []
        for row, opening in zip(rows, openings, strict=True):
            self._run.on_step = self._on_step if row is rows[0] else None
            self._run.show(row.answer)
            if row.answer.finish is None and written and self._late():
                continue
            self._run.commit(row)
            self._run.fill(row)
            self._run.sequence.truncate(self._base)
            written.append((opening, priced(row.answer.draft(), opening, self._tree)))
        self._run.on_step = None
        return written

    # -- drafts -------------------------------------------------------------------------------

    def _price_proposal(self, proposal: Proposal) -> Draft:
        """Somebody's draft as it stands, a canvas at a time behind its range."""
        text = proposal.range
        opening = self._price_range(text)
        range_ = self._tree.tokens(text)
        tokens = [*proposal.tokens, self._brief.config.end_token]
        width = self._brief.config.canvas_width
        sure = [math.exp(log) for log in opening.logs]
        for start in range(0, len(tokens), width):
            before = [self._last_token, *range_, *tokens[:start]]
            self._run.hold(self._base, before[:-1])
            sure += self._halves(before[-1], tokens[start : start + width])
        self._run.sequence.truncate(self._base)
        whole = (*range_, *tokens)
        certain = replace(confidence(sure), repeat=proposal.chance)
        steps = 1 + (len(tokens) - 1) // width
        text, family = text_of(whole, self._brief), proposal.family
        draft = Draft(text, whole, certain, steps, 0, "end", "repeat", family)
        return priced(draft, opening, self._tree)

    def _halves(self, first: int, tokens: Seq[int]) -> list[float]:
        """Probability of each of at most B tokens, its neighbours shown and it hidden."""
        shown = [
            [token if place % 2 == half else None for place, token in enumerate(tokens)]
            for half in (0, 1)
        ]
        logits = self._pass(np.stack([self._window(half, first) for half in shown]))
        return [
            float(self._distribution(logits[1 - place % 2, place])[token])
            for place, token in enumerate(tokens)
        ]

    def _distribution(self, logits: FloatArray) -> NDArray[np.float64]:
        """Probabilities [vocab] of text and END."""
        config = self._brief.config
        allowed = logits.astype(np.float64)
        allowed[: config.special_tokens] = -np.inf
        allowed[config.end_token] = logits[config.end_token]
        return softmax(allowed)

    def _denoised(self, drafts: Seq[Draft]) -> Denoised:
        self._run.sequence.truncate(self._base)
        return Denoised(tuple(drafts), self._run.passes, self._run.prefilled)
