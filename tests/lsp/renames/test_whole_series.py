"""Changes of arguments that are carried on to all other calls, in other files too."""

from __future__ import annotations

import pytest
from redraft.lsp.protocol.workspace_edits import workspace_edit
from support.renames import results, series

LOAD = """\
def load(path, strict):
    return path


load("a", True)
load("b")
load(name)
load(*both)
load("c", False)
"""
OTHER = "from store import load\n\n\ndef run(path):\n    return load(\n        path,\n    )\n"
DROPPED = """\
def load(path, strict, *, retry=1):
    return path


load("a", True)
load("b", strict=False, retry=2)
load(strict=False, path="c")
load("d", retry=3)
other.load("e", True)
"""
TS = "export function pick(a: string, deep: boolean) { return a }\npick('x')\npick('y')\n"
CALLS = {
    "a.py": "def spin(a, b):\n    pass\n\n\nspin(1)\nspin(2)\n",
    "a.ts": "function spin(a: number, b: Mode) {}\nspin(1);\nspin(2);\n",
    "a.go": "\nfunc spin(a, b int) {}\n\nfunc f() {\n\tspin(1)\n\tspin(2)\n}\n",
    "a.rs": "fn spin(a: u8, b: u8) {}\n\nfn f() {\n    spin(1);\n    spin(2);\n}\n",
}
MEMBER = """\
class Store:
    def load(self, path, strict):
        return path

    def all(self):
        return [self.load("a"), self.load("b")]
"""


def test_an_argument_that_is_needed_goes_everywhere() -> None:
    (found,) = series({"store.py": LOAD, "run.py": OTHER}, ('load("b")', 'load("b", True)'))
    assert found.label == "add `True` to `load` at 2 places (2 files)"
    after = LOAD.replace('load("b")', 'load("b", True)').replace("load(name)", "load(name, True)")
    assert results(found) == {
        "store.py": after,
        "run.py": OTHER.replace("        path,\n", "        path,\n        True,\n"),
    }


def test_a_keyword_goes_behind_the_last_argument() -> None:
    (found,) = series({"store.py": LOAD}, ('load("b")', 'load("b", strict=True)'))
    assert results(found)["store.py"].count("strict=True") == 2


def test_an_unneeded_argument_goes_on_after_two() -> None:
    text = LOAD.replace("strict)", "strict=True, retry=1)")
    first, second = ('load("b")', 'load("b", retry=2)'), ("load(name)", "load(name, retry=2)")
    assert series({"store.py": text}, first) == []
    (found,) = series({"store.py": text}, first, second)
    assert results(found)["store.py"].count("retry=2") == 4


@pytest.mark.parametrize("argument", ["user", "strict=flag", "self.x"])
def test_a_variable_of_one_place_is_not_carried_on(argument: str) -> None:
    assert series({"store.py": LOAD}, ('load("b")', f'load("b", {argument})')) == []


@pytest.mark.parametrize(
    ("path", "head", "argument"),
    [
        ("a.py", "SLOW = 3\n", "SLOW"),
        ("a.py", "from modes import Mode\n", "Mode.FAST"),
        ("a.ts", "import { Mode } from './modes';\n", "Mode.Fast"),
        ("a.go", "package a\n\nconst slow = 3\n", "slow"),
        ("a.rs", "const SLOW: u8 = 3;\n", "SLOW"),
    ],
)
def test_a_constant_of_the_file_is_carried_on_there(path: str, head: str, argument: str) -> None:
    text = head + CALLS[path]
    (found,) = series({path: text}, ("spin(1)", f"spin(1, {argument})"))
    after = text.replace("spin(1)", f"spin(1, {argument})")
    assert results(found) == {path: after.replace("spin(2)", f"spin(2, {argument})")}


@pytest.mark.parametrize(
    ("head", "argument"),
    [
        ("found = read()\n", "found"),
        ("SLOW = 3\nSLOW = 4\n", "SLOW"),
        ("SLOW = 3\n\n\ndef f(SLOW):\n    pass\n\n\n", "SLOW"),
        ("", "SLOW"),
        ("def f():\n    pass\n\n\n", 'f"{x}"'),
    ],
)
def test_what_may_differ_is_not_carried_on(head: str, argument: str) -> None:
    assert series({"a.py": head + CALLS["a.py"]}, ("spin(1)", f"spin(1, {argument})")) == []


def test_two_calls_that_read_the_same_are_two() -> None:
    text = "package a\n\nfunc put(a int, more ...Way) {}\n\nfunc f() {\n\tput(x)\n}\n"
    text += "".join(
        f"\nfunc {name}() {{\n\tput({what})\n}}\n" for name, what in (("g", "x"), ("h", "y"))
    )
    text += "\nfunc i() {\n\tput(z, Slow())\n}\n"
    files = {"a/a.go": text}
    first = ("func f() {\n\tput(x)", "func f() {\n\tput(x, Fast(2))")
    second = ("func g() {\n\tput(x)", "func g() {\n\tput(x, Fast(2))")
    assert series(files, first) == []
    (found,) = series(files, first, second)
    (made,) = results(found).values()
    assert made.endswith("put(y, Fast(2))\n}\n\nfunc i() {\n\tput(z, Slow())\n}\n")
    assert made.count("Fast") == 3


def test_a_constant_does_not_go_to_a_call_above_it() -> None:
    text = "def spin(a, b):\n    pass\n\n\nspin(2)\nSLOW = 3\nspin(1)\n"
    assert series({"a.py": text}, ("spin(1)", "spin(1, SLOW)")) == []


def test_calls_among_the_arguments_of_macros_of_rust() -> None:
    text = """\
fn spin(a: i32, b: i32, c: i32) -> i32 { a }

fn f() {
    assert_eq!(spin(-1, 2, 3), spin(g(1, 2), 4, LOW));
    println!("{} {}", spin(1, 2, 3,), other.spin(1, 2, 3));
    own!(spin(1, 2, 3));
    dbg!(spin(1, |a, b| a, 3), a::spin(1, 2, 3));
}
"""
    (found,) = series({"a.rs": text}, ("b: i32, c: i32", "b: i32"))
    (made,) = results(found).values()
    assert "assert_eq!(spin(-1, 2), spin(g(1, 2), 4));" in made
    assert 'println!("{} {}", spin(1, 2,), other.spin(1, 2, 3));' in made
    assert "own!(spin(1, 2, 3));\n    dbg!(spin(1, |a, b| a, 3), a::spin(1, 2, 3));" in made


def test_the_self_of_an_inner_object_is_another() -> None:
    text = (
        "class A:\n    def spin(self, a, b):\n        class C:\n            def h(self):\n"
        "                self.spin(1, 2)\n"
    )
    assert series({"a.py": text}, ("a, b)", "a)")) == []
    text = (
        "class A {\n  spin(a, b) {\n    this.spin(0);\n    on({ h() { this.spin(1); } });\n"
        "    on(function () { this.spin(3); });\n    on(() => this.spin(4));\n  }\n}\n"
    )
    (found,) = series({"a.ts": text}, ("spin(0)", "spin(0, 2)"))
    after = text.replace("spin(0)", "spin(0, 2)").replace("spin(4)", "spin(4, 2)")
    assert results(found) == {"a.ts": after}


def test_dropping_before_an_optional_one_is_unclear() -> None:
    text = "def spin(a, b, c=1):\n    pass\n\n\nspin(1, 2)\nspin(1, 2, 3)\n"
    assert series({"a.py": text}, ("a, b, c", "a, c")) == []


def test_a_dropped_parameter_goes_at_all_calls() -> None:
    (found,) = series({"store.py": DROPPED}, ("(path, strict, *", "(path, *"))
    assert found.label == "drop `strict` of `load` at 3 places"
    (after,) = results(found).values()
    assert 'load("a")\nload("b", retry=2)\nload(path="c")\nload("d", retry=3)\n' in after
    assert 'other.load("e", True)' in after


def test_a_function_of_two_definitions_is_left_alone() -> None:
    files = {"store.py": LOAD, "b.py": "def load(x):\n    return x\n"}
    assert series(files, ('load("b")', 'load("b", True)')) == []


def test_scripts_and_members() -> None:
    (found,) = series({"a.ts": TS}, ("pick('x')", "pick('x', true)"))
    assert results(found)["a.ts"].endswith("pick('y', true)\n")
    (found,) = series({"s.py": MEMBER}, ('self.load("a")', 'self.load("a", False)'))
    assert '[self.load("a", False), self.load("b", False)]' in results(found)["s.py"]


def test_a_call_in_a_string_needs_no_written_quote() -> None:
    text = LOAD + "x = f\"{load('x')}\"\n"
    (found,) = series({"store.py": text}, ('load("b")', 'load("b", True)'))
    assert "f\"{load('x', True)}\"" in results(found)["store.py"]
    assert series({"store.py": text}, ('load("b")', 'load("b", "yes")')) == []


@pytest.mark.parametrize(
    "more",
    [
        'load("x",)\nload(load("y"))\n',
        'load(\n    "x"  # a comment\n)\n',
        "def run(load):\n    return load(1)\n",
    ],
)
def test_one_unclear_call_leaves_all_to_the_model(more: str) -> None:
    assert series({"store.py": LOAD + more}, ('load("b")', 'load("b", True)')) == []


def test_functions_of_the_name_elsewhere_are_left() -> None:
    files = {
        "store.py": LOAD,
        "a.py": 'import json\njson.load("x")\n',
        "b.py": 'from json import load\nload("x")\n',
    }
    (found,) = series(files, ('load("b")', 'load("b", True)'))
    assert set(results(found)) == {"store.py"}


def test_a_decorator_may_change_the_parameters() -> None:
    text = "@with_strict\n" + LOAD
    assert series({"store.py": text}, ('load("b")', 'load("b", True)')) == []


@pytest.mark.parametrize("argument", ["conn.pop()", "(x := 5)"])
def test_an_argument_with_effects_is_not_dropped(argument: str) -> None:
    text = f'def load(path, strict):\n    return path\n\n\nload("a", {argument})\n'
    assert series({"store.py": text}, ("(path, strict)", "(path)")) == []


def test_the_only_argument_goes_with_its_lines() -> None:
    text = 'def load(path):\n    return 1\n\n\nload(\n    "a",\n)\n'
    (found,) = series({"store.py": text}, ("(path)", "()"))
    assert results(found)["store.py"].endswith("\n\nload()\n")


def test_a_call_that_was_changed_again_counts_once() -> None:
    text = LOAD.replace("strict)", "strict=True, retry=1)")
    there, back = ('load("b")', 'load("b", retry=2)'), ('load("b", retry=2)', 'load("b")')
    assert series({"store.py": text}, there, back, there) == []


def test_a_changed_line_that_is_gone_offers_nothing() -> None:
    changes = ('load("b")', 'load("b", True)'), ('load("b", True)\n', "")
    assert series({"store.py": LOAD}, *changes) == []


def test_a_java_argument_belongs_to_the_object() -> None:
    text = (
        "class A {\n  void load(int p, int s) {}\n  void x(B b) { load(1, 2); b.load(1, 2); }\n}\n"
    )
    (found,) = series({"A.java": text}, ("int p, int s", "int p"))
    assert "load(1); b.load(1, 2);" in results(found)["A.java"]


def test_editors_get_the_lines_of_a_dropped_argument() -> None:
    text = 'def load(path, strict):\n    return path\n\n\nload(\n    "a",\n    True,\n)\n'
    (found,) = series({"store.py": text}, ("(path, strict)", "(path)"))
    (document,) = workspace_edit(found)["documentChanges"]
    assert document["edits"] == [
        {
            "range": {"start": {"line": 5, "character": 7}, "end": {"line": 6, "character": 8}},
            "newText": "",
        }
    ]


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("a.py", "    @staticmethod\n    def h(self):\n        self.load(3)\n"),
        ("a.py", "    def h(self):\n        def run(self):\n            self.load(3)\n"),
        ("a.js", "  static h() { this.load(3); }\n"),
    ],
)
def test_self_of_another_object_is_left(path: str, other: str) -> None:
    if path == "a.py":
        own = "class A:\n    def load(self, a, b): pass\n    def f(self):\n        self.load(1)\n"
        text = own + "        self.load(2)\n" + other
    else:
        text = "class A {\n  load(a, b) {}\n  f() { this.load(1); this.load(2); }\n" + other + "}\n"
    (found,) = series({path: text}, ("load(1)", "load(1, 9)"))
    assert "load(3)" in results(found)[path] and "load(2, 9)" in results(found)[path]


def test_a_call_within_a_call_of_a_macro_is_left() -> None:
    text = "fn area(a: u8, b: u8) -> u8 { a }\nfn f() {\n    area(1);\n    area(2);\n"
    text += '    println!("{}", area(area(3)));\n}\n'
    (found,) = series({"a.rs": text}, ("area(1)", "area(1, 9)"))
    assert "area(area(3)))" in results(found)["a.rs"]
