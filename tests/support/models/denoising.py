"""Denoising over scripted models, as its tests use it."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from redraft.model.decode import speculative
from redraft.model.decode.completion import Brief, Draft, Plan
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.grammar import Constraint
from redraft.model.decode.pass_costs import PassPrices
from redraft.model.decode.passes import Passes
from redraft.model.records import CanvasState, DraftCount, StepCallback
from redraft.model.runtime.backend import Sequence

from support.models.fake_backend import (
    END,
    SPECIAL,
    VOCAB,
    FakeBackend,
    FakeSequence,
    Noise,
    Predict,
    ids,
    small_config,
)

PROMPT = ids("def f(x):\n    ")


PLAIN = Plan(threshold=0.9)


class Written(NamedTuple):
    """Finished answers, the passes that wrote them, and what became of their drafts."""

    drafts: list[Draft]
    passes: int
    drafted: tuple[DraftCount, ...]


def write_over(
    sequence: Sequence,
    brief: Brief,
    seed: int = 0,
    count: int = 1,
    on_step: StepCallback | None = None,
    last: int = PROMPT[-1],
) -> Written:
    """Write answers to a prompt whose ``last`` token ``sequence`` does not hold."""
    run, rng = Passes(sequence, on_step=on_step), np.random.default_rng(seed)
    drafts = speculative.write(run, last, brief, rng, count)
    return Written(drafts, run.count, run.tally.counts())


class Begins(Constraint):
    """The answer begins with ``text``, one token a byte or a word of the vocabulary."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def token_mask(self, written: Seq[int]) -> NDArray[np.bool_] | None:
        rest = self.text[len(b"".join(VOCAB[token] for token in written)) :]
        if not rest:
            return None
        return np.asarray([bool(b) and (b.startswith(rest) or rest.startswith(b)) for b in VOCAB])


def sequence_over(
    predict: Predict, width: int = 8, verifier: str = "none"
) -> tuple[FakeSequence, Brief]:
    config = small_config(width, verifier)
    sequence = FakeBackend(predict, config).open(1_000)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    sequence.log.clear()
    return sequence, Brief(config, VOCAB, PLAIN, AnswerLimits(max_tokens=64))


def write(
    predict: Predict,
    plan: Plan = PLAIN,
    width: int = 8,
    limits: AnswerLimits | None = None,
    constraint: Constraint | None = None,
    seed: int = 0,
) -> tuple[Draft, FakeSequence, list[CanvasState]]:
    sequence, brief = sequence_over(predict, width)
    brief = replace(brief, plan=plan, limits=limits or brief.limits, constraint=constraint)
    states: list[CanvasState] = []
    result = write_over(sequence, brief, seed, on_step=states.append)
    (draft,) = result.drafts
    assert result.passes == sum(entry == "denoise" for entry in sequence.log)
    return draft, sequence, states


class Judge:
    """A causal pass that would write ``text`` and then END, ``p`` sure of each token."""

    def __init__(self, text: str, p: float = 0.9, rival: float = 0.0) -> None:
        self.tokens, self.p, self.rival = [*ids(text), END], p, rival
        self.calls = 0

    def __call__(self, context: list[int]) -> NDArray[np.float32]:
        self.calls += 1
        done = len(context) - len(PROMPT)
        wanted = self.tokens[min(done, len(self.tokens) - 1)]
        others = (1 - self.p - self.rival) / (len(VOCAB) - SPECIAL - 1)
        p = np.full(len(VOCAB), max(others, 1e-9), np.float32)
        p[ids("?")[0]] = max(self.rival, others)
        p[wanted] = self.p
        return np.log(p)


class Habits:
    """A causal pass whose next token hangs on the last two: it comes round to the same phrases."""

    def __init__(self, seed: int) -> None:
        self.noise = Noise(seed, scale=2.0)

    def __call__(self, context: list[int]) -> NDArray[np.float32]:
        logits = self.noise(context[-2:], [0])[0]
        logits[ids("abcdef")] += 9.0
        logits[END] -= 4.0
        return logits


WIDE = PassPrices.from_probe({1: 5.0, 16: 5.0})
