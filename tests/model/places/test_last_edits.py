"""Last edits as the ranker of places reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.places.last_edits import LastEdits, place_edits
from redraft.model.records import RecentEdit


def edit(diff: str, line: int = 0, path: str = "a.py") -> RecentEdit:
    return RecentEdit(path, line, diff)


@pytest.mark.parametrize(
    ("later", "line"),
    [
        (edit("+new\n+lines\n", 2), 12),  # above
        (edit("-gone\n", 2), 9),
        (edit("+new\n", 20), 10),  # below
        (edit("+new\n", 2, "b.py"), 10),  # in another file
        (edit("-a\n+a = 1\n", 2), 10),
        (edit(" x\n+new\n", 9), 11),  # right above
    ],
)
def test_an_earlier_change_moves_with_later_ones(later: RecentEdit, line: int) -> None:
    changes = place_edits([edit("-old\n+now\n", 10), later])
    assert [each.change.first for each in changes if each.change.old == ("old",)] == [line]


def test_newest_change_is_first() -> None:
    edits = LastEdits([edit("-one\n+two\n"), edit("-three\n+four\n", 5, "b.py")])
    assert edits.path == "b.py"
    assert [*edits.removed] == ["three", "one"]
    assert edits.removed["one"] < edits.removed["three"]
    assert (edits.end("b.py"), edits.end("a.py")) == (5, None)


def test_each_run_of_a_diff_is_a_change() -> None:
    changes = place_edits([edit(" a\n-b\n+c\n d\n+e\n", 4)])
    assert [(each.change.first, each.change.new) for each in changes] == [(7, ("e",)), (5, ("c",))]
    assert [(each.above, each.below) for each in changes] == [("d", ""), ("a", "d")]


def test_definitions_that_come_and_go() -> None:
    assert LastEdits([edit("-def area(r):\n+def size(r):\n")]).defined == ({"size"}, {"area"})


def test_no_edits_have_no_path() -> None:
    edits = LastEdits(())
    assert (edits.path, edits.changes, edits.brackets, edits.indent) == ("", [], 0, 0)


@given(st.lists(st.text(alphabet=" +-\nab(){}=:😀\t", max_size=80), max_size=4))
def test_no_diff_is_an_error(diffs: list[str]) -> None:
    edits = LastEdits([edit(diff) for diff in diffs])
    assert len(edits.defined) == 2 and edits.uses is not None and edits.brackets is not None
