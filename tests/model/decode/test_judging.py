"""Drafts that a causal pass judges, and several candidates at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.decode import speculative
from redraft.model.decode.completion import AUTOREGRESSIVE, Brief, Draft, Plan, plan_for
from redraft.model.decode.drafts import Copy, continuation
from redraft.model.decode.endings import AnswerLimits, sure_part
from redraft.model.decode.grammar import Constraint
from redraft.model.decode.passes import Passes
from redraft.model.records import CanvasState
from redraft.model.runtime.backend import Cancelled
from support.models.denoising import (
    PLAIN,
    PROMPT,
    Begins,
    Judge,
    Written,
    sequence_over,
    write,
    write_over,
)
from support.models.fake_backend import (
    END,
    MASK,
    TEXT,
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


def judged_over(drafts: Predict, judge: Judge) -> tuple[FakeSequence, Brief]:
    config = small_config(8, verifier="ar")
    sequence = FakeBackend(drafts, config, judge).open(100)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    sequence.log.clear()
    return sequence, Brief(config, VOCAB, PLAIN, AnswerLimits(max_tokens=30))


def judged(
    drafts: Predict,
    judge: Judge,
    plan: Plan = PLAIN,
    limits: AnswerLimits | None = None,
    constraint: Constraint | None = None,
    seed: int = 0,
) -> tuple[Draft, FakeSequence, Written]:
    sequence, brief = judged_over(drafts, judge)
    brief = replace(brief, plan=plan, limits=limits or brief.limits, constraint=constraint)
    result = write_over(sequence, brief, seed)
    passes = [entry for entry in sequence.log if entry != "extend"]
    assert result.passes == len(passes) == result.drafts[0].steps
    return result.drafts[0], sequence, result


def test_a_good_draft_is_taken_with_one_token_more() -> None:
    draft, sequence, _ = judged(Script(ids("abcdefg"), prompt_tokens=len(PROMPT)), Judge("abcdefg"))
    assert (draft.text, draft.finish, draft.repaired) == ("abcdefg", "end", 0)
    assert sequence.log == ["denoise", "score 9"]
    assert sequence.tokens == [*PROMPT, *ids("abcdefg")]


def test_the_last_state_of_a_judged_answer_is_its_text() -> None:
    config = small_config(8, verifier="ar")
    backend = FakeBackend(Script(ids("abc"), prompt_tokens=len(PROMPT)), config, Judge("abc"))
    sequence = backend.open(100)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    states: list[CanvasState] = []
    brief = Brief(config, VOCAB, PLAIN, AnswerLimits(max_tokens=30))
    speculative.write(
        Passes(sequence, on_step=states.append), PROMPT[-1], brief, np.random.default_rng(0)
    )
    assert states[-1].pieces == ("a", "b", "c")


def test_behind_a_corrected_token_drafts_go_on() -> None:
    def slips(position: int, window: Sequence[int]) -> int | None:
        return ids("?")[0] if position == 3 and window[0] == PROMPT[-1] else None

    script = Script(ids("abcdefghij"), slips=slips, prompt_tokens=len(PROMPT))
    draft, sequence, _ = judged(script, Judge("abcdefghij"))
    assert (draft.text, draft.finish, draft.repaired) == ("abcdefghij", "end", 1)
    assert sequence.log == ["denoise", "score 9", "denoise", "score 8"]
    assert sequence.tokens == [*PROMPT, *ids("abcdefghij")]


def test_with_any_draft_the_answer_is_the_causal_one() -> None:
    text = "return self.x"
    alone, _, _ = judged(Noise(), Judge(text), AUTOREGRESSIVE)
    assert (alone.text, alone.steps, alone.repaired) == (text, len(text) + 1, 0)
    for seed in range(8):
        plan = Plan(threshold=0.9, draft_above=0.0)
        draft, _, _ = judged(Noise(seed), Judge(text), plan)
        assert draft.token_ids == alone.token_ids
        assert draft.confidence == alone.confidence


def test_guesses_not_worth_judging_leave_the_draft() -> None:
    script = Script(ids("abcdefg"), lambda p, w: 0.9 if p < 2 else 0.4, prompt_tokens=len(PROMPT))
    _, sequence, _ = judged(script, Judge("abcdefg"), replace(PLAIN, draft_above=0.5))
    assert sequence.log[:2] == ["denoise", "score 3"]


def copied(source: str, text: str, rounds: int = 1) -> tuple[Draft, list[str]]:
    """Write an answer whose only drafts are copies out of ``source`` and the prompt."""
    config = small_config(8, verifier="ar")
    sequence = FakeBackend(Noise(), config, Judge(text)).open(200)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    sequence.log.clear()
    plan = replace(PLAIN, drafts=False)
    tokens = np.asarray([*ids(source), END, *PROMPT], dtype=np.int64)
    brief = Brief(config, VOCAB, plan, AnswerLimits(max_tokens=60), source=tokens)
    (draft,) = speculative.write(Passes(sequence), PROMPT[-1], brief, np.random.default_rng(0))
    return draft, sequence.log


def test_what_followed_the_same_tokens_is_drafted() -> None:
    draft, log = copied("value = compute(a)\n", "value = compute(b)")
    assert draft.text == "value = compute(b)"
    assert "denoise" not in log
    assert draft.steps < len("value = compute(b)") // 2
    assert draft.repaired == 3  # the a, and what follows the bracket twice elsewhere


def test_a_copy_ends_at_a_mark_and_is_long_and_late() -> None:
    source = np.asarray([*ids("1abc2 9abc3"), MASK, *ids("xabc")])
    found = continuation(np.asarray([*source]), np.asarray(ids("xabc")), TEXT)
    assert found == Copy(tuple(ids("3")), 3)
    latest = continuation(source, np.asarray(ids("1abc")), TEXT)
    assert (list(latest.tokens[:2]), latest.alike) == (ids("2 "), 4)
    assert continuation(source, np.asarray(ids("q")), TEXT) == Copy()
    marked = np.asarray([*ids("abc2"), len(VOCAB), *ids("3")])  # marks behind the text, as Qwen's
    assert continuation(marked, np.asarray(ids("abc")), TEXT).tokens == tuple(ids("2"))


def test_a_constraint_binds_the_causal_pass_too() -> None:
    """The judge would write something else; the constraint leaves it no choice at first."""
    script = Script(ids("turn x"), prompt_tokens=len(PROMPT))
    draft, _, _ = judged(script, Judge("yyyyyxx"), constraint=Begins(b"turn "))
    assert draft.text == "turn xx"


def test_samples_are_drawn_from_the_causal_pass() -> None:
    plan = Plan(threshold=0.9, temperature=1.0)
    seen = {
        judged(Script(ids("abc")), Judge("abc", p=0.5, rival=0.5), plan, seed=seed)[0].text[:1]
        for seed in range(12)
    }
    assert seen == {"a", "?"}


def test_judged_answers_end_at_token_and_line_limits() -> None:
    script = Script(ids("ab\ncd\nef"), prompt_tokens=len(PROMPT))
    lines, _, _ = judged(script, Judge("ab\ncd\nef"), limits=AnswerLimits(30, max_lines=2))
    assert (lines.text, lines.finish) == ("ab\ncd", "length")
    tokens, _, _ = judged(script, Judge("ab\ncd\nef"), limits=AnswerLimits(4))
    assert (tokens.text, tokens.finish) == ("ab\nc", "length")


LINES = AnswerLimits(99, line_above=0.3)


def test_a_line_too_unlikely_is_left_out() -> None:
    """0.8 for the break and each letter: below 0.3 with the sixth token of the second line."""
    limits = AnswerLimits(max_tokens=60, line_above=0.3)
    judge = Judge("abc\n" + "d" * 40, p=0.8)
    draft, sequence, _ = judged(Script(ids("?")), judge, AUTOREGRESSIVE, limits)
    assert (draft.text, draft.finish) == ("abc", "unsure")
    assert draft.token_ids == tuple(ids("abc"))
    assert draft.confidence.mean == pytest.approx(0.8, rel=1e-2)
    assert len(sequence.log) == 3 + 6  # the rest of the line was never written


def test_above_a_line_the_last_line_keeps_its_break() -> None:
    limits = AnswerLimits(max_tokens=60, line_above=0.3, whole_lines=True)
    draft, _, _ = judged(Script(ids("?")), Judge("abc\n" + "d" * 40, p=0.8), AUTOREGRESSIVE, limits)
    assert (draft.text, draft.token_ids) == ("abc\n", tuple(ids("abc")))


def test_an_unlikely_line_ends_the_answer_on_canvases() -> None:
    limits = AnswerLimits(max_tokens=60, line_above=0.3)
    draft, _, states = write(
        Script(ids("ab\ncd\nef"), lambda p, w: 0.95 if p < 5 else 0.5),
        AUTOREGRESSIVE,
        limits=limits,
    )
    assert (draft.text, draft.finish) == ("ab\ncd", "unsure")
    assert states[-1].show() == "ab\ncd"


@pytest.mark.parametrize(
    ("text", "sure", "cut"),
    [
        ("a\nb:\nc", [0.9, 0.9, 0.9, 0.9, 0.9, 0.1], 1),  # neither the head nor its body
        ("b:\nc", [0.9, 0.9, 0.9, 0.1], None),  # the first line and its body are the gate's
        ("b:\nc\nd", [0.9, 0.9, 0.9, 0.1, 0.9, 0.1], 4),
        ("a\nb:\nc", [0.9] * 6, None),
    ],
)
def test_a_block_is_cut_with_its_body(text: str, sure: list[float], cut: int | None) -> None:
    tokens = [char.encode() for char in text]
    assert sure_part(tokens, sure, 0, AnswerLimits(99, line_above=0.3, openers=(":", "{"))) == cut


@pytest.mark.parametrize(
    ("text", "sure", "cut"),
    [
        ("abc", [0.1, 0.1, 0.1], None),  # the first line is the gate's to judge
        ("\nab", [0.1, 0.1, 0.1], None),  # and so it is after a blank one
        ("ab\n", [0.9, 0.9, 0.2], 2),
        ("ab\ncd", [0.9, 0.9, 0.9, 0.9, 0.9], None),
        ("ab\ncd\ne", [0.9, 0.9, 0.9, 0.9, 0.9, 0.2, 0.9], 5),
        ("ab\n\nc", [0.9, 0.9, 0.9, 0.9, 0.1], 2),  # a blank line goes with the one behind it
    ],
)
def test_it_ends_before_an_unlikely_line(text: str, sure: list[float], cut: int | None) -> None:
    tokens = [char.encode() for char in text]
    assert sure_part(tokens, sure, 0, LINES) == cut
    assert sure_part(tokens, sure, 0, AnswerLimits(99)) is None


def test_a_break_in_one_token_with_text_ends_a_line() -> None:
    fused = [b"a", b");\n", b"x", b"y"]
    assert sure_part(fused, [0.9, 0.9, 0.1, 0.1], 0, LINES) == 3
    assert sure_part(fused, [0.9, 0.2, 0.9, 0.9], 0, LINES) is None  # the first line's own doubt


@pytest.mark.parametrize(
    ("text", "least", "cut"),
    [
        ("abcd", -1.0, None),  # 0.8 each: -0.9 together
        ("abcd", -0.8, 0),  # the first line: nothing is left
        ("ab\ncde", -1.2, 2),  # a whole line is there already
        ("\nab", -0.5, 0),  # a blank one is none
    ],
)
def test_an_unlikely_whole_ends_before_its_line(text: str, least: float, cut: int | None) -> None:
    tokens = [char.encode() for char in text]
    limits = AnswerLimits(99, total_above=least)
    assert sure_part(tokens, [0.8] * len(tokens), 0, limits) == cut


def test_a_hopeless_answer_is_given_up_within_its_line() -> None:
    """0.8 for each letter: below -1 with the fifth."""
    judge = Judge("d" * 40, p=0.8)
    for whole_lines in (False, True):
        limits = AnswerLimits(max_tokens=60, total_above=-1.0, whole_lines=whole_lines)
        draft, sequence, _ = judged(Script(ids("?")), judge, AUTOREGRESSIVE, limits)
        assert (draft.text, draft.finish) == ("", "unsure")
        assert len(sequence.log) == 5
    limits = AnswerLimits(max_tokens=60, total_above=-1.0, forced="dd")
    assert judged(Script(ids("?")), judge, AUTOREGRESSIVE, limits)[0].text == "dd"


def test_an_unlikely_line_stays_in_too_short_an_answer() -> None:
    judge = Judge("abc\n" + "d" * 8, p=0.7)
    limits = AnswerLimits(max_tokens=60, min_tokens=6, line_above=0.3)
    draft, _, _ = judged(Script(ids("?")), judge, AUTOREGRESSIVE, limits)
    assert (draft.text, draft.finish) == ("abc\ndddddddd", "end")


def test_the_line_limit_keeps_the_break_above_a_line() -> None:
    limits = AnswerLimits(max_tokens=60, max_lines=1, whole_lines=True)
    draft, _, states = write(Script(ids("ab\ncd")), limits=limits)
    assert (draft.text, draft.finish) == ("ab\n", "length")
    assert draft.token_ids == tuple(ids("ab\n"))
    assert states[-1].show() == "ab\n"


def test_the_forced_beginning_is_no_line_of_the_models() -> None:
    assert sure_part([b"wo\n", b"\n", b"a"], [1.0, 0.1, 0.1], 3, LINES) is None


@pytest.mark.parametrize("plan", [PLAIN, AUTOREGRESSIVE])
def test_a_required_answer_begins_with_the_next_best(plan: Plan) -> None:
    """END is likelier at first; the token written instead keeps its small probability."""
    judge = Judge("", p=0.6, rival=0.3)
    first = Script(ids(""), lambda p, w: 0.6, rivals={0: ids("?")[0]}, prompt_tokens=len(PROMPT))
    limits = AnswerLimits(max_tokens=30, min_tokens=1)
    draft, _, _ = judged(first, judge, plan, limits)
    assert draft.text == "?"
    assert draft.confidence.first < 0.35


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
