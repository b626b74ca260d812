"""Filters and gate over HTTP: they hold in every format and at any eagerness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redraft.lsp.editor_settings import LspSettings
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import recent_edit
from redraft.model.edits.recent_changes import recent_changes
from redraft.model.gate.eagerness import EAGERNESS, Eagerness, threshold
from redraft.model.records import EditRequest, Prediction, RecentEdit
from redraft.server.settings import Settings, load_settings
from support.edit_prompts import (
    mercury_applied,
    mercury_as_cursortab,
    mercury_as_zed,
    mercury_body,
    sweep_as_zed,
    zeta1_applied,
    zeta1_as_zed,
    zeta2_applied,
    zeta2_as_zed,
    zeta21_applied,
    zeta21_as_zed,
)
from support.editors.predictor import LineEdit, ScriptedPredictor, editing, predicted, rewrite_lines
from support.served import events, post, served

#: What the user changed is in the second line.
OLD = ["fn area(r: f64) -> f64 {", "    r * r", "}"]
NEW = ["fn area(r: f64) -> f64 {", "    PI * r * r", "}"]
REGION = "\n".join(NEW)
DIFF = "@@ -1,3 +1,3 @@\n fn area(r: f64) -> f64 {\n-    r * r\n+    PI * r * r\n }\n"
RUST = f"--- a/src/main.rs\n+++ b/src/main.rs\n{DIFF}"

Answered = tuple[str | None, Any]  # the region as its client has it then, and what is said of it


def rewritten(first: int, last: int, *lines: str) -> ScriptedPredictor:
    return editing((first, last, [*lines]), confidence=0.99)


def as_mercury(predictor: ScriptedPredictor, **fields: Any) -> Answered:
    history = RUST.replace("src/main.rs", "src/main.py")
    body = mercury_body(mercury_as_zed("", f"<|cursor|>{REGION}", "", history), **fields)
    _, answer = post("/v1/edit/completions", body, predictor)
    text = answer["choices"][0]["message"]["content"]
    return mercury_applied(text), answer.get("redraft")


def completed(prompt: str, predictor: ScriptedPredictor, fields: Any) -> tuple[str, Any]:
    _, answer = post("/v1/completions", {"prompt": prompt, **fields}, predictor)
    return answer["choices"][0]["text"], answer.get("redraft")


def as_zeta2(predictor: ScriptedPredictor, **fields: Any) -> Answered:
    prompt = zeta2_as_zed("", REGION, "\n", 0, f"<filename>edit_history\n{RUST}")
    text, said = completed(prompt, predictor, fields)
    return zeta2_applied(REGION, text), said


def as_zeta21(predictor: ScriptedPredictor, **fields: Any) -> Answered:
    blocks = [f"{NEW[0]}\n", f"{NEW[1]}\n", NEW[2]]
    prompt = zeta21_as_zed("", blocks, "\n", 0)
    prompt = prompt.replace("<[fim-prefix]>", f"<[fim-prefix]><filename>edit_history\n{RUST}")
    text, said = completed(prompt, predictor, fields)
    new = zeta21_applied(blocks, text)
    return None if new == REGION else new, said


def as_zeta1(predictor: ScriptedPredictor, **fields: Any) -> Answered:
    events = f'User edited "src/main.rs":\n```diff\n{DIFF}```'
    text, said = completed(zeta1_as_zed("", REGION, "", 0, events), predictor, fields)
    new = zeta1_applied(text)
    return None if new == REGION else new, said


def as_sweep(predictor: ScriptedPredictor, **fields: Any) -> Answered:
    old, new = "\n".join(OLD), "\n".join(NEW)
    diff = f"<|file_sep|>src/main.rs.diff\noriginal:\n{old}\nupdated:\n{new}\n"
    text, said = completed(sweep_as_zed(f"{REGION}\n", sections=diff), predictor, fields)
    return text.removesuffix("\n") or None, said


WIRES = (as_mercury, as_zeta2, as_zeta21, as_zeta1, as_sweep)
Wire = Callable[..., Answered]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  PI * r * r", "The model would change only spaces or line breaks."),
        ("    r * r", "The edit would undo what you just typed."),
        ("    PI<|endoftext|> * r", "The model wrote its control token <|endoftext|>."),
    ],
)
def test_no_client_gets_what_is_never_shown(wire: Wire, line: str, reason: str) -> None:
    region, said = wire(rewritten(2, 2, line), eagerness="high")
    assert region is None
    assert said == {"reason": reason, "abstained": "refused"}


@pytest.mark.parametrize("wire", WIRES)
def test_no_client_gets_what_is_too_unsure(wire: Wire) -> None:
    unsure = editing((2, 2, ["    PI * r.powi(2)"]), confidence=0.1)
    region, said = wire(unsure)
    assert region is None
    assert said == {
        "reason": "Hidden: 10 % likely to be kept (medium shows from 11 %). "
        "The field 'eagerness' changes the limit.",
        "abstained": "below_threshold",
    }


@pytest.mark.parametrize("wire", WIRES)
def test_an_edit_against_no_rule_is_answered(wire: Wire) -> None:
    region, said = wire(rewritten(2, 2, "    PI * r.powi(2)"))
    assert region == REGION.replace("r * r", "r.powi(2)")
    assert said is None


@pytest.mark.parametrize("wire", WIRES[1:])
def test_an_edit_that_breaks_the_file_is_not_answered(wire: Wire) -> None:
    region, said = wire(rewritten(2, 2, "    PI * (r * r"), eagerness="high")
    assert region is None
    assert said == {"reason": "The edit would add 1 syntax error.", "abstained": "refused"}


def test_mercury_edits_are_parsed_by_the_files_name() -> None:
    body = mercury_body(mercury_as_zed("", "<|cursor|>x = 1\ny = 2", ""))
    _, answer = post("/v1/edit/completions", body, rewritten(2, 2, "y = (2"))
    assert answer["redraft"]["reason"] == "The edit would add 1 syntax error."


def two(request: EditRequest) -> Prediction:
    """Answer with two candidates; a filter refuses the better one."""
    lines: tuple[LineEdit, LineEdit] = (2, 2, ["    r * r"]), (2, 2, ["    PI * r.powi(2)"])
    return rewrite_lines(request, *lines, confidence=0.99)


def test_a_worse_candidate_within_the_rules_stands_in() -> None:
    region, said = as_mercury(ScriptedPredictor([two]))
    assert region == REGION.replace("r * r", "r.powi(2)")
    assert said is None


def asked(
    lines: list[str], *edits: RecentEdit, path: str = "a.py", line: int = 0
) -> list[LineChange]:
    text = "\n".join(lines)
    cursor = sum(len(each) + 1 for each in lines[:line])
    return recent_changes(EditRequest("next_edit", path, text, cursor, edits=edits))


STATES = (
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"],
    ["a", "B", "c", "d", "e", "f", "g", "h", "i", "j"],
    ["a", "B", "c", "d", "e", "f", "g", "H", "I", "i", "j"],
)
FIRST = recent_edit("a.py", STATES[0], 1, 2, ("B",))
SECOND = recent_edit("a.py", STATES[1], 7, 8, ("H", "I"))


def test_edits_are_found_wherever_the_excerpt_begins() -> None:
    assert asked(STATES[2], FIRST, SECOND) == [
        LineChange(7, ("h",), ("H", "I")),
        LineChange(1, ("b",), ("B",)),
    ]
    there = asked(["z", "z", *STATES[2]], FIRST, SECOND)
    assert there == [LineChange(9, ("h",), ("H", "I")), LineChange(3, ("b",), ("B",))]


@pytest.mark.parametrize("path", ["src/a.py", r"src\a.py", r"C:\w\src\a.py", "C:/w/src/a.py"])
@pytest.mark.parametrize("edited", ["src/a.py", r"src\a.py"])
def test_a_file_is_the_same_by_either_separator(path: str, edited: str) -> None:
    edit = recent_edit(edited, STATES[0], 1, 2, ("B",))
    assert asked(STATES[1], edit, path=path) == [LineChange(1, ("b",), ("B",))]


def test_an_older_edit_moves_with_the_newer_ones() -> None:
    above = recent_edit("a.py", STATES[2], 0, 0, ("new", "lines"))
    text = ["new", "lines", *STATES[2]]
    assert asked(text, FIRST, SECOND, above) == [
        LineChange(0, (), ("new", "lines")),
        LineChange(9, ("h",), ("H", "I")),
        LineChange(3, ("b",), ("B",)),
    ]


def test_a_hunk_of_several_changes_is_as_many_edits() -> None:
    both = RecentEdit("a.py", 0, "-a\n+A\n b\n-c\n-d\n+D\n e\n")
    assert asked(["A", "b", "D", "e"], both) == [
        LineChange(2, ("c", "d"), ("D",)),
        LineChange(0, ("a",), ("A",)),
    ]


def test_an_edit_that_is_not_in_the_text_says_nothing() -> None:
    assert asked(["x", "y"], FIRST) == []
    assert asked(STATES[1], RecentEdit("b.py", FIRST.line, FIRST.diff)) == []
    assert asked(STATES[1], RecentEdit("w/a.py", FIRST.line, FIRST.diff)) == [
        LineChange(1, ("b",), ("B",))
    ]


def test_of_like_places_the_cursors_is_meant() -> None:
    edit = RecentEdit("a.py", 0, "-one\n+two\n")
    lines = ["two", "", "", "", "two"]
    assert asked(lines, edit, line=3) == [LineChange(4, ("one",), ("two",))]
    assert asked(lines, edit, line=1) == [LineChange(0, ("one",), ("two",))]


EDIT = "/v1/edit/completions"
MERCURY = mercury_body(mercury_as_cursortab([], ["a<|cursor|>", "b"], []))


def unsure(confidence: float = 0.1) -> ScriptedPredictor:
    return editing((1, 1, ["changed"]), confidence=confidence)


def content(body: Any) -> str:
    text: str = body["choices"][0]["message"]["content"]
    return text


def test_a_sure_edit_is_given_without_a_reason() -> None:
    _, body = post(EDIT, MERCURY, unsure(0.95))
    assert mercury_applied(content(body)) == "changed\nb"
    assert "redraft" not in body


@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_both_front_ends_have_the_same_thresholds(eagerness: Eagerness) -> None:
    least = threshold(eagerness, "next_edit")
    assert LspSettings(eagerness=eagerness).threshold_in("python", "next_edit") == least
    settings = Settings(eagerness=eagerness, shutdown_s=0.1)
    _, body = post(EDIT, MERCURY, unsure(least + 1e-6), settings)
    assert content(body) != "None"
    if least:
        _, body = post(EDIT, MERCURY, unsure(least - 0.01), settings)
        assert content(body) == "None"


def test_both_front_ends_have_the_same_default() -> None:
    assert Settings().eagerness == LspSettings().eagerness


def test_the_requests_eagerness_precedes_the_servers() -> None:
    low = Settings(eagerness="low", shutdown_s=0.1)
    _, body = post(EDIT, {**MERCURY, "eagerness": "medium"}, unsure(0.2), low)
    assert content(body) != "None"
    _, body = post(EDIT, MERCURY, unsure(0.2), low)
    assert content(body) == "None"


def test_the_environment_sets_the_eagerness() -> None:
    assert load_settings(environment={"REDRAFT_EAGERNESS": "low"}).eagerness == "low"


def test_an_unknown_eagerness_is_refused_with_others() -> None:
    status, body = post(EDIT, {**MERCURY, "eagerness": "greedy"}, unsure())
    assert status == 400
    assert "'low', 'medium', 'high'" in body["error"]["message"]


def surer_second(request: EditRequest) -> Prediction:
    """Two candidates, of which the second is the surer."""
    first = rewrite_lines(request, (1, 1, ["first"]), confidence=0.1)
    second = rewrite_lines(request, (1, 1, ["second"]), confidence=0.97)
    return predicted(*first.candidates, *second.candidates)


def test_only_sure_enough_candidates_are_choices() -> None:
    _, body = post(EDIT, {**MERCURY, "n": 2}, ScriptedPredictor([surer_second]))
    [choice] = body["choices"]
    assert mercury_applied(choice["message"]["content"]) == "second\nb"


def test_a_stream_ends_with_none_and_the_reason() -> None:
    last = events(EDIT, MERCURY, unsure())[-1]
    assert last["choices"][0]["delta"]["content"] == "None"
    assert last["redraft"]["abstained"] == "below_threshold"


def test_infill_is_not_gated() -> None:
    _, body = post("/v1/fim/completions", {"prompt": "x = ", "suffix": "\n"}, ScriptedPredictor())
    assert body["choices"][0]["text"] == "return a + b"


async def test_abstentions_are_counted_by_reason() -> None:
    async with served(unsure()) as (_, client):
        for body in (MERCURY, MERCURY, {**MERCURY, "eagerness": "high"}):
            await (await client.post(EDIT, json=body)).read()
        long_line = mercury_body(mercury_as_cursortab([], ["x" * 5_000 + "<|cursor|>"], []))
        await (await client.post(EDIT, json=long_line)).read()
        spaces = mercury_body(mercury_as_cursortab([], ["changed <|cursor|>"], []))
        await (await client.post(EDIT, json={**spaces, "eagerness": "high"})).read()
        lines = (await (await client.get("/metrics")).text()).split("\n")
    assert 'redraft_abstentions_total{reason="below_threshold"} 2.0' in lines
    assert 'redraft_abstentions_total{reason="long_line"} 1.0' in lines
    assert 'redraft_abstentions_total{reason="refused"} 1.0' in lines
