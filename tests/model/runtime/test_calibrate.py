"""Calibration: the context budget, and the cost of passes over several starts."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model import calibrate as calibration
from redraft.model.calibrate import (
    CHOICES,
    CHUNK,
    ENOUGH,
    LASTS_S,
    Calibration,
    PassTimes,
    PrefillSpeed,
    calibrate,
    fit,
    read_calibration,
)
from redraft.model.config import ModelConfig
from redraft.model.predict import room_for
from redraft.model.records import EditRequest, Quality
from redraft.model.runtime.backend import IntArray
from redraft.model.runtime.kv_memory import SIZE_CLASSES, size_class
from redraft.model.runtime.rope import stretch
from support.models.fake_backend import FakeBackend, FakeSequence, Noise, small_config

platform.processor()  # starts a process the first time, which no fast test may

DAY = 86_400.0


class TimedBackend(FakeBackend):
    """Prefill that costs a given time per token and per cached token, with a clock for it."""

    def __init__(
        self, token_s: float = 1e-3, growth_s: float = 0.0, verifier: str = "none"
    ) -> None:
        super().__init__(Noise(), small_config(verifier=verifier))
        self.token_s, self.growth_s = token_s, growth_s
        self.now, self.prefills, self.read = 0.0, 0, list[int]()

    def open(self, capacity: int) -> FakeSequence:
        backend = self

        class Timed(FakeSequence):
            def extend(self, tokens: IntArray) -> None:
                middle = len(self.tokens) + len(tokens) / 2
                backend.now += len(tokens) * (backend.token_s + backend.growth_s * middle)
                backend.prefills += 1
                backend.read += tokens.tolist()
                super().extend(tokens)

        sequence = Timed(self._predict, self._causal, capacity)
        self.sequences.append(sequence)
        return sequence


def prefill_of(backend: Any, file: Path, key: str = "m", now: float = 1e9) -> PrefillSpeed:
    """Return the prefill speed that one start finds."""
    found = calibrate(backend, key, file, lambda: backend.now, lambda: now).prefill
    assert found is not None
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "calibration.json"


@pytest.mark.parametrize(
    ("token_s", "growth_s", "budget"),
    [
        (1 / 10, 0.0, 1_024), (1 / 700, 0.0, 1_024), (1 / 1_400, 0.0, 2_048),
        (1 / 6_000, 0.0, 8_192), (1e-7, 0.0, 32_768), (1e-4, 0.0, 8_192), (1e-4, 1e-7, 4_096),
    ],
)  # fmt: skip
def test_the_budget_is_the_largest_in_time(token_s: float, growth_s: float, budget: int) -> None:
    assert Calibration(0, PrefillSpeed(token_s, growth_s)).context_tokens() == budget


@pytest.mark.parametrize("memory_tokens", [100, 1_024, 5_000, 20_000, 10**9])
def test_the_budget_fits_into_memory(memory_tokens: int) -> None:
    budget = Calibration(0, PrefillSpeed(0.0, 0.0)).context_tokens(memory_tokens)
    assert budget in CHOICES
    assert budget < max(memory_tokens, CHOICES[0] + 1)


@pytest.mark.parametrize("quality", ["low", "medium", "high"])
def test_every_budget_has_a_buffer_for_its_answer_too(quality: Quality) -> None:
    config = ModelConfig()
    widest = EditRequest("next_edit", "", "", 0, quality=quality, max_tokens=128, candidates=16)
    for choice, capacity in zip(CHOICES, SIZE_CLASSES, strict=True):
        assert size_class(choice + room_for(widest, config)) == capacity
        assert stretch(config, capacity) == stretch(config, choice)


def test_measuring_finds_cost_and_growth(file: Path) -> None:
    backend = TimedBackend(token_s=8e-4, growth_s=3e-7)
    speed = prefill_of(backend, file)
    assert speed.token_s == pytest.approx(8e-4)
    assert speed.growth_s == pytest.approx(3e-7)
    assert backend.sequences == [], "the sequence is released"
    expected = sum(8e-4 + 3e-7 * (i + 0.5) for i in range(2_000))
    assert speed.cold_seconds(2_000) == pytest.approx(expected, rel=1e-6)
    text_ids, read = backend.config.text_ids, np.asarray(backend.read)
    assert len(read) % CHUNK == 0
    assert np.all((read >= text_ids.start) & (read < text_ids.stop))
    noisy = fit([3e-3, 2e-3, 1e-3])  # a cost that seems to shrink
    assert (noisy.token_s, noisy.growth_s) == (pytest.approx(2e-3), 0.0)


def test_prefill_is_measured_once_per_key(file: Path) -> None:
    backend = TimedBackend()
    first = prefill_of(backend, file)
    runs = backend.prefills
    assert prefill_of(backend, file) == first
    assert backend.prefills == runs + 1, "one chunk shows that nothing has changed"
    backend.token_s = 2e-3
    assert prefill_of(backend, file, "another").token_s == pytest.approx(2e-3)
    assert prefill_of(backend, file) == first, "both are kept"


def test_a_speed_under_load_gives_way_to_a_faster_one(file: Path) -> None:
    backend = TimedBackend(3e-3)
    prefill_of(backend, file)
    for token_s in (1e-3, 3e-3, 1e-3):
        backend.token_s = token_s
        assert prefill_of(backend, file).token_s == pytest.approx(1e-3)


def test_a_chunk_fast_by_chance_replaces_no_note(file: Path) -> None:
    first = prefill_of(TimedBackend(), file)

    class Lucky(TimedBackend):
        def open(self, capacity: int) -> FakeSequence:
            self.token_s = 1e-4 if not self.prefills else 2e-3
            return super().open(capacity)

    assert prefill_of(Lucky(), file) == first


def test_weights_that_reread_the_prompt_are_not_timed(file: Path) -> None:
    backend: Any = TimedBackend()
    backend.config = small_config()
    object.__setattr__(backend.config, "attention", "bidirectional")
    assert calibrate(backend, "m", file).prefill is None
    assert backend.prefills == 0


@dataclass
class Starts:
    """Starts of one model that verifies drafts, one after another."""

    file: Path
    monkeypatch: pytest.MonkeyPatch
    now: float = 1e9
    measured: int = 0
    backend: Any = field(default_factory=lambda: TimedBackend(verifier="ar"))

    def __call__(
        self, *ms: float, masks: tuple[float, float] = (0.0, 0.0), key: str = "m"
    ) -> PassTimes:
        """Return the times after a start that would measure ``ms`` for 1, 2, … positions."""

        def measure(backend: object) -> dict[int, float]:
            self.measured += 1
            return dict(enumerate(ms, 1))

        self.monkeypatch.setattr(calibration, "measure_passes", measure)
        self.monkeypatch.setattr(calibration, "measure_masks", lambda backend: masks)
        clock = (lambda: self.backend.now), (lambda: self.now)
        found = calibrate(self.backend, key, self.file, *clock).passes
        assert found is not None
        return found


@pytest.fixture
def start(file: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(file, monkeypatch)


def test_a_single_start_counts_as_it_is(start: Starts) -> None:
    assert start(30, 50, masks=(4, 1)) == PassTimes({1: 30, 2: 50}, 4, 1)


def test_one_disturbed_start_of_three_changes_nothing(start: Starts) -> None:
    start(30, 50, masks=(4, 0.5))
    start(30, 50, masks=(92, 0.5))
    found = start(90, 35, masks=(4, 9))
    assert found.widths == pytest.approx({1: 30, 2: 50})
    assert found.masks_ms == pytest.approx(4)
    assert found.mask_ms == pytest.approx(0.5)


def test_a_machine_at_another_pace_says_the_same(start: Starts) -> None:
    start(30, 50, masks=(4, 1))
    assert start(15, 25, masks=(2, 0.5)).widths == {1: 15, 2: 25}, "the fastest pace counts"
    found = start(60, 100, masks=(8, 2))
    assert found == PassTimes({1: 15, 2: 25}, 2, 0.5)


def test_after_a_few_starts_no_passes_are_measured(start: Starts) -> None:
    for number in range(ENOUGH):
        start(30.0 + number)
    assert start(1.0).widths == {1: 30.0}, "the pace of the fastest"
    assert start.measured == ENOUGH
    start(1.0, key="another")
    assert start.measured == ENOUGH + 1


def test_it_begins_anew_after_a_week_or_a_clock_change(start: Starts) -> None:
    start(30)
    start.now += LASTS_S - 1
    assert start(40).widths == {1: 30}
    start.now += 1
    assert start(40).widths == {1: 40}, "the first start counts, not the last"
    start.now -= DAY
    assert start(50).widths == {1: 50}


def test_only_what_is_fresh_and_whole_counts_as_noted(start: Starts) -> None:
    config = start.backend.config
    assert read_calibration(config, "m", start.file, lambda: start.now) is None
    start(30)
    found = read_calibration(config, "m", start.file, lambda: start.now)
    assert found is not None and found.prefill is not None and len(found.starts) == 1
    assert read_calibration(config, "another", start.file, lambda: start.now) is None
    assert read_calibration(config, "m", start.file, lambda: start.now + LASTS_S) is None


def test_other_widths_begin_anew(start: Starts) -> None:
    start(30)
    assert start(40, 50).widths == {1: 40, 2: 50}
    assert start(20, 30).widths == pytest.approx({1: 50 * 38 / 90, 2: 50 * 52 / 90}, rel=0.02)


def started(widths: str) -> str:
    """Return the text of a file with one start that measured ``widths``."""
    start = f'{{"widths": {widths}, "masks_ms": 0, "mask_ms": 0}}'
    prefill = '{"token_s": 1, "growth_s": 0}'
    return f'{{"m": {{"since_s": 1e9, "prefill": {prefill}, "starts": [{start}]}}}}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", "\x00"),
        *('{"m": 1}', '{"m": {"costs": 1}}', '{"m": {"since_s": "x"}}'),
        '{"m": {"since_s": 1e9, "prefill": {"token_s": "fast"}}}',
        '{"m": {"since_s": 1e9, "prefill": {"token_s": -1, "growth_s": 0}}}',
        *map(started, ("{}", '{"2": 5}', '{"one": 5}', "[5]", "5")),
        *(
            started(f'{{"1": {ms}}}')
            for ms in ("NaN", "Infinity", "1e999", "1e300", "0", "-3", '"fast"', "null")
        ),
    ],
)
def test_a_damaged_or_odd_file_means_measuring_again(start: Starts, content: str) -> None:
    start.file.parent.mkdir()
    start.file.write_text(content, "utf-8")
    assert start(30).widths == {1: 30}
    assert start.backend.prefills == 3
    assert start(40).widths == {1: 30}, "and is replaced"
    assert start.backend.prefills == 4


def test_a_closed_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    start = Starts(tmp_path / "file" / "calibration.json", monkeypatch)
    assert start(30).widths == {1: 30}
    assert start(40).widths == {1: 40}


def test_the_oldest_of_many_are_forgotten(start: Starts) -> None:
    for number in range(50):
        start(30, key=f"m{number}")
    kept = json.loads(start.file.read_text("utf-8"))
    assert len(kept) == 32 and "m49" in kept and "m0" not in kept
