"""Where a rename goes on and where it stops: scopes, classes and files that bind the name again."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import refuse, situation_of
from redraft.model.records import EditRequest
from redraft.model.rules.example import RuleEdit
from redraft.model.rules.renames import RenameScopes
from redraft.model.text.syntax import language_of
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


def test_lines_that_two_renames_reach_are_offered_each_by_itself() -> None:
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
def test_a_function_renamed_elsewhere_is_not_this_files(text: str, path: str, other: str) -> None:
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
    assert (RenameScopes(edits, text, path).leaked(made) == "") is goes_on
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


def test_a_renamed_field_goes_to_its_uses_and_to_what_is_handed_on_as_it() -> None:
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


def test_a_use_that_is_renamed_first_leads_to_its_definition() -> None:
    before = "def area(w):\n    return w\n\nprint(area(1))\nprint(area(2))\n"
    after = before.replace("print(area(1))", "print(surface(1))")
    scopes = RenameScopes(history(before, after, "a.py"), after, "a.py")
    assert scopes.allows("area", "surface", 0) and scopes.allows("area", "surface", 4)


def test_a_field_added_to_a_class_is_not_offered_to_its_namesake_in_another_file() -> None:
    shop = "class Item:\n    name: str\n    price: float\n\nitem = Item()\n"
    after = shop.replace("    price: float\n", "    quantity: int\n    price: float\n")
    edits = history(shop, after, "shop.py")
    inventory = shop.replace("item = Item()", "stock = Item()")
    assert proposed(edits, inventory, edits[-1].line, path="inventory.py") == []
    other = inventory.replace("class Item", "class Product")
    assert proposed(edits, other, edits[-1].line, path="inventory.py"), (
        "another class may well get it"
    )
