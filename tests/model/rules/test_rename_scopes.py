"""Scopes of a rename: it stops where a scope, class or file binds the name again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import refuse, situation_of
from redraft.model.records import EditRequest, RecentEdit
from redraft.model.rules.renames import RenameScopes
from redraft.model.rules.repeats import find_repeats
from redraft.model.rules.rule_edits import RuleEdit
from redraft.model.text.scopes import Bindings
from redraft.model.text.syntax import language_of, parse_cached
from support.rules import history, proposed

SHOP = """\
@dataclass
class Item:
    name: str
    price: float

def total_value(items: list[Item]) -> float:
    total = 0.0
    for item in items:
        total += item.price
    return total

def report(items: list[Item]) -> None:
    for item in items:
        print(f"{item.name}: {item.price}")
    print(total_value(items))
"""


def changed_lines(found: list[RuleEdit]) -> set[int]:
    return {at for one in found for at in range(one.first, one.last)}


def test_a_renamed_parameter_stays_in_its_function() -> None:
    after = SHOP.replace("total_value(items:", "total_value(stock:")
    found = proposed(history(SHOP, after, "shop.py"), after, 5, path="shop.py")
    assert changed_lines(found) == {7}, "report has a parameter of its own"


def test_lines_of_two_renames_are_offered_for_each() -> None:
    first = SHOP.replace("items: list[Item]) -> float", "stock: list[Item]) -> float")
    first = first.replace("for item in items:\n        total", "for item in stock:\n        total")
    second = first.replace("    price: float", "    unit_price: float")
    second = second.replace("total += item.price", "total += item.unit_price")
    edits = [*history(SHOP, first, "shop.py"), *history(first, second, "shop.py")]
    found = proposed(edits, second, edits[-1].line, path="shop.py")
    assert [(one.first, one.lines) for one in found] == [
        (13, ('        print(f"{item.name}: {item.unit_price}")',))
    ]


AREA = """\
def area(width, height):
    return width * height

size = area(2, 3)
print(f"{size}")
"""
TYPESCRIPT = """\
function area(width: number, height: number) {
  return width * height;
}
const size = area(2, 3);
console.log(size);
"""
GO = """\
package shapes

func area(width, height int) int {
\treturn width * height
}

func show() {
\tsize := area(2, 3)
\tprintln(size)
}
"""


@pytest.mark.parametrize(
    ("text", "path", "other"),
    [(AREA, "p3.py", "p2.py"), (TYPESCRIPT, "p3.ts", "p2.ts"), (GO, "b/p3.go", "a/p2.go")],
)
def test_a_function_renamed_elsewhere_is_another(text: str, path: str, other: str) -> None:
    elsewhere = history(text, text.replace("area", "surface"), other)
    after = text.replace("size = area", "total = area").replace("size := area", "total := area")
    here = history(text, after, path)
    found = proposed([*elsewhere, *here], after, here[-1].line, path=path)
    assert found, "the local name is renamed on"
    assert not any("surface" in line for one in found for line in one.lines)


@pytest.mark.parametrize(
    ("text", "path", "other", "goes_on"),
    [
        ("from p2 import area\n\nprint(area(1, 2))\n", "p3.py", "p2.py", True),
        ("from shapes.p2 import area\n\nprint(area(1, 2))\n", "p3.py", "shapes/p2.py", True),
        ("from p9 import area\n\nprint(area(1, 2))\n", "p3.py", "p2.py", False),
        ("import p2\n\nprint(p2.area(1, 2))\n", "p3.py", "p2.py", True),
        ("import { area } from './p2';\nconsole.log(area(1, 2));\n", "p3.ts", "p2.ts", True),
        ("import { area } from './p9';\nconsole.log(area(1, 2));\n", "p3.ts", "p2.ts", False),
        ("package shapes\n\nfunc show() {\n\tprintln(area(1, 2))\n}\n", "a.go", "p2.go", True),
    ],
)
def test_a_rename_follows_an_import_of_it(text: str, path: str, other: str, goes_on: bool) -> None:
    before = {"py": AREA, "ts": TYPESCRIPT, "go": GO}[other.rpartition(".")[2]]
    edits = history(before, before.replace("area", "surface"), other)
    made = Edit(text, text.rindex("area"), text.rindex("area") + 4, "surface")
    assert (RenameScopes(edits, text, path).find_leaked(made) == "") is goes_on
    language = language_of(path) or ""
    request = EditRequest("next_edit", path, text, 0, language, edits=tuple(edits))
    assert (refuse(made, 1.0, situation_of(request, 0.5)) is None) is goes_on


CART = """\
interface Line {
  product: string;
  qty: number;
}
class Cart {
  lines: Line[] = [];
  addLine(product: string, qty: number) {
    this.lines.push({ product, qty });
  }
  total() {
    return this.lines.reduce((sum, line) => sum + line.qty, 0);
  }
}
function parse(qty: number) {
  return qty * 2;
}
"""


METHOD = "class A:\n    def area(self): ...\n"


def test_a_renamed_field_goes_to_its_uses_and_hand_ons() -> None:
    after = CART.replace("  qty: number;", "  quantity: number;")
    scopes = RenameScopes(history(CART, after, "cart.ts"), after, "cart.ts")
    rows = [at for at, line in enumerate(after.split("\n")) if "qty" in line]
    assert rows == [6, 7, 10, 13, 14]
    assert [at for at in rows if scopes.allows("qty", "quantity", at)] == [6, 7, 10]


@pytest.mark.parametrize(
    ("before", "old", "new", "line", "goes_on"),
    [
        # A method of another class that is no kin of the one with the renamed method.
        (f"{METHOD}\nclass B:\n    def area(self): ...\n", "area", "surface", 4, False),
        (f"{METHOD}\nclass B(A):\n    def area(self): ...\n", "area", "surface", 4, True),
        # A keyword of the function whose parameter was renamed, and of another.
        ("def f(items): ...\n\nf(items=1)\n", "items", "stock", 2, True),
        ("def f(items): ...\n\ng(items=1)\n", "items", "stock", 2, False),
        # A name of the module, and a function's own.
        ("size = 1\n\ndef f():\n    print(size)\n", "size", "total", 3, True),
        ("size = 1\n\ndef f(size):\n    print(size)\n", "size", "total", 3, False),
        ("size = 1\n\ndef f():\n    global size\n    size = 2\n", "size", "total", 4, True),
        # A second assignment of the same name.
        ("def f():\n    size = 1\n    size = size + 1\n", "size", "total", 2, True),
    ],
)  # fmt: skip
def test_where_a_rename_goes_on(before: str, old: str, new: str, line: int, goes_on: bool) -> None:
    after = before.replace(old, new, 1)
    scopes = RenameScopes(history(before, after, "a.py"), after, "a.py")
    assert scopes.allows(old, new, line) is goes_on


def test_a_use_renamed_first_leads_to_its_definition() -> None:
    before = "def area(w):\n    return w\n\nprint(area(1))\nprint(area(2))\n"
    after = before.replace("print(area(1))", "print(surface(1))")
    scopes = RenameScopes(history(before, after, "a.py"), after, "a.py")
    assert scopes.allows("area", "surface", 0) and scopes.allows("area", "surface", 4)


def test_a_new_field_is_not_offered_to_a_namesake() -> None:
    shop = "class Item:\n    name: str\n    price: float\n\nitem = Item()\n"
    after = shop.replace("    price: float\n", "    quantity: int\n    price: float\n")
    edits = history(shop, after, "shop.py")
    inventory = shop.replace("item = Item()", "stock = Item()")
    assert proposed(edits, inventory, edits[-1].line, path="inventory.py") == []
    other = inventory.replace("class Item", "class Product")
    assert proposed(edits, other, edits[-1].line, path="inventory.py"), (
        "another class may well get it"
    )


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


def test_a_rename_is_repeated_nearest_below_first() -> None:
    text = "a = area(1)\n\ndef surface(w):\n\nb = area(2)\n\n\nc = area(3)"
    offered = found([RENAME], text, cursor=2)
    assert texts(offered)[:2] == [("b = surface(2)",), ("c = surface(3)",)]
    assert [repeat.chance for repeat in offered] == sorted(
        (repeat.chance for repeat in offered), reverse=True
    )


SENT = changed(("    send(body)", "    send(body, timeout)"))


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ([RENAME], "areas = my_area + area2"),  # not whole names
        ([RENAME], "def surface(w):\n    return surface(w - 1)"),  # it is so already
        ([SENT], "    send(body, timeout)\n    receive(timeout)"),
        ([RENAME, changed(("def surface(w):", "def area(w):"))], "x = area(1)"),  # taken back
        ([edit(" f(\n-)\n+), 1\n")], "g(\n)\n"),  # a lone bracket is no pattern
        ([edit("-    move(all)\n"), edit("+    move(all)\n")], "def f():\n    move(all)\n"),
        ([changed(("# refresh the model", "# update the model"))], "session.refresh(run)"),
        *(
            ([edit(d)], "a\nb\n")
            for d in ("", "\n", "+\n", "-\n", " \n", "@@ -1 +1 @@\n", "-a\n\n+b")
        ),
    ],
)
def test_nothing_is_repeated(edits: list[RecentEdit], text: str) -> None:
    assert found(edits, text) == []


def test_an_argument_is_repeated_by_its_neighbours() -> None:
    added = changed(("    x = send(body)", "    x = send(body, timeout)"))
    offered = found([added], "send(head)\nlog(body)\n    y = send(body)\n")
    assert ("    y = send(body, timeout)",) in texts(offered)
    assert ("send(head, timeout)",) not in texts(offered)


BLOCK = "-if ready:\n-    start(engine)\n+with power(engine):\n+    start(engine)\n+    wait()\n"
LOGGED = "begin(s)\nlog(s)\ncommit(s)\n\n    begin(s)\n    commit(s)"


@pytest.mark.parametrize(
    ("made", "text", "offered"),
    [
        (  # a number changes only beside the same words
            changed(("wait = timeout(10)", "wait = timeout(30)")),
            "size = 10\npause = timeout(10)\nlast = timeout(100)",
            (1, 2, ("pause = timeout(30)",)),
        ),
        (  # all names change in a line
            changed(("area = old_width * 2", "surface = new_width * 2")),
            "print(area, old_width)",
            (0, 1, ("print(surface, new_width)",)),
        ),
        (  # a line is deleted with any indentation
            edit(" def f():\n-    trace(value)\n     return 1\n"),
            "def g():\n        trace(value)\n        return 2",
            (1, 2, ()),
        ),
        (  # a block keeps the indentation of its place
            edit(BLOCK),
            "while True:\n    if ready:\n        start(engine)\n",
            (1, 3, ("    with power(engine):", "        start(engine)", "        wait()")),
        ),
        # a line is put between the same neighbours
        (edit(" begin(s)\n+log(s)\n commit(s)\n"), LOGGED, (5, 5, ("    log(s)",))),
    ],
)
def test_an_edit_is_repeated(
    made: RecentEdit, text: str, offered: tuple[int, int, tuple[str, ...]]
) -> None:
    first, *_ = found([made], text)
    assert (first.first, first.last, first.lines) == offered


def test_neighbouring_lines_come_together_and_alone() -> None:
    offered = found([RENAME], "\n\na = area(1)\nb = area(2)\n")
    both = ("a = surface(1)", "b = surface(2)")
    assert texts(offered)[0] == both
    assert set(texts(offered)) == {both, both[:1], both[1:]}


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


@pytest.mark.parametrize(
    ("path", "text", "groups"),
    [
        ("a.py", "def f(x):\n  return [x.a for x in x.b if x.c for y in x.d]\n", "011011"),
        ("a.py", "def f(x):\n  return [y for y in z for x in x.b if x], x\n", "01110"),
        ("a.py", "def f(ys):\n  return [x for y in ys if (x := y)], x\n", "000"),
        ("a.py", "def f(x):\n  match x:\n    case x.A | {1: x.B}: pass\n", "0000"),
        ("a.py", "def f(v):\n  match v:\n    case {**x} | A(x=x) | x: x\n", "0m000"),
        ("a.py", "def f(v):\n  match v:\n    case A() as x: x\n", "00"),
        ("a.js", "let x; for (x of ys) { x }\nx\n", "0000"),
        ("a.js", "function f() { if (a) { var x = 1 } for (var x of y) {} x }\n", "000"),
        ("a.js", "f(function x() { x }); x\n", "00-"),
        ("a.go", "package p\nfunc f(x A) { for _, x := range x { x() }; x() }\n", "01010"),
        ("a.go", "package p\nfunc f(x A) { var i int; for i, x = range y { x() } }\n", "000"),
        ("a.go", "package p\nfunc f(x A) { x(); x := x.y(); x() }\n", "00101"),
        ("a.go", "package p\nfunc f(x A) { if x := x.y(); x { x() } else { x() } }\n", "010111"),
        ("a.go", "package p\nfunc f(x A) { switch x := x.(type) { case B: x() }; x() }\n", "01010"),
        ("a.go", "package p\nfunc f(x A) { select { case x := <-x: x() }; x() }\n", "01010"),
        ("a.go", "package p\nfunc f() { x() }\nvar x = 1\n", "00"),
        ("a.rs", "fn f(x: A) { x; let x = x.y(); x; }\n", "00101"),
        ("a.rs", "fn f(x: A) { let Some(x) = x else { x }; x; }\n", "01001"),
        ("a.rs", "fn f(x: A) { for x in x { x; } x; }\n", "01010"),
        ("a.rs", "fn f(x: A) { if let Some(x) = x { x; } else { x; } }\n", "01010"),
        ("a.rs", "fn f(x: A) { while let Some(x) = x.y() { x; } }\n", "0101"),
        ("a.rs", "fn f() { x(); fn x() {} }\n", "00"),
        ("a.rs", "fn f(x: A) { let A { x, .. } = x; x; }\n", "0101"),
        ("a.rs", "fn f() { match y { x @ 1 => x, A(x) | B(x) => x, } }\n", "00111"),
        ("A.java", "class K { void f() { if (a instanceof A x) { x.y(); } } }\n", "00"),
        ("A.java", "class K { void f() { if (a instanceof x(A x)) { x.y(); } } }\n", "000"),
        ("A.java", "class K { void f() { switch (a) { case A x -> x.y(); case B x -> x(); } } }\n",
         "0011"),
    ],
)  # fmt: skip
def test_each_use_belongs_to_the_binding_that_it_sees(path: str, text: str, groups: str) -> None:
    syntax = parse_cached(text, language_of(path) or "")
    assert syntax is not None
    known = dict[tuple[int, int], str]()
    found = ""
    for each in Bindings(syntax, "x").occurrences:
        if each.role in ("member", "field"):
            found += "m"
        elif each.scope is None:
            found += "-"
        else:
            found += known.setdefault(each.scope, str(len(known)))
    assert found == groups
