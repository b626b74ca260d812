"""The model that runs if no setting names one, and what changes it."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redraft.model import choice, load
from redraft.model.calibrate import LASTS_S, calibration_file, calibration_key
from redraft.model.choice import (
    Placement,
    choose_model,
    is_declined,
    read_stored_model,
    store_model,
)
from redraft.model.engine import Engine
from redraft.model.errors import ModelNotReady, UnknownModel, WeightsError
from redraft.model.predict import Loader, Model
from redraft.model.runtime import machine
from redraft.model.runtime.backend import Cancelled
from redraft.model.runtime.device import Device
from redraft.model.weights import files
from redraft.model.weights.catalog import ModelInfo, info
from redraft.model.weights.download import no_progress
from redraft.model.weights.store import hold_lock
from redraft.server.commands.main import app
from support.models.engines_of import ANSWER, REQUEST, make_model, ready, run
from support.models.fake_backend import Script, ids
from typer.testing import CliRunner

platform.processor()  # starts a process the first time, which no fast test may

HERE = Placement("CPU", "int8")
SMALL, LARGE = "redraft-0.5b", "redraft-1.5b"
GB = 1_000_000_000
#: Milliseconds of a pass of redraft-0.5b: with 3.1 times as much the larger one is fast, or slow.
FAST_MS, SLOW_MS = 10.0, 40.0


@dataclass
class Machine:
    """A machine with the models that were pulled, its memory and its measurements."""

    pulled: set[str] = field(default_factory=lambda: {SMALL})
    ready: set[str] = field(default_factory=set)  # of those, the ones made for this machine
    memory: int = 16 * GB
    free_memory: int = 8 * GB
    free_disk: int = 20 * GB

    def measured(self, name: str, pass_ms: float, age_s: float = 0.0) -> None:
        """Note that a pass of up to 25 positions takes ``pass_ms`` with a model."""
        file = calibration_file()
        notes = json.loads(file.read_text()) if file.exists() else {}
        times = {"widths": {"1": pass_ms, "25": pass_ms}, "masks_ms": 0, "mask_ms": 0}
        notes[calibration_key(info(name), "int8", "CPU", None)] = {
            "since_s": time.time() - age_s,
            "prefill": {"token_s": pass_ms / 2e4, "growth_s": 0},
            "starts": [times],
        }
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(notes))


@pytest.fixture
def here(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(choice, "is_here", lambda model, variant: model.name in found.pulled)
    monkeypatch.setattr(choice, "is_ready", lambda model, variant: model.name in found.ready)
    monkeypatch.setattr(choice, "memory_of", lambda provider: found.memory)
    monkeypatch.setattr(choice, "free_memory", lambda: found.free_memory)
    disk = lambda _: SimpleNamespace(free=found.free_disk)  # noqa: E731
    monkeypatch.setattr(files.shutil, "disk_usage", disk)
    return found


@pytest.mark.parametrize(
    ("pass_ms", "own_ms", "memory_gb", "chosen", "says"),
    [
        (FAST_MS, None, 16, LARGE, r"a line takes 10\d ms, a next edit .*predicted from"),
        (FAST_MS, 31.0, 16, LARGE, "a line takes 102 ms, .*measured"),
        (SLOW_MS, None, 16, SMALL, r"a line takes 41\d ms.*predicted.*limits are 250 and 800"),
        (SLOW_MS, 31.0, 16, LARGE, "measured"),
        (FAST_MS, 90.0, 16, SMALL, "a line takes 297 ms, .*measured.*limits"),
        (FAST_MS, None, 7, SMALL, r"2\.2 GB of memory, and 30% of 7\.0 GB are the limit"),
        (FAST_MS, None, 8, LARGE, "largest that suits"),
        (None, None, 16, SMALL, "measured when a model is loaded for the first time"),
    ],
)
def test_the_largest_fast_and_small_enough_model_runs(
    here: Machine, pass_ms: float | None, own_ms: float | None, memory_gb: int, chosen: str,
    says: str,
) -> None:  # fmt: skip
    here.memory = memory_gb * GB
    here.pulled |= {LARGE}
    for name, ms in ((SMALL, pass_ms), (LARGE, own_ms)):
        if ms is not None:
            here.measured(name, ms)
    found = choose_model(HERE)
    assert (found.model, found.larger) == (chosen, "")
    assert re.search(says, found.reason), found.reason
    assert found.about_larger == (found.reason if chosen == SMALL else "")


def test_a_model_not_pulled_is_offered_not_chosen(here: Machine) -> None:
    here.measured(SMALL, FAST_MS)
    found = choose_model(HERE)
    assert (found.model, found.larger) == (SMALL, LARGE)
    assert found.reason == f"{LARGE} suits this machine, and is not on it"
    for cost in (info(LARGE).gain, "1,117 MB", "3.0 GB of disk", "2.2 GB of memory", "predicted"):
        assert cost in found.about_larger
    assert found.about_larger.count(". ") == 0  # one sentence


def test_a_model_too_slow_for_here_is_not_offered(here: Machine) -> None:
    here.measured(SMALL, SLOW_MS)
    found = choose_model(HERE)
    assert (found.larger, found.about_larger) == ("", "")


def test_a_model_larger_than_the_disk_is_not_offered(here: Machine) -> None:
    here.measured(SMALL, FAST_MS)
    here.free_disk = 1 * GB
    found = choose_model(HERE)
    assert (found.model, found.larger) == (SMALL, "")
    assert "suits this machine" in found.reason and "1000 MB free" in found.reason


def test_a_declined_model_is_not_offered_until_auto(here: Machine) -> None:
    here.measured(SMALL, FAST_MS)
    done = CliRunner().invoke(app, ["model", "decline", LARGE])
    assert done.exit_code == 0 and "redraft model use auto" in done.output
    found = choose_model(HERE)
    assert is_declined(LARGE) and (found.model, found.larger) == (SMALL, "")
    assert "declined" in found.reason and "redraft model use auto" in found.reason
    here.pulled |= {LARGE}
    assert choose_model(HERE).model == LARGE  # pulled by the user all the same
    here.pulled -= {LARGE}
    assert f"{SMALL} runs" in use("auto").output
    assert not is_declined(LARGE) and choose_model(HERE).larger == LARGE


def test_only_larger_models_can_be_declined(here: Machine) -> None:
    done = CliRunner().invoke(app, ["model", "decline", SMALL])
    assert done.exit_code != 0 and not is_declined(SMALL)


def test_the_list_says_which_model_runs_and_why(here: Machine) -> None:
    here.measured(SMALL, FAST_MS)
    listed = CliRunner().invoke(app, ["model", "list"])
    assert f"{SMALL} runs: {LARGE} suits this machine" in listed.output
    assert f"redraft model pull {LARGE}" in listed.output
    assert f"redraft model decline {LARGE}" in listed.output


def test_a_model_being_pulled_is_not_waited_for(here: Machine) -> None:
    here.measured(SMALL, FAST_MS)
    here.pulled |= {LARGE}
    with hold_lock(no_progress):
        found = choose_model(HERE)
        assert (found.model, found.larger) == (SMALL, "")
        assert "being made ready" in found.reason
    assert choose_model(HERE).model == LARGE


def test_a_larger_slow_model_is_tried_again_in_a_week(here: Machine) -> None:
    here.pulled |= {LARGE}
    here.measured(SMALL, FAST_MS, age_s=2 * LASTS_S)
    here.measured(LARGE, 90.0, age_s=LASTS_S - 60)
    assert choose_model(HERE).model == SMALL
    here.measured(LARGE, 90.0, age_s=LASTS_S + 60)
    assert choose_model(HERE).model == LARGE


def test_the_memory_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tuple(tmp_path / name for name in ("memory.max", "memory.limit_in_bytes"))
    monkeypatch.setattr(machine, "CONTROL_GROUP_LIMITS", files)
    whole = machine.memory_of("CPU")
    files[0].write_text("max\n")
    assert machine.memory_of("CPU") == whole
    files[1].write_text("123456789\n")
    assert machine.memory_of("CPU") == 123_456_789


# --- the stored name ------------------------------------------------------------------------------


def use(name: str) -> Any:
    return CliRunner().invoke(app, ["model", "use", name])


def test_a_model_in_use_beats_the_choice_until_auto(here: Machine) -> None:
    here.pulled |= {LARGE}
    here.measured(SMALL, SLOW_MS)
    done = use(LARGE)
    assert done.exit_code == 0 and f"{LARGE} runs from the next request on" in done.output
    assert (choose_model(HERE).model, choose_model(HERE).is_stored) == (LARGE, True)
    assert f"{SMALL} runs" in use("auto").output
    assert (read_stored_model(), choose_model(HERE).model) == ("", SMALL)


def test_a_missing_model_is_named_with_its_command(
    here: Machine,
) -> None:
    with pytest.raises(WeightsError, match=f"redraft model pull {LARGE}"):
        store_model(LARGE, "int8")
    with pytest.raises(UnknownModel):
        store_model("nobody", "int8")
    assert read_stored_model() == ""


def test_a_setting_goes_before_the_model_in_use(
    here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRAFT_MODEL", "mine")
    assert "your configuration names mine" in use(SMALL).output
    assert load.which_model("mine", None, None, None).model == "mine"
    assert load.which_model("auto", None, None, None).model == SMALL


# --- loading --------------------------------------------------------------------------------------


@dataclass
class Loads:
    """Loads that note how fast each model is, and what was loaded."""

    here: Machine
    pass_ms: dict[str, float]
    broken: dict[str, Exception] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def __call__(self, name: str, device: Device, threads: int | None, report: object) -> Model:
        self.names.append(name)
        if name in self.broken:
            raise self.broken[name]
        self.here.measured(name, self.pass_ms[name])
        return replace(make_model(Script(ids(ANSWER))), name=name)


@pytest.fixture
def loads(here: Machine, monkeypatch: pytest.MonkeyPatch) -> Loads:
    here.pulled |= {LARGE}
    found = Loads(here, {SMALL: FAST_MS, LARGE: 31.0})
    monkeypatch.setattr(load, "_load", found)
    monkeypatch.setattr(load, "choose_device", lambda *_: Device("CPU", "int8"))
    return found


def loader() -> Loader:
    return load.onnx_loader("auto", None, None, None)


def quietly(*_: object) -> None:
    """Ignore a report."""


def test_the_first_load_measures_for_the_larger_model(loads: Loads) -> None:
    assert loader()(quietly).name == LARGE
    assert loads.names == [SMALL, LARGE]
    assert loader()(quietly).name == LARGE
    assert loads.names == [SMALL, LARGE, LARGE]


def test_a_slower_model_than_predicted_is_logged_once(
    loads: Loads, caplog: pytest.LogCaptureFixture
) -> None:
    loads.pass_ms[LARGE] = 90.0
    loads.here.measured(SMALL, FAST_MS)
    loaded = loader()(quietly)
    assert (loaded.name, loads.names) == (SMALL, [LARGE, SMALL])
    assert "a line takes 297 ms" in loaded.status().about_larger and len(caplog.records) == 1
    assert "a line takes 297 ms" in loader()(quietly).status().about_larger
    assert (loads.names[2:], len(caplog.records)) == ([SMALL], 1)


def test_a_larger_model_that_cannot_load_gives_way(
    loads: Loads, caplog: pytest.LogCaptureFixture
) -> None:
    loads.here.measured(SMALL, FAST_MS)
    full = WeightsError("not enough memory")
    loads.broken = {LARGE: full}
    loaded = loader()(quietly)
    assert loaded.name == SMALL
    assert "not enough memory" in loaded.status().about_larger
    assert "not enough memory" in caplog.text
    loads.broken = {LARGE: full, SMALL: full}
    with pytest.raises(WeightsError, match="not enough memory"):
        loader()(quietly)


def test_any_failure_of_a_larger_model_gives_way(loads: Loads) -> None:
    loads.here.measured(SMALL, FAST_MS)
    for error in (MemoryError("no room"), RuntimeError("bad_alloc"), WeightsError("disk is full")):
        loads.broken = {LARGE: error}
        status = loader()(quietly).status()
        assert status.model.startswith(SMALL) and status.larger == ""
        assert f"{LARGE} does not run: it cannot be loaded: {error}" in status.about_larger


def test_an_engine_that_is_closed_loads_no_other_model(loads: Loads) -> None:
    loads.here.measured(SMALL, FAST_MS)
    loads.broken = {LARGE: Cancelled()}
    with pytest.raises(Cancelled):
        loader()(quietly)
    assert loads.names == [LARGE]


def test_a_larger_model_waits_for_free_memory(loads: Loads) -> None:
    loads.here.measured(SMALL, FAST_MS)
    loads.here.free_memory = GB
    loaded = loader()(quietly)
    assert loads.names == [SMALL]
    assert "2.2 GB of memory are needed, 1.0 GB are free" in loaded.status().about_larger
    loads.here.free_memory = 3 * GB
    assert loader()(quietly).status().model.startswith(LARGE)


def test_a_model_in_use_is_loaded_whatever_is_free(loads: Loads) -> None:
    store_model(LARGE, "int8")
    loads.here.free_memory = GB
    assert loader()(quietly).name == LARGE


def test_the_status_offers_a_model_that_is_not_here(loads: Loads) -> None:
    loads.here.pulled.discard(LARGE)
    status = loader()(quietly).status()
    assert status.model.startswith(SMALL) and status.larger == LARGE
    assert status.about_larger.startswith(f"{LARGE} suits this machine")


def test_a_model_in_use_that_is_gone_is_not_downloaded(loads: Loads) -> None:
    store_model(LARGE, "int8")
    loads.here.pulled.discard(LARGE)
    with pytest.raises(WeightsError, match=f"redraft model pull {LARGE}.*model use auto"):
        loader()(quietly)
    assert loads.names == []


def test_a_model_in_use_runs_as_it_was_imported(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def as_imported(model: ModelInfo, *how: object) -> Device:
        asked.append((model.name, *how))
        return Device("CPU", "q4" if model.name == LARGE else "int8")

    monkeypatch.setattr(load, "choose_device", as_imported)
    store_model(LARGE, "q4")
    assert loader()(quietly).name == LARGE
    assert asked == [(SMALL, None, None), (LARGE, None, None)]


def test_a_removed_model_in_use_is_named_with_advice(loads: Loads, cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    (cache / "model-in-use").write_text("mine\n")
    with pytest.raises(UnknownModel, match=r"no model 'mine'.*redraft model use auto"):
        loader()(quietly)


def test_a_running_engine_changes_to_the_model_in_use(loads: Loads) -> None:
    loads.pass_ms[SMALL] = SLOW_MS

    async def work() -> None:
        engine = Engine(loader(), "auto")
        assert (await ready(engine)).model.startswith(SMALL)
        assert (await engine.predict(REQUEST)).candidates
        store_model(LARGE, "int8")
        with pytest.raises(ModelNotReady, match=f"{LARGE} runs in the place of {SMALL}"):
            await engine.predict(REQUEST)
        assert (await ready(engine)).model.startswith(LARGE)
        assert (await engine.predict(REQUEST)).candidates
        await engine.close()

    run(work())
    assert loads.names == [SMALL, LARGE]


def test_a_running_engine_takes_a_pulled_model(loads: Loads, cache: Path) -> None:
    loads.here.pulled.discard(LARGE)
    loaded = loader()(quietly)
    assert (loaded.name, loaded.why_outdated()) == (SMALL, "")
    loads.here.pulled.add(LARGE)
    folder = cache / "ready" / LARGE / info(LARGE).version
    (folder / ".int8.tmp").mkdir(parents=True)  # downloaded, and being made ready by the pull
    assert loaded.why_outdated() == ""
    loads.here.ready.add(LARGE)
    os.utime(folder, ns=(1, 1))
    assert LARGE in loaded.why_outdated()
