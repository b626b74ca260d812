"""The context budget "auto"."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.engine.answer import room_for
from redraft.model.engine.budget import (
    CHOICES,
    CHUNK,
    PrefillSpeed,
    best_known,
    fit,
    measure,
    pick_budget,
)
from redraft.model.records import EditRequest, Quality
from redraft.model.runtime.backend import IntArray
from redraft.model.runtime.kv_memory import SIZE_CLASSES, size_class
from redraft.model.runtime.rope import stretch
from support.fake_backend import FakeBackend, FakeSequence, Noise, small_config

platform.processor()  # starts a process the first time, which no fast test may


class Clock:
    """Advanced by the slow sequence."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class TimedBackend(FakeBackend):
    """Prefill that costs a given time per token and per cached token."""

    def __init__(self, clock: Clock, token_s: float, growth_s: float) -> None:
        super().__init__(Noise(), small_config())
        self.clock, self.token_s, self.growth_s = clock, token_s, growth_s
        self.prefills = 0

    def open(self, capacity: int) -> FakeSequence:
        backend = self

        class Timed(FakeSequence):
            def extend(self, tokens: IntArray) -> None:
                middle = len(self.tokens) + len(tokens) / 2
                per_token = backend.token_s + backend.growth_s * middle
                backend.clock.now += len(tokens) * per_token
                backend.prefills += 1
                super().extend(tokens)

        sequence = Timed(self._predict, self._causal, capacity)
        self.sequences.append(sequence)
        return sequence


@pytest.mark.parametrize(
    ("token_s", "growth_s", "budget"),
    [
        (1 / 10, 0.0, 1_024), (1 / 700, 0.0, 1_024), (1 / 1_400, 0.0, 2_048),
        (1 / 6_000, 0.0, 8_192), (1e-7, 0.0, 32_768), (1e-4, 0.0, 8_192), (1e-4, 1e-7, 4_096),
    ],
)  # fmt: skip
def test_the_budget_is_the_largest_that_is_read_in_time(
    token_s: float, growth_s: float, budget: int
) -> None:
    assert pick_budget(PrefillSpeed(token_s, growth_s)) == budget


@pytest.mark.parametrize("memory_tokens", [100, 1_024, 5_000, 20_000, 10**9])
def test_the_budget_fits_into_memory(memory_tokens: int) -> None:
    budget = pick_budget(PrefillSpeed(0.0, 0.0), memory_tokens)
    assert budget in CHOICES
    assert budget < max(memory_tokens, CHOICES[0] + 1)


@pytest.mark.parametrize("quality", ["low", "medium", "high"])
def test_every_budget_has_a_buffer_that_holds_its_answer_too(quality: Quality) -> None:
    config = ModelConfig()
    widest = EditRequest("next_edit", "", "", 0, quality=quality, max_tokens=128, candidates=16)
    for choice, capacity in zip(CHOICES, SIZE_CLASSES, strict=True):
        assert size_class(choice + room_for(widest, config)) == capacity
        assert stretch(config, capacity) == stretch(config, choice)


def test_measuring_finds_cost_and_growth() -> None:
    clock = Clock()
    backend = TimedBackend(clock, token_s=8e-4, growth_s=3e-7)
    speed = measure(backend, clock)
    assert speed.token_s == pytest.approx(8e-4)
    assert speed.growth_s == pytest.approx(3e-7)
    assert backend.sequences == [], "the sequence is given back"
    expected = sum(8e-4 + 3e-7 * (i + 0.5) for i in range(2_000))
    assert speed.cold_seconds(2_000) == pytest.approx(expected, rel=1e-6)
    noisy = fit([3e-3, 2e-3, 1e-3])  # a cost that seems to shrink
    assert (noisy.token_s, noisy.growth_s) == (pytest.approx(2e-3), 0.0)


def test_it_is_measured_once_per_combination(tmp_path: Path) -> None:
    clock = Clock()
    backend = TimedBackend(clock, 1e-3, 0.0)
    file = tmp_path / "new" / "speed.json"
    first = best_known(backend, "m", file, 2, clock)
    runs = backend.prefills
    assert best_known(backend, "m", file, 2, clock) == first
    assert backend.prefills == runs + 1, "one chunk shows that nothing has changed"
    backend.token_s = 2e-3
    assert best_known(backend, "m", file, 4, clock).token_s == pytest.approx(2e-3)
    assert best_known(backend, "m", file, 2, clock) == first, "both are kept"


def test_a_speed_taken_under_load_is_replaced_by_a_faster_one(tmp_path: Path) -> None:
    clock = Clock()
    backend = TimedBackend(clock, 3e-3, 0.0)
    file = tmp_path / "speed.json"
    best_known(backend, "m", file, 2, clock)
    backend.token_s = 1e-3
    assert best_known(backend, "m", file, 2, clock).token_s == pytest.approx(1e-3)
    backend.token_s = 3e-3
    assert best_known(backend, "m", file, 2, clock).token_s == pytest.approx(1e-3)
    assert best_known(TimedBackend(clock, 1e-3, 0.0), "m", file, 2, clock).token_s == pytest.approx(
        1e-3
    )


def test_a_chunk_that_was_fast_by_chance_does_not_replace_a_better_note(tmp_path: Path) -> None:
    clock = Clock()
    backend = TimedBackend(clock, 1e-3, 0.0)
    file = tmp_path / "speed.json"
    first = best_known(backend, "m", file, 2, clock)

    class Lucky(TimedBackend):
        def open(self, capacity: int) -> FakeSequence:
            self.token_s = 1e-4 if not self.prefills else 2e-3
            return super().open(capacity)

    assert best_known(Lucky(clock, 0.0, 0.0), "m", file, 2, clock) == first


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"x": 1}', '{"x": {"token_s": "fast"}}', "\x00", '{"x": {}}'],
)
def test_a_damaged_file_is_measured_over(tmp_path: Path, content: str) -> None:
    clock = Clock()
    file = tmp_path / "speed.json"
    file.write_text(content, "utf-8")
    backend = TimedBackend(clock, 1e-3, 0.0)
    best_known(backend, "m", file, 2, clock)
    runs = backend.prefills
    best_known(backend, "m", file, 2, clock)
    assert backend.prefills == runs + 1, "the note was whole again"


def test_a_file_that_cannot_be_written_only_costs_the_next_start(tmp_path: Path) -> None:
    clock = Clock()
    (tmp_path / "taken").write_text("a file where a folder should be", "utf-8")
    backend = TimedBackend(clock, 1e-3, 0.0)
    speed = best_known(backend, "m", tmp_path / "taken" / "speed.json", 2, clock)
    assert speed.token_s == pytest.approx(1e-3)


def test_the_measured_tokens_are_ordinary_ones() -> None:
    seen: list[int] = []

    class Watching(FakeSequence):
        def extend(self, tokens: IntArray) -> None:
            seen.extend(tokens.tolist())
            super().extend(tokens)

    class Backend(FakeBackend):
        def open(self, capacity: int) -> FakeSequence:
            self.sequences.append(Watching(self._predict, self._causal, capacity))
            return self.sequences[-1]

    config = small_config()
    measure(Backend(Noise(), config), Clock())
    assert len(seen) % CHUNK == 0
    assert np.all((np.asarray(seen) >= config.special_tokens) & (np.asarray(seen) < config.vocab))
