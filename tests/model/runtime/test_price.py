"""The price of a pass, on a tiny model and a clock of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models.onnx_models import BASE, shaped, store

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
from redraft.model.calibrate import measure_masks, measure_passes
from redraft.model.runtime.backend import Rows
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.runtime.onnx_sequence import OnnxSequence


@pytest.fixture
def backend(tmp_path: Path) -> OnnxBackend:
    return OnnxBackend(store(BASE, "fp32", tmp_path), threads=1)


class Costs:
    """A clock that only passes over positions move: 10 s and 1 s for each, more in slow rounds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, extra_s: tuple[float, ...] = ()) -> None:
        self.now, self.judged = 0.0, list[tuple[int, int]]()
        real = OnnxSequence.score

        def score(sequence: OnnxSequence, tokens: Any, logits: bool = False) -> Any:
            self.judged.append((len(sequence.tokens), len(tokens)))
            extra = extra_s[len(self.judged) - 2] if 1 < len(self.judged) < len(extra_s) + 2 else 0
            self.now += 10.0 + len(tokens) + extra
            return real(sequence, tokens, logits=logits)

        monkeypatch.setattr(OnnxSequence, "score", score)


def test_widths_take_turns(backend: OnnxBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(monkeypatch)
    found = measure_passes(backend, (1, 4), 50, 2, 1e9, lambda: costs.now)
    assert found == {1: 11_000.0, 4: 14_000.0}
    assert costs.judged == [(50, 4), (50, 1), (50, 4), (50, 1), (50, 4)]


def test_a_disturbed_pass_is_ignored(backend: OnnxBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(monkeypatch, extra_s=(7.0, 0.0, 0.0, 9.0))
    found = measure_passes(backend, (1, 4), 50, 2, 1e9, lambda: costs.now)
    assert found == {1: 11_000.0, 4: 14_000.0}


def test_slow_machines_run_once(backend: OnnxBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(monkeypatch)
    assert set(measure_passes(backend, (1, 4), 50, 9, 0.5, lambda: costs.now)) == {1, 4}
    assert len(costs.judged) == 3


def test_memory_is_given_back_and_remembers_nothing(backend: OnnxBackend) -> None:
    tokens = np.arange(BASE.special_tokens, BASE.special_tokens + 40)
    expected = backend.open(200).score(tokens, logits=True)
    measure_passes(backend, (1, 2), 50, 1)
    again = backend.open(200)
    assert np.array_equal(again.score(tokens, logits=True).logits, expected.logits)
    assert not backend._pool.free


def test_masks_cost_what_they_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks add 5 s, and 2 s for each of them."""
    backend = OnnxBackend(store(shaped("masks"), "fp32", tmp_path), threads=1)
    costs, real = Costs(monkeypatch), OnnxSequence.read

    def read(sequence: OnnxSequence, rows: Rows) -> Any:
        costs.now += 10.0 + len(rows.tokens) + 5.0 + 2.0 * rows.masks
        return real(sequence, rows)

    monkeypatch.setattr(OnnxSequence, "read", read)
    found = measure_masks(backend, lambda: costs.now)
    assert found == (pytest.approx(5_000.0), pytest.approx(2_000.0))


def test_without_masks_none_count(backend: OnnxBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(monkeypatch)
    assert measure_masks(backend, lambda: costs.now) == (0.0, 0.0)
    assert costs.judged == []
