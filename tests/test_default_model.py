"""Which model runs where nobody names one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from redraft.model.weights.default_model import AUTO, choose_default, resolve
from redraft.server.settings import Settings

GB = 1_000_000_000


def test_two_cores_and_4_gb_run_the_better_model() -> None:
    choice = choose_default(2, int(3.4 * GB), ["redraft-0.5b"])
    assert (choice.name, choice.fallback) == ("redraft-0.5b", "redraft-135m")
    assert choice.reason == "the best for 2 cores and 3 GB of memory"


def test_what_is_not_there_yet_is_fetched_and_said() -> None:
    choice = choose_default(8, 16 * GB, ["redraft-135m"])
    assert choice.name == "redraft-0.5b" and "fetched at the first use" in choice.reason


@pytest.mark.parametrize(
    ("cores", "memory", "why"), [(4, 2 * GB, "2.0 GB of memory"), (1, 8 * GB, "1 core")]
)
def test_a_weak_machine_runs_the_tiny_model_and_says_why(cores: int, memory: int, why: str) -> None:
    choice = choose_default(cores, memory, ["redraft-0.5b", "redraft-135m"])
    assert (choice.name, choice.fallback) == ("redraft-135m", None)
    assert why in choice.reason and "redraft-0.5b needs" in choice.reason


def test_the_facts_are_those_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRAFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 2)
    for memory, name in ((2 * GB, "redraft-135m"), (4 * GB, "redraft-0.5b")):
        total = SimpleNamespace(total=memory)
        monkeypatch.setattr(psutil, "virtual_memory", lambda total=total: total)
        assert resolve(AUTO).name == name


def test_a_named_model_is_never_replaced() -> None:
    assert Settings().model == AUTO
    assert (resolve("mine").name, resolve("mine").fallback) == ("mine", None)
