"""Places where people start to write, what is kept there, and what the gate reads of them."""

from __future__ import annotations

import pytest
from redraft.evals.gate.samples import as_served, is_kept
from redraft.evals.sources.begun import gaps_in_new_code, position_of
from redraft.evals.sources.commits import CommitChange
from redraft.model.decode.sampling import line_logs
from redraft.model.edits.edit import Edit
from redraft.model.gate.blocks import lines_around
from redraft.model.gate.features import features_of
from redraft.model.records import Candidate, Confidence, EditRequest
from support.models.gates import PLAIN

SURE = Confidence(0.9, 0.8, 0.95, total=-0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def area(r):\n    |\n", "empty body"),
        (
            'def area(r):\n    """Return the area.\n\n    In metres.\n    """\n    |\nx = 1\n',
            "empty body",
        ),
        ("def area(r):\n    # by Archimedes\n    |\n\n\ndef other():\n    pass\n", "empty body"),
        ("func Max(a, b int) int {\n\t|\n}\n", "empty body"),
        ("app.get('/health', (req, res) => {\n  |\n});\n", "empty body"),
        ("for f in *.txt; do\n  |\ndone\n", "empty body"),
        ("def area(r):\n    |\n    return 3 * r * r\n", "new line"),
        ("x = 1\n|\n", "new line"),
        ("|\n", "new line"),
        ("x = |\n", "end of a line"),
        ("print(|)\n", "end of a line"),
        ("|x = 1\n", "middle of a line"),
    ],
)
def test_where_the_cursor_stands(text: str, expected: str) -> None:
    cursor = text.index("|")
    assert position_of(text.replace("|", ""), cursor) == expected


def test_lines_around_exclude_brackets_and_blank_lines() -> None:
    text = "import os\n\nclass A {\n  |\n  }\n};\n\nx = 1\n"
    assert lines_around(text.replace("|", ""), text.index("|")) == (2, 1)


GO = """package shapes

import "math"

// Area is that of a circle.
func Area(radius float64) float64 {
	square := radius * radius
	return math.Pi * square
}

func Empty() bool {
	return false
}
"""


def test_whole_bodies_are_cut_out_of_functions() -> None:
    change = CommitChange("a", "a", "shapes.go", "go", "", GO)
    found = [each for each in gaps_in_new_code(change) if each.kind.startswith("body")]
    assert len(found) == 2
    for each in found:
        assert position_of(each.moment.text, each.moment.cursor) == "empty body"
        assert each.middle.lstrip().startswith(("square :=", "return false"))
    [new] = [each for each in found if "new file" in each.kind]
    [inside] = [each for each in found if "new file" not in each.kind]
    assert lines_around(new.moment.text, new.moment.cursor)[1] == 0
    assert inside.truth.texts == (GO,)


def test_text_is_kept_if_half_of_it_remains() -> None:
    text, after = "def f(a):\n    \n", "def f(a):\n    total = count(a)\n    return total\n"
    request = EditRequest("infill", "a.py", text, 14)

    def kept(new: str) -> bool:
        return is_kept(Edit(text, 14, 14, new), request, after)

    assert kept("total = count(a)")
    assert kept("total = count(b)")
    assert not kept("print(a)")
    assert not kept("if a:\n        for b in a:\n            yield b")


def test_only_touching_hunks_keep_a_next_edit() -> None:
    text = "one(1)\nx\nx\nx\nx\ntwo(2)\n"
    after = "one(1)\nx\nx\nx\nx\ntwo(2, deep)\n"
    request = EditRequest("next_edit", "a.py", text, 0)
    here = Edit(text, 15, 21, "two(2, deep)")
    assert is_kept(here, request, after)
    elsewhere = Edit(text, 0, 6, "one(1, deep)")
    assert not is_kept(elsewhere, request, after)


def test_lines_that_serving_cuts_are_not_judged() -> None:
    logs = (-0.5, -0.5, -4.0, -4.0)
    sure = Confidence(0.1, 0.1, 0.6, total=-9.0, logs=logs, lines=(-1.0, -8.0))
    made = Candidate(0, 0, "a = 1\nb = 2", sure, 4, 4, "end")
    first = as_served(made, least=-5.0)
    assert first is not None
    assert (first.text, first.tokens, first.finish) == ("a = 1", 2, "unsure")
    assert first.confidence.total == pytest.approx(-1.0)
    assert first.confidence.lines == (-1.0,)
    assert as_served(made, least=-0.5) is None
    assert as_served(made, least=-20.0) is made


def test_certainty_is_not_read_as_missing() -> None:
    def told(log: float | None) -> float | None:
        sure = Confidence(1.0, 1.0, 1.0, place=log, nothing=log)
        return features_of(Candidate(0, 0, "x", sure, 1, 1, "end")).get("not_nothing")

    certain, nearly = told(0.0), told(-1e-6)
    assert certain is not None and nearly is not None
    assert certain == pytest.approx(nearly, abs=1e-3)
    assert told(None) is None


def test_the_first_line_is_read_by_its_own_probability() -> None:
    def told(*lines: float) -> float | None:
        sure = Confidence(0.5, 0.5, 0.5, total=-9.0, lines=lines)
        return features_of(Candidate(0, 0, "x", sure, 1, 1, "end")).get("line")

    assert told() is None
    assert told(-4.0, -5.0) == -2.0
    assert told(0.0) == 0.0


def test_a_line_probability_includes_its_line_break() -> None:
    tokens = [b"if a", b":\n", b"\n    ", b"b", b""]
    assert line_logs(tokens, [-1.0, -2.0, -3.0, -4.0, -5.0], 0) == (-3.0, -12.0)
    assert line_logs([b"ab", b"c"], [-1.0, -2.0], 1) == (-3.0,)
    assert line_logs([b"\n", b"x"], [-1.0, -2.0], 0) == (-3.0,)


def test_a_standard_library_import_always_scores_one() -> None:
    unsure = Confidence(0.01, 0.01, 0.01, total=-9.0, place=-5.0)
    made = Candidate(0, 0, "import re\n", unsure, 3, 1, "end")
    assert PLAIN.score(made, "next_edit") < 0.1
    standard = Candidate(0, 0, "import re\n", unsure, 3, 1, "end", family="standard")
    assert PLAIN.score(standard, "next_edit") == 1.0
