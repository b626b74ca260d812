"""The denoising loop, over scripted and random models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.model.decode.completion import AUTOREGRESSIVE, Plan, plan_for
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.grammar import Constraint
from redraft.model.records import Quality
from support.models.denoising import PROMPT, Begins, write
from support.models.fake_backend import END, MASK, SPECIAL, VOCAB, Noise, Script, always, ids, word

REPEATED = ("-" * 60, "[0, 0, 0, 0, 0]", "a1b2c3d4e5f6g7h8i9j0" * 2)


def test_a_sure_model_writes_a_canvas_in_one_step() -> None:
    draft, sequence, _ = write(Script(ids("pass")))
    assert (draft.text, draft.finish, draft.steps) == ("pass", "end", 1)
    assert draft.token_ids == (*ids("pass"), END)
    assert sequence.tokens == PROMPT[:-1]


def test_the_window_is_a_token_and_the_canvas_but_one() -> None:
    script = Script(ids("abc"), sure=lambda position, window: 0.5)
    write(script)
    assert script.windows[0] == [PROMPT[-1], *[MASK] * 7]


@pytest.mark.parametrize(
    ("sure", "first"),
    [
        ({2: 0.8}, (None, None, "c", None)),  # none passes: the surest one goes first
        ({1: 0.95, 3: 0.95}, (None, "b", None, "d")),  # at the threshold, together
    ],
)
def test_which_positions_are_placed_first(
    sure: dict[int, float], first: tuple[str | None, ...]
) -> None:
    draft, _, states = write(Script(ids("abcd"), sure=lambda p, window: sure.get(p, 0.4)))
    assert (states[0].pieces[:4], draft.text) == (first, "abcd")


def test_without_a_threshold_a_step_places_one_token() -> None:
    draft, _, states = write(Script(ids("abc")), AUTOREGRESSIVE)
    assert [state.show(".").rstrip(".") for state in states] == ["a", "ab", "abc", "abc"]
    assert draft.steps == 4


FOX = "the quick brown fox jumps over a lazy dog"[:40]


@pytest.mark.parametrize(
    ("text", "quality", "limit", "written", "steps"),
    [
        (FOX, "low", 64, FOX, range(1, 3 * 4 + 1)),
        ("x" * 20, "medium", 64, "x" * 20, [21]),  # one for each position
        ("x" * 30, "medium", 3, "xxx", [3]),  # positions beyond the limit cost none
        ("a→b", "medium", 2, "a", [2]),  # half a character is left out
    ],
)
def test_an_unsure_model_takes_steps(
    text: str, quality: Quality, limit: int, written: str, steps: Sequence[int]
) -> None:
    limits = AnswerLimits(max_tokens=limit)
    script = Script(ids(text), sure=always(0.4))
    draft, _, _ = write(script, plan_for(quality), limits=limits, width=16)
    assert draft.text == written and draft.steps in steps


def test_a_special_token_is_never_drawn() -> None:
    plan = Plan(threshold=0.9, temperature=2.0)
    for seed in range(10):
        draft, _, _ = write(
            Noise(seed, scale=0.1), plan, limits=AnswerLimits(max_tokens=20), seed=seed
        )
        assert all(token == END or token >= SPECIAL for token in draft.token_ids)


def test_a_doubtful_end_waits_for_what_is_before_it() -> None:
    """END is the surest guess of the first step, yet places nothing ahead of open positions."""

    def sure(position: int, window: Sequence[int]) -> float:
        return 0.85 if position == 4 else 0.5

    script = Script(ids("abcdefg"), sure, slips=lambda p, w: END if p == 4 and _open(w) else None)
    draft, _, _ = write(script)
    assert draft.text == "abcdefg"


def _open(window: Sequence[int]) -> bool:
    """Return whether the fourth token of the answer is still masked."""
    return window[4] == MASK


def test_a_very_sure_end_bounds_the_canvas_at_once() -> None:
    script = Script(ids("abc"), sure=lambda p, window: 0.95 if p >= 3 else 0.5)
    draft, _, _ = write(script)
    assert draft.text == "abc"
    assert draft.steps == 3, "END took no step of its own"
    assert script.windows[1][4:] == [END] * 4, "padding after END is shown as END"


def test_end_costs_no_step_when_the_gap_before_closes() -> None:
    """Threshold 0.6: END at 0.7 may not go ahead, but does once all before it is placed."""
    script = Script(ids("abc"), sure=always(0.7))
    draft, _, states = write(script, Plan(threshold=0.6))
    assert (draft.text, draft.steps, len(states)) == ("abc", 1, 1)


STOPS = AnswerLimits(max_tokens=64, stop=("zz", "hij", "ij"))
FORCED = AnswerLimits(max_tokens=64, stop=("re",), forced="re")


@pytest.mark.parametrize(
    ("text", "limits", "written", "finish", "tokens"),
    [
        *(("x" * 30, AnswerLimits(n), "x" * n, "length", n) for n in (1, 3, 8, 9, 12)),
        ("", None, "", "end", 1),
        *((text, None, text, "end", len(text) + 1) for text in REPEATED),
        ("a\nbc\nd\ne", AnswerLimits(64, max_lines=2), "a\nbc", "length", 5),
        ("abcdefghijklmn", STOPS, "abcdefg", "stop", 8),  # tokens behind the stop do not count
        ("return 1", FORCED, "return 1", "end", 9),  # "re" is forced and does not stop
    ],
)
def test_what_ends_an_answer(
    text: str, limits: AnswerLimits | None, written: str, finish: str, tokens: int
) -> None:
    constraint = Begins(b"re") if limits is FORCED else None
    draft, _, states = write(Script(ids(text)), limits=limits, constraint=constraint)
    assert (draft.text, draft.finish, len(draft.token_ids)) == (written, finish, tokens)
    assert states[-1].show() == written.removeprefix("re" if limits is FORCED else "")
    if not text:
        assert draft.confidence.first == pytest.approx(0.99, abs=1e-3)


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("p", [0.5, 0.99])
def test_long_answers_take_several_canvases(length: int, p: float) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(length))
    draft, sequence, _ = write(Script(ids(text), sure=always(p)))
    assert (draft.text, draft.finish) == (text, "end")
    committed = length // 8 * 8
    assert sequence.tokens == (PROMPT + ids(text))[: len(PROMPT) - 1 + committed]


def test_the_last_token_of_a_canvas_opens_the_next() -> None:
    script = Script(ids("abcdefghij"))
    write(script)
    assert script.windows[1][0] == ids("h")[0]


def test_states_hold_earlier_canvases_and_all_steps() -> None:
    _, _, states = write(Script(ids("abcdefghij"), sure=always(0.99)))
    assert [state.step for state in states] == [1, 2]
    assert states[-1].show() == "abcdefghij"


def test_an_answer_that_goes_in_circles_ends_early() -> None:
    draft, _, _ = write(Script(ids("y = " + "x + 1, " * 20)))
    assert draft.finish == "length"
    assert len(draft.token_ids) == 27  # of 64


@pytest.mark.parametrize(("line_end", "behind"), [(0.95, 0.5), (0.5, 0.8)])
def test_no_step_is_spent_behind_the_end_of_the_answer(line_end: float, behind: float) -> None:
    sure = {2: line_end, **dict.fromkeys(range(3, 9), behind)}
    script = Script(ids("ab\ncdef"), lambda p, w: sure.get(p, 0.5))
    draft, _, states = write(script, limits=AnswerLimits(max_tokens=64, max_lines=1))
    assert (draft.text, draft.steps) == ("ab", 3)
    assert all(piece is None for state in states for piece in state.pieces[3:])


def test_a_character_split_over_tokens_is_whole() -> None:
    draft, _, states = write(Script(ids("é→x"), lambda p, w: 0.6 - p / 100), AUTOREGRESSIVE)
    assert draft.text == "é→x"
    assert [state.show("") for state in states] == ["", "é", "é", "é", "é→", "é→x", "é→x"]


def test_pieces_leave_the_forced_beginning_out() -> None:
    limits = AnswerLimits(max_tokens=64, forced="ret")
    script = Script([word(b"return"), *ids(" 1")])
    draft, _, states = write(script, limits=limits, constraint=Begins(b"ret"))
    assert draft.text == "return 1"
    assert states[-1].show() == "urn 1"


def test_a_model_that_disagrees_writes_forced_text() -> None:
    script = Script(ids("xyz"), rivals={0: word(b"ret")})
    draft, _, states = write(script, constraint=Begins(b"ret"))
    assert draft.text.startswith("ret")
    assert states[0].pieces[0] == "ret"
    assert set(states[0].pieces[1:]) == {None}


def test_an_agreed_constraint_costs_no_step() -> None:
    draft, _, _ = write(Script(ids("return 1")[:7]), constraint=Begins(b"ret"))
    assert (draft.text, draft.steps) == ("return ", 1)


def test_a_constrained_unsure_model_places_one_a_step() -> None:
    class TwoDigits(Constraint):
        def token_mask(self, written: Sequence[int]) -> NDArray[np.bool_] | None:
            return None if len(written) > 1 else np.asarray([b.isdigit() for b in VOCAB])

    script = Script(ids("12ab"), always(0.5), rivals={i: ids("7")[0] for i in range(2)})
    draft, _, states = write(script, constraint=TwoDigits())
    assert draft.text == "12ab"
    assert [state.show(".").rstrip(".") for state in states[:2]] == ["1", "12"]


def test_a_constraint_that_allows_nothing_ends_it() -> None:
    class Nothing(Constraint):
        def token_mask(self, written: Sequence[int]) -> NDArray[np.bool_] | None:
            return np.zeros(len(VOCAB), dtype=np.bool_)

    draft, _, _ = write(Script(ids("abc")), constraint=Nothing())
    assert (draft.text, draft.finish, draft.confidence.mean) == ("", "end", 0.0)


def sampled(seed: int, temperature: float = 1.5, top_p: float = 1.0) -> str:
    plan = Plan(threshold=0.9, temperature=temperature, top_p=top_p)
    script = Script(ids("abcdef"), always(0.5), rivals={i: ids("Q")[0] for i in range(6)})
    return write(script, plan, seed=seed)[0].text


def test_seeds_differ() -> None:
    assert len({sampled(seed) for seed in range(8)}) > 1


@pytest.mark.parametrize(
    "how", [{"top_p": p} for p in (0.0, 0.1)] + [{"temperature": t} for t in (1e-3, 1e-300, 5e-324)]
)
def test_a_narrow_distribution_gives_the_likeliest(how: dict[str, float]) -> None:
    assert sampled(5, **how) == "abcdef"


def test_a_sample_never_ends_before_open_positions() -> None:
    """END is the second choice everywhere; only the leftmost open position may draw it."""
    script = Script(ids("abcdef"), lambda p, w: 0.55 + p / 100, rivals=dict.fromkeys(range(6), END))
    for seed in range(20):
        plan = Plan(threshold=0.9, temperature=1.0)
        _, _, states = write(script, plan, seed=seed)
        for state in states[:-1]:
            assert len(state.pieces) >= 6


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("scale", [0.5, 4.0, 30.0])
def test_noise_always_terminates_within_the_limits(seed: int, scale: float) -> None:
    plan = plan_for(("low", "medium", "high")[seed % 3])  # type: ignore[arg-type]
    lines, temperature = ((None, 0.0), (1, 0.0), (3, 1.0), (None, 0.7))[seed % 4]
    plan = replace(plan, temperature=temperature)
    limits = AnswerLimits(max_tokens=21, max_lines=lines)
    draft, _, states = write(Noise(seed, scale), plan, limits=limits, seed=seed)
    assert 1 <= len(draft.token_ids) <= 21
    assert MASK not in draft.token_ids
    assert 0 <= draft.confidence.minimum <= draft.confidence.mean <= 1
    assert draft.finish == ("end" if draft.token_ids[-1] == END else "length")
    assert lines is None or draft.text.count("\n") < lines
    assert all(piece is not None for piece in states[-1].pieces)
    if draft.ended:
        assert states[-1].show() == draft.text
