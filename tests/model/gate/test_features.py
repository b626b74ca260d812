"""Features of candidates that depend on the request, and the ones that the gate weighs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
from redraft.model.gate.features import FEATURES, features_of, place_features, with_features
from redraft.model.records import Candidate, Confidence, EditRequest, RecentEdit, RelatedFile, Task

TEXT = "import math\n\n\ndef area(radius):\n    return \n"
AT = TEXT.index("return ") + len("return ")
SURE = Confidence(0.9, 0.8, 0.95, total=-0.5)


def features(written: str, text: str = TEXT, at: int = AT, **more: object) -> dict[str, float]:
    request = EditRequest("infill", "a.py", text, at, "python", **more)  # type: ignore[arg-type]
    [made] = with_features(request, [Candidate(at, at, written, SURE, 5, 1, "end")])
    return made.features


def test_a_good_completion_has_no_unknown_names() -> None:
    found = features("math.pi * radius ** 2")
    assert (found["errors"], found["unknown"], found["quoted"], found["again"]) == (0, 0, 0, 0)
    assert (found["lines"], found["removes"]) == (math.log(2), 0)


def test_an_unclosed_bracket_is_an_error_more() -> None:
    assert features("math.sqrt((radius")["errors"] > 0


def test_closing_a_bracket_removes_a_syntax_error() -> None:
    text = "print(1 + \nx = 2\n"
    assert features("1)", text, text.index("+ ") + 2)["errors"] < 0


def test_names_in_excerpts_and_edits_are_known() -> None:
    assert features("diameter / len(halves)")["unknown"] == 2
    related = (RelatedFile("b.py", "def diameter(): ..."),)
    edits = (RecentEdit("c.py", 0, "+halves = 2\n"),)
    assert features("diameter / len(halves)", related=related, edits=edits)["unknown"] == 0


def test_a_name_within_another_is_not_that_name() -> None:
    assert features("radiu")["unknown"] == 1
    assert features("rad")["unknown"] == 1


def test_words_in_strings_and_comments_are_no_names() -> None:
    assert features("'nothing like this'  # whatever that means")["unknown"] == 0
    text = "# the \nx = 1\n"
    assert features("quick brown fox", text, 6)["quoted"]
    assert features("quick brown fox", text, 6)["unknown"] == 0


def test_a_line_that_stands_there_already_is_told() -> None:
    assert features("\n\nimport math")["again"]


def test_without_a_grammar_errors_cannot_be_told() -> None:
    request = EditRequest("infill", "a.unknown", "x = \n", 4)
    [made] = with_features(request, [Candidate(4, 4, "(", SURE, 1, 1, "end")])
    assert "errors" not in made.features


def test_no_candidates_have_no_features() -> None:
    assert with_features(EditRequest("infill", "a.py", TEXT, AT), []) == ()


@pytest.mark.parametrize("task", get_args(Task)[:2])
def test_every_feature_is_a_number_or_left_out(task: Task) -> None:
    bare = Candidate(0, 0, "x", Confidence(0.0, 0.0, 0.0), 0, 0, "length")
    sure = replace(SURE, place=-1.0, nothing=-2.0, logs=(-0.1, -3.0), lines=(-3.1,))
    request = EditRequest(task, "a.py", TEXT, AT, "python")
    whole = [Candidate(AT, AT, each, sure, 5, 1, "end") for each in ("radius", "math")]
    pace = {"rested": 7.0, "speed": 1.4, "previous": 0.0, "acceptance": 0.25}
    found = features_of(with_features(request, whole)[0], pace)
    if task == "next_edit":  # the language server knows the place
        found |= place_features([], [], is_certain=True)
    assert found.keys() >= set(FEATURES[task])
    for name, value in (*found.items(), *features_of(bare).items()):
        assert abs(value) < 100, name


def edit_of(old: str, new: str) -> RecentEdit:
    return RecentEdit("a.py", 3, f"-{old}\n+{new}\n")


@pytest.mark.parametrize(
    ("edits", "undone"),
    [
        ((), False),
        ((edit_of("area = 1", "size = 1"), edit_of("size = 1", "area = 1")), True),
        ((edit_of("area = 1", "size = 1"),), False),  # put in, and there may be more of it
        ((edit_of("size = 1", "area = 1"),), False),  # it was there before: it may go elsewhere
        ((edit_of("area = 1", "size = 1"), edit_of("size = 1", "size_of = 1")), False),  # typed on
        ((edit_of("area = 1", "size = 1"), edit_of("size = 1", "edge = 1")), False),  # exchanged
        ((RecentEdit("a.py", 3, "+size = 1\n"), RecentEdit("a.py", 3, "-size = 1\n")), True),
        (
            (
                edit_of("area = 1", "size = 1"),
                edit_of("size = 1", "area = 1"),
                edit_of("area = 1", "size = 2"),
            ),
            False,
        ),
    ],
)
def test_a_name_put_in_and_taken_out_is_told(edits: tuple[RecentEdit, ...], undone: bool) -> None:
    assert features("size * 2", edits=edits)["undone"] == undone
    assert features("Size * 2", edits=edits)["undone"] == undone  # in whatever case
    assert features("'no size'", edits=edits)["undone"] == undone
    assert not features("size * 2", "size = 1\n" + TEXT, AT + 9, edits=edits)["undone"]
