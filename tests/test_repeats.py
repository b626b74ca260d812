"""Repeated edits, found by comparing text: what is offered again, where, and what never is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.model.records import RecentEdit
from redraft.model.rules.example import RuleEdit
from redraft.model.rules.repeats import find_repeats


def edit(diff: str) -> RecentEdit:
    return RecentEdit("a.py", 0, diff)


def changed(*pairs: tuple[str, str]) -> RecentEdit:
    """Lines that became others, one hunk."""
    old = "".join(f"-{a}\n" for a, _ in pairs)
    return edit(old + "".join(f"+{b}\n" for _, b in pairs))


def found(edits: Sequence[RecentEdit], text: str, cursor: int = 0) -> list[RuleEdit]:
    lines = text.split("\n")
    return find_repeats(edits, lines, 0, len(lines), cursor)


def texts(repeats: Sequence[RuleEdit]) -> list[tuple[str, ...]]:
    return [repeat.lines for repeat in repeats]


RENAME = changed(("def area(w):", "def surface(w):"))


def test_a_rename_is_repeated_where_the_name_stands_nearest_below_first() -> None:
    text = "a = area(1)\n\ndef surface(w):\n\nb = area(2)\n\n\nc = area(3)"
    offered = found([RENAME], text, cursor=2)
    assert texts(offered)[:2] == [("b = surface(2)",), ("c = surface(3)",)]
    assert [repeat.chance for repeat in offered] == sorted(
        (repeat.chance for repeat in offered), reverse=True
    )


def test_a_rename_goes_on_until_no_line_is_left() -> None:
    lines = ["def surface(w):", "x = area(1)", "", "y = area(2)", "", "z = area(area(3))"]
    edits, cursor, made = [RENAME], 0, []
    while offered := find_repeats(edits, lines, 0, len(lines), cursor):
        first = offered[0]
        edits.append(changed((lines[first.first], first.lines[0])))
        lines[first.first : first.last] = first.lines
        cursor = first.first
        made.append(first.first)
    assert made == [1, 3, 5]
    assert "area" not in "\n".join(lines)


def test_only_whole_names_are_renamed() -> None:
    assert found([RENAME], "areas = my_area + area2") == []


def test_nothing_is_offered_where_it_is_so_already() -> None:
    assert found([RENAME], "def surface(w):\n    return surface(w - 1)") == []
    added = changed(("    send(body)", "    send(body, timeout)"))
    assert found([added], "    send(body, timeout)\n    receive(timeout)") == []


def test_an_added_argument_is_repeated_between_the_same_neighbours() -> None:
    added = changed(("    x = send(body)", "    x = send(body, timeout)"))
    offered = found([added], "send(head)\nlog(body)\n    y = send(body)\n")
    assert ("    y = send(body, timeout)",) in texts(offered)
    assert ("send(head, timeout)",) not in texts(offered)


def test_a_number_changes_only_beside_the_same_words() -> None:
    literal = changed(("wait = timeout(10)", "wait = timeout(30)"))
    offered = texts(found([literal], "size = 10\npause = timeout(10)\nlast = timeout(100)"))
    assert offered == [("pause = timeout(30)",)]


def test_what_was_taken_back_is_not_offered_again() -> None:
    back = changed(("def surface(w):", "def area(w):"))
    assert found([RENAME, back], "x = area(1)") == []


def test_neighbouring_lines_are_offered_together_and_alone() -> None:
    offered = found([RENAME], "\n\na = area(1)\nb = area(2)\n")
    both = ("a = surface(1)", "b = surface(2)")
    assert texts(offered)[0] == both
    assert set(texts(offered)) == {both, both[:1], both[1:]}


def test_all_names_an_edit_changed_change_in_a_line() -> None:
    two = changed(("area = old_width * 2", "surface = new_width * 2"))
    assert texts(found([two], "print(area, old_width)")) == [("print(surface, new_width)",)]


def test_a_deleted_line_is_deleted_elsewhere_with_any_indentation() -> None:
    gone = edit(" def f():\n-    trace(value)\n     return 1\n")
    (offered,) = found([gone], "def g():\n        trace(value)\n        return 2")
    assert (offered.first, offered.last, offered.lines) == (1, 2, ())


def test_a_lone_bracket_is_no_pattern() -> None:
    assert found([edit(" f(\n-)\n+), 1\n")], "g(\n)\n") == []


def test_lines_that_were_moved_are_not_deleted_where_they_went() -> None:
    moved = [edit("+    prepare(everything)\n"), edit("-    prepare(everything)\n")]
    assert found(moved[::-1], "def f():\n    prepare(everything)\n") == []


def test_a_replaced_block_keeps_the_indentation_of_its_place() -> None:
    block = edit(
        "-if ready:\n-    start(engine)\n+with power(engine):\n+    start(engine)\n+    wait()\n"
    )
    offered = found([block], "while True:\n    if ready:\n        start(engine)\n")
    assert offered[0].lines == (
        "    with power(engine):",
        "        start(engine)",
        "        wait()",
    )


def test_lines_are_put_between_the_same_neighbours_again() -> None:
    put = edit(" begin(session)\n+log(session)\n commit(session)\n")
    text = (
        "begin(session)\nlog(session)\ncommit(session)\n\n    begin(session)\n    commit(session)"
    )
    (offered,) = found([put], text)
    assert (offered.first, offered.last, offered.lines) == (5, 5, ("    log(session)",))


def test_plain_words_of_a_comment_are_no_names() -> None:
    comment = changed(("# refresh the model", "# update the model"))
    assert found([comment], "session.refresh(run)") == []


def test_what_more_edits_did_is_likelier() -> None:
    line = "\n\nflag = area(4)"
    once = found([RENAME], line)
    twice = found([changed(("y = area(1)", "y = surface(1)")), RENAME], line)
    assert twice[0].chance > once[0].chance


def test_only_lines_of_the_region_are_offered() -> None:
    lines = ["x = area(1)", "y = area(2)", "z = area(3)"]
    assert {repeat.first for repeat in find_repeats([RENAME], lines, 1, 2, 1)} == {1}


def test_backslashes_are_text() -> None:
    path = changed((r"open(base_dir)", r"open(root\dir)"))
    assert texts(found([path], "read(base_dir)")) in ([], [(r"read(root\dir)",)])
    number = changed(("print(value)", r"print('\1')"))
    assert texts(found([number], "print(value)")) == [(r"print('\1')",)]


@pytest.mark.parametrize("diff", ["", "\n", "+\n", "-\n", " \n", "@@ -1 +1 @@\n", "-a\n\n+b"])
def test_odd_diffs_are_read(diff: str) -> None:
    assert found([edit(diff)], "a\nb\n") == []


LINE = st.text("ab_( ).,=1\t", max_size=12)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(LINE, LINE), max_size=4), st.lists(LINE, min_size=1, max_size=12))
def test_offers_change_lines_of_the_region(pairs: list[tuple[str, str]], lines: list[str]) -> None:
    edits = [changed(pair) for pair in pairs]
    first, last = len(lines) // 3, len(lines)
    offered = find_repeats(edits, lines, first, last, first)
    for repeat in offered:
        assert first <= repeat.first <= repeat.last <= last
        assert tuple(lines[repeat.first : repeat.last]) != repeat.lines
        assert 0 < repeat.chance < 1
        assert not any("\n" in line for line in repeat.lines)
    keys = [(repeat.first, repeat.last, repeat.lines) for repeat in offered]
    assert len(keys) == len(set(keys))
