"""The model that runs where none is named."""

from __future__ import annotations

import pytest
from redraft.model.weights.default_model import AUTO, memory_problem, resolve
from redraft.server.settings import Settings

GB = 1_000_000_000


def test_without_a_name_the_default_model_runs_and_a_name_is_kept() -> None:
    assert Settings().model == AUTO
    assert (resolve(AUTO), resolve("mine")) == ("redraft-0.5b", "mine")


@pytest.mark.parametrize(
    ("model", "memory", "problem"),
    [
        ("redraft-0.5b", int(3.4 * GB), ""),  # sold with 4 GB
        ("redraft-0.5b", 2 * GB, "needs a machine with 3 GB of memory, this one has 2.0 GB"),
        ("mine", 2 * GB, ""),
    ],
)
def test_a_machine_that_is_too_small_is_named(model: str, memory: int, problem: str) -> None:
    assert memory_problem(model, memory).endswith(problem)
    assert bool(memory_problem(model, memory)) == bool(problem)
