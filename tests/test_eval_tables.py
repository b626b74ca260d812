"""Evaluations as people read them: in a terminal of 80 columns, and with the page's own figures."""

from __future__ import annotations

import random
from typing import Any

import pytest
from redraft.evals.benchmarks import infill, next_edit
from redraft.evals.figures.runs import RunFile
from redraft.evals.figures.tables import Table, overall, parted
from redraft.evals.replay import tables as replay
from redraft.evals.report.build import NamedRun, build, headlines
from redraft.evals.report.html_page import page
from redraft.server.commands import console, eval_tables
from redraft.server.commands.eval_tables import Sheet, show_sheet
from rich.console import Console


def episode(number: int, **more: Any) -> dict[str, Any]:
    """A gap of one of twelve problems, as ``redraft eval infill`` writes it."""
    rng = random.Random(number)
    right = rng.random() < 0.3
    return {
        "id": str(number), "group": f"problem{number % 12}", "language": "python",
        "kind": "next_edit", "shown": number % 4 != 0, "passed": right, "exact": right,
        "first_line": right, "similarity": rng.random(), "parse_ok": True, "ended": True,
        "tokens": 1_234, "steps": 321, "denoise_ms": 12_345.6, "total_ms": 23_456.7,
        "confidence": rng.random(), "answer_tokens": 7,
    } | more  # fmt: skip


EPISODES = [episode(number) for number in range(120)]


def run_of(episodes: list[dict[str, Any]], benchmark: str = "infill") -> NamedRun:
    settings = {"benchmark": benchmark, "source": "s", "sample": "1", "model": "m"}
    return NamedRun("a run", RunFile(settings, {}, {each["id"]: each for each in episodes}))


@pytest.mark.parametrize("few", [False, True])
def test_terminal_and_page_have_the_same_figures(few: bool) -> None:
    some = EPISODES[:9] if few else EPISODES
    (section,) = build([run_of(some)])
    of_page = {
        metric.name: figures[0]
        for metric, figures in zip(section.metrics, section.overall, strict=True)
    }
    (row,) = overall("infill", infill.METRICS, some, seed=0).rows
    assert of_page == {name: row.figures[name] for name in of_page}
    assert len(of_page) > 5


def test_parts_of_terminal_and_page_have_the_same_figures() -> None:
    some = [episode(i, language="go" if i % 2 else "rust") for i in range(240)]
    (section,) = build([run_of(some)])
    part = next(part for part in section.parts if part.title == "language")
    table = parted("by language", part.metrics, some, lambda each: str(each["language"]), 0)
    for row, figures in zip(table.rows, part.figures, strict=True):
        assert [row.figures[metric.name] for metric in part.metrics] == [one[0] for one in figures]


def test_no_interval_of_a_share_is_a_point() -> None:
    """Two of three in each group: every draw of groups says the same."""
    some = [episode(i, group=str(i // 3), passed=i % 3 > 0) for i in range(36)]
    (row,) = overall("infill", infill.METRICS, some, seed=0).rows
    found = row.figures["pass@1"]
    assert found.value == pytest.approx(2 / 3)
    assert found.low is not None and found.high is not None
    assert found.low < 0.6 and found.high > 0.75


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


def test_a_report_begins_with_what_was_found_in_words() -> None:
    views = [{"shown": i < 30, "passed": i < 12, "exact": False} for i in range(120)]
    run = run_of([episode(i, **view) for i, view in enumerate(views)])
    (section,) = build([run])
    (line,) = headlines(section)
    assert line == (
        "Infill, a run: something is shown at 30 of 120 moments (25%); "
        "right are 12 of 30 that can be judged (40%)"
    )
    assert line in page([section])
    (empty,) = headlines(build([run_of([])])[0])
    assert empty.endswith("no episode yet")


def test_the_page_says_that_few_judged_are_no_calibration() -> None:
    (section,) = build([run_of([episode(i) for i in range(20)])])
    assert section.measured[0].calibration is None
    drawn = page([section])
    assert "Reliability" not in drawn


def test_every_figure_that_is_guarded_says_that_more_is_better() -> None:
    for benchmark in (run_of(EPISODES), run_of(EPISODES, "edits")):
        (section,) = build([benchmark])
        for metric in section.benchmark.metrics:
            if metric.field in section.benchmark.guarded:
                assert metric.better == "more", metric.name
