"""Arguments added by hand and parameters dropped, read from recent edits."""

from __future__ import annotations

import pytest
from redraft.model.records import RecentEdit
from redraft.model.rules.series import ArgumentChange, argument_changes


def changes(*pairs: tuple[str, str], language: str = "python") -> list[ArgumentChange]:
    edits = [RecentEdit("a.py", at, f"-{old}\n+{new}\n") for at, (old, new) in enumerate(pairs)]
    return argument_changes(edits, "a.py", language)


def parts(found: list[ArgumentChange]) -> list[tuple[str, int, str, str]]:
    return [(each.function, each.index, each.text, each.name) for each in found]


@pytest.mark.parametrize(
    ("old", "new", "language", "expected"),
    [
        ("x = load(a)", "x = load(a, timeout=10)", "python", ("load", 1, "timeout=10", "timeout")),
        ("load()", "load(10)", "python", ("load", 0, "10", "")),
        ("f(f(1))", "f(f(1, 2))", "python", ("f", 1, "2", "")),
        ("f(a) + f(b)", "f(a) + f(b, 1)", "python", ("f", 1, "1", "")),
        ("load(a, 'x, y')", "load(a, 2, 'x, y')", "python", ("load", 1, "2", "")),
        ("load(f(a), [b, c])", "load(f(a), [b, c], 3)", "python", ("load", 2, "3", "")),
        ("def load(a, b):", "def load(a):", "python", ("load", 1, "", "b")),
        ("    def load(self, a=1, *, b: int = 2):", "    def load(self, *, b: int = 2):", "python",
         ("load", 0, "", "a")),
        ("func load(a int, b string) {", "func load(b string) {", "go", ("load", 0, "", "a")),
        ("static int load(int a, int b) {", "static int load(int a) {", "java",
         ("load", 1, "", "b")),
        ("function load(a: number, b?: string) {", "function load(a: number) {", "typescript",
         ("load", 1, "", "b")),
        ("    fn load(&self, a: u8) {", "    fn load(&self) {", "rust", ("load", 0, "", "a")),
    ],
)  # fmt: skip
def test_one_argument_more_or_one_parameter_less(
    old: str, new: str, language: str, expected: tuple[str, int, str, str]
) -> None:
    assert parts(changes((old, new), language=language)) == [expected]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("load(a)", "load(a, 1, 2)"),
        ("load(a, b)", "load(a)"),  # an argument dropped at one call says nothing of the others
        ("def load(a):", "def load(a, b):"),
        ("load(a, b)", "load(c, b, d)"),
        ("load(a", "load(a, 1"),
        ("x = load", "x = load(1)"),
        ("def load(self, a):", "def load(a):"),
        ("x = f(a) + f(a, 1)", "y = f(a) + f(a, 1)"),
        ("# f(a)", "# f(a, 1)"),
        ("x = f(a)", "x = f(a) + f(a, 1)"),
    ],
)
def test_other_changes_are_no_series(old: str, new: str) -> None:
    assert changes((old, new)) == []


def test_the_same_change_is_counted() -> None:
    (found,) = changes(("load(a)", "load(a, 1)"), ("y = load(b)", "y = load(b, 1)"))
    assert found.times == 2 and found.line == "y = load(b, 1)"


@pytest.mark.parametrize(
    ("text", "name", "variables"),
    [
        ("10", "", []),
        ("timeout=10", "timeout", []),
        ("'a b'", "", []),
        ("strict=True", "strict", []),
        ("MAX", "", ["MAX"]),
        ("f'{name}'", "", ["{"]),
        ("`${name}`", "", ["{"]),
        ("user=user", "user", ["user"]),
        ("self.x", "", ["self"]),
        ("Mode.FAST | LOW", "", ["LOW", "Mode"]),
        ("...rest", "", ["rest"]),
    ],
)
def test_the_names_by_which_an_argument_depends_on_its_place(
    text: str, name: str, variables: list[str]
) -> None:
    assert sorted(ArgumentChange("f", "", 0, text, name).variables) == variables
