"""Intervals in tables of evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from redraft.evals.benchmarks import infill
from redraft.evals.figures.intervals import Cell, Resampling, figures, ratio
from redraft.evals.figures.tables import Metric, overall

RIGHT = Metric("right", "share", "right")


def episode(number: int) -> dict[str, Any]:
    """Return one of three gaps of a problem, of which two are right."""
    return {"id": str(number), "group": str(number // 3), "passed": number % 3 > 0}


def test_no_interval_of_a_share_is_a_point() -> None:
    """Two of three in each group: every draw of groups says the same."""
    some = [episode(i) for i in range(36)]
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


@pytest.mark.parametrize(
    ("groups", "right", "low", "high"),
    [
        (["the only session"] * 100, 2, (0.35, 0.45), (0.55, 0.65)),  # by episode
        (range(100), 101, (-0.001, 0.001), (0.036, 0.038)),  # a share of none
    ],
)
def test_shares_of_few_groups_and_of_none_have_intervals(
    groups: Any, right: int, low: tuple[float, float], high: tuple[float, float]
) -> None:
    episodes = [{"right": i % right == right - 1} for i in range(100)]
    draws = Resampling(groups)
    (found,) = figures(episodes, [Cell(RIGHT, np.ones(100, np.bool_))], draws)
    assert draws.by_episode == (len(set(groups)) == 1)
    assert found.low is not None and low[0] <= found.low <= low[1]
    assert found.high is not None and high[0] <= found.high <= high[1]
