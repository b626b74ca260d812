"""Places of a whole rename: what is one use of the definition, what is another, what is unclear."""

from __future__ import annotations

import pytest
from redraft.lsp.renames.whole_rename import MOST_FILES, WholeRename
from support.renames import results, whole_rename

SHAPES = '''\
def area(width, height):
    """Return the area."""
    return width * height  # area


def show(shape):
    print("area", f"{area(1, 2)}", shape.area)
'''
SCRIPT = """\
export function area(width: number) {
  return width; // area
}
export const all = { area, twice: area(2) };
"""
GO = "package shapes\n\nfunc Area(w int) int {\n\treturn w\n}\n\nfunc show() { println(Area(2)) }\n"


def unclear(found: WholeRename | str) -> str:
    assert isinstance(found, str), results(found)
    return found


def test_uses_are_renamed_not_strings_or_comments() -> None:
    found = whole_rename({"p2.py": SHAPES}, "def area", "def surface")
    after = SHAPES.replace("def area", "def surface").replace("{area(", "{surface(")
    assert results(found) == {"p2.py": after}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from shapes.p2 import area\n\narea(1)\n",
            "from shapes.p2 import surface\n\nsurface(1)\n",
        ),
        (
            "from shapes.p2 import area as a\n\na(1)\n",
            "from shapes.p2 import surface as a\n\na(1)\n",
        ),
        ("from .shapes.p2 import area, show\n", "from .shapes.p2 import surface, show\n"),
        ("import shapes.p2\n\nshapes.p2.area(1)\n", "import shapes.p2\n\nshapes.p2.surface(1)\n"),
        ("import shapes.p2 as q\n\nq.area(1)\n", "import shapes.p2 as q\n\nq.surface(1)\n"),
        ("from shapes import p2\n\np2.area(1)\n", "from shapes import p2\n\np2.surface(1)\n"),
        ("from shapes.p2 import *\n\narea(1)\n", "from shapes.p2 import *\n\nsurface(1)\n"),
        ("def f():\n    from shapes.p2 import area\n    area(1)\n", None),
        ("from numpy import area\n\narea(1)\n", ""),
        ("from shapes.p2 import show as area\n\narea(1)\n", ""),
        ("import area\n\narea.area(1)\n", ""),
        ("def area(): ...\n\n\narea()\n", ""),
        ("def f(area):\n    return area, item.area\n", ""),
        ("print('shapes.p2.area')  # area\n", ""),
    ],
)
def test_another_file_is_renamed_by_its_imports(before: str, after: str | None) -> None:
    expected = before.replace("area", "surface") if after is None else after or None
    files = {"shapes/p2.py": SHAPES, "other.py": before}
    assert results(whole_rename(files, "def area", "def surface")).get("other.py") == expected


def test_a_name_is_followed_through_passing_modules() -> None:
    files = {
        "shapes/p2.py": SHAPES,
        "shapes/__init__.py": "from .p2 import area\n",
        "main.py": "from shapes import area\n\narea(1, 2)\n",
    }
    found = whole_rename(files, "def area", "def surface")
    assert results(found)["main.py"] == "from shapes import surface\n\nsurface(1, 2)\n"
    assert isinstance(found, WholeRename)
    assert found.label == "rename area → surface in 4 places (3 files)"


def test_a_file_called_main_is_imported_by_its_name() -> None:
    files = {"app/main.py": SHAPES, "b.py": "from app.main import area\n\narea(1, 2)\n"}
    found = results(whole_rename(files, "def area", "def surface"))
    assert found["b.py"] == "from app.main import surface\n\nsurface(1, 2)\n"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.ts", "import { area } from './p2';\narea(1);\n", None),
        ("a.tsx", "import { area } from './p2';\nconst q = <b>{area(1)}</b>;\n", None),
        ("a.ts", "import { area as a } from './p2.js';\n", None),
        ("a.ts", "import * as p2 from './p2';\np2.area(1);\n", None),
        ("a.ts", "export { area } from './p2';\n", None),
        ("a.ts", "import { area } from './index';\narea(1);\n", None),
        ("a.ts", "import area from './p2';\narea(1);\n", ""),
        ("a.ts", "import { area } from 'shapes';\narea(1);\n", ""),
        ("a.ts", "console.log(shape.area, { area: 1 }, 'area');\n", ""),
    ],
)
def test_scripts_are_renamed_by_their_imports(path: str, before: str, after: str | None) -> None:
    files = {"p2.ts": SCRIPT, "index.ts": "export * from './p2';\n", path: before}
    found = results(whole_rename(files, "function area", "function surface"))
    expected = before.replace("area", "surface") if after is None else after or None
    assert found.get(path) == expected
    assert "{ area: surface, twice: surface(2) }" in found["p2.ts"]


def test_a_file_that_requires_another_module_is_read() -> None:
    text = "import { area } from './p2';\nconst shop = require('./shop');\nshop.area(area(1));\n"
    found = results(whole_rename({"p2.ts": SCRIPT, "a.js": text}, "on area", "on surface"))
    assert found["a.js"] == text.replace("{ area", "{ surface").replace("(area", "(surface")


def test_a_go_package_is_renamed_with_its_importers() -> None:
    files = {
        "shapes/p2.go": GO,
        "shapes/q.go": "package shapes\n\nfunc g() int { return Area(3) + other.Area(2) }\n",
        "main.go": 'package main\n\nimport "x.org/app/shapes"\n\nfunc main() { shapes.Area(2) }\n',
        "other/x.go": "package other\n\nfunc Area(i int) int { return Area(i) }\n",
    }
    found = results(whole_rename(files, "func Area", "func Surface"))
    assert list(found) == ["shapes/p2.go", "shapes/q.go", "main.go"]
    assert found["shapes/q.go"].count("Surface(3) + other.Area(2)") == 1
    assert "shapes.Surface(2)" in found["main.go"]


def test_a_local_variable_is_renamed_in_its_function() -> None:
    text = (
        "total = 1\n\n\ndef f(n):\n    total = 0\n    total += n\n    return total\n\n\nf(total)\n"
    )
    found = results(whole_rename({"a.py": text}, "    total = 0", "    sum_of = 0"))
    inner = text[text.index("    total = 0") : text.index("\n\n\nf(")]
    assert found == {"a.py": text.replace(inner, inner.replace("total", "sum_of"))}


def test_a_short_local_name_stays_in_its_function() -> None:
    text = "def mean(n):\n    if n:\n        return 1 / n\n\n\ndef peaks(n):\n    return n\n"
    found = results(whole_rename({"a.py": text}, "mean(n)", "mean(window)"))
    assert found["a.py"] == text.replace(
        "(n):\n    if n:\n        return 1 / n",
        "(window):\n    if window:\n        return 1 / window",
    )
    other = {"a.py": "db = 1\nprint(db)\n", "b.py": "from a import db\n"}
    assert whole_rename(other, "db = ", "store = ") == "no definition was renamed"


def test_a_parameter_is_renamed_in_naming_calls() -> None:
    files = {
        "a.py": "def scale(width):\n    return width * 2\n\n\ndraw(width=3)\n",
        "b.py": "from a import scale\n\nscale(width=3)\nwidth = 4\n",
    }
    found = results(whole_rename(files, "def scale(width", "def scale(breadth"))
    assert "breadth * 2" in found["a.py"] and "draw(width=3)" in found["a.py"]
    assert found["b.py"] == files["b.py"].replace("scale(width", "scale(breadth")


def test_a_builtin_that_was_hidden_stays_where_used() -> None:
    text = "def ask(input):\n    return input, input\n\n\nx = input()\n"
    found = results(whole_rename({"a.py": text}, "def ask(input", "def ask(given"))
    assert found["a.py"] == "def ask(given):\n    return given, given\n\n\nx = input()\n"


def test_a_member_is_renamed_if_only_its_class_uses_it() -> None:
    text = "class A:\n    def find(self): ...\n\n    def go(self):\n        self.find()\n"
    found = results(whole_rename({"a.py": text}, "def find", "def seek"))
    assert found == {"a.py": text.replace("find", "seek")}
    found = whole_rename({"a.py": text, "b.py": "a.find()\n"}, "def find", "def seek")
    assert results(found) == {"a.py": text.replace("find", "seek")}


def test_open_documents_are_renamed_as_in_the_editor() -> None:
    files = {"p2.py": SHAPES, "b.py": "from p2 import area\n"}
    found = whole_rename(files, "def area", "def surface", opened=("b.py",))
    assert results(found)["b.py"] == "from p2 import surface\n"


@pytest.mark.parametrize(
    ("files", "before", "after", "why"),
    [
        ({"a.py": "def area(): ...\n\n\nx = area()\n"}, "= area", "= surface", "no definition"),
        (
            {"a.py": "surface = 1\ndef area(): ...\n\n\narea()\n"},
            "def area",
            "def surface",
            "no def",
        ),
        (
            {"a.py": "def area(a): ...\n\n\ndef area(b): ...\n\n\narea()\n"},
            *("def area(b", "def surface(b", "still defined in line 1"),
        ),
        (
            {"a.py": "from b import area\n\n\ndef area(): ...\n\n\narea()\n"},
            *("def area", "def surface", "is imported here as well"),
        ),
        (
            {"a.py": "def area(): ...\n", "b.py": "from a import area\n\nsurface = area()\n"},
            *("def area", "def surface", "b.py has another surface"),
        ),
        (
            {"a.py": "__all__ = ['area']\n\n\ndef area(): ...\n\n\narea()\n"},
            *("def area", "def surface", "a.py lists area in a string"),
        ),
        (
            {"u/a.py": SHAPES, "v/a.py": "def f(): ...\n", "b.py": "from a import area\n"},
            *("def area", "def surface", "v/a.py may pass area on"),
        ),
        (
            {"a.py": SHAPES, "b.py": "from a import area\n\narea = cached(area)\n"},
            *("def area", "def surface", "b.py, line 3 binds area again"),
        ),
        (
            {"a.py": SHAPES, "b.py": "def f(a):\n    return a.area()\n"},
            *("def area", "def surface", "b.py, line 2: a is not known"),
        ),
        (
            {"a.js": SCRIPT.replace(": number", ""), "b.js": "const { area } = require('./a');\n"},
            *("function area", "function surface", "b.js, line 1 binds area again"),
        ),
        (
            {"a.rs": "fn area() {}\n\nfn main() { area(); }\n", "b.rs": "use a::area;\n"},
            *("fn area", "fn surface", "b.rs may use area"),
        ),
        (
            {"a.ts": SCRIPT, "b.vue": "<script>\nimport { area } from './a';\n</script>\n"},
            *("function area", "function surface", "the scopes of b.vue are not known"),
        ),
        (
            {"a.py": SHAPES, **{f"b{at}.py": "# area\n" for at in range(MOST_FILES + 1)}},
            *("def area", "def surface", f"more than {MOST_FILES} files mention area"),
        ),
    ],
)
def test_what_is_unclear_is_not_renamed_as_a_whole(
    files: dict[str, str], before: str, after: str, why: str
) -> None:
    assert why in unclear(whole_rename(files, before, after))
