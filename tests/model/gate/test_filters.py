"""Filters: which edits and which ghost text are never shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redraft.model.edits.edit import Edit, LineChange
from redraft.model.gate.filters import (
    CHEAP,
    FAR_IMPORTS,
    FAR_LINES,
    Situation,
    breaks_syntax,
    first_reason,
    passes_unknown,
)
from redraft.model.gate.reversal import undoes

CODE = "def area(r, pi):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"
LONG = "import os\n" + "x = 1\n" * 100 + "y = f(2)\n"
HEAD = "def area(r):\n    "
ROWS = "T = [\n" + "    (0, 0, 0, 0),\n" * 3 + "    "
STARTS = "".join(f"def f{i}(a):\n    return a + {i}\n\n\n" for i in range(6000))
BROKEN = "x = (1,\n\n\n" + "y = 2\n" * 20 + "z = 3\n"


def swap(text: str, old: str, new: str) -> Edit:
    """Return the edit that makes the first ``old`` of ``text`` ``new``."""
    at = text.index(old)
    return Edit(text, at, at + len(old), new)


def situation(text: str, line: int = 0, last: int = 0, path: str = "a.py") -> Situation:
    """Return the situation of a user in a line, whose last edit was in another line."""
    at = sum(len(each) + 1 for each in text.split("\n")[:line])
    return Situation("next_edit", path, "", text, at, 0.0, last_edit=last)


#: Ghost text: what stands before the cursor and behind it, what is written, and the kind of the
#: refusal, "" where it is shown.
GHOST_TEXT = [
    (HEAD, "foo()", "foo()", "repeats_what_follows"),
    (HEAD, ")\n", ")", "repeats_what_follows"),
    (HEAD, "\n    return x\n", " return x\n", "repeats_what_follows"),
    (HEAD, "", "<empty_output>", "special_token"),
    (HEAD, "", "a <fim_middle> b", "special_token"),
    ("EOT = '<|endoftext|>'\nEOT2 = '", "", "<|endoftext|>'", ""),  # the file speaks of it
    (HEAD, "", "x[" + "text.rfind('a', 0) + 1: " * 3 + "text", "in_circles"),
    (HEAD, "", "the 'E' in " * 5, "in_circles"),
    (HEAD, "", "[0, 0, 0, 0, 0, 0]", ""),
    (HEAD, "", "# " + "-" * 70, ""),
    (HEAD, "", "a.append(1)\n    b.append(2)\n    c.append(3)", ""),
    (ROWS, "", "(0, 0, 0, 0),\n" + "    (0, 0, 0, 0),\n" * 3, ""),  # as the file has it
]


@pytest.mark.parametrize(("before", "behind", "written", "kind"), GHOST_TEXT)
def test_ghost_text_that_is_useless(before: str, behind: str, written: str, kind: str) -> None:
    text, at = before + behind, len(before)
    here = Situation("infill", "a.py", "python", text, at, 0.0)
    refused = first_reason(CHEAP["infill"], Edit(text, at, at, written), here)
    assert (refused.kind if refused else "") == kind


#: Next edits: the text, what becomes what, the lines of the cursor and of the last edit, and the
#: kind of the refusal, "" where it is shown.
NEXT_EDITS = [
    # The bytes were no Unicode, and would be lost.
    ("# caf\ufffd: area(2)\n", "area(2)", "area(3)", 0, 0, "half_character"),
    # Far from the cursor and from any edit.
    (LONG, "y = f(2)", "y = g(2)", 10, 5, "far_away"),
    (LONG, "y = f(2)", "y = g(2)", 10, 101 - FAR_LINES, ""),
    (LONG, "y = f(2)", "y = g(2)", 101 - FAR_LINES, 5, ""),
    # Imports alone are changed only near the cursor.
    *(
        (LONG, "import os", new, line, 0, kind)
        for new in (
            "import os\nimport re",
            "from os import path",
            "#include <vector>",
            "use std::io;",
            "const fs = require('fs')",
        )
        for line, kind in ((FAR_IMPORTS + 2, "far_import"), (FAR_IMPORTS, ""))
    ),
    (LONG, "import os", "import os\nLIMIT = 3", FAR_IMPORTS + 2, 0, ""),
]


@pytest.mark.parametrize(("text", "old", "new", "line", "last", "kind"), NEXT_EDITS)
def test_next_edits_that_are_out_of_place(
    text: str, old: str, new: str, line: int, last: int, kind: str
) -> None:
    refused = first_reason(CHEAP["next_edit"], swap(text, old, new), situation(text, line, last))
    assert (refused.kind if refused else "") == kind


#: The path; the text; what becomes what; and whether that adds a syntax error.
SYNTAX = [
    ("a.py", CODE.replace("area(2))", "area(2)"), "r * r", "r * (r", False),  # broken nearby
    ("a.py", BROKEN.replace("(1,", "1"), "z = 3", "z = )3", True),
    ("a.py", BROKEN.replace("(1,", "1"), "z = 3", "z = 4", False),
    ("a.py", BROKEN, "z = 3", "z = 4", False),  # broken elsewhere
    ("a.js", "a = {}\n", "{}", "{", True),
    ("notes.txt", "anything (\n", "anything", "(((", False),
    # A large file is parsed around the edit.
    ("a.py", STARTS, "a + 3000", "a + (3000", True),
    ("a.py", STARTS, "a + 3000", "a * 3000", False),
    ("a.py", STARTS, "a + 5999", "a + (5999", True),
    ("a.py", STARTS, "def f0(a)", "def f0(a", True),
]


@pytest.mark.parametrize(("path", "text", "old", "new", "is_refused"), SYNTAX)
def test_edits_that_add_syntax_errors(
    path: str, text: str, old: str, new: str, is_refused: bool
) -> None:
    refused = breaks_syntax(swap(text, old, new), situation(text, path=path))
    assert (refused is not None and refused.kind == "syntax_errors") is is_refused


CHANGED = LineChange(0, ("def area(r):",), ("def area(r, pi):",))
TYPED = LineChange(4, (), ("print(area(2))",))
DELETED = LineChange(2, ("    scale = factor * rate",), ())


@pytest.mark.parametrize(
    ("done", "old", "new", "expected"),
    [
        (CHANGED, "area(r, pi)", "area(r)", True),  # all of it
        (CHANGED, "def area(r, pi):", "def area(r):", True),
        (CHANGED, "r, pi", "r, p", True),  # some of what was typed
        (CHANGED, "r, pi", "r, pi, e", False),
        (CHANGED, "r, pi", "r, factor", False),  # a correction
        (CHANGED, "area(r, pi)", "volume(r, pi)", False),
        (TYPED, "print(area(2))\n", "", True),
        (TYPED, "print(area(2))", "print(area(2, 3))", False),
        (DELETED, "\n\n\nprint", "\n    scale = factor * rate\n\n\nprint", True),
        (DELETED, "\n\n\nprint", "\n    factor * rate\n\n\nprint", True),  # some of it
        (DELETED, "\n\n\nprint", "\n    scale = 1\n\n\nprint", False),
    ],
)
def test_edits_that_take_back(done: LineChange, old: str, new: str, expected: bool) -> None:
    assert undoes(swap(CODE, old, new), [done]) is expected


def test_deleting_a_line_just_typed_is_a_reversal() -> None:
    text = "log(a)\nlog(b)\nlog(c)\n"
    typed = LineChange(1, (), ("log(b)",))
    assert undoes(swap(text, "log(b)\nlog(c)", "log(c)"), [typed])
    bracket = LineChange(0, (), ("print(x))",))
    assert not undoes(swap("print(x))\n", "x))", "x)"), [bracket]), "it was one too many"


@pytest.mark.parametrize(
    ("text", "done", "old", "new", "expected"),
    [
        ("a()\nb()", LineChange(1, (), ("b()",)), "\nb()", "", True),
        ("a()\nb()\nc()", LineChange(1, (), ("b()", "c()")), "\nc()", "", True),
        ("a()", LineChange(1, ("b()",), ()), "a()", "a()\nb()", True),
        ("a()", LineChange(1, ("bcd()", "c()"), ()), "a()", "a()\nbcd()", True),
        ("a()\nb()", LineChange(1, (), ("b()",)), "b()", "b(1)", False),
        ("a()\nb()", LineChange(9, (), ("a()",)), "a()\n", "", False),  # of a text that was longer
    ],
)
def test_at_the_last_line(text: str, done: LineChange, old: str, new: str, expected: bool) -> None:
    assert undoes(swap(text, old, new), [done]) is expected


RENAMED = LineChange(0, ("def area(r, pi):",), ("def surface(r, pi):",))
LONGER = LineChange(0, ("def area(r, pi):",), ("def area_of(r, pi):",))
COMPARED = LineChange(0, ("    return a == b",), ("    return a != b",))
SHORTENED = LineChange(0, ("x = total(a, b)",), ("x = sum(a)",))


@pytest.mark.parametrize(
    ("done", "old", "new", "expected"),
    [
        # the old name, and another line as well, or another change of this one
        (RENAMED, "surface(r, pi):", "area(r, pi):\n    y", True),
        (LONGER, "area_of(r, pi):\n    x", "area(r, pi):\n    y", True),
        (LONGER, "area_of(r, pi)", "area(r, pi, e)", True),
        (COMPARED, "return a != b\n    x", "return a == b\n    y", True),
        (SHORTENED, "sum(a)", "total(a, c)", True),
        # another name, more of it, something else beside it
        (RENAMED, "surface(r, pi):", "volume(r, pi):\n    y", False),
        (LONGER, "area_of(r, pi):\n    x", "area_off(r, pi):\n    y", False),
        (LONGER, "of(r, pi):\n    x", "of(r):\n    y", False),
        # what is yet to be typed may be what was there before
        (SHORTENED, "a)\n    x", "a, b)\n    print(x)", False),
    ],
)
def test_an_edit_that_also_reverses(done: LineChange, old: str, new: str, expected: bool) -> None:
    assert undoes(swap(f"{done.new[0]}\n    x\n", old, new), [done]) is expected


def test_the_same_words_elsewhere_are_no_reversal() -> None:
    text = "def surface(r):\nsurface(1)\nx\n"
    done = LineChange(0, ("def area(r):",), ("def surface(r):",))
    assert not undoes(swap(text, "surface(1)\nx", "area(1)\ny"), [done])


PASSES = "import os\n\n\ndef load(path, mode):\n    x = 1\n    open(path)\n"
SCRIPT = "import { open } from 'fs'\n\nfunction load(path) {\n  open(path)\n}\n"
RUST = "use a::open;\n\nfn load(path: P) {\n    open(path);\n}\n"
GO = "package a\n\nfunc load(path string) {\n\topen(path)\n}\n"
#: The path; the text; what becomes what; and the unknown name that it passes, "" without one.
UNKNOWN = [
    ("a.py", PASSES, "open(path)", "open(path, encoding)", "encoding"),
    ("a.py", PASSES, "open(path)", "open(path, encoding=encoding)", "encoding"),
    ("a.py", PASSES, "open(path)", "open(path, encoding=mode)", ""),
    ("a.py", PASSES, "open(path)", "open(path, x)", ""),
    ("a.py", PASSES, "open(path)", "open(path, os)", ""),
    ("a.py", PASSES, "open(path)", "open(path, print)", ""),
    ("a.py", PASSES, "open(path)", "open(path, __file__)", ""),
    ("a.py", PASSES, "open(path)", "open(path, load)", ""),
    ("a.py", PASSES, "open(path)", "open(path, os.sep, self.encoding)", ""),
    ("a.py", PASSES, "open(path)", "open(path, 'a, encoding, b')", ""),
    ("a.py", PASSES, "open(path)", "open(path)  # or (path, encoding)", ""),
    ("a.py", PASSES, "open(path)", "encoding = 1\n    open(path, encoding)", ""),
    ("a.py", PASSES, "open(path)", "[open(path, each) for each in path]", ""),
    ("a.py", PASSES, "open(path)", "with path as f: open(path, f)", ""),
    ("a.py", PASSES, "    open(path)", "class A(os, Base):\n    pass", ""),  # no call
    ("a.py", PASSES, "open(path)", "open(path, größe)", "größe"),
    ("a.py", PASSES.replace("import os", "from os import *"), "(path)\n", "(path, sep)\n", ""),
    ("a.py", PASSES.replace("x = 1", "exec(path)"), "n(path)", "n(path, sep)", ""),
    ("a.py", PASSES.replace("x = 1", "x = encoding"), "(path)", "(path, encoding)", ""),  # used
    ("a.py", "class A:\n    a = 1\n    b = f(2)\n", "f(2)", "f(2, a)", ""),
    ("a.py", "class A:\n    def f(self):\n        self.a = 1\n        f(2)\n",
     "f(2)", "f(2, a)", "a"),
    ("a.py", "def f(:\n    pass\n\n\n" + PASSES, "n(path)", "n(path, sep)", ""),  # broken
    ("a.ts", SCRIPT, "open(path)", "open(path, encoding)", "encoding"),
    ("a.ts", SCRIPT, "open(path)", "open(path, window)", ""),
    ("a.ts", SCRIPT, "open(path)", "path.map(({ a, b: [c] }) => open(a, c))", ""),
    ("a.js", SCRIPT.partition("\n")[2], "open(path)", "open(path, encoding)", ""),  # no module
    ("a.rs", RUST, "open(path)", "open(path, mode)", "mode"),
    ("a.rs", RUST, "open(path)", "path.map(|a| open(path, a))", ""),
    ("a.rs", RUST.replace("a::open", "a::*"), "open(path)", "open(path, mode)", ""),
    ("a.go", GO, "open(path)", "open(path, mode)", ""),  # another file of the package may define it
    ("a.txt", "f(a)\n", "f(a)", "f(a, b)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "old", "new", "name"), UNKNOWN)
def test_edits_that_pass_what_nothing_defines(
    path: str, text: str, old: str, new: str, name: str
) -> None:
    refused = passes_unknown(swap(text, old, new), situation(text, path=path))
    said = f"nothing in sight defines '{name}', which the edit would pass"
    assert (refused.reason if refused else "") == (said if name else "")


def test_names_from_edits_or_cells_may_be_passed() -> None:
    edit, here = swap(PASSES, "n(path)", "n(path, encoding)"), situation(PASSES)
    assert passes_unknown(edit, here) is not None
    change = LineChange(0, ("def a():",), ("def a(encoding):",))
    assert passes_unknown(edit, replace(here, changes=(change,))) is None
    assert passes_unknown(edit, replace(here, above="encoding = 1\n")) is None
