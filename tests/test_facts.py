"""What can be told of a candidate without a model."""

from __future__ import annotations

import pytest
from redraft.model.edits.facts import with_facts
from redraft.model.edits.gate_features import READINGS, UNKNOWN, WEIGHED, Situation, read
from redraft.model.records import (
    Candidate,
    Confidence,
    EditRequest,
    Facts,
    RecentEdit,
    RelatedFile,
)

TEXT = "import math\n\n\ndef area(radius):\n    return \n"
AT = TEXT.index("return ") + len("return ")
SURE = Confidence(0.9, 0.8, 0.95, total=-0.5)


def facts(written: str, text: str = TEXT, at: int = AT, **more: object) -> Facts:
    request = EditRequest("infill", "a.py", text, at, "python", **more)  # type: ignore[arg-type]
    [made] = with_facts(request, [Candidate(at, at, written, SURE, 5, 1, "end")])
    assert made.facts is not None
    return made.facts


def test_a_good_completion_adds_no_error_and_knows_its_names() -> None:
    found = facts("math.pi * radius ** 2")
    assert (found.errors, found.unknown, found.names) == (0, 0, 2)
    assert (found.lines, found.written, found.removed, found.away) == (1, 21, 0, 0)
    assert (found.quoted, found.again, found.ahead) == (False, False, None)


def test_an_unclosed_bracket_is_an_error_more() -> None:
    assert (facts("math.sqrt((radius").errors or 0) > 0


def test_a_completion_that_closes_a_bracket_mends_an_error() -> None:
    text = "print(1 + \nx = 2\n"
    assert (facts("1)", text, text.index("+ ") + 2).errors or 0) < 0


def test_names_of_excerpts_of_edits_and_of_the_language_are_known() -> None:
    assert facts("diameter / len(halves)").unknown == 2
    related = (RelatedFile("b.py", "def diameter(): ..."),)
    edits = (RecentEdit("c.py", 0, "+halves = 2\n"),)
    assert facts("diameter / len(halves)", related=related, edits=edits).unknown == 0


def test_a_name_within_another_is_not_that_name() -> None:
    assert facts("radiu").unknown == 1
    assert facts("rad").unknown == 1


def test_words_in_strings_and_comments_are_no_names() -> None:
    assert facts("'nothing like this'  # whatever that means").names == 0
    text = "# the \nx = 1\n"
    assert facts("quick brown fox", text, 6).quoted
    assert facts("quick brown fox", text, 6).names == 0


def test_a_line_that_stands_there_already_is_told() -> None:
    assert facts("\n\nimport math").again


def test_an_edit_is_as_far_away_as_its_lines_are() -> None:
    request = EditRequest("next_edit", "a.py", TEXT, 0, "python")
    first = Candidate(AT, AT, "radius", SURE, 5, 1, "end")
    other = Candidate(0, 6, "export", Confidence(0.5, 0.5, 0.5, total=-3.0), 5, 1, "end")
    found = [each.facts for each in with_facts(request, [first, other])]
    assert found[0] is not None and found[1] is not None
    assert (found[0].away, found[1].away) == (4, 0)
    assert (found[0].ahead, found[1].ahead) == (2.5, -2.5)


def test_without_a_grammar_errors_cannot_be_told() -> None:
    request = EditRequest("infill", "a.unknown", "x = \n", 4)
    [made] = with_facts(request, [Candidate(4, 4, "(", SURE, 1, 1, "end")])
    assert made.facts is not None
    assert made.facts.errors is None


def test_no_candidates_have_no_facts() -> None:
    assert with_facts(EditRequest("infill", "a.py", TEXT, AT), []) == ()


@pytest.mark.parametrize("task", WEIGHED)
def test_every_feature_is_a_number_or_not_told(task: str) -> None:
    bare = Candidate(0, 0, "x", Confidence(0.0, 0.0, 0.0), 0, 0, "length")
    whole = Candidate(0, 0, "x", SURE, 5, 1, "end", facts=facts("radius"))
    now = Situation(1_000.0, 2.0, -1.0, 0.3)
    for name in WEIGHED[task]:  # type: ignore[index]
        for each, situation in ((bare, UNKNOWN), (whole, UNKNOWN), (whole, now)):
            value = read(name, each, situation)
            assert value is None or abs(value) < 100, name
    assert set(WEIGHED[task]) <= READINGS.keys()  # type: ignore[index]


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
def test_a_name_that_was_put_in_and_taken_out_again_is_told(
    edits: tuple[RecentEdit, ...], undone: bool
) -> None:
    assert facts("size * 2", edits=edits).undone is undone
    assert facts("Size * 2", edits=edits).undone is undone  # in whatever case
    assert facts("'no size'", edits=edits).undone is undone
    assert not facts("size * 2", "size = 1\n" + TEXT, AT + 9, edits=edits).undone
