"""``redraft bench``: a run like any other, measured part by part, compared, stopped."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import typer
from redraft.evals.commands.bench import STOPPED, run_bench
from redraft.evals.compare import compare
from redraft.evals.example import Row
from redraft.evals.latency import editor_latency
from redraft.evals.latency.editor_latency import (
    COMPARED_EVERY,
    TYPED,
    Amount,
    infills,
    measure,
    measure_starts,
    measure_typing,
)
from redraft.evals.provenance import commit_of
from redraft.evals.run import Run, open_run, read_run
from redraft.evals.scorers.aims import results
from redraft.evals.scorers.latency import tables, record_answer
from redraft.evals.spec import RunSpec
from redraft.model.predict import Model
from redraft.model.records import Prediction, Stats
from redraft.model.runtime.backend import IntArray, Scores
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.fake_backend import (
    FakeBackend,
    FakeSequence,
    Noise,
    fake_tokenizer,
    small_config,
)

SPEC = RunSpec("bench", context_tokens=600)
SMALL = Amount(runs=1, keys=2, typed=6, keystrokes=5, starts=0, passes=False)


def model_over(backend: FakeBackend) -> Model:
    return Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 30), 1_024)


def fake() -> Model:
    return model_over(FakeBackend(Noise(), small_config(verifier="ar")))


def recomputed_share(rows: list[Row]) -> float:
    """Return the median share of the prompt that was computed again."""
    return median(each["recomputed"] / each["prompt_tokens"] for each in rows)


def of_kind(run: Run, kind: str) -> list[Row]:
    return [each for each in run.rows() if each["kind"] == kind]


@pytest.mark.usefixtures("spawn")
def test_all_parts_are_measured_and_written(tmp_path: Path) -> None:
    path = tmp_path / "bench.jsonl"
    with open_run(path, SPEC, {}, resume=False) as run:
        measure(run, fake, SMALL)
    kinds = Counter(each["kind"] for each in run.rows())
    expected = {"server": 5, "cold": 1, "warm": 1, "no drafts": 1, "typing": 6}
    expected |= {"ghost text": 2, "next edit": 2, "next edit by gesture": 2, "machine": 1}
    expected |= {"first next edit": 1, "first next edit, read ahead": 1}
    assert {kind: kinds[kind] for kind in expected} == expected
    assert read_run(path).examples.keys() == run.examples.keys()
    told = {table.title: table for table in tables(run.rows(), 0)}
    assert "requests" in told and "memory and load" in told
    assert told["requests"].rows[0].label == "cold, 600 tokens"


@pytest.mark.usefixtures("spawn")
def test_a_start_that_fails_is_not_measured() -> None:
    run = Run(replace(SPEC, model="nonesuch"))
    measure_starts(run, 1)
    assert run.rows() == []


def test_a_part_out_of_time_takes_no_further_sample() -> None:
    run = Run(SPEC)
    infills(run, fake(), 600, 5, end_s=0.0)
    assert [each["kind"] for each in run.rows()] == ["cold", "warm", "no drafts"]


@pytest.mark.usefixtures("spawn")
def test_stopped_it_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(editor_latency, "measure_typing", stop)
    monkeypatch.setattr(editor_latency, "Amount", lambda: SMALL)
    file = tmp_path / "bench.json"
    with pytest.raises(typer.Exit) as ended:
        run_bench(Run(SPEC), fake, file)
    assert ended.value.exit_code == STOPPED
    titles = [table["title"] for table in json.loads(file.read_text(encoding="utf-8"))["tables"]]
    assert "requests" in titles and "memory and load" in titles
    told = capsys.readouterr().out
    assert "no drafts" in told and "Stopped" in told


class ChunkyBackend(FakeBackend):
    """Wrong on purpose: what it says depends on how the prompt was chunked."""

    def open(self, capacity: int) -> FakeSequence:
        class Chunky(FakeSequence):
            def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
                chunks = sum(entry.startswith("extend") for entry in self.log)
                kept, self.tokens = self.tokens, [*self.tokens, chunks]
                try:
                    return super().denoise(window, behind, logits)
                finally:
                    self.tokens = kept

        self.sequences.append(Chunky(self._predict, self._causal, capacity))
        return self.sequences[-1]


def test_cached_prompts_give_the_same_answers() -> None:
    backend, run = FakeBackend(Noise(), small_config()), Run(SPEC)
    measure_typing(run, model_over(backend), 700)
    found = of_kind(run, "typing")
    compared = [each["same"] for each in found if each["same"] is not None]
    assert len(found) == TYPED and compared == [True] * (TYPED // COMPARED_EVERY)
    assert recomputed_share(found) < 0.1
    assert all(each["kv_mb"] > 0 for each in found)
    assert backend.sequences == [], "the benchmark's memory is given back"


def test_typing_shows_a_cache_that_changes_answers() -> None:
    run = Run(SPEC)
    measure_typing(run, model_over(ChunkyBackend(Noise(), small_config())), 700)
    assert False in [each["same"] for each in of_kind(run, "typing")]


def test_warm_requests_recompute_less_than_cold_ones() -> None:
    backend, run = FakeBackend(Noise(), small_config(verifier="ar")), Run(SPEC)
    infills(run, model_over(backend), 600, 3)
    cold, warm, control = (of_kind(run, kind) for kind in ("cold", "warm", "no drafts"))
    assert len(cold) == len(warm) == len(control) == 3
    assert all(each["recomputed"] == each["prompt_tokens"] for each in cold)
    assert recomputed_share(warm) == recomputed_share(control) < 0.1
    assert all(each["tokens"] <= each["steps"] for each in control)
    assert backend.sequences == []


def test_two_benches_are_compared_kind_by_kind() -> None:
    def run(cold_ms: float, warm_ms: float) -> Run:
        made = Run(SPEC)
        for kind, took_ms in (("cold", cold_ms), ("warm", warm_ms)):
            for number in range(4):
                said = Prediction("", "m", (), "", Stats(total_ms=took_ms + number))
                made.add(record_answer(f"{kind}:600:{number}", kind, 600, "infill", said))
        return made

    common, found = compare(run(900.0, 100.0), run(950.0, 60.0))
    changes = {each.field: each.difference.value for each in found}
    assert common == 8
    assert changes["cold, 600 tokens: total_ms"] == pytest.approx(50.0)
    assert changes["warm, 600 tokens: total_ms"] == pytest.approx(-40.0)
    assert [each.field for each in found if each.is_worse] == ["cold, 600 tokens: total_ms"]


@pytest.mark.usefixtures("spawn")
def test_figures_name_commit_and_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        told = subprocess.check_output(["git", *who, *arguments], cwd=tmp_path, text=True)
        return told.strip()

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    assert commit_of(tmp_path) == ""  # it runs from no checkout
    gate = tmp_path / "model" / "gate" / "gate.json"
    gate.parent.mkdir(parents=True)
    gate.write_bytes(b"{}\r\n")
    code = tmp_path / "evals" / "latency" / "bench.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short", "HEAD")
    assert commit_of(tmp_path) == commit
    (tmp_path / "notes.txt").write_text("no code\n")
    assert commit_of(tmp_path) == commit
    gate.write_text("[]\n")
    assert commit_of(tmp_path) == f"{commit}-changed", "a gate decides answers too"
    gate.write_bytes(b"{}\r\n")
    assert commit_of(tmp_path) == commit
    code.write_text("x = 2\n")
    assert commit_of(tmp_path) == f"{commit}-changed"
    code.unlink()
    assert commit_of(tmp_path) == f"{commit}-changed"


def test_targets_depend_on_the_model_that_ran() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "warm", "context": "1024", "total_ms": 90.0, "tokens": 10, "steps": 5},
        {"kind": "warm", "context": "4096", "total_ms": 900.0, "tokens": 1, "steps": 5},
        {"kind": "ghost text", "context": "512", "total_ms": 95.0},
        {"kind": "machine", "end_mb": 1_000.0},
        {"kind": "next edit", "total_ms": 10.0, "recomputed": 100, "tokens": 6, "steps": 1},
        {"kind": "next edit by gesture", "total_ms": 10.0, "recomputed": 150},
    ]
    found = {one.name: (one.value, one.is_met) for one in results(rows, "redraft-0.5b 0.3.0")}
    assert found["one line, prompt cached: ms"] == (90.0, True)
    assert found["ghost text at a key: ms"] == (95.0, False)
    assert found["tokens per pass of infills"] == (2.0, False)
    assert found["tokens per pass of next edits"] == (6.0, True)
    assert found["memory after typing: MB"] == (1_000.0, False)
    assert found["prompt computed again by a gesture ÷ by a key"] == (1.5, False)
    assert "a region scored ÷ read" not in found
    larger = {one.name: one.is_met for one in results(rows, "redraft-1.5b 0.3.0")}
    assert larger["memory after typing: MB"]
