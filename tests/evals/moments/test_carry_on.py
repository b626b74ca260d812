"""The scenarios of ``redraft eval edits --suite carry-on``, and how answers to them are judged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.evals.example import Example, Row
from redraft.evals.pipeline import evaluate
from redraft.evals.predictors import baseline
from redraft.evals.run import Run
from redraft.evals.scorers.next_edit_scores import decide, score
from redraft.evals.scorers.next_edit_scores import suite_tables as tables
from redraft.evals.sources.carry_on import LANGUAGES, read_scenario, records, scenarios
from redraft.evals.spec import RunSpec
from redraft.model.edits.hunks import hunks_of
from redraft.model.errors import SettingsError
from redraft.model.records import Candidate, Confidence, EditRequest, Prediction, RecentEdit, Source
from redraft.model.text.syntax import count_errors, parse
from redraft.server.commands.main import app
from typer.testing import CliRunner

ALL = scenarios()
QUIET = {"all done", "edit undone", "unrelated edit", "white space"}
BEFORE = {each.id: data["before"] for each, data in zip(ALL, records(), strict=True)}
SPEC = RunSpec("carry-on", context_tokens=1_024, max_tokens=64, threshold=0.88)


def errors(text: str, language: str) -> int:
    syntax = parse(text, language)
    assert syntax is not None
    return count_errors(syntax)


def by_name(scenario: Example) -> str:
    return scenario.id


def test_there_is_one_of_each_kind_in_each_language() -> None:
    assert len(ALL) == len({each.id for each in ALL}) == 120
    kinds = Counter(each.kind for each in ALL)
    assert len(kinds) == 20 and set(kinds.values()) == {len(LANGUAGES)}
    assert Counter(each.language for each in ALL) == dict.fromkeys(LANGUAGES, 20)
    assert len(set(BEFORE.values())) == 120


def test_one_in_five_has_nothing_to_come() -> None:
    assert {each.kind for each in ALL if not each.truth.texts} == QUIET
    assert all(bool(each.truth.texts) != (each.kind in QUIET) for each in ALL)


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_a_scenario_is_whole(scenario: Example) -> None:
    moment, before = scenario.moment, BEFORE[scenario.id]
    assert 12 <= before.count("\n") + 1 <= 40
    assert 0 <= moment.cursor <= len(moment.text)
    assert errors(before, scenario.language) == 0
    assert all(wanted != moment.text for wanted in scenario.truth.texts)
    for text in scenario.truth.texts or (moment.text,):
        assert errors(text, scenario.language) == 0
    assert len(hunks_of(moment.text.split("\n"), scenario.truth.final.split("\n"))) <= 6


@pytest.mark.parametrize("scenario", ALL, ids=by_name)
def test_its_history_leads_from_before_to_the_text(scenario: Example) -> None:
    text, moment = BEFORE[scenario.id], scenario.moment
    for edit in moment.edits:
        text = applied(edit, text)
    if scenario.kind == "half-typed":
        assert text != moment.text
        assert moment.text[moment.cursor] == "\n", "the rest of the line is yet to be typed"
    else:
        assert text == moment.text and moment.edits


def applied(edit: RecentEdit, text: str) -> str:
    lines = edit.diff.split("\n")[:-1]
    old = [line[1:] for line in lines if line[0] in " -"]
    new = [line[1:] for line in lines if line[0] in " +"]
    was = text.split("\n")
    assert was[edit.line : edit.line + len(old)] == old
    return "\n".join([*was[: edit.line], *new, *was[edit.line + len(old) :]])


DATA = {
    "kind": "rename",
    "path": "a.py",
    "before": "total = 1\nprint(total)\nsave(total)\n",
    "history": [["total = 1", "count = 1"]],
    "next": [["print(total)", "print(count)"], ["save(total)", "save(count)", "keep(count)"]],
}


def test_any_expected_edit_or_sequence_is_a_truth() -> None:
    scenario = read_scenario(DATA)
    assert scenario.moment.text == "count = 1\nprint(total)\nsave(total)\n"
    assert scenario.moment.prefix == "count"
    assert scenario.truth.texts == (
        "count = 1\nprint(count)\nsave(total)\n",
        "count = 1\nprint(total)\nsave(count)\n",
        "count = 1\nprint(total)\nkeep(count)\n",
        "count = 1\nprint(count)\nsave(count)\n",
        "count = 1\nprint(count)\nkeep(count)\n",
    )


def test_an_edit_in_progress_is_no_recent_edit() -> None:
    scenario = read_scenario(DATA | {"typing": True, "cursor": "print(‸total)"})
    assert scenario.moment.edits == ()
    assert scenario.moment.suffix.startswith("total)\nsave")


def test_a_text_that_is_not_there_once_is_named() -> None:
    with pytest.raises(ValueError, match=r"rename \(python\): 'total' occurs 3 times"):
        read_scenario(DATA | {"history": [["total", "count"]]})
    with pytest.raises(ValueError, match="'gone' occurs 0 times"):
        read_scenario(DATA | {"next": [["gone", "here"]]})


def said(scenario: Example, old: str, new: str, source: Source = "model") -> Prediction:
    at = scenario.moment.text.index(old)
    sure = Confidence(0.95, 0.95, 0.95)
    made = Candidate(at, at + len(old), new, sure, 3, 1, "end", source=source)
    return Prediction("1", "m", (made,))


def judged(scenario: Example, prediction: Prediction, least: float) -> Row:
    answered = replace(scenario, prediction=prediction)
    return replace(answered, score=score(replace(answered, decision=decide(answered, least)))).row()


def test_an_answer_is_compared_with_the_nearest_truth() -> None:
    scenario = read_scenario(DATA)
    for old, new in (("print(total)", "print(count)"), ("save(total)", "keep(count)")):
        found = judged(scenario, said(scenario, old, new), 0.9)
        assert found["shown"] and found["exact_shown"] and found["chrf_shown"] == 100
        assert found["kind"] == "rename" and found["quiet"] is None
    near = judged(scenario, said(scenario, "save(total)", "save(count, 1)"), 0.9)
    assert not near["exact_shown"] and 50 < near["chrf_shown"] < 100
    unsure = judged(scenario, said(scenario, "save(total)", "save(count)"), 0.99)
    assert unsure["shown"] is False and unsure["chrf_shown"] is None and unsure["exact"]


def test_the_likeliest_edit_is_scored_if_not_shown() -> None:
    scenario = read_scenario(DATA)
    right = said(scenario, "print(total)", "print(count)").candidates[0]
    right = replace(right, confidence=Confidence(0.5, 0.5, 0.5))
    wrong = said(scenario, "save(total)", "save(count, count)").candidates[0]
    found = judged(scenario, Prediction("1", "m", (right, wrong)), 0.9)
    assert found["exact"] and found["chrf"] == 100 and not found["exact_shown"]


def test_silence_is_right_where_no_edit_is_expected() -> None:
    scenario = read_scenario(DATA | {"next": []})
    assert judged(scenario, said(scenario, "save(total)", "save(count)"), 0.9)["quiet"] is False
    assert judged(scenario, Prediction("1", "m", ()), 0.9)["quiet"] is True


def test_model_and_rules_are_told_apart() -> None:
    scenario = read_scenario(DATA)
    model = said(scenario, "print(total)", "print(1)").candidates
    rule = said(scenario, "print(total)", "print(count)", "repeat").candidates
    found = judged(scenario, Prediction("1", "m", (*model, *rule)), 0.9)
    assert found["exact_shown"] is False, "the first one is shown"
    assert found["model_exact_shown"] is False
    assert found["rules_exact_shown"] is True


def test_tables_have_rows_for_kinds_and_languages() -> None:
    quiet = read_scenario(DATA | {"next": []})
    few = [read_scenario(DATA), replace(quiet, id="quiet", tags=quiet.tags | {"kind": "q"})]
    episodes = evaluate(few, Run(SPEC), baseline("none"))
    assert [each["shown"] for each in episodes] == [False, None]
    right = judged(few[0], said(few[0], "print(total)", "print(count)"), 0.9)
    whole, halves, languages, kinds = tables([right | {"total_ms": 5.0}, episodes[1]], seed=0)
    assert whole.rows[0].figures["show/quiet score"].value == 1.0
    assert {row.label: row.figures["shown"].value for row in halves.rows} == {
        "model alone": 1.0,
        "rules alone": 0.0,
    }
    assert [row.label for row in languages.rows] == ["python"]
    assert [row.label for row in kinds.rows] == ["rename", "q"], "the quiet ones come last"


def test_the_rules_baseline_repeats_a_recent_edit() -> None:
    diff = "-    old = open(a)\n+    old = open(a, mode)\n"
    edit = RecentEdit("a.py", 0, diff)
    text = "    old = open(a, mode)\n    b = 1\n    old = open(a)"
    asked = EditRequest("next_edit", "a.py", text, 5, edits=(edit,))
    first = baseline("rules").ask(asked).candidates[0]
    assert text[: first.start] + first.text + text[first.end :] == (
        "    old = open(a, mode)\n    b = 1\n    old = open(a, mode)"
    )
    assert first.source == "repeat" and 0 < (first.confidence.repeat or 0) < 1
    assert not baseline("rules").ask(replace(asked, edits=())).candidates


@pytest.mark.usefixtures("spawn")
def test_the_command_asks_the_suite_or_commits(tmp_path: Path) -> None:
    out, told = tmp_path / "run.jsonl", tmp_path / "told.json"
    redraft("--suite", "carry-on", "--baseline", "rules", "--out", str(out), "--json", str(told))
    assert len(out.read_text().splitlines()) == 121
    summary = json.loads(told.read_text())
    assert summary["settings"]["source"] == "carry-on"
    assert [table["title"] for table in summary["tables"]] == [
        "carrying on", "by whom the edit comes from", "by language", "by kind",
    ]  # fmt: skip
    for wrong in ([], ["--suite", "carry-on", "--commits", "x"]):
        with pytest.raises(SettingsError, match="either --commits"):
            redraft(*wrong, "--baseline", "rules")
    with pytest.raises(SettingsError, match="for --commits"):
        redraft("--suite", "carry-on", "--baseline", "rules", "--ablate")


def redraft(*arguments: str) -> None:
    CliRunner().invoke(app, ["eval", "edits", *arguments], catch_exceptions=False)
