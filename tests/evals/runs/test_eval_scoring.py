"""Figures, intervals and comparisons, by worked examples."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from redraft.evals.compare import compare
from redraft.evals.example import Example
from redraft.evals.figures import (
    LEAST,
    Cell,
    figures,
    quantile,
    ratio,
    share,
    sign_test,
)
from redraft.evals.metrics import exact, first_line_exact
from redraft.evals.run import Run, open_run
from redraft.evals.scorers import infill
from redraft.evals.sources.code_files import read_sources
from redraft.evals.spec import RunSpec
from redraft.evals.tables import Metric, overall, table_by_label
from redraft.model.config import RopeScaling
from redraft.model.errors import RedraftError, SettingsError
from support.models.fake_backend import FakeBackend, Noise, small_config
from support.models.onnx_models import store
from support.models.tiny import tiny_config, tiny_tokenizer
from support.weights.training_sources import write_lines


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


def test_a_ratio_divides_sums_and_may_be_unmeasured() -> None:
    assert ratio([10.0, 1.0], [1.0, 10.0]).value == 1.0
    assert not share(0, 0).measured
    assert not ratio([]).measured
    assert not ratio([1.0], [0.0]).measured


def test_bootstrapping_a_mean_is_repeatable() -> None:
    values = [float(i % 7) for i in range(100)]
    found = ratio(values)
    assert found == ratio(values)
    assert found.value == pytest.approx(sum(values) / 100)
    spread = 2 * 1.96 * math.sqrt(sum((v - sum(values) / 100) ** 2 for v in values)) / 100
    assert found.high is not None and found.low is not None
    assert found.high - found.low == pytest.approx(spread, rel=0.1)


def test_correlated_examples_widen_the_interval() -> None:
    values = [float(i // 10 % 2) for i in range(200)]  # twenty groups of ten equal values
    alone, grouped = ratio(values), ratio(values, groups=[i // 10 for i in range(200)])
    assert alone.value == grouped.value == 0.5
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (1, 9, 22 / 1024), (0, 6, 2 / 64), (9, 1, 22 / 1024)],
)
def test_the_sign_tests_p_is_that_of_a_fair_coin(a: int, b: int, p: float) -> None:
    assert sign_test(a, b) == pytest.approx(p)
    assert sign_test(3_000, 3_500) < 1e-8  # and large counts do not overflow


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
    table = table_by_label("by language", METRICS, found, lambda each: each["language"], 0)
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


def run_of(
    passed: list[bool], task: str = "infill", sample: str = "s", group: int = 1, **tags: str
) -> Run:
    """Return a run with ``group`` examples in each group."""
    examples = {
        str(i): Example(
            str(i), str(i // group), tags=tags, score={"passed": ok, "exact": None, "steps": 4 + ok}
        )
        for i, ok in enumerate(passed)
    }
    return Run(RunSpec(task, sample=sample), examples=examples)


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


def test_comparisons_count_groups_not_examples() -> None:
    """Eight gaps of one problem that change together are one success of chance, not eight."""
    a = run_of([False] * 8 + [True, False] * 12, group=8)
    b = run_of([True] * 8 + [True, False] * 12, group=8)
    _, (passed, _) = compare(a, b)
    assert (passed.only_a, passed.only_b) == (0, 8)
    assert passed.p == 1.0 and sign_test(0, 8) < 0.01


def test_replay_comparisons_resample_sessions() -> None:
    """Four stretches of each session differ alike, so only sessions are independent."""

    def replay(change: bool, by_session: bool) -> Run:
        run = Run(RunSpec("replay"))
        for session, stretch in product(range(12), range(4)):
            name = f"{session}:{stretch}"
            score = {"session": str(session), "accepted": change and session % 3 == 0}
            run.add(Example(name, str(session) if by_session else name, score=score))
        return run

    (found,), (wanted,) = (
        compare(replay(False, by_session), replay(True, by_session))[1]
        for by_session in (False, True)
    )
    assert found.difference == wanted.difference and found.p == wanted.p


def test_what_is_worse_is_told_by_the_whole_interval() -> None:
    a, b = run_of([True] * 30 + [False] * 10), run_of([False] * 40)
    passed, steps = compare(a, b)[1]
    assert passed.is_worse and not steps.is_worse, "fewer steps are better"
    assert [each.is_worse for each in compare(b, a)[1]] == [False, True]
    assert not any(each.is_worse for each in compare(a, a)[1])


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(SettingsError, match="of infill, the second of edits"):
        compare(run_of([True]), run_of([True], "edits"))
    with pytest.raises(SettingsError, match="samples differ"):
        compare(run_of([True]), run_of([True], sample="t"))
    with pytest.raises(SettingsError, match="no example in common"):
        compare(run_of([True]), run_of([]))


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
    everything = np.ones(400, np.bool_)
    for groups in (range(400), [i // 10 for i in range(400)]):
        episodes = [{"right": x, "group": group} for x, group in zip(values, groups, strict=True)]
        (found,) = figures(episodes, [Cell(RIGHT, everything)])
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
def test_shares_have_intervals_even_without_groups(
    groups: Any, right: int, low: tuple[float, float], high: tuple[float, float]
) -> None:
    episodes = [{"right": i % right == right - 1, "group": groups[i]} for i in range(100)]
    (found,) = figures(episodes, [Cell(RIGHT, np.ones(100, np.bool_))])
    assert found.low is not None and low[0] <= found.low <= low[1]
    assert found.high is not None and high[0] <= found.high <= high[1]


def project(root: Path) -> Path:
    (root / "p" / "node_modules").mkdir(parents=True)
    (root / "p" / "b.py").write_text("second = 2")
    (root / "p" / "a.py").write_text("first = 1")
    (root / "p" / "node_modules" / "c.py").write_text("not ours")
    (root / "p" / "notes.txt").write_text("no code")
    return root / "p"


def test_reading_a_folder_skips_third_party_code(tmp_path: Path) -> None:
    [(name, files)] = read_sources([project(tmp_path)])
    assert (name, list(files)) == ("p", [("a.py", "first = 1"), ("b.py", "second = 2")])
    with pytest.raises(SettingsError, match="There is no"):
        list(read_sources([tmp_path / "missing"]))


def test_the_newest_text_of_each_file_is_read(tmp_path: Path) -> None:
    def commit(time: int, path: str, after: str) -> dict[str, object]:
        return {"repo": "r", "commit": "c", "time": time, "files": [{"path": path, "after": after}]}

    lines = [commit(2, "a.py", "newer"), commit(1, "a.py", "older"), commit(1, "b.py", "other")]
    path = write_lines(tmp_path / "x-commits.jsonl.zst", lines)
    found = {name: list(files) for name, files in read_sources([path])}
    assert found == {"r": [("a.py", "newer"), ("b.py", "other")]}


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_a_quantile_of_one_group_is_its_own_interval(q: float) -> None:
    values = [600.0, 300.0, 400.0, 300.0]
    found = quantile(values, q, groups=["session"] * 4)
    assert found.value == pytest.approx(np.quantile(values, q))
    assert (found.low, found.high) == pytest.approx((found.value, found.value))
    apart = quantile(values, q)
    assert apart.low is not None and apart.low <= found.value <= (apart.high or 0.0)
