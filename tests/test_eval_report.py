"""The report: its numbers by hand, its page safe, whatever stands in a run."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.evals.figures.before_after import scene_of
from redraft.evals.figures.intervals import LEAST, draws, ratio
from redraft.evals.figures.resampling import Cell, Resampling, figures
from redraft.evals.figures.runs import RunFile, read_run
from redraft.evals.figures.tables import Metric
from redraft.evals.report.build import NamedRun, as_json, build
from redraft.evals.report.curves import calibration, spread, threshold_curve
from redraft.evals.report.html_page import page
from redraft.model.errors import SettingsError
from redraft.server.commands.main import app
from typer.testing import CliRunner

RIGHT = Metric("right", "share", "right")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--\u2028\ud800"


def infill_episode(i: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"i{i}", "group": f"g{i // 3}", "language": "python", "kind": "line",
        "answer_tokens": 1 + i % 20, "expected": "x = 1\n", "completion": "x = 2\n",
        "passed": i % 4 == 0, "outcome": "passed" if i % 4 == 0 else "failed", "detail": "",
        "exact": i % 8 == 0, "first_line": i % 8 == 0, "similarity": 0.8, "shown": True,
        "scene": scene_of("a.py", "a\nb\n", "a\nx = 2\nb\n", "a\nx = 1\nb\n"), "ended": True,
        "confidence": 0.5 + (i % 4 == 0) * 0.3, "reason": "", "tokens": 6, "steps": 4,
        "prompt_tokens": 100, "cut": "", "denoise_ms": 100.0 + i, "total_ms": 200.0 + i,
    } | changes  # fmt: skip


def edit_episode(i: int, **changes: Any) -> dict[str, Any]:
    to_do, shown = i % 5 > 0, i % 2 == 0
    return {
        "id": f"e{i}", "group": f"g{i}", "language": "go", "kind": "elsewhere",
        "expected": {"first": 3, "last": 4, "text": "a\nb"}, "exact": False if to_do else None,
        "found": {"first": 3, "last": 3, "text": ""}, "place": True if to_do else None,
        "shown": shown if to_do else None, "quiet": None if to_do else not shown,
        "confidence": 0.4, "reason": "", "tokens": 3, "steps": 3, "total_ms": 5.0,
    } | changes  # fmt: skip


def run_of(
    episodes: list[dict[str, Any]], name: str = "a", benchmark: str = "infill", **settings: Any
) -> NamedRun:
    asked = {"benchmark": benchmark, "source": "s.jsonl", "sample": "1", "model": "m", **settings}
    return NamedRun(name, RunFile(asked, {"date": "2026-01-02"}, {e["id"]: e for e in episodes}))


# --- numbers --------------------------------------------------------------------------------------


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


def test_the_curve_shows_more_and_is_right_less_as_the_threshold_falls() -> None:
    points = threshold_curve(
        [0.9, 0.8, None, 0.8, 0.1], [True, True, None, False, False], Resampling(range(5))
    )
    told = [(p.threshold, p.shown, p.right, p.n) for p in points]
    assert told == [(0.9, 0.2, 1.0, 1), (0.8, 0.6, pytest.approx(2 / 3), 3), (0.1, 0.8, 0.5, 4)]
    assert all(0 <= p.low <= p.right <= p.high <= 1 for p in points)
    assert threshold_curve([None], [None], Resampling(range(1))) == []


def test_many_confidences_become_a_curve_of_few_points() -> None:
    scores = list(np.linspace(0, 1, 5_000))
    points = threshold_curve(scores, [True] * 5_000, Resampling(range(5_000)))
    assert len(points) <= 60 and points[-1].shown == 1.0


def test_calibration_by_hand() -> None:
    scores = [0.95, 0.85, 0.85, 0.15, None]
    found = calibration(scores * 20, [True, True, False, False, True] * 20)
    assert found is not None and found.n == 80
    assert [(b.said, b.right, b.n) for b in found.bins] == [
        (pytest.approx(0.15), 0.0, 20), (pytest.approx(0.85), 0.5, 40),
        (pytest.approx(0.95), 1.0, 20),
    ]  # fmt: skip
    assert found.ece == pytest.approx(0.15 / 4 + 0.35 / 2 + 0.05 / 4)
    assert calibration([None], [None]) is None
    sure = calibration([1.0] * LEAST, [True] * LEAST)
    assert sure is not None and sure.ece == 0.0


def test_there_is_no_calibration_of_fewer_than_fifty() -> None:
    assert calibration([0.9] * (LEAST - 1), [True] * (LEAST - 1)) is None


def test_latency_by_quantiles() -> None:
    found = spread([float(i) for i in range(1, 102)])
    assert found is not None
    assert (found.p50, found.p95, found.p99, found.n) == (51.0, 96.0, 100.0, 101)
    assert found.steps[0] == (1.0, 0.0) and found.steps[-1] == (101.0, 1.0)
    assert spread([]) is None


# --- sections -------------------------------------------------------------------------------------


def test_runs_of_one_benchmark_stand_side_by_side() -> None:
    a = run_of([infill_episode(i) for i in range(60)])
    b = run_of([infill_episode(i, passed=True) for i in range(60)], "b", plan="low")
    c = run_of([edit_episode(i) for i in range(10)], "c", "edits")
    first, second = build([a, c, b])
    assert [run.name for run in first.runs] == ["a", "b"]
    assert [run.name for run in second.runs] == ["c"]
    passed = dict(zip([m.name for m in first.metrics], first.overall, strict=True))["pass@1"]
    assert [one.value for one in passed] == [0.25, 1.0]
    (against,) = first.differences
    assert against is not None and against[0] == 60
    written = as_json([first, second])
    json.dumps(written)
    assert written["sections"][0]["figures"]["pass@1"]["b"]["value"] == 1.0


def test_an_edit_that_was_not_shown_counts_for_the_curve_alone() -> None:
    shown = edit_episode(1, shown=True, exact=True, exact_shown=True)
    hidden = edit_episode(2, shown=False, exact=True)
    unwanted = edit_episode(5, quiet=False)
    barred = edit_episode(6, shown=False, exact=True, barred=True)
    (section,) = build([run_of([shown, hidden, unwanted, barred], benchmark="edits")])
    views = section.measured[0].views
    assert [(v.shown, v.right, v.outcome) for v in views] == [
        (True, True, "exact"), (False, True, "missed"), (True, False, "not wanted"),
        (False, None, "missed"),
    ]  # fmt: skip


def moment(i: int, **changes: Any) -> dict[str, Any]:
    shown = i % 2 == 0
    return {
        "id": f"m{i}", "group": f"s:{i // 4}", "session": "s", "simulated": False, "path": "a.py",
        "language": "python", "typed": 3, "shown": shown, "shown_left": shown, "quiet": None,
        "reason": "", "task": "infill", "repeat": False, "barred": False, "confidence": 0.5,
        "was": "", "suggested": "x = 1", "saved": 0, "utility": 0.0, "exact": i % 4 == 0,
        "prefix": True, "accepted": i % 4 == 0 if shown else None, "delta_chrf": 50.0,
        "requests": 1, "total_ms": 200.0, "queue_ms": 1.0, "answers": [],
    } | changes  # fmt: skip


def test_a_replay_counts_each_suggestion_once() -> None:
    kinds: list[dict[str, Any]] = [
        {}, {"repeat": True}, {"barred": True}, {"exact": None}, {"shown": False},
        {"shown": False, "confidence": None, "exact": None, "suggested": ""},
    ]  # fmt: skip
    found = [moment(4, id=str(i), **kind) for i, kind in enumerate(kinds)]
    (section,) = build([run_of(found, benchmark="replay")])
    assert [(v.right, v.outcome) for v in section.measured[0].views] == [
        (True, "written"), (None, "the same again"), (None, "written"), (None, "cannot be told"),
        (True, "held back"), (None, "nothing to show"),
    ]  # fmt: skip
    assert list(section.measured[0].stages) == ["total", "queue"]
    assert "Latency by stage" in page([section])


def test_streams_made_from_commits_are_never_told_with_those_of_people() -> None:
    found = [moment(i, simulated=i >= 8) for i in range(12)]
    people, commits = build([run_of(found, benchmark="replay")])
    assert (people.benchmark.title, commits.benchmark.title) == ("Replay", "Simulated streams")
    assert (len(people.runs[0].episodes), len(commits.runs[0].episodes)) == (8, 4)
    assert any("would accept" in metric.name for metric in people.metrics)
    assert not any("accept" in metric.name for metric in commits.metrics)


def test_parts_under_fifty_episodes_are_not_measured() -> None:
    found = [infill_episode(i, language="go" if i < 50 else "rust") for i in range(99)]
    (section,) = build([run_of(found)])
    part = next(part for part in section.parts if part.title == "language")
    values = {label: rows[0][0] for label, rows in zip(part.labels, part.figures, strict=True)}
    assert values["go"].measured and values["go"].n == 50
    assert not values["rust"].measured and values["rust"].n == 49
    assert "not measured (n = 49)" in page([section])


def test_a_benchmark_that_nobody_knows_is_shown_by_its_fields() -> None:
    found = [{"id": str(i), "group": "g", "nll": 0.5, "fine": True} for i in range(5)]
    (section,) = build([run_of(found, benchmark="perplexity")])
    assert [metric.name for metric in section.metrics] == ["nll", "fine"]
    assert "perplexity" in page([section])


def test_runs_over_other_samples_are_said_to_be_so() -> None:
    runs = [run_of([infill_episode(i) for i in range(4)], n, sample=n) for n in ("a", "b")]
    (section,) = build(runs)
    assert section.differences == (None,)
    assert "not asked about the same sample" in page([section])
    assert "not asked about the same sample" not in page(build(runs[:1]))


def test_a_rule_that_takes_no_time_has_no_latency() -> None:
    found = [infill_episode(i, total_ms=0.0, denoise_ms=0.0) for i in range(4)]
    (section,) = build([run_of(found, baseline="none")])
    assert section.measured[0].stages == {}
    assert "<h3>Latency" not in page([section])


def test_a_run_without_an_episode_says_so() -> None:
    told = page(build([run_of([]), run_of([infill_episode(1)], "b")]))
    assert "b" in told
    assert "No episode has been written yet" in page(build([run_of([])]))
    with pytest.raises(SettingsError, match="at least one file"):
        build([])


# --- the page -------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.inside, []).append(data)


def attributes(found: Elements) -> list[tuple[str, str | None]]:
    return [pair for _, attrs in found.tags for pair in attrs.items()]


def test_hostile_episodes_stay_text() -> None:
    fields = (
        "id",
        "group",
        "language",
        "kind",
        "expected",
        "completion",
        "outcome",
        "detail",
        "cut",
    )
    scene = dict.fromkeys(("path", "above", "was", "predicted", "expected", "below"), HOSTILE)
    bad = infill_episode(1, **dict.fromkeys(fields, HOSTILE), scene={**scene, "line": 0})
    run = run_of([bad, infill_episode(2)], HOSTILE, model=HOSTILE, plan=HOSTILE)
    odd = run_of([edit_episode(3, kind=HOSTILE, language=HOSTILE)], "b", "edits", source=HOSTILE)
    other = run_of([{"id": "1", HOSTILE: 1.0}], HOSTILE, HOSTILE)
    text = page(build([run, run_of([bad], "c", plan=HOSTILE), odd, other], seed=0))
    found = Elements(text)
    scripts = [attrs for tag, attrs in found.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "episodes"}, {}]
    assert not [name for name, _ in attributes(found) if name.startswith("on")]
    assert "img" not in {tag for tag, _ in found.tags}
    data, _ = found.texts["script"]
    assert HOSTILE.replace("\ud800", "?") in json.loads(data)["texts"]
    text.encode()  # and it can be written


def test_the_page_allows_its_own_script_alone_and_needs_no_network() -> None:
    found = Elements(page(build([run_of([infill_episode(i) for i in range(9)])])))
    policy = next(a["content"] for t, a in found.tags if t == "meta" and "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    _, ours = found.texts["script"]
    for text in (ours, "".join(found.texts["style"])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not {"src", "style", "action"} & {name for name, _ in attributes(found)}
    assert all(str(value).startswith("#") for name, value in attributes(found) if name == "href")
    assert "url(" not in "".join(found.texts["style"])


@pytest.mark.usefixtures("spawn")
def test_the_script_can_be_read_by_an_engine(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js here")
    _, script = Elements(page(build([run_of([infill_episode(1)])]))).texts["script"]
    (tmp_path / "page.js").write_text(script, encoding="utf-8")
    done = subprocess.run([node, "--check", str(tmp_path / "page.js")], timeout=120)
    assert done.returncode == 0


def test_ten_thousand_episodes_are_packed_not_drawn() -> None:
    found = [infill_episode(i, language=("go", "rust")[i % 2]) for i in range(10_000)]
    text = page(build([run_of(found)]))
    assert len(text) < 3_000_000
    elements = Elements(text)
    data = json.loads(elements.texts["script"][0])
    assert len(data["runs"][0]["rows"]) == 10_000
    assert len(elements.tags) < 3_000, "rows are drawn as they scroll into view"


def test_runs_made_before_scenes_are_shown_with_what_they_have() -> None:
    gap, edit = infill_episode(1), edit_episode(1)
    del gap["scene"]
    elements = Elements(page(build([run_of([gap]), run_of([edit], "b", "edits")])))
    data = json.loads(elements.texts["script"][0])
    place = {name: i for i, name in enumerate(data["columns"])}
    rows = [run["rows"][0] for run in data["runs"]]
    told = [[data["texts"][row[place[n]]] for n in ("predicted", "expected")] for row in rows]
    assert told == [["x = 2\n", "x = 1\n"], ["", "a\nb\n"]]


# --- the command ----------------------------------------------------------------------------------


def written(path: Path, run: NamedRun, torn: str = "") -> Path:
    lines = [{"run": run.file.settings, "machine": run.file.machine}, *run.episodes]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + torn, encoding="utf-8")
    return path


def redraft(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


def test_a_half_written_run_becomes_a_page_and_json(tmp_path: Path) -> None:
    run = written(tmp_path / "a.jsonl", run_of([infill_episode(i) for i in range(4)]), '{"id": "i9')
    again = written(tmp_path / "b.jsonl", run_of([]))
    done = redraft("report", run, again, run, "--html", tmp_path / "out.html")
    assert done.exit_code == 0, done.output
    beside = json.loads((tmp_path / "out.json").read_text())
    assert [(r["name"], r["episodes"]) for r in beside["sections"][0]["runs"]] == [
        ("a", 4), ("b", 0), ("a (2)", 4),
    ]  # fmt: skip
    assert "<h1>" in (tmp_path / "out.html").read_text(encoding="utf-8")
    assert len(read_run(run).episodes) == 4


def test_what_cannot_be_reported_is_said(tmp_path: Path) -> None:
    run = written(tmp_path / "a.jsonl", run_of([infill_episode(1)]))
    for arguments, says in (
        (("missing.jsonl", "--html", tmp_path / "x.html"), "cannot be read"),
        ((run, "--html", tmp_path / "no" / "x.html"), "cannot be written"),
        ((run, "--html", tmp_path / "x.json"), "Name the page"),
        ((run, "--html", run), "is a run that is read here"),
    ):
        with pytest.raises(SettingsError, match=says):
            done = redraft("report", *arguments)
            raise done.exception
