"""Names that an edit affects elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.records import RecentEdit
from redraft.model.rules.touched_names import find_touched, list_written
from redraft.model.text.lines import defines


def names(*diffs: str) -> list[tuple[str, str]]:
    edits = [RecentEdit("a.py", 0, diff) for diff in diffs]
    return [(one.name, one.why) for one in find_touched(edits)]


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        ("-    total = 0\n+    amount = 0\n", [("total", "renamed")]),
        ("-def area(r):\n+def area(r, pi):\n", [("area", "its parameters changed")]),
        ("-int area(int r) {\n+int area(int r, int pi) {\n", [("area", "its parameters changed")]),
        ("-  area(r) {\n+  area(r, pi) {\n", [("area", "its parameters changed")]),
        ("-fn area(r: f64) {\n+fn area(r: f64, q: f64) {\n", [("area", "its parameters changed")]),
        (" def area(\n     r,\n+    pi,\n ):\n", [("area", "its parameters changed")]),
        ("-print(area(2))\n+print(area(2, 3))\n", [("area", "a call of it changed")]),
        ("-from a import load_one\n+from a import load_all\n", [("load_one", "renamed")]),
        ("-TIMEOUT = 5\n+TIMEOUT = 10\n", [("TIMEOUT", "its value changed")]),
        ("-const LIMIT: usize = 5;\n+const LIMIT: usize = 10;\n", [("LIMIT", "its value changed")]),
        ("-def gone_now(x):\n-    return helper(x)\n", [("gone_now", "no longer defined")]),
    ],
)
def test_an_edit_bears_on(diff: str, expected: list[tuple[str, str]]) -> None:
    assert names(diff) == expected


@pytest.mark.parametrize(
    "diff",
    [
        "",
        "+def brand_new(x):\n+    return x\n",
        "-# what to do\n+# what was done\n",
        "-    x = 1\n+    x = 2\n",
        "-    if (ready) {\n+    if (ready && open) {\n",
        '     describe("x", () => {\n+      start;\n',
    ],
)
def test_an_edit_that_bears_on_nothing_elsewhere(diff: str) -> None:
    assert names(diff) == []


def test_the_newest_edit_counts_most() -> None:
    older, newer = "-first_one = 0\n+other_one = 0\n", "-second_one = 0\n+that_one = 0\n"
    assert [name for name, _ in names(older, newer)] == ["second_one", "first_one"]


def test_a_name_that_a_newer_edit_restored_is_not_gone() -> None:
    assert "total" not in [n for n, _ in names("-total = 0\n+amount = 0\n", "+use(total)\n")]


def test_indentation_alone_bears_on_nothing() -> None:
    assert names("-    call_it(x)\n+        call_it(x)\n") == []


@given(st.text(alphabet=" +-\nab(){}[]=:,.#😀_ \t", max_size=200))
def test_no_diff_whatever_is_an_error(diff: str) -> None:
    find_touched([RecentEdit("a.py", 0, diff)])
    list_written([RecentEdit("a.py", 0, diff)])


@pytest.mark.parametrize(
    ("line", "is_definition"),
    [
        ("def area(r):", True),
        ("    async def area(self, r):", True),
        ("func (s *Shape) area(r int) int {", True),
        ("export const area = (r) => r;", True),
        ("#define area(r) ((r) * (r))", True),
        ("public static double area(double r) {", True),
        ("area = 3", True),
        ("return area(2)", False),
        ("x = area(2)", False),
        ("self.area(2)", False),
        ("print(area(2))", False),
        ("area == 3", False),
    ],
)
def test_a_definition_is_told_from_a_use(line: str, is_definition: bool) -> None:
    assert defines(line, "area") == is_definition
