"""Runs on disk: read as written, continued after a kill, refused if of another description."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from redraft.evals.commands.run_options import SavedRun, open_run_for
from redraft.evals.example import Example, Moment
from redraft.evals.run import open_run, read_run
from redraft.evals.spec import RunSpec
from redraft.model.errors import SettingsError

MADE = RunSpec("edits")


def begin(path: Path, *ids: str) -> Path:
    with open_run(path, MADE, {"system": "here"}, resume=False) as run:
        for one in ids:
            run.add(Example(one, one, moment=Moment(text="é\n\u2028")))
    return path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = read_run(begin(tmp_path / "new" / "run.jsonl", "a", "b"))
    assert (run.spec, run.machine) == (MADE, {"system": "here"})
    assert list(run.examples) == ["a", "b"]
    assert run.examples["a"].moment.text == "é\n\u2028"


def test_a_run_is_taken_up_where_a_kill_left_it(tmp_path: Path) -> None:
    path = begin(tmp_path / "run.jsonl", "a", "b")
    with path.open("a") as file:
        file.write('{"id": "c", "gro')
    assert list(read_run(path).examples) == ["a", "b"]
    with open_run(path, MADE, {}, resume=True) as run:
        assert list(run.examples) == ["a", "b"]
        run.add(Example("c"))
    assert list(read_run(path).examples) == ["a", "b", "c"]


@pytest.mark.usefixtures("spawn")
def test_an_interrupted_run_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = SavedRun(tmp_path / "run.jsonl")
    with pytest.raises(KeyboardInterrupt), open_run_for(kept, MADE) as run:
        run.add(Example("a"))
        raise KeyboardInterrupt
    told = " ".join(capsys.readouterr().err.split())
    assert "has 1 examples; repeat the command with --resume" in told
    assert list(read_run(tmp_path / "run.jsonl").examples) == ["a"]


@pytest.mark.parametrize("torn", ["", '{"run": {"pl'])
def test_resume_begins_a_run_that_is_missing_or_torn(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "run.jsonl"
    if torn:
        path.write_text(torn)
    with open_run(path, MADE, {}, resume=True) as run:
        assert run.examples == {}
        run.add(Example("a"))
    assert list(read_run(path).examples) == ["a"]


@pytest.mark.parametrize(
    ("spec", "resume", "said"),
    [
        (replace(MADE, quality="low"), True, "made with quality = 'medium', not 'low'"),
        (replace(MADE, threshold=0.5), True, r"made with threshold = None, not 0\.5"),
        (MADE, False, "is there already"),
    ],
)
def test_a_run_with_other_settings_is_not_overwritten(
    tmp_path: Path, spec: RunSpec, resume: bool, said: str
) -> None:
    path = begin(tmp_path / "run.jsonl", "a")
    before = path.read_bytes()
    with pytest.raises(SettingsError, match=said):
        open_run(path, spec, {}, resume=resume)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    ["", "{}\n", "[]\n", "no json\n", '{"format": 2, "run": 1, "machine": {}}\n'],
)
def test_another_file_is_not_taken_for_a_run(content: str, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(SettingsError, match="is not the file of an evaluation"):
        read_run(path)


def test_the_plan_of_an_older_run_becomes_its_quality(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    said = '"task": "outcomes", "plan": "low", "quality": "", "share": null, "provider": "x"'
    path.write_text(f'{{"format": 2, "run": {{{said}}}, "machine": {{}}}}\n')
    assert read_run(path).spec == RunSpec("outcomes", quality="low")


def test_a_run_of_an_older_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text('{"run": {"benchmark": "infill"}, "machine": {}}\n')
    with pytest.raises(SettingsError, match=r"of another release \(format 1, not 2\)"):
        read_run(path)
