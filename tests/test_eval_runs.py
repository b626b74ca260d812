"""The files of evaluation runs: taken up again, torn, and never mixed."""

from __future__ import annotations

from pathlib import Path

import pytest
from redraft.evals.figures.runs import open_run, read_run
from redraft.model.errors import SettingsError

MADE = {"plan": "medium", "seed": 0}


def begin(path: Path, *ids: str) -> Path:
    with open_run(path, MADE, {"system": "here"}, resume=False) as run:
        for one in ids:
            run.add({"id": one, "group": one, "text": "é\n\u2028"})
    return path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = read_run(begin(tmp_path / "new" / "run.jsonl", "a", "b"))
    assert (run.settings, run.machine) == (MADE, {"system": "here"})
    assert list(run.episodes) == ["a", "b"]
    assert run.episodes["a"]["text"] == "é\n\u2028"


def test_a_run_is_taken_up_where_a_kill_left_it(tmp_path: Path) -> None:
    path = begin(tmp_path / "run.jsonl", "a", "b")
    with path.open("a") as file:
        file.write('{"id": "c", "gro')
    assert list(read_run(path).episodes) == ["a", "b"]
    with open_run(path, MADE, {}, resume=True) as run:
        assert list(run.episodes) == ["a", "b"]
        run.add({"id": "c", "group": "c"})
    assert list(read_run(path).episodes) == ["a", "b", "c"]


@pytest.mark.parametrize("torn", ["", '{"run": {"pl'])
def test_resume_begins_a_run_that_is_missing_or_torn(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "run.jsonl"
    if torn:
        path.write_text(torn)
    with open_run(path, MADE, {}, resume=True) as run:
        assert run.episodes == {}
        run.add({"id": "a", "group": "a"})
    assert list(read_run(path).episodes) == ["a"]


@pytest.mark.parametrize(
    ("settings", "resume", "said"),
    [
        (MADE | {"plan": "low"}, True, "made with plan = 'medium', not 'low'"),
        (MADE | {"threshold": 0.5}, True, r"made with threshold = None, not 0\.5"),
        (MADE, False, "is there already"),
    ],
)
def test_a_run_made_otherwise_is_neither_mixed_in_nor_overwritten(
    tmp_path: Path, settings: dict[str, object], resume: bool, said: str
) -> None:
    path = begin(tmp_path / "run.jsonl", "a")
    before = path.read_bytes()
    with pytest.raises(SettingsError, match=said):
        open_run(path, settings, {}, resume=resume)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", ["", "{}\n", "[]\n", "no json\n", '{"run": 1, "machine": {}}\n']
)
def test_another_file_is_not_taken_for_a_run(content: str, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(SettingsError, match="is not the file of an evaluation"):
        read_run(path)
