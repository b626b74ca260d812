"""Drafts that the causal pass verifies: how many pay, what is learnt of them, what is reported."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from redraft.evals.scorers.costs import draft_columns, draft_fields
from redraft.model.decode.completion import AUTOREGRESSIVE, Brief, Plan
from redraft.model.decode.drafts import MEMORY, Copy, DraftTally, Odds, continuation
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.pass_costs import Groups, PassPrices, worth, worth_groups
from redraft.model.decode.speculative import Drafter, lay_out
from redraft.model.predict import Model, predict
from redraft.model.records import CanvasState, DraftCount, EditRequest, Prediction, Stats
from redraft.model.runtime.backend import FloatArray, Follows, IntArray, MaskGuesses
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.validation import parse_json
from redraft.model.wire import from_json, to_json
from support.models.denoising import WIDE, Habits, write_over
from support.models.fake_backend import (
    MASK,
    TEXT,
    VOCAB,
    FakeBackend,
    Noise,
    fake_tokenizer,
    ids,
    small_config,
)

#: Measured on two quiet Zen 4 cores with 936 tokens cached: 0.5B in int8.
INT8 = PassPrices.from_probe({1: 19.0, 2: 18.3, 4: 23.0, 9: 31.0, 16: 41.3})
#: The same passes' products in 4-bit blocks, and a device on which width costs nothing.
BLOCKS = PassPrices.from_probe({1: 11.0, 2: 10.3, 4: 14.9, 9: 26.5, 16: 42.2})


def test_a_wider_pass_is_never_cheaper() -> None:
    assert INT8.of(1) == INT8.of(2) == pytest.approx(18.65)
    noisy = PassPrices.from_probe({1: 10.0, 2: 14.0, 4: 12.0, 8: 10.0, 16: 20.0})
    assert noisy.ms == (10.0, 12.0, 12.0, 12.0, 20.0)


def test_prices_lie_on_the_line_between_two_widths() -> None:
    assert INT8.of(3) == pytest.approx((18.65 + 23.0) / 2)
    assert INT8.of(4) == 23.0
    assert INT8.of(31) == pytest.approx(41.3 + 15 * (41.3 - 18.65) / 15)


@pytest.mark.parametrize(
    ("prices", "chances", "count"),
    [
        (INT8, [], 0),
        (INT8, [0.05], 1),  # two positions cost what one costs
        (INT8, [0.6, 0.05], 1),  # 0.03 of 18.65 ms against 2.2
        (INT8, [0.6, 0.5], 2),  # 0.30 of 18.65 ms, 5.6, against 2.2
        (INT8, [0.6, 0.5, 0.4, 0.4], 3),  # 2.24 ms against 2.18; then 0.9 against 1.6
        (INT8, [0.5, 0.4, 0.35], 2),  # 0.07 of 18.65 ms, 1.3, against 2.2
        (INT8, [0.9] * 12, 12),  # 0.28 of 18.65 ms, 5.3, against 1.5
        (BLOCKS, [0.6, 0.5, 0.4], 2),  # 0.12 of 10.65 ms, 1.3, against 2.1
        (BLOCKS, [0.6, 0.3, 0.3], 1),  # 0.18 of 10.65 ms, 1.9, against 2.1
        (WIDE, [0.5, 0.1, 0.01], 3),
    ],
)
def test_drafts_that_pay_are_judged(prices: PassPrices, chances: list[float], count: int) -> None:
    assert worth(chances, prices) == count


def test_a_dear_position_is_crossed_to_cheap_ones() -> None:
    """4 ms for the second draft, nothing for those behind it."""
    steps = PassPrices.from_probe({1: 10.0, 2: 10.0, 3: 14.0, 8: 14.0})
    assert worth([0.6, 0.6], steps) == 1
    assert worth([0.6, 0.6, 0.6], steps) == 3


def test_a_copy_knows_how_many_tokens_were_alike() -> None:
    source = np.asarray(ids("1 total = 5; x = 7"))
    assert continuation(source, np.asarray(ids("a total =")), TEXT).alike == 8
    assert continuation(source, np.asarray(ids("yx =")), TEXT) == Copy(tuple(ids(" 7")), 3)


def test_what_follows_a_right_copy_has_one_more_alike() -> None:
    drafts = Odds().of_copy(Copy(tuple(ids("abc")), 2))
    assert [each.evidence for each in drafts] == [2, 3, 4]
    chances = [each.chance for each in drafts]
    assert chances == sorted(chances)


def test_failed_copies_lose_chance_unreached_do_not() -> None:
    odds = Odds()
    drafts = odds.of_copy(Copy(tuple(ids("abc")), 1))
    for _ in range(40):
        odds.note(drafts, right=0)
    after = odds.of_copy(Copy(tuple(ids("abc")), 1))
    assert after[0].chance < 0.1 < drafts[0].chance
    assert after[1:] == drafts[1:]


def test_what_was_learnt_is_forgotten_again() -> None:
    odds = Odds()
    drafts = odds.of_copy(Copy(tuple(ids("a")), 1))
    for right in (*[0] * 1_000, *[1] * int(2 * MEMORY)):
        odds.note(drafts, right)
    assert odds.chance("copy", 1) > 0.7


def test_a_canvas_is_believed_until_it_is_known_better() -> None:
    odds = Odds()
    sure, unsure = odds.of_guesses("canvas", ids("ab"), [0.95, 0.35])
    assert (sure.chance, unsure.chance) == (0.95, 0.35)
    odds.note((sure, unsure), right=0)
    assert odds.chance("canvas", 9) < 0.95
    assert odds.chance("canvas", 3) == 0.35


PROMPT = ids("def f(x):\n    ")


class Foresight:
    """Masks that know the causal pass's habits, but for one guess in three."""

    def __init__(self, seed: int) -> None:
        self.habits, self.noise = Habits(seed), Noise(seed)

    def __call__(self, context: list[int], window: list[int]) -> NDArray[np.float32]:
        text, rows = [*context, window[0]], []
        wrong = self.noise(text, window)
        for place in range(len(window)):
            row = self.habits(text)
            text.append(int(row.argmax()))
            rows.append(wrong[place] if wrong[place, 20] > 4.0 else row)
        return np.stack(rows)


def written(
    seed: int,
    plan: Plan,
    prices: PassPrices | None = None,
    odds: Odds | None = None,
    temperature: float = 0.0,
    masks: int = 0,
) -> tuple[tuple[int, ...], list[str], tuple[DraftCount, ...]]:
    """Tokens, passes and counts of one answer of 60 tokens at most."""
    config = small_config(8, verifier="ar")
    backend = FakeBackend(Noise(seed), config, Habits(seed))
    if masks:
        config = replace(config, adapter="masks", masks=masks)
        backend = FakeBackend(Foresight(seed), config, Habits(seed))
    sequence = backend.open(300)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    sequence.log.clear()
    source = np.asarray([*ids("abcabdafbecfdea" * 3), *PROMPT], dtype=np.int64)
    plan = replace(plan, temperature=temperature)
    brief = Brief(
        config, VOCAB, plan, AnswerLimits(60), source=source, prices=prices, odds=odds or Odds()
    )
    result = write_over(sequence, brief, seed)
    return result.drafts[0].token_ids, sequence.log, result.drafted


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("prices", [None, INT8, WIDE])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_drafts_change_no_token(seed: int, prices: PassPrices | None, temperature: float) -> None:
    alone, passes, counts = written(seed, AUTOREGRESSIVE, prices, temperature=temperature)
    assert counts == () and len(passes) == len(alone)
    drafted, log, counts = written(
        seed, Plan(threshold=0.9, draft_above=0.0), prices, temperature=temperature
    )
    assert drafted == alone
    assert {each.source for each in counts} == {"copy", "canvas"} or prices is not None
    assert len([entry for entry in log if entry != "denoise"]) <= len(passes)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("prices", [None, INT8, WIDE])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_masks_save_passes_alone(seed: int, prices: PassPrices | None, temperature: float) -> None:
    plan = Plan(threshold=0.9, copies=False)
    alone, passes, _ = written(seed, AUTOREGRESSIVE, prices, temperature=temperature)
    drafted, log, counts = written(seed, plan, prices, temperature=temperature, masks=3)
    assert drafted == alone
    assert {each.source for each in counts} == {"mask"} and "denoise" not in log
    assert any(entry.startswith("read") for entry in log)
    if temperature == 0:
        assert len(log) < len(passes)


def test_guesses_follow_the_token_the_pass_has_written() -> None:
    """Each guess is chosen when the token before it is known, so every draft is right.

    The causal pass goes by the last token alone. The masks have no information, their sampler
    has all.
    """
    letters = ids("abcdef")
    after = np.random.default_rng(3).permutation(letters)

    def judge(context: list[int]) -> NDArray[np.float32]:
        logits = np.zeros(len(VOCAB), np.float32)
        logits[after[letters.index(context[-1])] if context[-1] in letters else letters[0]] = 9.0
        return logits

    def nothing(context: list[int], window: list[int]) -> NDArray[np.float32]:
        logits = np.zeros((len(window), len(VOCAB)), np.float32)
        logits[:, letters] = 3.0
        return logits

    def sampler(mask: object, before: int, candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(judge([before])[candidates], np.float32)

    config = replace(small_config(8, verifier="ar"), adapter="masks", masks=3)

    def passes(follows: Follows | None) -> int:
        sequence = FakeBackend(nothing, config, judge, follows).open(100)
        sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
        brief = Brief(config, VOCAB, Plan(threshold=0.9, copies=False), AnswerLimits(40))
        result = write_over(sequence, brief)
        (counts,) = result.drafted
        if follows is not None:
            assert counts.right == counts.drafted
        return result.passes

    assert 2 * passes(sampler) < passes(None)


def test_steps_show_guesses_behind_the_verified_text() -> None:
    config = replace(small_config(8, verifier="ar"), adapter="masks", masks=3)
    for seed in range(6):
        sequence = FakeBackend(Foresight(seed), config, Habits(seed)).open(300)
        sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
        brief = Brief(config, VOCAB, Plan(threshold=0.9, copies=False), AnswerLimits(40))
        states: list[CanvasState] = []
        (draft,) = write_over(sequence, brief, seed, on_step=states.append).drafts
        for state in states:
            sure = state.pieces[: state.sure]
            assert None not in sure and draft.text.startswith("".join(filter(None, sure)))
        assert any(len(state.pieces) > state.sure for state in states)
        assert states[-1].show() == draft.text


def test_masks_take_over_where_copies_have_nothing() -> None:
    both = Plan(threshold=0.9)
    sources = {each.source for seed in range(6) for each in written(seed, both, masks=3)[2]}
    assert sources == {"copy", "mask"}
    off = written(1, AUTOREGRESSIVE, masks=3)
    assert off[2] == () and all(entry == "score 1" for entry in off[1])


def test_what_followed_a_masks_guess_is_drafted() -> None:
    tallies = [written(seed, Plan(threshold=0.9), masks=1)[2] for seed in range(6)]
    copies = [each for tally in tallies for each in tally if each.source == "copy"]
    assert any(
        later > first for first, later in ((each.drafted[0], each.drafted[1]) for each in copies)
    )


@pytest.mark.parametrize(
    ("prices", "chances", "guesses", "wanted"),
    [
        (INT8, [], [0.5], Groups(1, (0,))),  # two positions cost what one costs
        (INT8, [0.5], [0.3], Groups()),  # 0.5 · 3.6 ms each, against 2.2: SAVES of a pass
        (INT8, [0.5], [0.95], Groups(1, (0, 1))),  # 0.5 · 11.5 ms each
        (replace(INT8, masks_ms=5.0), [0.5], [0.95], Groups(1, (0, 1))),  # 11.5 for 4.4 and 5
        (replace(INT8, mask_ms=5.0), [0.5], [0.95], Groups()),  # 11.5 for 4.4 and 2 · 5
        (INT8, [0.9], [0.95], Groups(1, (1,))),  # behind the last token: 0.1 · 11.5 ms
        (INT8, [0.5, 0.4], [0.1], Groups()),  # 1.2 ms at most, and half of the time
        (INT8, [0.5], [0.0, 0.9], Groups()),  # nothing behind a wrong one is of use
        (WIDE, [0.5], [0.5, 0.5, 0.5], Groups(3, (0, 1))),
    ],
)
def test_masks_are_read_where_they_save_more_than_cost(
    prices: PassPrices, chances: list[float], guesses: list[float], wanted: Groups
) -> None:
    assert worth_groups(chances, guesses, prices) == wanted


@pytest.mark.parametrize(
    ("prices", "sure", "wanted"),
    [
        (None, 0.01, 3),  # without prices
        (WIDE, 0.01, 3),
        (replace(WIDE, positions=(1, 2, 3, 4), ms=(5.0, 5.0, 5.0, 9.0)), 0.95, 2),
        (replace(WIDE, positions=(1, 2, 3), ms=(5.0, 5.0, 9.0)), 0.05, 1),
        (replace(WIDE, positions=(1, 2), ms=(5.0, 50.0)), 0.95, 0),
    ],
)
def test_samplers_guess_while_it_pays(prices: PassPrices | None, sure: float, wanted: int) -> None:
    asked: list[int] = []

    def follows(mask: FloatArray, before: int, candidates: IntArray) -> FloatArray:
        asked.append(before)
        return np.zeros(2, np.float32)

    token = np.array([[7, 1], [8, 1], [9, 1]])
    logit = np.array([[1, -99]] * 3, np.float32)
    guesses = MaskGuesses(token, np.full(3, sure, np.float32), logit, logit, follows)
    drafter = cast(Any, SimpleNamespace(_prices=prices, _brief=SimpleNamespace(odds=Odds())))
    drafts = Drafter._chain(drafter, guesses, range(3), 5)
    assert asked == [5, 7, 8][:wanted], "each behind the guess before it"
    assert [each.token for each in drafts] == [7, 8, 9][:wanted]


def test_how_often_masks_are_right_is_learnt_by_place() -> None:
    odds = Odds()
    before = odds.of_groups(3)
    assert before == sorted(before, reverse=True)
    for _ in range(40):
        odds.note(
            odds.of_guesses("mask", [1, 2, 3], [0.55, 0.55, 0.55]), 1
        )  # the second is always wrong
    first, second, third = odds.of_groups(3)
    assert first > 0.9 and second < 0.1 and third == before[2]
    assert odds.chance("mask", 5) == pytest.approx(0.5, abs=0.1)  # half of those so sure


def test_a_pass_is_no_wider_than_it_pays() -> None:
    """Copies that never are right: as cheap as none before long, and worth a position at most."""
    plan = Plan(threshold=0.9, drafts=False)
    steep = PassPrices.from_probe({1: 10.0, 2: 15.0, 16: 100.0})
    odds = Odds()
    widths = [written(seed, plan, steep, odds)[1] for seed in range(8)]
    free = [written(seed, plan)[1] for seed in range(8)]
    assert widest(widths[-1]) < widest(free[-1])
    assert positions(widths) < 0.8 * positions(free)


def widest(log: list[str]) -> int:
    return max(int(entry.split()[1]) for entry in log)


def positions(logs: list[list[str]]) -> int:
    return sum(int(entry.split()[1]) for log in logs for entry in log)


def test_where_wider_passes_are_dear_none_is_drafted() -> None:
    plan = Plan(threshold=0.9, drafts=False)
    dear = PassPrices.from_probe({1: 1.0, 2: 100.0})
    assert widest(written(3, plan, dear)[1]) == 1


def test_drafts_are_counted_by_source_and_place() -> None:
    tally, odds = DraftTally(), Odds()
    copy = odds.of_copy(Copy(tuple(ids("abc")), 2))
    tally.note(copy, right=1)
    tally.note(copy[:2], right=2)
    tally.note(odds.of_guesses("canvas", ids("x"), [0.5]), right=0)
    assert tally.counts() == (
        DraftCount("canvas", (1,), (1,), (0,)),
        DraftCount("copy", (2, 2, 1), (2, 2, 0), (2, 1, 0)),
    )


def test_an_eval_reports_passes_saved_and_right_drafts() -> None:
    stats = Stats(
        canvas_tokens=12, denoise_steps=9, drafts=(DraftCount("copy", (4, 2), (4, 2), (2, 1)),)
    )
    episodes = [
        {"id": "a", "group": "a", "tokens": 12, **draft_fields(stats)},
        {"id": "b", "group": "b", "tokens": 12, **draft_fields(Stats(canvas_tokens=12))},
    ]
    found = {each.name: each.figure(episodes).value for each in draft_columns(episodes)}
    assert found == {
        "passes saved": 15 / 24,
        "copy drafts right": 0.5,
        "… in place 1, of copy": 0.5,
        "… in place 2, of copy": 0.5,
    }


def test_a_model_learns_from_drafts_and_reports_them() -> None:
    config = small_config(8, verifier="ar")
    backend = FakeBackend(Noise(1), config, Habits(1))
    cache = PrefixCache(backend, 1 << 30)
    model = Model("fake", backend, fake_tokenizer(), cache, 1_024, prices=WIDE)
    text = "abcabdafbecfdea\n" * 4
    request = EditRequest("infill", "a.py", text, len(text), max_tokens=30)
    plan = Plan(threshold=0.9, drafts=False)
    (counts,) = predict(model, request, lambda: 0.0, plan=plan).stats.drafts
    assert counts.source == "copy"
    assert counts.drafted[0] >= counts.reached[0] >= counts.right[0] > 0
    learnt = [model.odds.chance("copy", alike) for alike in range(1, 13)]
    assert learnt != [Odds().chance("copy", alike) for alike in range(1, 13)]
    dear = replace(model, prices=PassPrices.from_probe({1: 1.0, 2: 100.0}))
    assert predict(dear, request, lambda: 0.0, plan=plan).stats.drafts == ()


def test_drafts_that_were_counted_survive_the_wire() -> None:
    stats = Stats(drafts=(DraftCount("canvas", (4, 2), (4, 1), (2, 1)),))
    sent = parse_json(json.dumps(to_json(Prediction("1", "fake", stats=stats))).encode())
    assert from_json(sent, Prediction).stats == stats
    del sent["prediction"]["stats"]["drafts"]  # from an engine that does not count them
    assert from_json(sent, Prediction).stats == Stats()


def test_a_row_without_masks_is_causal() -> None:
    row = lay_out(7, [8, 9], held=0)
    assert row.tokens.tolist() == [7, 8, 9]
    assert row.positions.tolist() == [0, 1, 2]
    assert row.sees.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert row.masks == 0


def test_masks_see_what_is_before_and_no_other_group() -> None:
    row = lay_out(7, [8], 0, Groups(2, (0, 1)), MASK)
    assert row.tokens.tolist() == [7, 8, MASK, MASK, MASK, MASK]
    assert row.positions.tolist() == [0, 1, 1, 2, 2, 3]
    assert row.sees.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 0, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 1, 1],
    ]
    assert row.masks == 4


@pytest.mark.parametrize("group", [1, 2, 3, 4])
def test_as_many_drafts_as_masks_make_a_square(group: int) -> None:
    groups = Groups(group, tuple(range(group + 1)))
    assert len(lay_out(7, range(group), 0, groups, MASK).tokens) == (group + 1) ** 2
