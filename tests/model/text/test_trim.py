"""Edits of several lines are cut back to where they add no syntax error."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.edits.syntax_errors import count_added_errors, trim_to_valid

TEXT = "def f(a):\n    b = a\n    return b\n\n\nx = f(1)\ny = f(2)\n"


def edit(old: str, new: str, text: str = TEXT) -> Edit:
    at = text.index(old)
    return Edit(text, at, at + len(old), new)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("x = f(1)\ny = f(2)\n", "x = f(1, 2)\ny = f(2,, 3\n", "x = f(1, 2)\ny = f(2)\n"),
        ("x = f(1)\n", "x = f(1)\nz = 3\nif (((\n", "x = f(1)\nz = 3\n"),
        ("    return b\n", "    c = b\n    return c)\n", None),
        ("x = f(1)\n", "x = f((\n", None),
        ("x = f(1)\n", "x = f(3)\nz = 4\n", "x = f(3)\nz = 4\n"),
    ],
)
def test_what_is_kept_adds_no_error(old: str, new: str, kept: str | None) -> None:
    made = edit(old, new)
    found = trim_to_valid(made, "a.py", "python")
    if kept is None:
        assert found is made or not count_added_errors(found, "a.py", "python")
    else:
        assert found.new == kept


def test_where_there_is_no_grammar_all_is_kept() -> None:
    made = edit("x = f(1)\n", "((((\n))((\n")
    assert trim_to_valid(made, "a.unknown", "unknown") is made


def test_a_file_that_is_broken_nearby_excuses_the_edit() -> None:
    text = "x = ((\n" + TEXT
    made = edit("def f(a):\n", "def f(a:\n    pass)\n", text)
    assert trim_to_valid(made, "a.py", "python") is made
