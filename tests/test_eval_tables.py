"""Tables of evaluations: their intervals, and their look in a terminal of 80 columns."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from redraft.evals.benchmarks import infill, next_edit
from redraft.evals.figures.intervals import draws, ratio
from redraft.evals.figures.resampling import Cell, Resampling, figures
from redraft.evals.figures.tables import Metric, Table, overall, parted
from redraft.evals.replay import tables as replay
from redraft.server.commands import console, eval_tables
from redraft.server.commands.eval_tables import Sheet, show_sheet
from rich.console import Console

RIGHT = Metric("right", "share", "right")


def episode(number: int, **more: Any) -> dict[str, Any]:
    """A gap of one of twelve problems, as ``redraft eval infill`` writes it."""
    rng = random.Random(number)
    right = rng.random() < 0.3
    return {
        "id": str(number), "group": f"problem{number % 12}", "language": "python",
        "kind": "next_edit", "shown": number % 4 != 0, "passed": right, "exact": right,
        "first_line": right, "parse_ok": True, "ended": True,
        "tokens": 1_234, "steps": 321, "denoise_ms": 12_345.6, "total_ms": 23_456.7,
        "confidence": rng.random(), "answer_tokens": 7,
    } | more  # fmt: skip


def test_no_interval_of_a_share_is_a_point() -> None:
    """Two of three in each group: every draw of groups says the same."""
    some = [episode(i, group=str(i // 3), passed=i % 3 > 0) for i in range(36)]
    (row,) = overall("infill", infill.METRICS, some, seed=0).rows
    found = row.figures["pass@1"]
    assert found.value == pytest.approx(2 / 3)
    assert found.low is not None and found.high is not None
    assert found.low < 0.6 and found.high > 0.75


def test_intervals_are_those_of_a_bootstrap_by_group() -> None:
    values = [bool(i // 10 % 2) for i in range(400)]
    episodes = [{"right": value} for value in values]
    everything = np.ones(400, np.bool_)
    for groups in (range(400), [i // 10 for i in range(400)]):
        (found,) = figures(episodes, [Cell(RIGHT, everything)], Resampling(list(groups)))
        wanted = ratio([float(v) for v in values], groups=list(groups))
        assert found.value == wanted.value and found.n == 400
        assert found.low == pytest.approx(wanted.low, abs=0.03)
        assert found.high == pytest.approx(wanted.high, abs=0.03)


def test_resampling_in_blocks_draws_every_group_as_often_as_another() -> None:
    weights = np.vstack(list(draws(3_000, resamples=2_000)))
    assert weights.shape == (2_000, 3_000)
    assert (weights.sum(axis=1) == 3_000).all()
    assert abs(weights.mean(axis=0) - 1).max() < 0.15


def test_few_groups_are_not_resampled_but_their_episodes() -> None:
    episodes = [{"right": i % 2 == 0} for i in range(100)]
    draws = Resampling(["the only session"] * 100)
    (found,) = figures(episodes, [Cell(RIGHT, np.ones(100, np.bool_))], draws)
    assert draws.by_episode and found.low is not None and found.high is not None
    assert 0.35 < found.low < 0.45 and 0.55 < found.high < 0.65


def test_a_share_of_none_still_has_an_interval() -> None:
    episodes = [{"right": False} for _ in range(100)]
    (found,) = figures(episodes, [Cell(RIGHT, np.ones(100, np.bool_))], Resampling(range(100)))
    assert found.value == 0.0 and found.high == pytest.approx(0.037, abs=0.001)


def test_members_and_episodes_without_the_field_are_told_apart() -> None:
    episodes = [{"right": True}, {"right": None}, {}, {"right": False}, {"right": True}]
    members = np.asarray([True, True, True, True, False])
    draws = Resampling(range(5))
    most, few = figures(episodes, [Cell(RIGHT, members), Cell(RIGHT, members, least=3)], draws)
    assert (most.value, most.n) == (0.5, 2)
    assert (few.value, few.n) == (None, 2)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Console:
    terminal = Console(width=80, force_terminal=True, color_system=None, record=True, quiet=False)
    for module in (console, eval_tables):
        monkeypatch.setattr(module, "out", terminal)
    return terminal


def told(narrow: Console, table: Table) -> str:
    show_sheet(eval_tables._drawn(table))
    return narrow.export_text()


@pytest.mark.parametrize(
    "metrics",
    [infill.METRICS, next_edit.METRICS, replay.METRICS],
    ids=["infill", "edits", "replay"],
)
def test_a_wide_table_breaks_no_word_at_eighty_columns(narrow: Console, metrics: Any) -> None:
    some = [
        episode(i, kind="next_edit" if i % 2 else "ghost text", **dict.fromkeys(fields(metrics), 1))
        for i in range(120)
    ]
    text = told(narrow, parted("by kind", metrics, some, lambda each: str(each["kind"]), 0))
    assert max(map(len, text.splitlines())) <= 80
    assert "next_edit" in text and "ghost text" in text
    for metric in metrics:
        assert metric.heading in text  # in one piece
    assert "…" not in text


def fields(metrics: Any) -> set[str]:
    return {name for metric in metrics for name in (metric.field, metric.by) if name}


def test_a_table_that_fits_stays_a_table(narrow: Console) -> None:
    sheet = Sheet("few figures", ("", "n", "exact ↑"))
    sheet.add_row("python", "120", "29.3% [24.5%, 34.7%]")
    show_sheet(sheet)
    assert "python   120   29.3% [24.5%, 34.7%]" in narrow.export_text()
