"""A commit replayed as editing: hunks, their order, moments in between, other files beside it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import (
    apply_history,
    hunks_of,
    last_burst,
    line_changes,
    lines_of,
    recent_edit,
)
from redraft.model.training.commit_edits import FileChange, changes_of, order_hunks
from redraft.model.training.excerpts import Neighbours, excerpt_of_change
from redraft.model.training.moments import (
    begin_hunk,
    begin_typing,
    draw_moment,
    end_of_edits,
    nothing_left,
)

LINES = ["", "a", "b", "  a", "}", "x = 1"]
OLD = [f"value_{i} = compute({i})" for i in range(40)]


def changed(*places: int) -> list[str]:
    return [
        line.replace("compute", "measure") if i in places else line for i, line in enumerate(OLD)
    ]


def change(old: list[str], new: list[str], path: str = "a.py") -> FileChange:
    return FileChange(path, old, new, hunks_of(old, new))


def test_a_diff_is_read_as_it_was_written() -> None:
    made = recent_edit("a.py", ["a", "b", "", "d", "e"], 1, 3, ("B", "x\x0cy\r", ""))
    lines = lines_of(made.diff)
    assert [text for sign, text in lines if sign != "+"] == ["a", "b", "", "d", "e"]
    assert [*line_changes(lines)] == [LineChange(1, ("b", ""), ("B", "x\x0cy\r", ""))]


@given(st.lists(st.sampled_from(LINES), max_size=14), st.lists(st.sampled_from(LINES), max_size=14))
def test_hunks_make_the_new_text_in_any_order(old: list[str], new: list[str]) -> None:
    hunks = hunks_of(old, new)
    for order in (hunks, hunks[::-1], hunks[1::2] + hunks[::2]):
        if order:
            assert apply_history("a.py", old, order, len(order))[0] == new


def test_an_inserted_method_with_comment_is_one_hunk() -> None:
    def method(name: str) -> list[str]:
        return ["    /**", f"     * Does {name}.", "     */", f"    void {name}() {{", "    }", ""]

    old = ["class A {", "", *method("first"), *method("third"), "}"]
    new = ["class A {", "", *method("first"), *method("second"), *method("third"), "}"]
    assert hunks_of(old, new) == [LineChange(8, (), tuple(method("second")))]
    assert hunks_of(new, old) == [LineChange(8, tuple(method("second")))]


def test_a_definition_comes_before_the_hunks_using_it() -> None:
    old = ["import os", "", "use(1)", "", "", "last = 1"]
    new = ["import os", "", "use(helper(1))", "", "", "last = 1", "def helper(x):", "    return x"]
    ordered = order_hunks(hunks_of(old, new), old)
    assert [hunk.first for hunk in ordered] == [6, 2]


def test_files_that_define_names_are_edited_first() -> None:
    user = {"path": "a.py", "before": "x = 1\n", "after": "x = helper(1)\n"}
    maker = {
        "path": "b.py",
        "before": "y = 1\r\n",
        "after": "y = 1\r\ndef helper(x):\r\n  pass\r\n",
    }
    new = {"path": "c.py", "before": "", "after": "z = 1\n"}
    found = changes_of({"files": [user, maker, new]}, random.Random(0))
    assert [c.path for c in found] == ["b.py", "a.py"]
    assert found[0].new == ["y = 1", "def helper(x):", "  pass", ""]


def test_the_cursor_follows_the_end_of_the_last_edit() -> None:
    old = ["a", "value = compute(1)", "b"]
    new = ["top", "a", "value = measure(1)", "b"]
    assert end_of_edits(old, hunks_of(old, new)) == (2, len("value = measur"))
    assert end_of_edits(old, hunks_of(old, ["a", "b"])) == (1, 0)
    assert end_of_edits(old, []) is None


def test_a_half_typed_line_keeps_the_text_after_it() -> None:
    lines = ["x", "call(a, 1)", "y"]
    started = begin_typing(lines, LineChange(1, (lines[1],), ("call(a, other, 1)",)), cut=2)
    assert started is not None
    state, rest, cursor = started
    assert state == ["x", "call(a, oth1)", "y"]
    assert cursor == (1, len("call(a, oth"))
    assert rest == LineChange(1, ("call(a, oth1)",), ("call(a, other, 1)",))


HUNKS = st.builds(
    LineChange,
    st.just(2),
    st.lists(st.sampled_from(["a(b, c)", "x = 1", "", "d"]), max_size=6).map(tuple),
    st.lists(st.sampled_from(["a(B, C)", "y = 1", "", "d"]), max_size=9).map(tuple),
)


@given(st.integers(0, 99), HUNKS)
def test_first_step_and_rest_begin_the_hunk(seed: int, hunk: LineChange) -> None:
    before = ["top", "above", *hunk.old, "below"]
    half = begin_hunk(hunk, random.Random(seed))
    if half is None:
        return
    state, _, _ = apply_history("a.py", before, [half.made], 1)
    line, column = half.cursor
    assert 0 <= line < len(state) and 0 <= column <= len(state[line])
    assert tuple(state[half.rest.first : half.rest.last]) == half.rest.old
    state[half.rest.first : half.rest.last] = half.rest.new
    whole = [*before[:2], *hunk.new, "below"]
    if len(hunk.old) == len(hunk.new):
        assert state == whole
    else:
        written = 2 + len(half.made.new) + len(half.rest.new)
        assert half.rest.new and state[:written] == whole[:written]


def test_one_changed_word_has_no_steps_and_two_have() -> None:
    rng = random.Random(1)
    assert begin_hunk(LineChange(0, ("call(a)",), ("call(b)",)), rng) is None
    half = begin_hunk(LineChange(0, ("call(a, b)",), ("call(x, y)",)), rng)
    assert half is not None
    assert half.made.new == ("call(x, b)",) and half.cursor == (0, len("call(x"))
    assert half.rest == LineChange(0, ("call(x, b)",), ("call(x, y)",))


def test_a_long_edit_is_remembered_by_its_last_lines() -> None:
    new = tuple(f"new {i}" for i in range(30))
    edit = last_burst(recent_edit("a.py", ["a", "b", "c", "d", "e"], 4, 5, new), most=2)
    assert edit.line == 4 + 25
    assert edit.diff == " new 25\n new 26\n new 27\n+new 28\n+new 29\n"
    gone = last_burst(recent_edit("a.py", ["a", *"bcdef"], 1, 6, ("x",)), most=2)
    assert gone.diff == " a\n-e\n-f\n+x\n"
    short = recent_edit("a.py", ["a", "b"], 1, 1, ("c",))
    assert last_burst(short) == short


@given(st.integers(0, 500))
def test_a_moment_lies_on_the_way_to_the_commit(seed: int) -> None:
    new = [*changed(3, 20)[:30], *(f"added_{i} = {i}" for i in range(9)), *changed(35)[30:]]
    moment = draw_moment(change(OLD, new), 0.3, 0.35, random.Random(seed))
    assert moment.target is not None
    line, column = moment.cursor
    assert 0 <= line < len(moment.lines) and 0 <= column <= len(moment.lines[line])
    done = [*moment.lines]
    done[moment.target.first : moment.target.last] = moment.target.new
    assert done != moment.lines
    assert set(done) <= set(OLD) | set(new)


def test_distant_hunks_leave_nothing_to_do_nearby() -> None:
    old = [f"line {i}" for i in range(300)]
    new = ["changed" if i in (10, 250) else line for i, line in enumerate(old)]
    moments = [nothing_left(change(old, new), random.Random(i)) for i in range(40)]
    assert {len(m.edits) for m in moments} == {1, 2}
    for moment in moments:
        left = [i for i, line in enumerate(moment.lines) if line != new[i]]
        assert all(abs(i - moment.cursor[0]) > 30 for i in left)


def test_a_definition_from_another_file_is_shown() -> None:
    files = [
        ("lib/a.py", "import os\n\n\ndef foo(x):\n    return 'doc'\n"),
        ("lib/b.ts", "const x = 1\nexport async function bar(y) {\n}\n"),
    ]
    near = Neighbours(files)
    found = near.draw_excerpts("main.py", "y = foo(1)", random.Random(0))
    assert [(f.path, f.why) for f in found] == [("lib/a.py", "definition of foo")]
    assert found[0].text.startswith("def foo(x):")
    found = near.draw_excerpts("main.py", "y = bar(1)", random.Random(0))
    assert found[0].text.startswith("export async function bar(y) {")
    for seed in range(9):  # the file itself defines it
        found = near.draw_excerpts("lib/a.py", "y = foo(1)", random.Random(seed))
        assert [f.why for f in found] in ([], ["in the same folder"])


@pytest.mark.parametrize(("done", "word"), [(1, "measure"), (0, "compute")])
def test_other_files_of_a_commit_are_up_to_date(done: int, word: str) -> None:
    (shown,) = excerpt_of_change([change(OLD, changed(7), "b.py")], done, random.Random(0))
    assert shown.path == "b.py"
    assert f"value_7 = {word}(7)" in shown.text
