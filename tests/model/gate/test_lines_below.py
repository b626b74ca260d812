"""Ghost text beside the lines below it: their repeats, white space at the end, odd columns."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest

#: The language; the text with the cursor at ▏; what the model writes; what is left of it.
REPEATS = {
    "a fence": ("markdown", '```json\n{"a": ▏\n```\n', '"b"}\n```\n', '"b"}'),
    "a fence and more": ("markdown", "```sh\n▏\n```\n\nText\n", "ls\n```\n\nText", "ls"),
    "fi": ("shellscript", "if [ -f x ]; then\n  ▏\nfi\n", "cat x\nfi", "cat x"),
    "fi without a grammar": ("fish", "if test x\n  ▏\nend\n", "cat x\nend\n", "cat x"),
    "else and fi": (
        "shellscript",
        "if a; then\n  ▏\nfi\n",
        "b\nelse\n  c\nfi",
        "b\nelse\n  c",
    ),
    "done": ("shellscript", "for a in b; do\n  ▏\ndone\n", "c $a\ndone\necho", "c $a"),
    "end of Ruby": ("ruby", "def f(a)\n  ▏\nend\n", "a + 1\nend", "a + 1"),
    "two ends": (
        "ruby",
        "class A\n  def f\n    ▏\n  end\nend\n",
        "1\n  end\nend\n",
        "1",
    ),
    "a second block": (
        "elixir",
        "def f do\n  if a do\n    ▏\n  end\nend\n",
        "b\n  end\n  if c do\n    d\n  end",
        "b\n  end\n  if c do\n    d",
    ),
    "a list item": ("html", "<ul>\n  <li>\n    ▏\n  </li>\n</ul>\n", "a\n  </li>", "a"),
    "the next list item": (
        "html",
        "<ul>\n  <li>\n    ▏\n  </li>\n</ul>\n",
        "a\n  </li>\n  <li>\n    b\n  </li>",
        "a\n  </li>\n  <li>\n    b",
    ),
    "a tag behind text": ("html", "<p>▏\n</p>\n", "so</p>", "so"),
    "the end of a line that the user began": (
        "shellscript",
        "if ▏\nfi\n",
        "a; then\n  b\nfi",
        "a; then\n  b",
    ),
    "a script": ("vue", "<script>\n▏\n</script>\n", "let a = 1\n</script>", "let a = 1"),
    "#endif": ("c", "#ifdef A\n▏\n#endif\n", "int a;\n#endif", "int a;"),
    "#else": ("c", "#ifdef A\n▏\n#else\nint b;\n#endif\n", "int a;\n#else\nint c;", "int a;"),
    "a key": (
        "yaml",
        "web:\n  ▏\n  ports:\n    - 80\n",
        "image: a\n  ports:\n    - 80\n",
        "image: a",
    ),
    "a key with another value": (
        "yaml",
        "web:\n  ▏\n  ports:\n    - 80\n",
        "image: a\n  ports:\n    - 443\n",
        "image: a",
    ),
    "an outer key": ("yaml", "a:\n  ▏\nb:\n  c: 1\n", "d: 2\nb:\n  e: 3", "d: 2"),
    "except": (
        "python",
        "try:\n    ▏\nexcept ValueError:\n    pass\n",
        "a = int(b)\nexcept ValueError:\n    a = 0",
        "a = int(b)",
    ),
    "a clause behind another statement": (
        "python",
        "try:\n    ▏\n    use(a)\nexcept ValueError:\n    pass\n",
        "a = int(b)\nexcept ValueError:\n    a = 0",
        "a = int(b)",
    ),
    "a statement": ("python", "def f(a):\n    ▏\n    return a\n", "a += 1\n    return a", "a += 1"),
    "from": ("sql", "select ▏\nfrom t;\n", "* from t;", "*"),
    "from in its own line": ("sql", "select ▏\nfrom t\nwhere a;\n", "*\nfrom t\nwhere a;", "*"),
    "the rest of the line and more": (
        "",
        "▏b = 1\nc = 2\nd = 3\n",
        "a = 0\nb = 1\nc = 2",
        "a = 0\n",
    ),
    "a comment": ("c", "/*\n▏\n */\nint a;\n", " * Count.\n */", " * Count."),
    "LaTeX": ("latex", "\\begin{a}\n▏\n\\end{a}\n", "\\item b\n\\end{a}", "\\item b"),
    "Jinja": ("jinja", "{% if a %}\n▏\n{% endif %}\n", "b\n{% endif %}", "b"),
    "break": (
        "c",
        "void f(int a) {\n  switch (a) {\n    case 1:\n      ▏\n      break;\n  }\n}\n",
        "g();\n      break;\n    case 2:\n      h();\n      break;",
        "g();\n      break;\n    case 2:\n      h();",
    ),
}

#: Repeats that stand there by right: the text stays as it is.
KEPT = {
    "the end of its own block": ("shellscript", "if a; then\n▏\nfi\n", "if b; then\n  c\nfi"),
    "its own end": ("ruby", "def f\n▏\nend\n", "if a\n  b\nend"),
    "its own tag": ("vue", "<div>\n▏\n</div>\n", "<div>\n  a\n</div>"),
    "its own fence": ("markdown", "▏\n```\na\n```\n", "So:\n```\nb\n```"),
    "its own #endif": ("c", "#if A\n▏\n#endif\n", "#if B\nint b;\n#endif"),
    "a loop that reads again": (
        "python",
        "def f():\n    a = read()\n    ▏\n    a = read()\n    use(a)\n",
        "while a:\n        use(a)\n        a = read()",
    ),
    "a loop without a grammar": (
        "fish",
        "set a (read)\n▏\nset a (read)\n",
        "while use $a\n  set a (read)\nend",
    ),
    "a line within the text": (
        "python",
        "def f():\n    ▏\n    print()\n",
        "print(1)\n    print()\n    print(2)",
    ),
    "another depth": ("yaml", "a:\n  ▏\nb: 1\n", "c:\n    b: 1"),
    "a word of a longer line": ("python", "def f(a, b):\n    x = ▏\n    b\n", "a or b"),
    "arguments before a bracket": ("", "f(▏)\ng(b)\n", "a,\n  b"),
    "brackets": ("typescript", "if (a) {\n  ▏\n}\n", "if (b) {\n    c();\n  }"),
    "rows": ("python", "T = [\n    0,\n    ▏\n]\n", "0,\n    0,"),
}


def at(text: str, language: str) -> EditRequest:
    before, _, behind = text.partition("▏")
    return EditRequest("infill", "", before + behind, len(before), language=language)


def fitted(language: str, text: str, written: str) -> str:
    made = fit(written, at(text, language), replaces=True)
    assert isinstance(made, Edit), made
    return made.new


@pytest.mark.parametrize("name", REPEATS)
def test_lines_that_follow_are_left_out(name: str) -> None:
    language, text, written, left = REPEATS[name]
    assert fitted(language, text, written) == left
    inserted = fit(written, at(text, language))
    assert isinstance(inserted, Edit)
    assert inserted.new == left


@pytest.mark.parametrize("name", KEPT)
def test_a_repeat_by_right_stays(name: str) -> None:
    language, text, written = KEPT[name]
    assert fitted(language, text, written) == written


@pytest.mark.parametrize(
    ("language", "text", "written"),
    [
        ("shellscript", "if a; then\n  b\n▏\nfi\n", "fi"),
        ("ruby", "def f\n  1\n▏\nend\n", "end"),
        ("yaml", "a:\n  ▏\n  ports: 1\n", "ports: 1"),
    ],
)
def test_nothing_is_left_of_a_mere_repeat(language: str, text: str, written: str) -> None:
    made = fit(written, at(text, language), replaces=True)
    assert isinstance(made, Abstain)
    assert made.kind == "repeats_what_follows"


#: The language; the text; what is written; what is left, which ends in a visible character.
CUT = [
    (
        "typescript",
        "function f(xs) {\n  for (const x of xs) {\n    ▏\n  }\n}\n",
        "return x;\n  }\n}",
        "return x;",
    ),
    ("rust", "fn f() {\n    for x in y {\n        ▏\n    }\n}\n", "g(x);\n    }\n}", "g(x);"),
    ("java", "class A {\n  void f() {\n    ▏\n  }\n}\n", "g();\n  }\n  int h;", "g();"),
    ("c", "int f(void) {\n  ▏\n}\n", "return 1;\n  \n}", "return 1;"),
    ("go", "package p\n\nfunc f() {\n\t▏\n}\n", "g()\n\t\n}\n", "g()"),
    ("python", "x = [\n    1,\n    ▏\n]\n", "2,\n]", "2,"),
    ("python", "x = f(\n    1,\n    ▏\n)\n", "2,\n)\ny = 1", "2,"),
    ("", "x = {\n  ▏\n}\n", "a\n}\n", "a"),
]


@pytest.mark.parametrize(("language", "text", "written", "left"), CUT)
@pytest.mark.parametrize("replaces", [True, False])
def test_a_cut_text_ends_in_no_white_space(
    language: str, text: str, written: str, left: str, replaces: bool
) -> None:
    made = fit(written, at(text, language), replaces=replaces)
    assert isinstance(made, Edit)
    assert made.new == left


DEEP = "def f(a, b):\n    if a:\n        b = 1\n{}▏\n\n\ndef g(a):\n    return f(a, 1)\n"
WIDE = "class A:\n        def f(a):\n                b = 1\n{}▏\n\n\nx = 1\n"


@pytest.mark.parametrize("column", [1, 2, 3])
def test_an_indent_is_completed(column: int) -> None:
    made = fitted("python", DEEP.format(" " * column), "return a + b")
    assert made == " " * (4 - column) + "return a + b"


@pytest.mark.parametrize("column", [2, 5, 7])
def test_an_indent_of_eight_is_completed(column: int) -> None:
    made = fitted("python", WIDE.format(" " * column), "def g(a):\n                return a")
    assert made == " " * (8 - column) + "def g(a):\n                return a"


def test_all_lines_move_with_the_first() -> None:
    text = DEEP.format("  ")
    assert fitted("python", text, "a = 1\n  return a") == "  a = 1\n    return a"


@pytest.mark.parametrize("column", [5, 6, 7])
def test_a_column_between_two_indents_is_completed(column: int) -> None:
    made = fitted("python", DEEP.format(" " * column), "b += 1")
    assert made == " " * (8 - column) + "b += 1"


@pytest.mark.parametrize("column", [4, 8])
def test_an_indent_stays(column: int) -> None:
    assert fitted("python", DEEP.format(" " * column), "b += 1") == "b += 1"


@pytest.mark.parametrize("text", [DEEP.format(" " * 12), DEEP.format(" " * 10)])
def test_nothing_is_offered_deeper_than_a_block(text: str) -> None:
    made = fit("b += 1", at(text, "python"), replaces=True)
    assert isinstance(made, Abstain)
    assert made.kind == "does_not_fit"


@pytest.mark.parametrize(
    "text",
    [
        "x = [\n    1,\n  ▏\n]\n",
        'def f():\n    """Do.\n\n  ▏\n    """\n',
        "def f():\n  ▏\n",
        "x = 1 + \\\n  ▏\n",
        "def f():\n    if a:\n        b()\n  # why\n  x▏\n",  # the user's own line
    ],
)
def test_a_column_without_meaning_stays(text: str) -> None:
    assert fitted("python", text, "2") == "2"
