"""Runs against accepted scores: noise is forgiven, a fall is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from redraft.evals.figures.intervals import share, unmeasured
from redraft.evals.figures.runs import RunFile
from redraft.evals.report.baseline_check import accept, check, difference_of, read_accepted
from redraft.evals.report.build import NamedRun
from redraft.model.errors import SettingsError
from redraft.server.commands.main import app
from typer.testing import CliRunner


def run_of(n: int, passed: int, name: str = "a", **settings: Any) -> NamedRun:
    """Every seventh problem passes first, so that groups are mixed."""
    order = sorted(range(n), key=lambda i: (i * 7919) % n)
    episodes = {
        str(i): {
            "id": str(i), "group": i, "language": "python", "passed": order[i] < passed,
            "exact": order[i] < passed, "shown": True, "tokens": 10, "steps": 8,
        }
        for i in range(n)
    }  # fmt: skip
    asked = {"benchmark": "infill", "source": "he", "sample": "1", "plan": "medium", **settings}
    return NamedRun(name, RunFile(asked, {"command": "redraft eval infill"}, episodes))


def verdicts(found: NamedRun, path: Path) -> dict[str, str]:
    return {line.metric.name: line.verdict for line in check([found], read_accepted(path))}


def test_a_difference_of_shares_by_hand() -> None:
    """Newcombe 1998, table II, row (a): 56 of 70 less 48 of 80: 0.0524 to 0.3339."""
    found = difference_of(share(48, 80), share(56, 70))
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == (
        pytest.approx(0.0524, abs=1e-4),
        pytest.approx(0.3339, abs=1e-4),
    )
    assert difference_of(share(1, 2), unmeasured(0)).value is None


def test_noise_holds_and_a_fall_does_not(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    (entry,) = accept([run_of(300, 66, model="old", model_sha256="1", variant="int8")], path)
    assert entry["command"] == "redraft eval infill" and entry["episodes"] == 300
    assert entry["scores"]["pass@1"]["n"] == 300
    other = {"model": "new", "model_sha256": "2", "variant": "q8"}
    assert verdicts(run_of(300, 66), path)["pass@1"] == "holds"
    assert verdicts(run_of(300, 54, **other), path)["pass@1"] == "holds"
    assert verdicts(run_of(300, 36, **other), path)["pass@1"] == "below"
    assert verdicts(run_of(300, 110, **other), path)["pass@1"] == "better"
    assert verdicts(run_of(300, 66), path)["tokens/step"] == "holds"


def test_a_fall_from_nothing_or_to_nothing_is_judged_too(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    accept([run_of(100, 0)], path)
    assert verdicts(run_of(100, 0), path)["pass@1"] == "holds"
    accept([run_of(100, 100)], path)
    assert verdicts(run_of(100, 90), path)["pass@1"] == "below"


def test_what_cannot_be_told_does_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    accept([run_of(300, 66)], path)
    assert verdicts(run_of(49, 11), path)["pass@1"] == "too few"
    lost = run_of(300, 66)
    for each in lost.episodes:
        each["passed"] = None
    assert verdicts(lost, path) == {"pass@1": "missing", "exact": "holds", "tokens/step": "holds"}


def test_a_score_of_few_episodes_is_not_accepted(tmp_path: Path) -> None:
    path, run = tmp_path / "baseline.json", run_of(300, 66)
    for place, each in enumerate(run.episodes):
        each["exact"] = place < 10 if place < 40 else None
    (entry,) = accept([run], path)
    assert set(entry["scores"]) == {"pass@1", "tokens/step"}


def test_another_way_of_asking_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    accept([run_of(100, 20), run_of(100, 30, plan="low")], path)
    assert len(read_accepted(path)) == 2
    with pytest.raises(SettingsError, match="nearest differs in plan"):
        check([run_of(100, 20, plan="high")], read_accepted(path))
    accept([run_of(100, 25)], path)
    kept = {e["asked"]["plan"]: e["scores"]["pass@1"]["value"] for e in read_accepted(path)}
    assert kept == {"medium": 0.25, "low": 0.3}, "one entry a way of asking, the others stay"


def test_a_setting_that_came_later_and_is_off_changes_no_way_of_asking(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    accept([run_of(100, 20)], path)
    later = run_of(100, 20, without=[], likelihood=False, limit=None)
    assert verdicts(later, path)["pass@1"] == "holds"
    with pytest.raises(SettingsError, match="differs in without"):
        check([run_of(100, 20, without=["history"])], read_accepted(path))


def test_a_broken_file_or_an_empty_run_is_said(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    for content in ("", "[]", '{"format": 2, "entries": []}', '{"format": 1, "entries": [{}]}'):
        path.write_text(content)
        with pytest.raises(SettingsError, match="not a file of accepted scores"):
            read_accepted(path)
    assert read_accepted(tmp_path / "missing.json") == []
    path.unlink()
    with pytest.raises(SettingsError, match="no score to accept"):
        accept([run_of(0, 0)], path)
    assert not path.exists()


def test_the_command_fails_when_a_score_falls(tmp_path: Path) -> None:
    def written(name: str, run: NamedRun) -> str:
        lines = [{"run": run.file.settings, "machine": run.file.machine}, *run.episodes]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(tmp_path / name)

    def redraft(*arguments: str) -> Any:
        base = ("--baseline", str(tmp_path / "baseline.json"))
        return CliRunner().invoke(app, ["eval", "check", *arguments, *base])

    good, bad = written("good.jsonl", run_of(200, 80)), written("bad.jsonl", run_of(200, 20))
    assert isinstance(redraft(good).exception, SettingsError)
    assert redraft(good, "--update").exit_code == 0
    assert redraft(good).exit_code == 0
    done = redraft(bad)
    assert done.exit_code == 1 and "below" in done.output and "pass@1" in done.output
    assert redraft(bad, "--update").exit_code == 0, "what is accepted holds"


def test_the_accepted_scores_that_came_along_can_be_read() -> None:
    for entry in read_accepted():
        assert entry["scores"] and entry["asked"]["benchmark"]
