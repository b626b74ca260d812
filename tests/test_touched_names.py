"""Names that an edit affects elsewhere, and their places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.lsp.context.name_uses import Traces, find_places
from redraft.lsp.documents.open_documents import OpenText
from redraft.model.records import RecentEdit
from redraft.model.rules.touched_names import Touched, touched, written
from redraft.model.text.lines import defines
from support.editors.shop import open_text


def names(*diffs: str) -> list[tuple[str, str]]:
    edits = [RecentEdit("a.py", 0, diff) for diff in diffs]
    return [(one.name, one.why) for one in touched(edits)]


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


def test_a_name_that_a_newer_edit_brought_back_is_not_gone() -> None:
    assert "total" not in [n for n, _ in names("-total = 0\n+amount = 0\n", "+use(total)\n")]


def test_indentation_alone_bears_on_nothing() -> None:
    assert names("-    call_it(x)\n+        call_it(x)\n") == []


@given(st.text(alphabet=" +-\nab(){}[]=:,.#😀_ \t", max_size=200))
def test_no_diff_whatever_is_an_error(diff: str) -> None:
    touched([RecentEdit("a.py", 0, diff)])
    written([RecentEdit("a.py", 0, diff)])


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


def a_file(path: str, text: str, language: str = "python") -> OpenText:
    return open_text(f"file:///w/{path}", path, language, text)


def found(
    here: str, *others: OpenText, near: tuple[int, int] = (0, 1), line: int = 0, **name: object
) -> list[tuple[str, int]]:
    one = Touched("total", 1.0, "renamed", **name)  # type: ignore[arg-type]
    places = find_places(
        Traces([one]), a_file("a.py", here), near, line, others, lambda *_: {"own.py"}
    )
    return [(place.document.path, place.line) for place in places]


def test_places_follow_from_the_cursor_downwards_and_begin_again_at_the_top() -> None:
    text = "x\ntotal\nx\ntotal\nx\ntotal\n"
    assert found(text, near=(3, 4), line=3) == [("a.py", 5), ("a.py", 1)]


def test_other_files_come_after_this_one() -> None:
    places = found("x\ntotal\n", a_file("b.py", "total\n"))
    assert places == [("a.py", 1), ("b.py", 0)]


def test_a_file_that_defines_the_name_itself_comes_last() -> None:
    others = a_file("own.py", "def total(): pass\n"), a_file("z.py", "total\n")
    assert found("x\n", *others, defined=True) == [("z.py", 0), ("own.py", 0)]


def test_only_whole_words_count_and_emoji_are_one_character() -> None:
    assert found("x\nsubtotal totals\n'😀' total\n") == [("a.py", 2)]
    one = Touched("total", 1.0, "renamed")
    text = "x\n'😀' total\n"
    [place] = find_places(Traces([one]), a_file("a.py", text), (0, 1), 0, (), lambda *_: ())
    assert text[place.at - 5 : place.at] == "total"


def test_a_language_unknown_to_the_client_is_told_by_the_path() -> None:
    assert found("x\n", a_file("b.py", "total\n", "")) == [("b.py", 0)]
    assert found("x\n", a_file("b.md", "total\n", "")) == []
