"""``redraft bench`` as people see it: at 80 columns, row by row, and stopped half way."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from redraft.evals.figures import Spread
from redraft.evals.latency import latency
from redraft.evals.latency.bench_editing import STAGES as EDITING_STAGES
from redraft.evals.latency.bench_editing import WAYS, Editing
from redraft.evals.latency.latency import (
    COMPARED_EVERY,
    QUICK,
    STAGES,
    TYPED,
    Amount,
    BenchReport,
    InfillRow,
    TypedInfills,
    measure,
    type_into,
)
from redraft.evals.machine import commit_of
from redraft.model.predict import Model
from redraft.model.records import DraftCount
from redraft.model.runtime.backend import IntArray, Scores
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.server.commands import bench
from redraft.server.commands.bench import Shown, amount_of
from redraft.server.settings import Settings
from support.fake_backend import FakeBackend, FakeSequence, Noise, fake_tokenizer, small_config

SLOW = Spread(12_345.6, 23_456.7, 34_567.8)  # a 0.5B model on a busy machine
DRAFTS = (DraftCount("copy", (40, 20), (40, 20), (30, 10)),)


def rows() -> list[BenchReport | InfillRow | TypedInfills | Editing]:
    """What a slow machine measures: the widest figures there are."""
    ways = ("cold", "warm", "warm, no drafts")
    stages = dict.fromkeys(STAGES, SLOW)
    of_editing = dict.fromkeys(EDITING_STAGES, SLOW)
    share = Spread(0.123, 0.998, 1.0)
    return [
        report(),
        *(InfillRow(32_768, way, 12, stages, 4_096, 4_096, SLOW, 12.34, DRAFTS) for way in ways),
        TypedInfills(32_768, SLOW, Spread(123.0, 4_096.0, 4_096.0), share, 10, 1.0, 180.0),
        *(Editing(32_768, way, 24, of_editing, SLOW, 900.0, SLOW, share, 345.6) for way in WAYS),
    ]


def report() -> BenchReport:
    return BenchReport(
        *("redraft-0.5b int8", "CPUExecutionProvider", "medium", 2, 2_048),
        editor={"a key": SLOW, "asking for a next edit": SLOW},
        memory_mb={"keys and values while typing": 1_234.0},
        passes_ms={1: 123.4, 2: 150.0, 16: 1_234.5},
        load={"before": 0.2, "after": 3.1},
        machine={"processor": "Intel(R) Xeon(R) Platinum 8581C CPU @ 2.10GHz"},
    )


def told() -> list[str]:
    lines: list[str] = []
    shown = Shown(lines.append)
    for row in rows():
        shown.seen(row)
    shown.rest(report())
    return lines


def test_every_line_fits_eighty_columns_and_no_figure_is_cut() -> None:
    lines = told()
    assert [line for line in lines if len(line) > 80] == []
    text = "\n".join(lines)
    assert "…" not in text
    for figure in ("no drafts", "12346 / 23457", "12346 / 34568", "12.34", "99.8%"):
        assert figure in text, figure


def test_a_row_is_there_before_the_next_is_measured() -> None:
    lines: list[str] = []
    shown = Shown(lines.append)
    first, second = (row for row in rows() if isinstance(row, InfillRow) and row.way != "warm")
    shown.seen(first)
    assert "cold" in lines[-1]
    shown.seen(second)
    assert "no drafts" in lines[-1] and len([x for x in lines if "cache" in x]) == 1


def test_budgets_that_are_named_are_those_of_every_part() -> None:
    asked = amount_of([512], None, quick=False)
    assert (asked.contexts, asked.typing_contexts) == ((512,), (512,))
    assert amount_of(None, None, quick=True) == QUICK
    assert amount_of(None, 3, quick=False).runs == 3


def test_a_part_whose_time_is_over_takes_no_further_sample() -> None:
    backend = FakeBackend(Noise(), small_config())
    model = Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 30), 1_024)
    cells = latency.measure(model, 600, "medium", 5, enough=lambda: True)
    assert [cell.runs for cell in cells] == [1, 1, 1]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    backend = FakeBackend(Noise(), small_config(verifier="ar"))

    def loader(*_: Any) -> Any:
        cache = PrefixCache(backend, 1 << 30)
        return lambda *_: Model("fake", backend, fake_tokenizer(), cache, 600)

    monkeypatch.setattr(latency, "onnx_loader", loader)
    return backend


SMALL = Amount((600,), (600,), runs=1, typed=6, keys=2, keystrokes=5, passes=False)


@pytest.mark.usefixtures("spawn")
def test_all_parts_are_measured_and_seen(loaded: FakeBackend) -> None:
    seen: list[Any] = []
    report = latency.run("redraft-0.5b", amount=SMALL, seen=seen.append)
    assert report.complete
    assert seen == [report, *report.cells, *report.typing, *report.editing]
    assert [len(report.cells), len(report.typing), len(report.editing)] == [3, 1, len(WAYS)]
    for field in fields(report):
        assert getattr(report, field.name) or field.name == "passes_ms", field.name


@pytest.mark.usefixtures("spawn")
def test_stopped_it_keeps_what_there_is(
    loaded: FakeBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(latency, "type_into", stop)
    monkeypatch.setattr(bench, "amount_of", lambda *_: SMALL)
    file = tmp_path / "bench.json"
    with pytest.raises(typer.Exit) as ended:
        bench.measure(Settings(), "medium", None, None, False, file)
    assert ended.value.exit_code == bench.STOPPED
    written = json.loads(file.read_text(encoding="utf-8"))
    assert (len(written["cells"]), written["typing"], written["complete"]) == (3, [], False)
    told = capsys.readouterr().out
    assert "no drafts" in told and "Stopped" in told


def model_over(backend: FakeBackend) -> Model:
    return Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 30), 1_024)


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


def test_typing_with_an_exact_cache_never_changes_an_answer() -> None:
    backend = FakeBackend(Noise(), small_config())
    found = type_into(model_over(backend), 700, "medium")
    assert found.compared == TYPED // COMPARED_EVERY
    assert found.same_answer == 1.0
    assert found.recomputed_share.p50 < 0.1
    assert found.kv_mb > 0
    assert backend.sequences == [], "the benchmark's memory is given back"


def test_typing_shows_a_cache_that_changes_answers() -> None:
    found = type_into(model_over(ChunkyBackend(Noise(), small_config())), 700, "medium")
    assert found.same_answer < 1.0


def test_cold_recomputes_all_and_warm_a_little_and_the_control_takes_one_token_a_step() -> None:
    backend = FakeBackend(Noise(), small_config(verifier="ar"))
    cold, warm, control = measure(model_over(backend), 600, "medium", 3)
    assert (cold.way, warm.way, control.way) == ("cold", "warm", "warm, no drafts")
    assert cold.recomputed == cold.prompt_tokens
    assert warm.recomputed == control.recomputed < 0.1 * warm.prompt_tokens
    assert control.tokens_per_step <= 1.0
    assert warm.steps.p50 <= control.steps.p50
    assert backend.sequences == []


@pytest.mark.parametrize(
    ("values", "p50", "p95"),
    [([], 0.0, 0.0), ([7.0], 7.0, 7.0), ([3.0, 1.0], 2.0, 2.9), (range(101), 50.0, 95.0)],
)
def test_a_spread_has_median_and_percentile(values: list[float], p50: float, p95: float) -> None:
    spread = Spread.of([float(value) for value in values])
    assert (spread.p50, spread.p95) == (p50, p95)
    json.dumps([spread.p50, spread.p95])
    assert not isinstance(spread.p50, np.generic)


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
    code = tmp_path / "evals" / "latency" / "latency.py"
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
