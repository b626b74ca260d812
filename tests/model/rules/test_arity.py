"""Calls that no longer fit the parameters of a function."""

from __future__ import annotations

import pytest
from redraft.model.rules.arity import Signature, calls, means, signatures
from redraft.model.text.syntax import language_of, parse

PYTHON = """\
import shapes

def area(r, pi, *, unit="cm"):
    return pi * r * r

area(2)
area(2, 3)
area(2, pi=3)
shapes.area(4)
shape.area(4)
area(*both)
area(2, 3, "mm")
area(2, 3, scale=1)
area(2, 3, unit="mm")
area(2, 3,
     # a comment
     unit="m")
"""
MEMBER = """\
class Disc:
    def __init__(self, r, unit):
        self.r = r

    def grow(self, by, twice=False):
        self.r += by

    def twice(self):
        self.grow()
        self.grow(2)
        self.inner.grow()

one = Disc(1)
two = Disc(1, "cm")
one.grow()
"""
TS = """\
export function area(r: number, pi: number, unit?: string): number { return pi * r * r }
const edge = (r: number, k = 2, ...more: number[]) => k * r
area(1)
area(1, 2)
area(1, 2, "cm")
area(...both)
edge()
edge(1, 2, 3, 4)
"""
GO = """\
package a

func area(r, pi float64, unit string) float64 { return pi * r * r }
func sum(first int, more ...int) int { return first }

func main() {
	area(1, 2)
	area(1, 2, "cm")
	sum()
	sum(1, 2, 3)
	sum(1, all...)
}
"""
RUST = """\
fn area(r: f64, pi: f64) -> f64 { pi * r * r }
struct Disc;
impl Disc {
    fn grow(&self, by: f64) -> f64 { by }
    fn twice(&self) -> f64 {
        self.grow();
        self.grow(1.0)
    }
}
fn main() {
    area(1.0);
    area(1.0, 3.0);
    Disc.grow();
}
"""
JAVA = """\
class A {
  static int area(int r, int pi) { return r; }
  void run() {
    area(1);
    area(1, 2);
    this.area(1, 2, 3);
  }
}
"""

#: The text, its language, the function, and lines of calls that do not fit with the name or number
#: in the message.
CASES = [
    (PYTHON, "python", "area", [(5, "pi"), (11, "2 positional"), (12, "scale")]),
    (MEMBER, "python", "Disc", [(12, "unit")]),
    (MEMBER, "python", "grow", [(8, "by")]),
    (TS, "typescript", "area", [(2, "pi")]),
    (TS, "typescript", "edge", [(6, '"r')]),
    (GO, "go", "area", [(6, "unit")]),
    (GO, "go", "sum", [(8, "first")]),
    (RUST, "rust", "area", [(10, "pi")]),
    (RUST, "rust", "grow", [(5, "by")]),
    (JAVA, "java", "area", [(3, "pi"), (5, "2 positional")]),
]


@pytest.mark.parametrize(("text", "language", "name", "expected"), CASES)
def test_calls_that_do_not_fit_are_found(
    text: str, language: str, name: str, expected: list[tuple[int, str]]
) -> None:
    syntax = parse(text, language)
    assert syntax is not None
    (signature,) = signatures(syntax, name)
    found = [each for each in calls(syntax, signature) if each.objection(signature)]
    assert [each.line for each in found] == [line for line, _ in expected]
    for each, (_, word) in zip(found, expected, strict=True):
        assert word in each.objection(signature)
        assert text[: each.at].endswith(name) and text[each.opens - 1] == "("


def test_a_broken_signature_has_no_wrong_calls() -> None:
    syntax = parse("def area(r, = ):\n    pass\n\narea()\n", "python")
    assert syntax is not None
    assert signatures(syntax, "area") == []


def test_each_definition_of_a_name_is_found() -> None:
    syntax = parse("def f(a):\n    pass\n\nclass A:\n    def f(self):\n        pass\n", "python")
    assert syntax is not None
    assert [len(each.parameters) for each in signatures(syntax, "f")] == [1, 0]


@pytest.mark.parametrize(
    ("path", "text", "home", "is_meant"),
    [
        ("b.py", "from store import area\n", "store.py", True),
        ("b.py", "from pkg import (\n    other,\n    area,\n)\n", "pkg/__init__.py", True),
        ("pkg/b.py", "from .store import area\n", "pkg/store.py", True),
        ("pkg/b.py", "from .shop import area\n", "pkg/store.py", False),
        ("b.py", "from outside.store import area\n", "pkg/store.py", False),
        ("b.py", "from app.main import area\n", "app/main.py", True),
        ("b.py", "area(1)\n", "store.py", False),
        ("b.py", "from store import area\ndef f(area): pass\n", "store.py", False),
        ("store.py", "def area(r): pass\n", "store.py", True),
        ("store.py", "def area(r): pass\narea = 1\n", "store.py", False),
        ("b.ts", "import {\n  area,\n} from './shapes'\n", "shapes/index.ts", True),
        ("b.ts", "import { area } from './shapes/lib'\n", "shapes/lib.ts", True),
        ("a/b.go", "package a\nfunc f() { area(1) }\n", "a/c.go", True),
        ("b/b.go", "package b\nfunc f() { area(1) }\n", "a/c.go", False),
        ("src/b.rs", "use crate::shapes::area;\n", "src/shapes/mod.rs", True),
    ],
)
def test_a_name_means_the_function_of_its_import(
    path: str, text: str, home: str, is_meant: bool
) -> None:
    syntax = parse(text, language_of(path) or "")
    assert syntax is not None
    assert means(syntax, path, Signature("area", ()), home) == is_meant


def test_members_are_known_in_their_own_file_only() -> None:
    syntax = parse("from disc import grow\n", "python")
    assert syntax is not None
    member = Signature("grow", (), owner=(0, 9))
    assert means(syntax, "disc.py", member, "disc.py")
    assert not means(syntax, "b.py", member, "disc.py")
