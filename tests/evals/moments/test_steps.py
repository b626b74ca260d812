"""Steps of a change, typed into the language server: what is asked, shown and kept for the gate."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redraft.evals.example import Example, Row
from redraft.evals.gate.curves import moments_of
from redraft.evals.gate.samples import candidates_for_gate
from redraft.evals.gate.shipped_fit import samples_of
from redraft.evals.predictors import ReadyPredictor
from redraft.evals.replay.simulated_predictor import ReplayPredictor
from redraft.evals.run import Run
from redraft.evals.scorers.step_tables import questions, tables
from redraft.evals.spec import RunSpec
from redraft.evals.steps.walk_player import take_all
from redraft.evals.steps.walk_runs import play_all
from redraft.evals.steps.walk_scores import takes_back
from redraft.evals.steps.walks import AskedWalk, choose_walks, scenes
from redraft.lsp.editor_settings import LspSettings
from redraft.model.errors import SettingsError
from redraft.model.records import EditRequest, Prediction, Stats
from redraft.server.commands.main import app
from support.editors.predictor import READY, predicted, rewrite
from support.weights.training_sources import write_lines
from typer.testing import CliRunner

#: Git lists the files of a walk, which lie in a temporary folder.
pytestmark = pytest.mark.usefixtures("spawn")

Ask = Callable[[EditRequest], Prediction]

BEFORE = """\
def area(width, height):
    return width * height


def volume(width, height, depth):
    return width * height * depth
"""
#: The first step puts a name into the first function, the second one into the other.
FIRST = BEFORE.replace("return width * height\n", "return round(width * height)\n")
AFTER = FIRST.replace("return width * height * depth", "return round(width * height * depth)")


def step(number: int, line: int, new: Sequence[str], **more: bool) -> dict[str, Any]:
    return {"step": number, "start_line": line, "end_line": line + 1, "new_lines": [*new]} | more


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    made = [
        step(1, 1, ["    return round(width * height)"], target=False),
        step(2, 5, ["    return round(width * height * depth)"], target=True),
    ]
    row = {"repo": "r/a", "pr": 1, "path": "shapes.py", "before": BEFORE, "after": AFTER}
    return write_lines(tmp_path / "steps.jsonl.zst", [{**row, "steps": made}])


@pytest.fixture
def commits(tmp_path: Path) -> Path:
    file = {"path": "shapes.py", "language": "python", "before": BEFORE, "after": AFTER}
    records = [
        {"repo": "r/a", "commit": f"{n:010x}".ljust(40, "0"), "time": n, "files": [file]}
        for n in range(4)
    ]
    return write_lines(tmp_path / "x-commits.jsonl.zst", records)


def played(walks: Sequence[AskedWalk], ask: Ask, *, asks_all: bool = False) -> Run:
    run = Run(RunSpec("steps", "x-commits.jsonl.zst", latency_ms=100.0))
    play_all(walks, ReadyPredictor(ask, READY, lambda: None), run.spec, run, asks_all=asks_all)
    return run


def right(request: EditRequest) -> Prediction:
    """Return the edit that is still to come."""
    return rewrite(request, "width * height * depth", "round(width * height * depth)", 0.99)


def rows(run: Run) -> tuple[Row, Row]:
    first, last = run.rows()
    return first, last


def test_a_right_edit_is_found_right(steps: Path) -> None:
    requests: list[EditRequest] = []

    def ask(request: EditRequest) -> Prediction:
        requests.append(request)
        return predicted() if "round(width * height * depth)" in request.text else right(request)

    (asked,) = choose_walks(steps, None, 0, 2)
    assert asked.after == {1, 2}
    first, last = rows(played([asked], ask))
    assert requests[0].text == FIRST and "+    return round(" in requests[0].edits[-1].diff
    assert first["right"] and first["exact_shown"] and first["kept_shown"] and first["next_shown"]
    assert (first["next"], last["next"]) == ("3-12 lines", "nothing left")
    assert (first["reversal"], last["quiet"], last["right"]) == (False, True, None)


def test_a_step_may_have_several_hunks_in_a_file(tmp_path: Path) -> None:
    made = [
        step(1, 0, ["def area(wide, height):"], target=False),
        step(1, 1, ["    return wide * height"], target=True),
        step(2, 5, ["    return round(width * height * depth)"], target=True),
    ]
    row = {"repo": "r/a", "pr": 1, "path": "shapes.py", "before": BEFORE, "after": AFTER}
    file = write_lines(tmp_path / "steps.jsonl.zst", [{**row, "steps": made}])
    [asked] = choose_walks(file, None, 0, 3)
    assert [each.change.first for each in asked.walk.steps] == [0, 1, 5]


def test_an_edit_at_the_right_place_is_not_right(steps: Path) -> None:
    def ask(request: EditRequest) -> Prediction:
        return rewrite(request, "* height * depth", "* height * depth * 1", 0.99)

    first, last = rows(played(choose_walks(steps, None, 0, 2), ask))
    assert first["shown"] and first["place_shown"]
    assert not (first["right"] or first["exact_shown"] or first["kept_shown"])
    assert last["quiet"] is False


def test_an_edit_that_takes_the_user_back_is_counted() -> None:
    assert takes_back([BEFORE], FIRST, FIRST.replace("round(width * height)", "width * height"))
    assert not takes_back([BEFORE], FIRST, AFTER)


def test_outcomes_ask_at_all_places_and_show_nothing(commits: Path) -> None:
    walks = choose_walks(commits, 8, 0, 2)
    run = played(walks, right, asks_all=True)
    assert not any(row["shown"] for row in run.rows())
    samples = samples_of(candidates_for_gate(run))["next_edit"]
    assert [each.kept for each in samples] == [moment["right"] is not None for moment in run.rows()]
    assert {"chance", "left", "certain"} <= samples[0].features.keys()
    assert len(moments_of([run])) == len(run.examples)


def test_samples_are_nested_and_alternate_repositories(tmp_path: Path) -> None:
    file = {"path": "a.py", "language": "python", "before": BEFORE, "after": AFTER}
    records = [
        {"repo": repo, "commit": f"{n:010x}".ljust(40, "0"), "time": n, "files": [file]}
        for repo in ("r/a", "r/b")
        for n in range(6)
    ]
    path = write_lines(tmp_path / "x-commits.jsonl.zst", records)
    small, large = choose_walks(path, 4, 0, 2), choose_walks(path, 12, 0, 2)
    assert {one.walk.repo for one in small} == {"r/a", "r/b"}
    assert [one.walk.id for one in large[: len(small)]] == [one.walk.id for one in small]


def test_tables_and_a_run_that_is_continued(commits: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    asked = ["eval", "steps", str(commits), "--baseline", "rules", "--latency-ms", "50"]
    for more in ([], ["--resume"]):
        done = CliRunner().invoke(
            app, [*asked, "--limit", "4", "--out", str(out), *more], catch_exceptions=False
        )
        assert done.exit_code == 0 and "a right edit is shown" in done.output
    run = played(choose_walks(commits, 4, 0, 2), right)
    (table, *_) = tables(run.rows(), 0)
    assert table.title == "next edits after ordered steps"


def test_each_question_has_its_time_and_reused_share(steps: Path) -> None:
    def ask(request: EditRequest) -> Prediction:
        return replace(predicted(), stats=Stats(prompt_tokens=100, reused_tokens=40))

    run = played(choose_walks(steps, None, 0, 2), ask)
    found = questions(run.rows())
    assert [each["place"] for each in found] == ["first question", "later question"]
    # The pause of 0.3 s after the last key, and an answer that takes 0.1 s.
    assert all((each["decided_ms"], each["reused"]) == (400.0, 0.4) for each in found)
    assert [each["group"] for each in found] == ["r/a#1"] * 2
    titles = [table.title for table in tables(run.rows(), 0)]
    assert titles.count("questions to the model, at new places and known ones") == 1


def test_a_question_without_prompt_has_no_reused_share(steps: Path) -> None:
    def ask(request: EditRequest) -> Prediction:
        return replace(predicted(), stats=Stats())

    run = played(choose_walks(steps, None, 0, 2), ask)
    assert [each["reused"] for each in questions(run.rows())] == [None, None]


def test_what_is_neither_commits_nor_steps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "steps.jsonl.zst").write_bytes(b"no zstd")
    with pytest.raises(SettingsError, match="neither commits nor steps"):
        choose_walks(tmp_path / "steps.jsonl.zst", None, 0, 2)


def test_a_scene_is_carried_through_by_tabs(steps: Path) -> None:
    def ask(request: EditRequest) -> Prediction:
        return predicted() if "round(width * height * depth)" in request.text else right(request)

    (asked,) = choose_walks(steps, None, 0, 2)
    found = take_all(asked.walk, ReplayPredictor(ask, READY, 50.0), LspSettings(), 5)
    assert found.texts == [AFTER] and len(found.taken) == 1 and found.reason


def test_scenes_lead_from_typed_edits_to_wanted_text() -> None:
    found = scenes()
    assert len(found) == 26 and len({walk.id for walk in found}) == 26
    for walk in found:
        texts = [list(file.before) for file in walk.files]
        typed = [step.is_typed for step in walk.steps]
        assert typed == sorted(typed, reverse=True) and 0 < sum(typed) < len(typed)
        for step in walk.steps:
            texts[step.file][step.change.first : step.change.last] = step.change.new
        assert texts == [list(file.after) for file in walk.files], walk.id


def test_scenes_are_played_without_a_model(tmp_path: Path) -> None:
    told = tmp_path / "scenes.json"
    asked = ["eval", "scenes", "--baseline", "rules", "--latency-ms", "50", "--json", str(told)]
    name = "rename-parameter-py"
    done = CliRunner().invoke(app, [*asked, "--only", name], catch_exceptions=False)
    assert done.exit_code == 0 and "1 of 1 are carried through" in done.output, done.output
    assert json.loads(told.read_text())["scenes"][0]["name"] == name
    done = CliRunner().invoke(app, [*asked, "--only", "nothing"])
    assert isinstance(done.exception, SettingsError) and name in str(done.exception)


def test_a_moment_can_be_read_again(steps: Path) -> None:
    run = played(choose_walks(steps, None, 0, 2), right)
    for example in run.examples.values():
        assert Example.from_json(example.to_json()) == example
