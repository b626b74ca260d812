"""Arguments added by hand and parameters dropped, read from recent edits."""

from __future__ import annotations

import pytest
from redraft.model.records import RecentEdit
from redraft.model.rules.series import ArgumentChange, argument_changes
from support.rules import history, proposed


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
def test_names_by_which_an_argument_varies_with_place(
    text: str, name: str, variables: list[str]
) -> None:
    assert sorted(ArgumentChange("f", "", 0, text, name).variables) == variables


READ = """\
def read(path, encoding):
    return path


def count(path, encoding):
    return len(read(path))


def size(path):
    encoding = "utf-8"
    return len(
        read(
            path,  # as given
        )
    ) + len(
        read(
            path,
        )
    )


def show(path):
    print(read(path))
    encoding = read(path)
    print([read(each, encoding) for each in path])


class Store:
    def __init__(self, encoding):
        self.encoding = encoding

    def all(self):
        return read(self)
"""


def given(path: str, text: str, before: str, after: str) -> list[str]:
    """Return the lines, stripped, that a parameter added to a function brings by rule."""
    assert text.count(after) == 1
    old = text.replace(after, before)
    found = proposed(history(old, text, path), text, path=path)
    return sorted("|".join(one.lines).strip() for one in found if one.family == "argument")


def test_a_new_parameter_gets_the_variable_of_its_name() -> None:
    found = given("a.py", READ, "def read(path):", "def read(path, encoding):")
    assert found == ["path,|            encoding,", "return len(read(path, encoding))"]


@pytest.mark.parametrize(
    ("path", "before", "after", "call", "expected"),
    [
        ("a.py", "def cook(a):", "def cook(a, *, heat):", "cook(1)", "cook(1, heat=heat)"),
        ("a.py", "def cook(a):", "def cook(heat, a):", "cook(1)", "cook(heat, 1)"),
        (
            "a.py",
            "def cook(a, c=1):",
            "def cook(a, heat, c=1):",
            "cook(1, c=2)",
            "cook(1, heat, c=2)",
        ),
        (
            "a.py",
            "def cook(a, c):",
            "def cook(a, c, heat):",
            "cook(1, c=2)",
            "cook(1, c=2, heat=heat)",
        ),
        (
            "a.py",
            "def cook(a, c):",
            "def cook(a, c, heat):",
            "cook(a=1, c=2)",
            "cook(a=1, c=2, heat=heat)",
        ),
        ("a.py", "def cook():", "def cook(heat):", "cook()", "cook(heat)"),
        ("a.py", "def cook(a):", "def cook(a, heat=1):", "cook(1)", ""),  # it has a default
        ("a.py", "def cook(a):", "def cook(a, heat):", "cook(*c)", ""),
        ("a.py", "def cook(a):", "def cook(a, heat):", "g.cook(1)", ""),
        (
            "a.ts",
            "function cook(a: A) {",
            "function cook(a: A, heat: B) {",
            "cook(1)",
            "cook(1, heat)",
        ),
        ("a.go", "func cook(a A) {", "func cook(a A, heat B) {", "cook(1)", "cook(1, heat)"),
        (
            "a.go",
            "func cook(a A) {",
            "func cook(a A, heat B) {",
            "cook(g())",
            "",
        ),  # perhaps two values
        ("a.rs", "fn cook(a: A) {", "fn cook(a: A, heat: B) {", "cook(1)", "cook(1, heat)"),
    ],
)
def test_a_new_argument_stands_as_its_call_demands(
    path: str, before: str, after: str, call: str, expected: str
) -> None:
    head, body, end = {
        "a.py": ("def use(heat):", "    pass", ""),
        "a.ts": ("function use(heat: B) {", "  return 1", "}"),
        "a.go": ("func use(heat B) {", "\treturn", "}"),
        "a.rs": ("fn use_it(heat: B) {", "    1;", "}"),
    }[path]
    semicolon = ";" if path == "a.rs" else ""
    start = "package a\n\n" if path == "a.go" else ""
    text = f"{start}{after}\n{body}\n{end}\n\n{head}\n    {call}{semicolon}\n{end}\n"
    found = given(path, text, before, after)
    assert found == ([expected + semicolon] if expected else [])


def test_the_keyword_of_other_calls_is_written() -> None:
    text = "def cook(a, heat):\n    pass\n\n\ndef use(heat):\n    cook(1, heat=2)\n    cook(3)\n"
    assert given("a.py", text, "def cook(a):", "def cook(a, heat):") == ["cook(3, heat=heat)"]


@pytest.mark.parametrize(
    "text",
    [
        "def cook(a, heat):\n    pass\n\n\ndef use():\n    cook(1)\n    heat = 2\n",  # bound below
        "def cook(a, heat):\n    pass\n\n\ndef use():\n    heat = cook(1)\n",  # by the call
        "def cook(a, heat):\n    pass\n\n\ndef use():\n    heat = (\n        cook(1)\n    )\n",
        "def cook(a, heat):\n    pass\n\n\ndef eat(heat):\n    pass\n\n\ndef use():\n    cook(1)\n",
        "def cook(a, heat):\n    pass\n\n\ndef use(heat, cook):\n    cook(1)\n",  # another one
        "heat = 1\n\n\ndef cook(a, heat):\n    pass\n\n\ncook(1)\n",  # of the whole file
        "def cook(a, heat):\n    pass\n\n\ndef use(heat):\n    cook(heat)\n",  # it is passed
    ],
)
def test_what_a_caller_does_not_bind_is_for_the_model(text: str) -> None:
    assert given("a.py", text, "def cook(a):", "def cook(a, heat):") == []


def test_a_function_elsewhere_gets_its_new_parameter() -> None:
    home, old = "def read(path, mode):\n    return path\n", "def read(path):\n    return path\n"
    text = "from store import read\n\n\ndef use(mode):\n    return read(1)\n"
    edits = history(old, home, "store.py")
    (found,) = proposed(edits, text, path="run.py")
    assert found.lines == ("    return read(1, mode)",)
    assert proposed(edits, text.replace("from store", "from other"), path="run.py") == []
