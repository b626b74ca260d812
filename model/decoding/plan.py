"""How boldly to denoise, where to end, and what comes out: the records of decoding.

Knows nothing of how a plan is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

import numpy as np

from ..config import ModelConfig
from ..prompt.constraints import Constraint
from ..records import LEAST_LOG, Confidence, Finish, Source
from ..runtime.backend import IntArray
from .copies import Odds
from .prices import PassPrices


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of decoding."""

    threshold: float  # probability from which a position is placed without waiting; inf: one token
    # a step
    min_positions: int = 1  # placed in every step, however unsure
    max_steps: int | None = None  # per canvas; None: as many as it has positions
    drafts: bool = True  # False, where the causal pass judges: neither canvases nor masks draft
    copies: bool = True  # False, there: nothing is copied from Brief.source
    priced: bool = True  # False, there: drafts are judged whatever Brief.prices says of passes
    draft_above: float = 0.3  # a guess this sure is worth judging, where the causal pass does
    line_above: float = 0.3  # an infill's further lines end before the first less likely than this
    second_tries: int = 3  # of an infill that does not fit the lines around it; 0: it stays
    deadline_ms: float | None = None  # of the search for next edits; None: as the quality has it
    temperature: float = 0.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Where an answer ends besides END."""

    max_tokens: int
    min_tokens: int = 0
    max_lines: int | None = None
    line_above: float = 0.0  # a line after the first has to be this likely; 0: any
    openers: tuple[str, ...] = ()  # ends of lines that are only cut together with the line below
    total_above: float = LEAST_LOG  # log: what the answer has to be as a whole, or it is given up
    whole_lines: bool = False  # an answer cut behind a line keeps that line's break
    stop: tuple[str, ...] = ()
    forced: str = ""  # what the answer begins with that is not part of the shown text


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
    prices: PassPrices | None = None  # of causal passes; None: not measured, all drafts are judged
    odds: Odds = field(default_factory=Odds)  # how often drafts were right; learns while it writes

    @property
    def judged(self) -> bool:
        """Return whether the causal pass judges and corrects drafts."""
        return self.config.verifier == "ar"


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished answer."""

    text: str  # the forced beginning included; cut at a stop or at the line limit
    token_ids: tuple[int, ...]  # END included
    confidence: Confidence
    steps: int  # denoise steps this answer took part in
    repaired: int  # drafted tokens that the causal pass replaced
    finish: Finish
    source: Source = "model"
    family: str = ""  # of rules that proposed it

    @property
    def ended(self) -> bool:
        return self.finish == "end"
