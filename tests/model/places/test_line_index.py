"""Index of lines: facts of a line, and changes that lead to the same index as a fresh reading."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.model.places.last_edits import LastEdits
from redraft.model.places.line_facts import Kind, facts_of, kind_of, parts_of
from redraft.model.places.line_features import columns_of
from redraft.model.places.line_index import LineIndex
from redraft.model.records import RecentEdit

LINES = st.lists(
    st.sampled_from(
        [
            "",
            "def area(r):",
            "    return r * 2",
            "print(area(2))",
            "class Shape:",
            "x = 1",
            "# no",
            "}",
        ]
    ),
    min_size=1,
    max_size=12,
)
EDITS = LastEdits([RecentEdit("a.py", 0, " x\n-def area(r):\n+def area(r, pi):\n     return r\n")])


def assert_same(one: LineIndex, other: LineIndex) -> None:
    assert one.lines == other.lines
    for name in ("words", "parts", "uses"):
        pairs = []
        for index in (one, other):
            postings = getattr(index, name)
            assert (postings.tokens[1:] >= postings.tokens[:-1]).all()
            pairs.append(sorted(zip(postings.tokens.tolist(), postings.rows.tolist(), strict=True)))
        assert pairs[0] == pairs[1]
    for name in ("shape", "first", "first_two", "last", "kind", "indent", "length", "text"):
        assert (getattr(one, name) == getattr(other, name)).all()


@settings(max_examples=150, deadline=None)
@given(LINES, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), LINES), max_size=6))
def test_index_after_splices_equals_a_fresh_one(
    text: list[str], splices: list[tuple[int, int, list[str]]]
) -> None:
    index = LineIndex.of(text)
    for at, removed, new in splices:
        first = min(at, len(text))
        last = min(first + removed, len(text))
        text = [*text[:first], *new, *text[last:]]
        index = index.replace_lines(first, last, text, new)
    fresh = LineIndex.of(text)
    assert_same(index, fresh)
    one, other = (columns_of(each, EDITS, "a.py", "python") for each in (index, fresh))
    for name, values in one.items():
        assert np.allclose(values, other[name], atol=1e-6), name


@settings(max_examples=150, deadline=None)
@given(LINES, LINES)
def test_index_follows_a_text_into_any_other(before: list[str], after: list[str]) -> None:
    assert_same(LineIndex.of(before).follow(after), LineIndex.of(after))


def test_index_of_the_same_lines_is_itself() -> None:
    index = LineIndex.of(["a", "b"])
    assert index.follow(["a", "b"]) is index


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", Kind.BLANK),
        ("   ", Kind.BLANK),
        ("# why", Kind.COMMENT),
        ("  // why", Kind.COMMENT),
        ("#include <a.h>", Kind.IMPORT),
        ("#[derive(Debug)]", Kind.DECORATOR),
        ('    """Return it."""', Kind.DOCSTRING),
        ("from a import b", Kind.IMPORT),
        ("const a = require('a')", Kind.IMPORT),
        ("async def area(r):", Kind.FUNCTION),
        ("pub(crate) fn area(r: f64) -> f64 {", Kind.FUNCTION),
        ("  it('works', () => {", Kind.FUNCTION),
        ("  public double area(double r) {", Kind.FUNCTION),
        ("export abstract class Shape {", Kind.CLASS),
        ("impl Shape for Circle {", Kind.CLASS),
        ("    return r", Kind.RETURN),
        ("    raise ValueError(r)", Kind.RAISE),
        ("    } else if (r) {", Kind.CONTROL),
        ("  case 3:", Kind.CASE),
        ("    assert area(2)", Kind.ASSERT),
        ("  expect(area(2)).toBe(3)", Kind.ASSERT),
        ("    'name': 3,", Kind.ENTRY),
        ("    name,", Kind.ITEM),
        ("  });", Kind.CLOSING),
        ("self.total = 3", Kind.ASSIGNMENT),
        ("const total = 3;", Kind.ASSIGNMENT),
        ("await area(2)", Kind.CALL),
        ("a + b", Kind.OTHER),
    ],
)
def test_kind_of_a_line(line: str, kind: Kind) -> None:
    assert kind_of(line) == kind


def test_names_are_read_in_parts() -> None:
    assert [*parts_of(["readFile", "HTTP_port", "def"])] == ["read", "file", "http", "port"]


@given(st.text(max_size=500))
def test_any_line_has_facts(line: str) -> None:
    assert facts_of(line).length <= 200
