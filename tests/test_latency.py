"""The latency benchmark, on a backend that costs nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from redraft.evals.figures.intervals import Spread
from redraft.evals.latency import latency
from redraft.evals.latency.latency import COMPARED_EVERY, TYPED, measure, type_into
from redraft.model.predict import Model
from redraft.model.runtime.backend import IntArray, Scores
from redraft.model.runtime.prefix_cache import PrefixCache
from support.fake_backend import FakeBackend, FakeSequence, Noise, fake_tokenizer, small_config


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
    assert control.tokens_per_step == 1.0
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
def test_figures_name_commit_and_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        told = subprocess.check_output(["git", *who, *arguments], cwd=tmp_path, text=True)
        return told.strip()

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setattr(latency, "__file__", str(tmp_path / "evals" / "latency" / "latency.py"))
    assert latency._commit() == ""  # it runs from no checkout
    code = tmp_path / "evals" / "latency" / "latency.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short", "HEAD")
    assert latency._commit() == commit
    (tmp_path / "notes.txt").write_text("no code\n")
    assert latency._commit() == commit
    code.write_text("x = 2\n")
    assert latency._commit() == f"{commit}-changed"
    code.unlink()
    assert latency._commit() == f"{commit}-changed"
