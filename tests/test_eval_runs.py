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


def test_a_torn_first_line_is_no_run_yet(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"run": {"pl')
    with open_run(path, MADE, {}, resume=True) as run:
        run.add({"id": "a", "group": "a"})
    assert list(read_run(path).episodes) == ["a"]


def test_resume_begins_a_run_that_is_not_there(tmp_path: Path) -> None:
    with open_run(tmp_path / "run.jsonl", MADE, {}, resume=True) as run:
        assert run.episodes == {}


def test_a_run_made_otherwise_is_not_mixed_in(tmp_path: Path) -> None:
    path = begin(tmp_path / "run.jsonl", "a")
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="made with plan = 'medium', not 'low'"):
        open_run(path, {**MADE, "plan": "low"}, {}, resume=True)
    with pytest.raises(SettingsError, match=r"made with threshold = None, not 0\.5"):
        open_run(path, {**MADE, "threshold": 0.5}, {}, resume=True)
    assert path.read_bytes() == before


def test_a_run_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = begin(tmp_path / "run.jsonl", "a")
    with pytest.raises(SettingsError, match="is there already"):
        open_run(path, MADE, {}, resume=False)
    assert list(read_run(path).episodes) == ["a"]


@pytest.mark.parametrize(
    "content", ["", "{}\n", "[]\n", "no json\n", '{"run": 1, "machine": {}}\n']
)
def test_another_file_is_not_taken_for_a_run(content: str, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(SettingsError, match="is not the file of an evaluation"):
        read_run(path)


def test_without_a_file_episodes_are_kept_in_memory() -> None:
    with open_run(None, MADE, {}, resume=False) as run:
        run.add({"id": "a", "group": "a"})
    assert list(run.episodes) == ["a"]
