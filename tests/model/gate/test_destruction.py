"""Edits that drop or double a definition, or delete lines that no recent edit is a reason for."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.edits.recent_changes import recent_changes
from redraft.model.gate.destruction import (
    deletes_unasked,
    doubles,
    drops,
    find_removed_names,
)
from redraft.model.gate.filters import Situation, destroys
from redraft.model.records import EditRequest, RecentEdit

TWO = "def area(r):\n    return r * r\n\n\ndef edge(r):\n    return 2 * r\n"
SHAPE = (
    "class Shape:\n    def area(self):\n        return 1\n\n    def edge(self):\n        return 2\n"
    "\n\n"
    "class Disc:\n    def area(self):\n        return 3\n"
)
GO = "func (s *Stack) Len() int {\n\treturn 1\n}\n\nfunc (q *Queue) Len() int {\n\treturn 2\n}\n"
JAVA = "class A {\n  void run(int a) {\n  }\n\n  void stop() {\n  }\n}\n"
JS = "class A {\n  get x() { return 1; }\n  run() { }\n  // more\n}\n"
INIT = "package a\n\nfunc init() {\n}\n\n// more\n"
TS = "export function pick(a: string): string {\n  return a\n}\n"


def swap(text: str, old: str, new: str) -> Edit:
    at = text.index(old)
    return Edit(text, at, at + len(old), new)


AREA, EDGE = TWO[: TWO.index("\n\n\n") + 1], TWO[TWO.index("def edge") :]

#: The text, its language, what becomes what, names that the recent edits removed, and whether the
#: edit is refused.
CASES = {
    "a function goes": (TWO, "python", EDGE, "", (), True),
    "a function goes whose calls went": (TWO, "python", EDGE, "", ("edge",), False),
    "a function gets another name": (TWO, "python", "def edge", "def rim", (), False),
    "a neighbour in its place": (TWO, "python", EDGE, AREA, (), True),
    "a copy below": (TWO, "python", EDGE, f"{EDGE}\n\n{AREA}", (), True),
    "a new function": (TWO, "python", EDGE, f"{EDGE}\n\ndef rim(r):\n    return r\n", (), False),
    "two become one": (TWO, "python", TWO, "def both(r):\n    return r * r, 2 * r\n", (), True),
    "a method of another class": (
        SHAPE,
        "python",
        "        return 3\n",
        "        return 3\n\n    def edge(self):\n        return 4\n",
        (),
        False,
    ),
    "a method twice": (
        SHAPE,
        "python",
        "        return 3\n",
        "        return 3\n\n    def area(self):\n        return 4\n",
        (),
        True,
    ),
    "a setter": (
        SHAPE,
        "python",
        "        return 3\n",
        "        return 3\n\n    @area.setter\n    def area(self, value):\n        pass\n",
        (),
        False,
    ),
    "a fallback of an import": (
        "try:\n    from a import load\nexcept ImportError:\n    pass\n",
        "python",
        "    pass\n",
        "    def load():\n        return 1\n",
        (),
        False,
    ),
    "the other branch": (
        "if x:\n    def load():\n        return 1\n",
        "python",
        "return 1\n",
        "return 1\nelse:\n    def load():\n        return 2\n",
        (),
        False,
    ),
    "a method of another receiver": (
        GO,
        "go",
        "func (q *Queue) Len",
        "func (q *Queue) Cap() int {\n\treturn 0\n}\n\nfunc (q *Queue) Len",
        (),
        False,
    ),
    "a method of the same receiver": (
        GO,
        "go",
        "func (q *Queue) Len",
        "func (s *Stack) Len() int {\n\treturn 0\n}\n\nfunc (q *Queue) Len",
        (),
        True,
    ),
    "an overload": (
        JAVA,
        "java",
        "  void stop() {\n",
        "  void run(String a) {\n  }\n\n  void stop() {\n",
        (),
        False,
    ),
    "the same overload": (
        JAVA,
        "java",
        "  void stop() {\n",
        "  void run(int a) {\n  }\n\n  void stop() {\n",
        (),
        True,
    ),
    "a signature above": (
        TS,
        "typescript",
        "export function",
        "export function pick(a: number): number\nexport function",
        (),
        False,
    ),
    "an import in its place": (TWO, "python", EDGE, "from shapes import edge\n", (), False),
    "a value in its place": (TWO, "python", EDGE, "edge = double\n", (), False),
    "a value of its name that was there": (
        f"{TWO}edge = cached(edge)\n",
        "python",
        f"{EDGE}",
        "",
        (),
        True,
    ),
    "a call in its place": (TWO, "python", EDGE, "edge(2)\n", (), True),
    "a getter and a setter": (JS, "javascript", "  // more", "  set x(v) { }", (), False),
    "a static namesake": (JS, "javascript", "  // more", "  static run() { }", (), False),
    "a getter twice": (JS, "javascript", "  // more", "  get x() { }", (), True),
    "another init of Go": (INIT, "go", "// more", "func init() {\n}", (), False),
    "the other system": (
        "#[cfg(unix)]\nfn f() {}\n// more\n",
        "rust",
        "// more",
        "#[cfg(windows)]\nfn f() {}",
        (),
        False,
    ),
    "the other directive": (
        "#ifdef A\nvoid f() {\n}\n#else\n#endif\n",
        "cpp",
        "#endif",
        "void f() {\n}\n#endif",
        (),
        False,
    ),
    "a class of Ruby again": (
        "class A\n  def x; end\nend\n# more\n",
        "ruby",
        "# more",
        "class A\n  def y; end\nend",
        (),
        False,
    ),
    "a component for a class": (
        "class A extends C {\n  render() {\n    return 1;\n  }\n}\n",
        "javascript",
        "class A extends C {\n  render() {\n    return 1;\n  }\n}",
        "function A() {\n  return 1;\n}",
        (),
        False,
    ),
    "no grammar": ("(defun a ())\n", "lisp", "(defun a ())\n", "", (), False),
}


@pytest.mark.parametrize("case", CASES)
def test_definitions_are_neither_dropped_nor_doubled(case: str) -> None:
    text, language, old, new, removed, is_refused = CASES[case]
    edit = swap(text, old, new)
    found = drops(edit, language, "", removed) or doubles(edit, language, "")
    assert (found is not None and found.kind == "destroys") == is_refused


def test_ghost_text_defines_nothing_a_second_time() -> None:
    again, other = Edit(TWO, len(TWO), len(TWO), f"\n\n{AREA}"), "\n\ndef rim(r):\n    return r\n"
    assert doubles(again, "python", "") is not None
    assert doubles(Edit(TWO, len(TWO), len(TWO), other), "python", "") is None
    begun = f"{TWO}\n\ndef rim"
    assert (
        doubles(Edit(begun, len(begun), len(begun), "(r):\n    return r\n"), "python", "") is None
    )


POINT = """class Point:
    def __init__(self, x: int, y=0):
        self.x: int = x
        self.y = y

    def size(self):
        return self.x + self.y


class Line:
    def __init__(self, a):
        self.a = a
"""
INIT_OF_POINT = POINT[POINT.index("    def __init__") : POINT.index("    def size")]
FIELDS = "    x: int\n    y: int = 0\n\n"
DECORATED = RecentEdit("a.py", 0, "+@dataclass\n class Point:\n")


@pytest.mark.parametrize(
    ("decorator", "typed", "old", "new", "is_refused"),
    [
        ("@dataclass\n", True, INIT_OF_POINT, FIELDS, False),
        ("@dataclass\n", True, INIT_OF_POINT, "", False),
        ("@dataclasses.dataclass(frozen=True)\n@final\n", True, INIT_OF_POINT, "", False),
        ("@dataclass(init=False)\n", True, INIT_OF_POINT, FIELDS, True),
        ("@dataclass\n", False, INIT_OF_POINT, FIELDS, True),  # it was there for long
        (
            "@dataclass\n",
            True,
            "    def __init__(self, a):\n        self.a = a\n",
            "    a: int\n",
            True,
        ),
        (
            "@dataclass\n",
            True,
            POINT[POINT.index("    def __init__") : POINT.index("class L")],
            "",
            True,
        ),
        ("", True, f"class Point:\n{INIT_OF_POINT}", f"@dataclass\nclass Point:\n{FIELDS}", False),
        ("", True, f"class Point:\n{INIT_OF_POINT}", f"class Point:\n{FIELDS}", True),
    ],
)
def test_an_init_that_a_new_decorator_writes_may_go(
    decorator: str, typed: bool, old: str, new: str, is_refused: bool
) -> None:
    text = decorator + POINT
    diff = "".join(f"+{line}\n" for line in decorator.splitlines()) + " class Point:\n"
    edits = (RecentEdit("a.py", 0, diff),) if typed and decorator else ()
    assert _is_refused(text, swap(text, old, new), edits) == is_refused


def test_an_init_that_a_dataclass_cannot_replace_stays() -> None:
    text = "@dataclass\n" + POINT.replace("self.y = y\n", "self.y = y\n        register(self)\n")
    start, end = text.index("    def __init__"), text.index("    def size")
    assert _is_refused(text, Edit(text, start, end, FIELDS), (DECORATED,))


EXTRACT = "type Extract<S> = S\n"
IMPORTS = f'import {{\n  Extract,\n}} from "./a"\nimport {{ Other }} from "./b"\n\n{EXTRACT}'
VALUE = 'import { LIMITS } from "./a"\nrun()\nconst LIMITS = {\n  a: 1,\n}\n'
TWICE = 'import fs from "node:fs"\nimport { x } from "./x"\nimport fs from "node:fs"\n'


@pytest.mark.parametrize(
    ("text", "typed", "old", "is_refused"),
    [
        (IMPORTS, "+  Extract,\n", EXTRACT, False),  # the definition has become an import
        (IMPORTS, "+  Another,\n", EXTRACT, True),  # the import is an old one
        (f"{IMPORTS}use(Extract)\n", "+use(Extract)\n", EXTRACT, True),  # and only a use is new
        (IMPORTS.replace("  Extract", "  Another"), "+  Extract,\n", EXTRACT, True),
        (VALUE, '+import { LIMITS } from "./a"\n', VALUE[VALUE.index("const") :], False),
        (VALUE, '+import { LIMITS } from "./a"\n', VALUE[VALUE.index("run(") :], True),
        (TWICE, '+import fs from "node:fs"\n', TWICE[TWICE.rindex("import fs") :], False),
        (TWICE, '+import fs from "node:fs"\n', 'import { x } from "./x"\n', True),
        (TWICE, '+import fs from "node:fs"\n', TWICE[TWICE.index("import { x") :], True),
    ],
)
def test_what_was_just_imported_may_go(text: str, typed: str, old: str, is_refused: bool) -> None:
    line = text.split("\n").index(typed[1:-1]) if typed[1:-1] in text else 0
    at = text.rindex(old)
    edits = (RecentEdit("a.ts", line, typed),)
    edit = Edit(text, at, at + len(old), "")
    assert _is_refused(text, edit, edits, "a.ts", "typescript") == is_refused


def test_a_method_may_become_a_field_of_its_name() -> None:
    text = "interface A<V> {\n  use(a: V): number;\n  end(): void;\n}\n"
    at = text.index("(a: V)")
    edit = Edit(text, at, at + len("(a: V): number"), ": Use<V>")
    assert drops(edit, "typescript", "", ()) is None


#: The grammar takes "<T>(…) =>" for a type assertion. A tree that goes on from this one has lost
#: ``made``.
BROKEN = (
    "  show(slice)\n}\nconst made = <T>(state: Maker<T, [], []>) => {\n}\n"
    "export const create = (<T>(state: Maker<T, [], []> | undefined) =>\n"
    "  state ? made(state) : made) as Create"
)


def test_a_definition_is_still_found_in_broken_text() -> None:
    edit = swap(BROKEN, "show(slice)", "React.show(slice)")
    assert drops(edit, "typescript", "", ()) is None


def _is_refused(
    text: str,
    edit: Edit,
    edits: tuple[RecentEdit, ...],
    path: str = "a.py",
    language: str = "python",
) -> bool:
    request = EditRequest("next_edit", path, text, 0, language, edits=edits)
    changes = recent_changes(request)
    situation = Situation("next_edit", path, language, text, 0, 0.0, changes)
    return destroys(edit, situation) is not None


LINES = "import os\nimport re\n\nx = load(path)\nprint(x)\nprint(x)\n"


@pytest.mark.parametrize(
    ("old", "new", "removed", "reported", "is_unasked"),
    [
        ("x = load(path)\n", "", (), (), True),
        ("x = load(path)\n", "", ("path",), (), False),
        ("import re\n", "", ("re",), (), False),
        ("import re\n", "", (), (1,), False),
        ("import re\n", "", (), (0,), True),
        ("import re\nprint(x)\n"[:10], "import os\n", (), (), False),  # something comes instead
        ("print(x)\n", "", (), (), False),  # one of two equal lines
        ("\n", "", (), (), False),
    ],
)
def test_deletions_need_a_reason(
    old: str, new: str, removed: tuple[str, ...], reported: tuple[int, ...], is_unasked: bool
) -> None:
    assert deletes_unasked(swap(LINES, old, new), removed, reported) == is_unasked


def test_names_that_edits_removed() -> None:
    edits = [
        RecentEdit("a.py", 0, " x\n-import re, os\n+import os\n"),
        RecentEdit("b.py", 3, "-load(path)\n+fetch(path)\n"),
    ]
    assert find_removed_names(edits) == {"re", "load"}
