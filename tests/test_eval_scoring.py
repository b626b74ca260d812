"""Figures, intervals and comparisons, by worked examples."""

from __future__ import annotations

import math
from typing import Any

import pytest
from redraft.evals.figures.compare import compare
from redraft.evals.figures.intervals import LEAST, mcnemar, ratio, share
from redraft.evals.figures.metrics import exact, first_line_exact
from redraft.evals.figures.runs import RunFile
from redraft.evals.figures.tables import Metric, overall, parted
from redraft.model.errors import SettingsError


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (10, 100, 0.0552, 0.1744),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_a_share_has_wilsons_interval(hits: int, n: int, low: float, high: float) -> None:
    found = share(hits, n)
    assert found.value == hits / n
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_a_ratio_is_one_of_sums_and_of_nothing_is_not_measured() -> None:
    assert ratio([10.0, 1.0], [1.0, 10.0]).value == 1.0
    assert not share(0, 0).measured
    assert not ratio([]).measured
    assert not ratio([1.0], [0.0]).measured


def test_a_mean_is_bootstrapped_the_same_way_every_time() -> None:
    values = [float(i % 7) for i in range(100)]
    found = ratio(values)
    assert found == ratio(values)
    assert found.value == pytest.approx(sum(values) / 100)
    spread = 2 * 1.96 * math.sqrt(sum((v - sum(values) / 100) ** 2 for v in values)) / 100
    assert found.high is not None and found.low is not None
    assert found.high - found.low == pytest.approx(spread, rel=0.1)


def test_what_stands_or_falls_together_widens_the_interval() -> None:
    values = [float(i // 10 % 2) for i in range(200)]  # twenty groups of ten equal values
    alone, grouped = ratio(values), ratio(values, groups=[i // 10 for i in range(200)])
    assert alone.value == grouped.value == 0.5
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (1, 9, 22 / 1024), (0, 6, 2 / 64), (9, 1, 22 / 1024)],
)
def test_mcnemars_p_is_that_of_a_fair_coin(a: int, b: int, p: float) -> None:
    assert mcnemar(a, b) == pytest.approx(p)
    assert mcnemar(3_000, 3_500) < 1e-8  # and large counts do not overflow


def test_exact_match_ignores_trailing_whitespace_alone() -> None:
    assert exact("    return x\n\n", "    return x")
    assert not exact("return x", "    return x")
    assert not exact("return  x", "return x")
    assert first_line_exact("    x = 1\n    y = 2\n", "    x = 1\n")
    assert not first_line_exact("    x = 2\n", "    x = 1\n")


METRICS = (
    Metric("right", "share", "right"),
    Metric("tokens/step", "ratio", "tokens", by="steps", digits=2),
)


def episodes(language: str, count: int, right: int) -> list[dict[str, Any]]:
    return [
        {"id": f"{language}{i}", "group": i, "language": language, "right": i < right,
         "tokens": 6, "steps": 4}
        for i in range(count)
    ]  # fmt: skip


def test_a_language_with_few_samples_is_not_measured() -> None:
    found = episodes("go", LEAST - 1, 10) + episodes("rust", LEAST, 10)
    table = parted("by language", METRICS, found, lambda each: each["language"], 0)
    go, rust = table.rows
    assert (go.label, go.n, rust.label, rust.n) == ("go", LEAST - 1, "rust", LEAST)
    assert METRICS[0].show(go.figures["right"]) == f"not measured (n={LEAST - 1})"
    assert METRICS[0].show(rust.figures["right"]) == "20.0% [10.0%, 32.0%]"
    assert METRICS[1].show(rust.figures["tokens/step"]) == "1.50 [1.50, 1.50]"


def test_episodes_without_a_field_do_not_count_for_it() -> None:
    found = [*episodes("go", 4, 2), {"id": "x", "group": 9, "right": None, "tokens": 1, "steps": 1}]
    (row,) = overall("all", METRICS, found, 0).rows
    assert row.n == 5
    assert (row.figures["right"].n, row.figures["right"].value) == (4, 0.5)
    assert row.figures["tokens/step"].value == 25 / 17


def run_of(passed: list[bool], benchmark: str = "infill", sample: str = "s") -> RunFile:
    return RunFile(
        {"benchmark": benchmark, "sample": sample},
        episodes={
            str(i): {"id": str(i), "group": str(i), "passed": ok, "exact": None, "steps": 4 + ok}
            for i, ok in enumerate(passed)
        },
    )


def test_two_runs_are_compared_episode_by_episode() -> None:
    a = run_of([True] * 10 + [False] * 40)
    b = run_of([True] * 9 + [False] + [True] * 9 + [False] * 41)  # ten more episodes than A
    common, (passed, steps) = compare(a, b)
    assert common == 50
    assert (passed.field, passed.only_a, passed.only_b) == ("passed", 1, 9)
    assert (passed.a, passed.b) == (0.2, 0.36)
    assert passed.difference.value == pytest.approx(0.16)
    assert passed.difference.low is not None and passed.difference.low > 0
    assert passed.p == pytest.approx(22 / 1024)
    assert (steps.field, steps.p) == ("steps", None)
    assert steps.difference.value == pytest.approx(0.16)


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(SettingsError, match="of infill, the second of edits"):
        compare(run_of([True]), run_of([True], "edits"))
    with pytest.raises(SettingsError, match="samples differ"):
        compare(run_of([True]), run_of([True], sample="t"))
    with pytest.raises(SettingsError, match="no episode in common"):
        compare(run_of([True]), run_of([]))
