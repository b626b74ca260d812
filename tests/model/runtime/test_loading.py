"""The engine over onnxruntime, with a random model small enough for a test."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from redraft.model import load
from redraft.model.engine import Engine
from redraft.model.errors import SettingsError, UnknownModel
from redraft.model.predict import LoadProgress, Model, predict
from redraft.model.records import EditRequest, ModelStatus, Prediction
from redraft.model.runtime.kv_memory import size_class
from redraft.model.runtime.prefix_cache import PrefixCache
from support.command import python

TEXT = "def area(w, h):\n    size = \n    return size\n\n\nprint(area(2, 3))\n" * 4
CURSOR = TEXT.index("= ") + 2
REQUEST = EditRequest("infill", "area.py", TEXT, CURSOR, context_tokens=400, max_tokens=20)


@pytest.fixture
def wired(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register one model, which is ready."""
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(load, "ensure", lambda name, variant, progress: tiny)
    return tmp_path


@pytest.fixture
def model(wired: Path) -> Iterator[Model]:
    loaded = load.onnx_loader("redraft-0.5b", "fp32", "CPU", 1)(ignore)
    yield loaded
    loaded.backend.close()


def ignore(state: str, progress: float | None, message: str) -> None:
    """Ignore a report."""


def fresh(model: Model, request: EditRequest) -> Prediction:
    """Compute without a cache."""
    empty = replace(model, cache=PrefixCache(model.backend, 1 << 30))
    return predict(empty, request, time.monotonic)


def test_an_engine_loads_and_answers(wired: Path) -> None:
    async def work() -> tuple[ModelStatus, Prediction]:
        engine = Engine(load.onnx_loader("redraft-0.5b", "fp32", "CPU", 1), "redraft-0.5b")
        try:
            while (status := await engine.status()).state == "loading":
                await asyncio.sleep(0.01)
            return status, await engine.predict(REQUEST)
        finally:
            await engine.close()

    status, prediction = asyncio.run(asyncio.wait_for(work(), 60))
    assert (status.state, status.model, status.provider) == ("ready", "redraft-0.5b fp32", "CPU")
    assert status.context_tokens >= 1_024
    assert prediction.model == "redraft-0.5b fp32"
    assert prediction.stats.denoise_steps > 0
    assert (wired / "calibration.json").exists()


@pytest.mark.parametrize("task", ["infill", "next_edit"])
def test_typing_into_the_cache_equals_fresh_answers(model: Model, task: str) -> None:
    for count in range(8):
        typed = "[x] + y"[:count]
        request = replace(
            REQUEST,
            task="infill" if task == "infill" else "next_edit",
            text=TEXT[:CURSOR] + typed + TEXT[CURSOR:],
            cursor=CURSOR + count,
        )
        warm, cold = predict(model, request, time.monotonic), fresh(model, request)
        assert [c.text for c in warm.candidates] == [c.text for c in cold.candidates]
        assert warm.reason == cold.reason
        assert cold.stats.reused_tokens == 0
        if count and task == "infill":
            assert warm.stats.reused_tokens > 0.8 * warm.stats.prompt_tokens


def test_one_of_several_candidates_is_the_one_answer(model: Model) -> None:
    single = fresh(model, REQUEST)
    several = fresh(model, replace(REQUEST, candidates=4))
    assert single.candidates[0].text in [candidate.text for candidate in several.candidates]
    assert len(several.candidates) > 1


def test_a_closed_engine_stops_the_download(wired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from redraft.model.weights.download import Progress

    def ensure(name: str, variant: str | None, progress: LoadProgress) -> Path:
        for done in range(100_000):
            progress(Progress("download", done, 100_000))  # type: ignore[call-arg, arg-type]
            time.sleep(0.001)
        raise AssertionError("was not interrupted")

    monkeypatch.setattr(load, "ensure", ensure)

    async def work() -> ModelStatus:
        engine = Engine(load.onnx_loader("redraft-0.5b", "fp32", "CPU", None), "redraft-0.5b")
        while (status := await engine.status()).state != "downloading":
            assert status.state == "loading"
            await asyncio.sleep(0.001)
        await engine.close()
        return status

    status = asyncio.run(asyncio.wait_for(work(), 30))
    assert status.progress is not None


def test_four_prompts_of_the_budget_are_kept(model: Model) -> None:
    for first in range(40, 46):  # six prompts that share nothing
        lease = model.cache.acquire([first] * model.context_tokens, load.BEHIND)
        lease.sequence.extend(np.full(2, first))
        lease.release()
    room = size_class(model.context_tokens + load.BEHIND)
    assert [sequence.capacity for sequence in model.cache._idle] == [room] * 4
    assert sum(buffer.capacity for buffer in model.backend._pool.free) == 0


def test_costs_are_measured_by_the_first_load_or_idle(model: Model, wired: Path) -> None:
    def starts() -> int:
        notes = json.loads((wired / "calibration.json").read_text())
        key = f"redraft-0.5b {model.version} fp32 CPU 1 "
        return sum(len(note["starts"]) for name, note in notes.items() if name.startswith(key))

    assert model.context_tokens >= 1_024 and len(model.chores) == 1
    assert model.prices is not None and model.prices.positions[0] == 1
    assert all(ms > 0 for ms in model.prices.ms)
    assert list(model.prices.ms) == sorted(model.prices.ms)
    assert starts() == 1

    again = load.onnx_loader("redraft-0.5b", "fp32", "CPU", 1)(ignore)
    try:
        assert (again.prices, starts()) == (model.prices, 1)
        assert [chore.idle_s for chore in again.chores] == [
            0,
            load.JOIN_IDLE_S,
            load.MEASURE_IDLE_S,
        ]
        again.chores[0].run()
        assert starts() == 1
        again.chores[2].run()
        assert starts() == 2
    finally:
        again.backend.close()


def test_unknown_models_and_providers_are_refused() -> None:
    with pytest.raises(UnknownModel, match="nonesuch"):
        load.onnx_loader("nonesuch", None, "CPU", 1)(ignore)
    with pytest.raises(SettingsError, match="TPU"):
        load.onnx_loader("redraft-0.5b", None, "TPU", 1)(ignore)


@pytest.mark.usefixtures("spawn")
def test_an_engine_on_the_cpu_imports_no_torch_or_onnx() -> None:
    code = (
        "import sys, redraft.model.engine, redraft.model.load, "
        "redraft.model.runtime.onnx_backend; "
        "from redraft.model.runtime import device; "
        "device.choose('cpu'); "
        "sys.exit('torch' in sys.modules or 'onnx' in sys.modules)"
    )
    python(code)
