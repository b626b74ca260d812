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
from support.denoising import PROMPT, Begins, write
from support.fake_backend import END, MASK, SPECIAL, VOCAB, Noise, Script, always, ids, word


def test_a_sure_model_writes_a_whole_canvas_in_one_step() -> None:
    draft, sequence, _ = write(Script(ids("pass")))
    assert (draft.text, draft.finish, draft.steps) == ("pass", "end", 1)
    assert draft.token_ids == (*ids("pass"), END)
    assert sequence.tokens == PROMPT[:-1]


def test_the_window_is_the_last_token_and_one_position_less_than_the_canvas() -> None:
    script = Script(ids("abc"), sure=lambda position, window: 0.5)
    write(script)
    assert script.windows[0] == [PROMPT[-1], *[MASK] * 7]


def test_the_surest_position_goes_first_where_none_passes() -> None:
    script = Script(ids("abcd"), sure=lambda position, window: 0.8 if position == 2 else 0.4)
    _, _, states = write(script)
    assert states[0].pieces[:4] == (None, None, "c", None)


def test_positions_at_the_threshold_are_placed_together() -> None:
    script = Script(ids("abcd"), sure=lambda p, window: 0.95 if p in (1, 3) else 0.4)
    draft, _, states = write(script)
    assert states[0].pieces[:4] == (None, "b", None, "d")
    assert draft.text == "abcd"


def test_without_a_threshold_one_token_a_step_is_placed() -> None:
    draft, _, states = write(Script(ids("abc")), AUTOREGRESSIVE)
    assert [state.show(".").rstrip(".") for state in states] == ["a", "ab", "abc", "abc"]
    assert draft.steps == 4


def test_low_quality_fills_a_canvas_in_few_steps_however_unsure() -> None:
    text = "the quick brown fox jumps over a lazy dog"[:40]
    draft, _, _ = write(Script(ids(text), sure=always(0.4)), plan_for("low"), width=16)
    assert draft.text == text
    assert draft.steps <= 3 * 4


def test_medium_takes_as_many_steps_as_positions_when_unsure() -> None:
    draft, _, _ = write(Script(ids("x" * 20), sure=always(0.4)), plan_for("medium"), width=16)
    assert (draft.text, draft.steps) == ("x" * 20, 21)


def test_a_special_token_is_never_drawn() -> None:
    plan = Plan(threshold=0.9, temperature=2.0)
    for seed in range(10):
        draft, _, _ = write(
            Noise(seed, scale=0.1), plan, limits=AnswerLimits(max_tokens=20), seed=seed
        )
        assert all(token == END or token >= SPECIAL for token in draft.token_ids)


def test_an_early_doubtful_end_waits_for_what_is_before_it() -> None:
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


def test_end_costs_no_step_when_the_gap_before_it_closes() -> None:
    """Threshold 0.6: END at 0.7 may not go ahead, but does once all before it is placed."""
    script = Script(ids("abc"), sure=always(0.7))
    draft, _, states = write(script, Plan(threshold=0.6))
    assert (draft.text, draft.steps, len(states)) == ("abc", 1, 1)


def test_nothing_is_an_answer() -> None:
    draft, _, _ = write(Script([]))
    assert (draft.text, draft.finish, draft.token_ids) == ("", "end", (END,))
    assert draft.confidence.first == pytest.approx(0.99, abs=1e-3)


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("p", [0.5, 0.99])
def test_long_answers_take_several_canvases(length: int, p: float) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(length))
    draft, sequence, _ = write(Script(ids(text), sure=always(p)))
    assert (draft.text, draft.finish) == (text, "end")
    committed = length // 8 * 8
    assert sequence.tokens == (PROMPT + ids(text))[: len(PROMPT) - 1 + committed]


def test_a_canvas_is_opened_by_the_last_token_of_the_one_before() -> None:
    script = Script(ids("abcdefghij"))
    write(script)
    assert script.windows[1][0] == ids("h")[0]


def test_states_show_earlier_canvases_and_count_steps_over_all() -> None:
    _, _, states = write(Script(ids("abcdefghij"), sure=always(0.99)))
    assert [state.step for state in states] == [1, 2]
    assert states[-1].show() == "abcdefghij"


@pytest.mark.parametrize("limit", [1, 3, 8, 9, 12])
def test_max_tokens_ends_an_answer(limit: int) -> None:
    draft, _, _ = write(Script(ids("x" * 30)), limits=AnswerLimits(max_tokens=limit))
    assert (draft.text, draft.finish, len(draft.token_ids)) == ("x" * limit, "length", limit)


def test_positions_beyond_max_tokens_cost_no_steps() -> None:
    draft, _, _ = write(Script(ids("x" * 30), always(0.5)), limits=AnswerLimits(max_tokens=3))
    assert draft.steps == 3


def test_an_answer_that_goes_round_in_circles_is_ended_early() -> None:
    draft, _, _ = write(Script(ids("y = " + "x + 1, " * 20)))
    assert draft.finish == "length"
    assert len(draft.token_ids) == 27  # of 64


@pytest.mark.parametrize("text", ["-" * 60, "[0, 0, 0, 0, 0]", "a1b2c3d4e5f6g7h8i9j0" * 2])
def test_repetition_that_people_write_is_written(text: str) -> None:
    draft, _, _ = write(Script(ids(text)))
    assert (draft.text, draft.finish) == (text, "end")


def test_max_lines_cuts_before_the_newline_that_is_too_many() -> None:
    limits = AnswerLimits(max_tokens=64, max_lines=2)
    draft, _, states = write(Script(ids("a\nbc\nd\ne")), limits=limits)
    assert (draft.text, draft.finish) == ("a\nbc", "length")
    assert states[-1].show() == "a\nbc"


def test_what_a_placed_line_end_cuts_off_costs_no_step() -> None:
    script = Script(ids("ab\ncdef"), lambda p, w: 0.95 if p == 2 else 0.5)
    draft, _, states = write(script, limits=AnswerLimits(max_tokens=64, max_lines=1))
    assert (draft.text, draft.steps) == ("ab", 3)
    assert states[0].show(".") == "..\n"


def test_a_step_is_not_spent_behind_where_the_answer_will_end() -> None:
    script = Script(ids("ab\ncdef"), lambda p, w: 0.8 if p > 2 else 0.5)
    draft, _, states = write(script, limits=AnswerLimits(max_tokens=64, max_lines=1))
    assert (draft.text, draft.steps) == ("ab", 3)
    assert all(piece is None for state in states for piece in state.pieces[3:])


def test_the_earliest_stop_string_cuts_across_canvases() -> None:
    limits = AnswerLimits(max_tokens=64, stop=("zz", "hij", "ij"))
    draft, _, _ = write(Script(ids("abcdefghijklmn")), limits=limits)
    assert (draft.text, draft.finish) == ("abcdefg", "stop")
    assert len(draft.token_ids) == 8, "tokens behind the stop are not counted"


def test_a_stop_string_inside_the_forced_beginning_does_not_cut() -> None:
    limits = AnswerLimits(max_tokens=64, stop=("re",), forced="re")
    draft, _, _ = write(Script(ids("return 1")), limits=limits, constraint=Begins(b"re"))
    assert (draft.text, draft.finish) == ("return 1", "end")


def test_a_character_split_over_tokens_is_whole_in_text_and_pieces() -> None:
    draft, _, states = write(Script(ids("é→x"), lambda p, w: 0.6 - p / 100), AUTOREGRESSIVE)
    assert draft.text == "é→x"
    assert [state.show("") for state in states] == ["", "é", "é", "é", "é→", "é→x", "é→x"]


def test_a_character_cut_off_by_the_limit_is_left_out() -> None:
    draft, _, _ = write(Script(ids("a→b")), limits=AnswerLimits(max_tokens=2))
    assert draft.text == "a"


def test_pieces_leave_the_forced_beginning_out() -> None:
    limits = AnswerLimits(max_tokens=64, forced="ret")
    script = Script([word(b"return"), *ids(" 1")])
    draft, _, states = write(script, limits=limits, constraint=Begins(b"ret"))
    assert draft.text == "return 1"
    assert states[-1].show() == "urn 1"


def test_the_answer_begins_with_the_forced_text_though_the_model_disagrees() -> None:
    script = Script(ids("xyz"), rivals={0: word(b"ret")})
    draft, _, _ = write(script, constraint=Begins(b"ret"))
    assert draft.text.startswith("ret")


def test_nothing_beyond_is_placed_in_the_step_in_which_the_model_is_overruled() -> None:
    script = Script(ids("xyz"), rivals={0: word(b"ret")})
    _, _, states = write(script, constraint=Begins(b"ret"))
    assert states[0].pieces[0] == "ret"
    assert set(states[0].pieces[1:]) == {None}


def test_a_constraint_the_model_agrees_with_costs_no_step() -> None:
    draft, _, _ = write(Script(ids("return 1")[:7]), constraint=Begins(b"ret"))
    assert (draft.text, draft.steps) == ("return ", 1)


def test_an_unsure_model_under_a_constraint_places_one_token_a_step() -> None:
    class TwoDigits(Constraint):
        def allowed(self, written: Sequence[int]) -> NDArray[np.bool_] | None:
            return None if len(written) > 1 else np.asarray([b.isdigit() for b in VOCAB])

    script = Script(ids("12ab"), always(0.5), rivals={i: ids("7")[0] for i in range(2)})
    draft, _, states = write(script, constraint=TwoDigits())
    assert draft.text == "12ab"
    assert [state.show(".").rstrip(".") for state in states[:2]] == ["1", "12"]


def test_a_constraint_that_allows_nothing_ends_the_answer() -> None:
    class Nothing(Constraint):
        def allowed(self, written: Sequence[int]) -> NDArray[np.bool_] | None:
            return np.zeros(len(VOCAB), dtype=np.bool_)

    draft, _, _ = write(Script(ids("abc")), constraint=Nothing())
    assert (draft.text, draft.finish, draft.confidence.mean) == ("", "end", 0.0)


def sampled(seed: int, temperature: float = 1.5, top_p: float = 1.0) -> str:
    plan = Plan(threshold=0.9, temperature=temperature, top_p=top_p)
    script = Script(ids("abcdef"), always(0.5), rivals={i: ids("Q")[0] for i in range(6)})
    return write(script, plan, seed=seed)[0].text


def test_seeds_differ() -> None:
    assert len({sampled(seed) for seed in range(8)}) > 1


@pytest.mark.parametrize("top_p", [0.0, 0.1])
def test_a_narrow_nucleus_holds_the_likeliest_token_alone(top_p: float) -> None:
    assert sampled(5, top_p=top_p) == "abcdef"


@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e-309, 5e-324])
def test_a_temperature_next_to_none_draws_the_likeliest_token(temperature: float) -> None:
    assert sampled(5, temperature=temperature) == "abcdef"


def test_a_sample_never_ends_the_answer_ahead_of_open_positions() -> None:
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
