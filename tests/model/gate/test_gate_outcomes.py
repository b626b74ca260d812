"""Outcomes made from commits, gates side by side on them, and a gate on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.evals.gate.curves import (
    area,
    calibration_error,
    error_by_chance,
    least_risk_coverage,
    moments_of,
    policies,
    rankings,
    reliability,
    risk_coverage,
    row_of,
    rows_of,
    scores_of,
    worths,
)
from redraft.evals.gate.samples import (
    Labelled,
    candidates_for_gate,
    is_right,
    label_candidates,
    newest,
)
from redraft.evals.gate.shipped_fit import fit_gate, judges_among, leave_source_out, samples_of
from redraft.evals.gather import gather
from redraft.evals.run import Run, open_run
from redraft.evals.sources.commits import read_changes
from redraft.evals.sources.known import sample_moments
from redraft.evals.sources.next_edits import steps_in
from redraft.evals.spec import RunSpec
from redraft.model.edits.edit import Edit
from redraft.model.errors import SettingsError
from redraft.model.gate import gate as gate_file
from redraft.model.gate.eagerness import threshold
from redraft.model.gate.features import features_of
from redraft.model.gate.fit_own import Sample
from redraft.model.gate.gate import Gate, Head, read_gate, write_gate
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction
from redraft.server.commands.main import app
from support.models.gates import PLAIN, SHIPPED, write_plain
from support.weights.training_sources import commit, write_lines
from typer.testing import CliRunner

PLAIN_SAYS = scores_of("plain", lambda _: PLAIN)


@pytest.fixture
def commits(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train-commits.jsonl.zst", [commit()])


def outcomes(commits: Path, sure: dict[bool, float]) -> Run:
    """Answered with the truth as surely as ``sure[True]``, and with nonsense as ``sure[False]``."""
    run = Run(RunSpec("outcomes", source=commits.name))
    for known in (*sample_moments(commits, None, 1.0, None, 0), *steps_in(read_changes(commits))):
        asked, after = gather(known, run.spec), known.truth.final
        text, cursor = asked.request.text, asked.request.cursor
        true = (cursor, cursor, after[cursor : len(after) - len(text) + cursor])
        if asked.request.task == "next_edit":
            true = _first_change(text, after)
        false = (cursor, cursor, "wrong")
        if asked.request.task == "next_edit":
            false = (0, text.index("\n"), "wrong = 0")
        made = tuple(
            Candidate(*each, Confidence(p, p, p, total=np.log(p), place=-0.1), 3, 1, "end")
            for each, p in ((true, sure[True]), (false, sure[False]))
            if each[0] != each[1] or each[2]
        )
        run.add(replace(known, request=asked.request, prediction=Prediction("1", "m", made)))
    return run


def _first_change(text: str, after: str) -> tuple[int, int, str]:
    old, new = text.split("\n"), after.split("\n")
    for at, (a, b) in enumerate(zip(old, new, strict=True)):
        if a != b:
            start = sum(len(line) + 1 for line in old[:at])
            return start, start + len(a), b
    return 0, 0, ""


def test_samples_of_moments_are_nested(commits: Path) -> None:
    whole = [each.id for each in sample_moments(commits, None, 1.0, None, 0)]
    assert {each.split(":")[0] for each in whole} == {"gap", "begun"}
    assert [each.id for each in sample_moments(commits, None, 1.0, 2, 0)] == whole[:2]
    assert sample_moments(commits, None, 0.0, None, 0) == []


def test_the_scenarios_judge_and_are_never_fitted_on() -> None:
    infill = "HumanEval-SingleLineInfilling.jsonl.gz"
    for source in ("carry-on", "dev-commits.jsonl.zst", "human-eval", infill):
        assert judges_among([Run(RunSpec("outcomes", source))]) == [source]
    assert judges_among([Run(RunSpec("outcomes", "train-commits.jsonl.zst"))]) == []


def test_only_a_remaining_hunk_is_right() -> None:
    text, after = "a\nb\nc\nd\n", "A\nb\nC\nd\n"
    request = EditRequest("next_edit", "a.py", text, 0)

    def right(start: int, end: int, new: str) -> bool:
        return is_right(Edit(text, start, end, new), request, after)

    assert right(0, 1, "A")
    assert right(4, 5, "C")
    assert right(0, 5, "A\nb\nC")
    assert not right(2, 3, "B")
    assert not right(0, 5, "A\nB\nC")
    assert not right(0, 1, "a")  # no edit


def test_ghost_text_is_right_if_its_lines_match() -> None:
    text, after = "x = \ny\n", "x = one(\n    1)\ny\n"
    request = EditRequest("infill", "a.py", text, 4)

    def right(new: str) -> bool:
        return is_right(Edit(text, 4, 4, new), request, after)

    assert right("one(\n    1)")
    assert right("one(")
    assert right("one(  ")
    assert not right("one(\n    2)")
    assert not right("on")
    assert not right("")


def test_gates_side_by_side(commits: Path) -> None:
    run = outcomes(commits, {True: 0.86, False: 0.6})
    moments = [each for each in moments_of([run]) if not each.is_done]
    shown = {each.name: rows_of(each, moments) for each in policies(PLAIN_SAYS, (), PLAIN_SAYS)}
    assert [each["utility"] for each in shown["gate, medium"]] == [75.0] * len(moments)
    assert next(iter(shown)) == "shipped, medium", "what the others have to beat"
    assert shown["shipped, medium"] == shown["gate, medium"]


def test_a_policy_shows_the_first_sure_candidate(commits: Path) -> None:
    run = outcomes(commits, {True: 0.2, False: 0.9})
    moment = next(each for each in moments_of([run]) if not each.is_done)
    gate = policies(PLAIN_SAYS)
    medium = next(each for each in gate if each.name == "gate, medium")
    told = row_of(medium, moment)
    assert (told["shown"], told["accepted"]) == (True, False)
    assert told["brier"] == pytest.approx(0.9**2)


def test_measures_by_hand() -> None:
    assert area([0.9, 0.8, 0.1], [True, True, False]) == 1.0
    assert area([0.1, 0.9], [True, False]) == 0.0
    assert area([0.5, 0.5], [True, False]) == 0.5  # ties count half
    assert area([0.5, 0.5, 0.2, 0.7], [True, False, False, True]) == 0.875
    assert area([0.5], [True]) is None
    scores, right = [0.2] * 10 + [0.8] * 10, [True] * 2 + [False] * 8 + [True] * 6 + [False] * 4
    assert calibration_error(scores, right, bins=2) == pytest.approx(0.1)
    third = risk_coverage([0.9, 0.8, 0.1], [True, False, True])
    assert third == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    assert risk_coverage([0.9, 0.8, 0.1], [True, True, False]) == pytest.approx(1 / 9)
    assert least_risk_coverage([False, True, True]) == pytest.approx(1 / 9)
    assert risk_coverage([0.5, 0.5], [True, False]) == 0.5  # in whatever order
    assert risk_coverage([], []) is None
    low, high = reliability([0.8, 0.1, 0.9, 0.3], [True, False, True, True], bins=2)
    assert (low.predicted, low.observed, low.n) == (pytest.approx(0.2), 0.5, 2)
    assert (high.predicted, high.observed, high.n) == (pytest.approx(0.85), 1.0, 2)


def test_few_candidates_miss_their_chances_by_chance() -> None:
    few, many = [0.1, 0.3, 0.5, 0.7, 0.9] * 6, [0.1, 0.3, 0.5, 0.7, 0.9] * 600
    assert error_by_chance(few) > 0.08 > 0.02 > error_by_chance(many)
    assert error_by_chance([]) == 0.0


def test_a_session_is_judged_by_a_gate_of_the_others(commits: Path) -> None:
    """A source that is only in one session is left out where that session is judged."""
    run = outcomes(commits, {True: 0.9, False: 0.3})
    [known, *_] = [each for each in candidates_for_gate(run) if each.task == "infill"]

    def session(name: str, right: bool, mean: float) -> list[Labelled]:
        candidate = replace(known.candidate, confidence=Confidence(mean, mean, mean))
        made = replace(known, group=f"{name}:0", candidate=candidate, kept=right, barred="")
        return [made] * 40

    liar = session("liar", True, 0.3) + session("liar", False, 0.9)
    gate_of = leave_source_out(
        samples_of(candidates_for_gate(run)), liar + session("other", True, 0.9)
    )
    sure, unsure = session("", True, 0.95)[0].candidate, session("", True, 0.2)[0].candidate
    for judge, expected in (("liar", True), ("other", False)):
        gate = gate_of(replace(known, group=f"{judge}:1"))
        assert (gate.score(sure, "infill") > gate.score(unsure, "infill")) is expected


def test_a_feature_is_worth_the_auc_lost_without_it(commits: Path) -> None:
    candidates = [
        each
        for one in outcomes(commits, {True: 0.9, False: 0.2}).examples.values()
        for each in label_candidates(one)
    ]
    [mean] = [each for each in worths(PLAIN, candidates) if each.task == "infill"]
    assert (mean.feature, mean.auc_lost) == ("mean", 0.5)
    found = {each.name: each for each in rankings([PLAIN_SAYS], candidates)}
    assert found["plain, policy"].auc == (1.0, 1.0, 1.0)


def test_the_last_run_of_a_moment_counts(commits: Path) -> None:
    before, after = (outcomes(commits, {True: sure, False: 0.2}) for sure in (0.5, 0.9))
    both = newest([before, after])
    assert both.examples == after.examples
    after.examples.pop(next(iter(after.examples)))
    assert len(newest([before, after]).examples) == len(before.examples)


def _score(head: Head, sample: Sample) -> float:
    return head.weigh(head.row(sample.features)).score


def test_a_fitted_gate_scores_right_above_wrong(commits: Path) -> None:
    run = outcomes(commits, {True: 0.9, False: 0.3})
    samples = samples_of(candidates_for_gate(run))
    gate = fit_gate({task: each * 20 for task, each in samples.items()}, "new")
    for task, each in samples.items():
        right, wrong = (
            np.mean([_score(gate.heads[task], one) for one in each if one.kept is kept])
            for kept in (True, False)
        )
        assert right > threshold("low", task) > wrong
    assert fit_gate(samples, "again").heads == fit_gate(samples, "again").heads


def test_the_shipped_gate_is_unchanged_by_a_rewrite(tmp_path: Path) -> None:
    gate, card = read_gate(SHIPPED)
    assert {"infill", "next_edit"} == gate.heads.keys()
    for told in card["heads"].values():
        assert told["candidates"] > 100 and told["kept"] > 50
        assert not any(name in str(told["sources"]) for name in ("dev", "eval", "carry"))
    write_gate(tmp_path / "again.json", gate, card)
    assert read_gate(tmp_path / "again.json") == (gate, card)
    assert [each.name for each in tmp_path.iterdir()] == ["again.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        *({"heads": wrong} for wrong in ({}, 7)),
        {"card": None},
        *({"centre": [wrong]} for wrong in (float("nan"), "x")),
        {"scale": [0.0]},
        {"chance": [1.0]},
        {"policy": [1e300, 0.0]},
        {"variance": [-1.0, 0.0]},
        *({"features": wrong} for wrong in (["made up"], 3)),
    ],
)
def test_a_damaged_gate_is_refused_with_what_to_do(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_plain(tmp_path)
    told = json.loads(path.read_text())
    (field, value), *_ = change.items()
    (told if field in told else told["heads"]["infill"])[field] = value
    path.write_text(json.dumps(told))
    with pytest.raises(SettingsError, match="redraft gate reset"):
        read_gate(path)


def test_a_torn_gate_is_refused(tmp_path: Path) -> None:
    path = write_plain(tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SettingsError, match="no gate"):
        read_gate(path)


def test_a_missing_feature_counts_as_average() -> None:
    head = read_gate(SHIPPED)[0].heads["infill"]
    bare = Candidate(0, 0, "x", Confidence(0.9, 0.9, 0.9), 3, 1, "end")
    row = dict(zip(("one", *head.features), head.row(features_of(bare)), strict=True))
    assert row["errors"] == row["unknown"] == row["rested"] == 0.0
    assert row["mean"] != 0.0


def test_ship_and_eval_gate(commits: Path, tmp_path: Path) -> None:
    run = outcomes(commits, {True: 0.9, False: 0.3})
    path = tmp_path / "train.jsonl"
    with open_run(path, run.spec, {}, resume=False) as written:
        for example in run.examples.values():
            written.add(example)
    made = tmp_path / "made.json"
    done = CliRunner().invoke(app, ["gate", "ship", str(path), "--out", str(made)])
    assert done.exit_code == 0, done.output
    assert isinstance(read_gate(made)[0], Gate)
    options = [str(path), "--gate", str(made)]
    told = CliRunner().invoke(app, ["eval", "gate", *options], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    for part in ("gate, medium", "ranking of candidates", "features of the gate"):
        assert part in told.output


@pytest.mark.usefixtures("spawn")
def test_any_run_with_predictions_feeds_the_gate(commits: Path, tmp_path: Path) -> None:
    run = tmp_path / "edits.jsonl"
    asked = ["eval", "edits", "--commits", str(commits), "--baseline", "copy-last-edit"]
    assert CliRunner().invoke(app, [*asked, "--out", str(run)]).exit_code == 0
    compared = CliRunner().invoke(app, ["eval", "gate", str(run)], catch_exceptions=False)
    assert compared.exit_code == 0 and "gate, medium" in compared.output
    made = tmp_path / "made.json"
    shipped = CliRunner().invoke(app, ["gate", "ship", str(run), "--out", str(made)])
    assert shipped.exit_code == 0 and made.exists()
    (told,) = read_gate(made)[1]["heads"].values()  # no ghost text was asked for
    assert told["sources"] == [commits.name]
    assert read_gate(made)[0].heads["infill"] == gate_file.load_shipped().heads["infill"]


def test_runs_without_candidates_do_not_ship_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "none.jsonl"
    open_run(run, RunSpec("outcomes", "train-commits.jsonl.zst"), {}, resume=False).__exit__()
    written: list[object] = []
    monkeypatch.setattr(gate_file, "write_gate", lambda *given: written.append(given))
    done = CliRunner().invoke(app, ["gate", "ship", str(run)])
    assert isinstance(done.exception, SettingsError)
    assert "hold no candidate" in str(done.exception) and not written


def test_sessions_without_fitted_runs_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["eval", "gate", str(tmp_path / "run.jsonl"), "--sessions"])
    assert isinstance(done.exception, SettingsError)
    assert "--fitted-on" in str(done.exception)


def test_ship_refuses_what_judges(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    open_run(path, RunSpec("outcomes", "dev-commits.jsonl.zst"), {}, resume=False).__exit__()
    done = CliRunner().invoke(app, ["gate", "ship", str(path), "--out", str(tmp_path / "g.json")])
    assert isinstance(done.exception, SettingsError)
    assert "never fitted on" in str(done.exception)
