"""An answer that ends on a line which opens a block loses that line, unless its body follows."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest

#: Language ("" where nobody told); the text with the cursor at ▏; what the model wrote; what is
#: left of it, "" where nothing is.
CASES = [
    (
        "python",
        "def f(n):\n    ▏\n",
        "if n <= 1:\n        return n\n    else:",
        "if n <= 1:\n        return n",
    ),
    ("python", "def f(n):\n    ▏\n", "else:", ""),
    ("python", "def f(n):\n    ▏\n", "m = n\n    if m:  # or so\n", "m = n"),
    ("python", "def f(n):\n    ▏\n", "m = n\n    if m:\n        # later", "m = n"),
    ("python", "def f(n):\n    ▏\n", "# what it does", "# what it does"),
    ("python", "▏\n", "class A:\n    def f(self):", ""),
    ("python", "def f(n):\n    ▏\n        return n\n", "if n:", "if n:"),  # the body follows
    ("python", "def f(n):\n    ▏\n    return n\n", "if n:", ""),
    ("python", "def f(n):\n    if ▏\n", "n <= 0:", "n <= 0:"),  # the user began the line
    ("python", "def f▏\n", "(n):\n    if n:", "(n):"),
    ("python", "x = ▏\n", '{"a": 1}', '{"a": 1}'),
    ("python", "def f(n):\n    ▏\n", "x = n[1:]", "x = n[1:]"),
    ("python", "▏x = 1\n", "if y:\n", ""),
    (
        "",
        "def f(n):\n    ▏\n",
        "if n <= 1:\n        return n\n    else:",
        "if n <= 1:\n        return n",
    ),
    ("", "Things to buy:\n▏\n", "Bread:", "Bread:"),
    (
        "typescript",
        "function f(a: A[]) {\n  ▏\n}\n",
        "let s = 0;\n  for (const b of a) {",
        "let s = 0;",
    ),
    (
        "typescript",
        "function f(a: A[]) {\n  ▏\n",
        "let s = 0;\n  for (const b of a) {",
        "let s = 0;",
    ),
    (
        "typescript",
        "function f(a: A[]) {\n  ▏\n  }\n}\n",
        "for (const b of a) {",
        "for (const b of a) {",
    ),
    (
        "typescript",
        "function f(a: A[]) {\n  ▏\n    g(b);\n  }\n}\n",
        "for (const b of a) {",
        "for (const b of a) {",
    ),
    (
        "typescript",
        "function f(a: A) {\n  ▏\n}\n",
        "if (a) {\n    g();\n  } else {",
        "if (a) {\n    g();\n  }",
    ),
    ("typescript", "const f = ▏;\n", "(a) => {\n  return a;\n}", "(a) => {\n  return a;\n}"),
    ("typescript", "function f(▏\n", "a: A) {", "a: A) {"),
    ("go", "package p\n\nfunc f() {\n\t▏\n}\n", "if err != nil { // so", ""),
    ("go", "package p\n\nfunc f() {\n\t▏\n\tcase 1:\n\t}\n}\n", "switch x {", "switch x {"),
    ("rust", "fn f(n: u8) -> u8 {\n    ▏\n}\n", "let m = n;\n    match m {", "let m = n;"),
    ("lua", "function f(n)\n  ▏\nend\n", "local m = n\n  if m then", "local m = n"),
    ("ruby", "def f(n)\n  ▏\nend\n", "m = n\n  m.each do |k|", "m = n"),
    ("ruby", "def f(n)\n  ▏\nend\n", "m = n\n  return m if m", "m = n\n  return m if m"),
    ("shellscript", "f() {\n  ▏\n}\n", "echo a\n  for b in c; do", "echo a"),
]  # fmt: skip


def at(text: str, language: str) -> EditRequest:
    before, _, behind = text.partition("▏")
    return EditRequest("infill", "", before + behind, len(before), language=language)


@pytest.mark.parametrize(("language", "text", "written", "left"), CASES)
def test_a_head_without_body_is_dropped(language: str, text: str, written: str, left: str) -> None:
    made = fit(written, at(text, language), replaces=True)
    if left:
        assert isinstance(made, Edit)
        assert made.new.rstrip() == left
    else:
        assert isinstance(made, Abstain)
        assert made.kind == "half_block"


def test_an_answer_that_a_limit_cut_keeps_its_last_line() -> None:
    made = fit("else:", at("def f(n):\n    if n:\n        return\n    ▏\n", "python"), ended=False)
    assert isinstance(made, Edit)
    assert made.new == "else:"
