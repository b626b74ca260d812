"""Several candidates of one answer, written in packed passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.decode import speculative
from redraft.model.decode.completion import Brief, Plan, plan_for
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.passes import Passes
from redraft.model.runtime.backend import Cancelled
from support.models.denoising import (
    PLAIN,
    PROMPT,
    Judge,
    Written,
    sequence_over,
    write,
    write_over,
)
from support.models.fake_backend import (
    END,
    MASK,
    VOCAB,
    FakeBackend,
    FakeSequence,
    Noise,
    Predict,
    Script,
    always,
    ids,
    small_config,
)


def test_candidates_differ_at_once_and_share_a_pass() -> None:
    config = small_config(8, verifier="ar")
    judge = Judge("abc", p=0.5, rival=0.4)
    backend = FakeBackend(Script(ids("abc"), prompt_tokens=len(PROMPT)), config, judge)
    sequence = backend.open(100)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    brief = Brief(config, VOCAB, PLAIN, AnswerLimits(max_tokens=30))
    result = write_over(sequence, brief, count=2)
    assert [draft.text for draft in result.drafts] == ["abc", "?bc"]
    assert sequence.tokens == PROMPT[:-1]


def packed(predict: Predict, count: int, plan: Plan = PLAIN) -> tuple[Written, FakeSequence]:
    sequence, brief = sequence_over(predict)
    return write_over(sequence, replace(brief, plan=plan), count=count), sequence


class Branches:
    """Writes one of two texts, depending on the first token on the canvas."""

    def __init__(self) -> None:
        a, b = ids("apple"), ids("berry")
        self.first = Script(a, lambda p, w: 0.6 if p == 0 and w[1] == MASK else 0.97, {0: b[0]})
        self.second = Script(b, lambda p, w: 0.95)

    def __call__(self, context: list[int], window: list[int]) -> NDArray[np.float32]:
        chosen = self.second if window[1] == ids("b")[0] else self.first
        return chosen(context, window)


def test_candidates_begin_with_the_likeliest_tokens() -> None:
    result, sequence = packed(Branches(), 3)
    assert [draft.text for draft in result.drafts] == ["apple", "berry"]
    assert sequence.log == ["denoise"] * 3
    assert sequence.tokens == PROMPT[:-1]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("quality", ["low", "medium", "high"])
def test_the_first_packed_row_is_that_of_a_single_pass(seed: int, quality: str) -> None:
    plan = plan_for("low" if quality == "low" else "medium" if quality == "medium" else "high")
    noise = Noise(seed, scale=4.0)
    single, _, _ = write(noise, plan, limits=AnswerLimits(max_tokens=20))
    sequence, brief = sequence_over(noise)
    brief = replace(brief, plan=plan, limits=AnswerLimits(max_tokens=20))
    several = write_over(sequence, brief, count=4)
    assert single.token_ids in {draft.token_ids for draft in several.drafts}
    assert sequence.tokens == PROMPT[:-1]


def test_candidates_are_ranked_and_none_is_twice() -> None:
    result, _ = packed(Noise(1, scale=4.0), 6, plan_for("medium"))
    means = [draft.confidence.mean for draft in result.drafts]
    assert means == sorted(means, reverse=True)
    assert len({draft.token_ids for draft in result.drafts}) == len(result.drafts) > 1


def test_long_candidates_leave_the_cache_as_it_was() -> None:
    class Long(Branches):
        def __init__(self) -> None:
            super().__init__()
            self.first.target = [*ids("apple tree and more"), END]
            self.second.target = [*ids("berry bush and much more"), END]

        def __call__(self, context: list[int], window: list[int]) -> NDArray[np.float32]:
            second = ids("b")[0] in (window[1], *context[len(PROMPT) : len(PROMPT) + 1])
            return (self.second if second else self.first)(context, window)

    result, sequence = packed(Long(), 2)
    assert {draft.text for draft in result.drafts} == {
        "apple tree and more",
        "berry bush and much more",
    }
    assert sequence.tokens == PROMPT[:-1]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_cancel_stops_before_the_next_pass(after: int) -> None:
    sequence, brief = sequence_over(Script(ids("x" * 30), always(0.3)))
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > after

    with pytest.raises(Cancelled):
        speculative.write(Passes(sequence, cancelled), PROMPT[-1], brief, np.random.default_rng(0))
    assert sequence.log == ["denoise"] * after
