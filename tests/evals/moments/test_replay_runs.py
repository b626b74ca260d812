"""Replays as runs: written, broken off, taken up, spread over processes, shown as tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redraft.evals.example import Row
from redraft.evals.figures import Figure
from redraft.evals.predictors import ReadyPredictor, block_on
from redraft.evals.replay import replay_runs
from redraft.evals.replay.replay_runs import Job, examples_of, replay_all
from redraft.evals.run import Run, open_run, read_run
from redraft.evals.scorers.replay_tables import tables
from redraft.evals.sources.scripts import read_scripts
from redraft.evals.spec import RunSpec
from redraft.model.errors import InstallError
from redraft.model.gate import gate
from redraft.model.records import EditRequest, ModelStatus, Prediction
from redraft.server.commands.main import app
from support.editors.predictor import READY, ScriptedPredictor, infill
from support.editors.typist import Typist
from support.models.gates import SHIPPED
from support.models.onnx_models import store
from support.models.tiny import tiny_config, tiny_tokenizer
from typer.testing import CliRunner

COPY = RunSpec("replay", baseline="copy-last-edit", latency_ms=50.0)
MEASURED = ("context_ms", "gate_ms")  # real time, whatever the clock of the replay says


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(3):
        typist = Typist()
        typist.opens(f"old_{number} = 1\nprint(old_{number})\n")
        typist.pauses(1)
        typist.puts("new", 0, removed=3)
        typist.pauses(5)
        typist.puts("new", 16, removed=3)
        typist.leaves()
        typist.write(folder / f"session-{number}.jsonl")
    return folder


def replayed(folder: Path, out: Path | None, resume: bool = False, processes: int = 1) -> Run:
    with open_run(out, COPY, {}, resume) as run:
        replay_all(read_scripts([folder]), COPY, run, processes=processes)
    return run


@pytest.fixture(autouse=True)
def _the_shipped_gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the shipped gate, as the processes of a run do."""
    monkeypatch.setattr(gate, "SHIPPED", SHIPPED)
    gate.load_shipped.cache_clear()
    yield
    gate.load_shipped.cache_clear()


def fixed(run: Run) -> dict[str, Row]:
    """Return the rows as JSON has them, without times that are measured."""
    rows: list[Row] = json.loads(json.dumps(run.rows()))
    return {
        each["id"]: {name: value for name, value in each.items() if name not in MEASURED}
        for each in rows
    }


def test_a_run_holds_a_line_for_every_moment(recordings: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    run = replayed(recordings, out)
    assert sorted(run.examples) == [f"session-{n}:{k}" for n in range(3) for k in range(2)]
    assert fixed(read_run(out)) == fixed(run)
    first = run.examples["session-0:0"].row()
    assert (first["was"], first["suggested"], first["accepted"]) == ("old", "new", True)


def test_a_run_broken_off_goes_on_with_what_is_missing(recordings: Path, tmp_path: Path) -> None:
    whole = replayed(recordings, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(lines[:3]) + lines[3][:40])  # the first recording is done
    assert fixed(replayed(recordings, broken, resume=True)) == fixed(whole)


def test_resuming_a_run_asks_only_missing_moments(
    recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EditRequest] = []

    def ask(request: EditRequest) -> Prediction:
        asked.append(request)
        return infill(request, "x = 2" if request.task == "infill" else "")

    ready = ReadyPredictor(ask, READY, lambda: None)
    monkeypatch.setattr(replay_runs, "open_predictor", lambda spec: ready)
    scripts, run = read_scripts([recordings])[:1], Run(COPY)
    replay_all(scripts, COPY, run)
    first, before = dict(run.examples), len(asked)
    last = run.examples.pop(scripts[0].moments[-1].id)
    replay_all(scripts, COPY, run)
    assert len(asked) - before == last.row()["requests"] > 0
    assert list(run.examples) == list(first)
    replay_all(scripts, COPY, run)
    assert len(asked) - before == last.row()["requests"], "nothing is missing now"


@pytest.mark.usefixtures("spawn")
def test_several_processes_write_the_same_lines(recordings: Path, tmp_path: Path) -> None:
    alone = replayed(recordings, None)
    together = replayed(recordings, tmp_path / "run.jsonl", processes=2)
    assert fixed(together) == fixed(alone)
    assert list(together.examples) == list(alone.examples)


@pytest.mark.timeout(900)  # on a busy machine Ray takes minutes to start
def test_a_ray_cluster_writes_the_same(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("raylet_start_wait_time_s", "gcs_server_request_timeout_seconds"):
        monkeypatch.setenv(f"RAY_{name}", "300")
    pytest.importorskip("ray", reason="Ray is not installed; pip install '.[ray]'")
    run = Run(COPY)
    replay_all(read_scripts([recordings]), COPY, run, ray_address="local")
    assert fixed(run) == fixed(replayed(recordings, None))


def test_without_ray_it_says_what_to_do(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(InstallError, match=r"\[ray\]"):
        replay_all(read_scripts([recordings]), COPY, Run(COPY), ray_address="local")


def test_a_model_in_this_process_predicts(recordings: Path, tmp_path: Path) -> None:
    weights = store(tiny_config(head_dim=16), "fp32", tmp_path / "tiny")
    tiny_tokenizer().save(weights / "tokenizer.json")
    spec = RunSpec("replay", weights=weights, threads=1, eagerness="high", limit=1)
    run = Run(spec)
    replay_all(read_scripts([recordings]), spec, run)
    (line,) = run.rows()
    assert line["prompt_tokens"] > 0
    assert line["total_ms"] >= line["model_ms"] > 0


def test_a_server_is_asked_from_within_simulated_time(recordings: Path) -> None:
    loading = ModelStatus("loading", model="fake-1m int8")
    fake = ScriptedPredictor(["x = 2"], delay_s=0.01, statuses=[loading, READY])
    ready = block_on(fake)
    (script, *_) = read_scripts([recordings])
    job = Job(script, frozenset({script.moments[0].id}))
    (found,) = (each.row() for each in examples_of(job, RunSpec("replay"), ready))
    ready.close()
    assert found["asked"][0]["prediction"]["candidates"][0]["text"] == "x = 2"
    assert found["model_ms"] >= 10
    assert fake.closed


def line(number: int, **fields: object) -> Row:
    said = {
        "id": f"s:{number}", "group": f"s:{number // 10}", "session": "s", "at_s": float(number),
        "language": "python", "task": "infill", "shown": True, "accepted": number % 4 == 0,
        "quiet": None, "shown_left": True, "delta_chrf": 50.0, "requests": 2, "saved": 1,
        "typed": 10, "utility": 0.0, "exact": number % 4 == 0, "confidence": number / 100,
        "total_ms": float(number), "prompt_tokens": 100, "steps": 4, "tokens": 10,
        "reused_tokens": 60,
    }  # fmt: skip
    return {**said, **fields}


def test_figures_are_of_the_episodes_they_are_about() -> None:
    quiet = {"shown": False, "accepted": None, "quiet": True, "shown_left": None}
    episodes = [line(n, **({} if n < 60 else quiet)) for n in range(80)]
    found: dict[str, Figure] = {}
    for table in tables(episodes, 0):
        found |= table.rows[0].figures if table.rows[0].label == "all" else {}
    told = {name: (figure.value, figure.n) for name, figure in found.items()}
    assert told["shown"] == (pytest.approx(0.75), 80)
    assert told["would accept, exact"] == (pytest.approx(0.25), 60)
    assert told["quiet where nothing is"] == (1.0, 20)
    assert told["show/quiet score"] == (pytest.approx(0.5), 80)
    assert told["total ms, p50"] == (pytest.approx(39.5), 80)
    assert told["tokens a pass"] == (pytest.approx(2.5), 80)
    assert told["prompt tokens a request"] == (pytest.approx(50.0), 80)


@pytest.mark.usefixtures("spawn")
def test_the_command_replays_a_sample_and_goes_on(recordings: Path, tmp_path: Path) -> None:
    out, summary = tmp_path / "run.jsonl", tmp_path / "summary.json"
    command = [
        "eval", "replay", str(recordings), "--baseline", "copy-last-edit", "--latency-ms", "50",
        "--out", str(out), "--json", str(summary),
    ]  # fmt: skip
    counts = []
    for more in (["--limit", "2"], ["--limit", "4", "--resume"], ["--resume"]):
        done = CliRunner().invoke(app, [*command, *more])
        assert done.exit_code == 0, done.output
        counts.append(len(read_run(out).examples))
    assert counts == [2, 4, 6]
    assert "would accept, exact" in done.output
    told = json.loads(summary.read_text())
    assert told["settings"]["model"] == "copy-last-edit"
    assert told["tables"][0]["rows"][0]["shown"]["n"] == 6


@pytest.mark.usefixtures("spawn")
def test_with_the_baseline_none_nothing_is_shown(recordings: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    command = ["eval", "replay", str(recordings), "--baseline", "none", "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert not any(each["shown"] for each in read_run(out).rows())
