"""Counts of drafts in statistics, and rows of passes with masks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from redraft.evals.scorers.costs import draft_columns, draft_fields
from redraft.model.decode.completion import Plan
from redraft.model.decode.drafts import Copy, DraftTally, Odds
from redraft.model.decode.pass_costs import Groups, PassPrices
from redraft.model.decode.speculative import lay_out
from redraft.model.predict import Model, predict
from redraft.model.records import DraftCount, EditRequest, Prediction, Stats
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.validation import parse_json
from redraft.model.wire import from_json, to_json
from support.models.denoising import WIDE, Habits
from support.models.fake_backend import (
    MASK,
    FakeBackend,
    Noise,
    fake_tokenizer,
    ids,
    small_config,
)


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
    dear = replace(model, prices=PassPrices.measured({1: 1.0, 2: 100.0}))
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
