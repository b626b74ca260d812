"""Imports that the last edits left without a use."""

from __future__ import annotations

import pytest
from redraft.model.rules.unused_imports import find_unused
from support.rules import history

PY = "import os\nimport socket\nfrom typing import Any, cast\n\nx: Any = socket.socket(os.name)\n"
CASES = [
    ("a.py", PY, "socket.socket(os.name)", "os.name", "import socket\n", ""),
    ("a.py", PY, "x: Any", "x", "import Any, cast", "import cast"),
    (
        "a.py",
        "from t import (\n    a,\n    bob,\n)\n\na(bob)\n",
        *("a(bob)", "a()", "    bob,\n", ""),
    ),
    ("a.py", "from t import a, bob\n\na(bob)\n", "a(bob)", "a()", "a, bob", "a"),
    (
        "a.ts",
        'import { here, there } from "x";\nimport one from "y";\nhere(there, one);\n',
        *("there, one", "one", "{ here, there }", "{ here }"),
    ),
    (
        "a.ts",
        'import { here } from "x";\nimport one from "y";\nhere(one);\n',
        *("one", "1", 'import one from "y";\n', ""),
    ),
    (
        "a.go",
        'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc f() { fmt.Print(os.Args) }\n',
        *("os.Args", "1", '\t"os"\n', ""),
    ),
    ("a.rs", "use a::{b, cat};\n\nfn f() { b(cat) }\n", "b(cat)", "b()", "{b, cat}", "{b}"),
    (
        "A.java",
        "import a.B;\nimport a.Cat;\nclass A { B b = new Cat(); }\n",
        *("new Cat()", "null", "import a.Cat;\n", ""),
    ),
]


def found(path: str, before: str, after: str) -> list[str]:
    language = {"py": "python", "ts": "typescript", "go": "go", "rs": "rust", "java": "java"}
    edits = history(before, after, path)
    made = find_unused(after, language[path.split(".")[1]], path, edits)
    return [each.in_text(after).result for each in made]


@pytest.mark.parametrize(("path", "text", "old", "new", "drop", "stays"), CASES)
def test_an_import_goes_with_its_last_use(
    path: str, text: str, old: str, new: str, drop: str, stays: str
) -> None:
    head, _, tail = text.rpartition(old)
    after = f"{head}{new}{tail}"
    assert found(path, text, after) == [after.replace(drop, stays, 1)]


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("a.py", "import os  # noqa: F401\n\nos.name\n", "os.name", "pass"),
        ("a.py", "import os\n\nos.name\nos.sep\n", "os.name", "pass"),
        ("a.py", 'import os\n\nos.name\n__all__ = ["os"]\n', "os.name", "pass"),
        ("a.py", "from a import *\n\nos.name\n", "os.name", "pass"),
        ("a/__init__.py", "import os\n\nos.name\n", "os.name", "pass"),
        ("a.py", "import os\n\nos.name\n", "os.name", "def ("),
        ("a.ts", 'import x, { y } from "z";\nx(y)\n', "x(y)", "x()"),
    ],
)
def test_what_may_be_used_or_is_kept_on_purpose_stays(
    path: str, text: str, old: str, new: str
) -> None:
    head, _, tail = text.rpartition(old)
    assert found(path, text, f"{head}{new}{tail}") == []
