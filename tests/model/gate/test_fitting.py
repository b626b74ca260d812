"""Text written at a cursor, beside the text that already follows it on the line."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest
from redraft.model.text.brackets import brackets_of, closes, find_closing, is_call

#: Text around a line, by language; the line stands at §.
AROUND = {
    "python": "def f(cart, it):\n    §\n    return it\n",
    "typescript": "function f(cart: Cart, it: Item) {\n  §\n  return it;\n}\n",
    "go": "package p\n\nfunc f(cart Cart, it Item) int {\n\t§\n\treturn 1\n}\n",
    "rust": "fn f(cart: Cart, it: Item) -> u8 {\n    §\n    1\n}\n",
    "java": "class A {\n  int f(Cart cart, Item it) {\n    §\n    return 1;\n  }\n}\n",
    "": "§\n",
}
ALL = " ".join(AROUND) + " none"
NOTHING, HELD, HALF = "repeats_what_follows", "does_not_fit", "half_block"

#: Languages ("none": unknown); a line with the cursor at ▏; what is written; the line then,
#: where the rest of it may be replaced, or the kind of the refusal; and the same, where it differs,
#: for clients that only insert.
CASES: list[tuple[str, ...]] = [
    # Brackets and quotes that the editor has closed, and those without a partner.
    (ALL, "total(it▏)", "em.price)", "total(item.price)"),
    (ALL, "total(it▏", "em.price)", "total(item.price)"),
    (ALL, "total(▏)", "max(it)", "total(max(it))"),
    (ALL, "total(▏)", "max(it))", "total(max(it))"),
    (ALL, "total(max(▏))", "it))", "total(max(it))"),
    (ALL, "total(max(▏))", "it)", "total(max(it))"),
    (ALL, "total(▏)", ")", NOTHING),
    (ALL, "it.total(cart[▏])", "0])", "it.total(cart[0])"),
    (ALL, "it.total(cart[▏])", "0]", "it.total(cart[0])"),
    (ALL, "it.total(cart[▏])", "0", "it.total(cart[0])"),
    (ALL, 'total("▏")', 'cart")', 'total("cart")'),
    (ALL, 'total("▏")', 'cart"', 'total("cart")'),
    (ALL, 'total("▏")', 'cart", "it")', 'total("cart", "it")'),
    (ALL, 'total("▏', 'cart")', 'total("cart")'),
    ("python typescript none", "total('▏')", "cart')", "total('cart')"),
    ("typescript go none", "total(`▏`)", "cart`)", "total(`cart`)"),
    ("python none", "x = {▏}", '"a": 1}', 'x = {"a": 1}'),
    ("python none", "x = [▏]", "y for y in it]", "x = [y for y in it]"),
    ("python", "x = f'{▏}'", "it}'", "x = f'{it}'"),
    ("go", "x := map[string]int{▏}", '"a": 1}', 'x := map[string]int{"a": 1}'),
    ("rust", "let v: Vec<▏> = cart;", "Option<u8>", "let v: Vec<Option<u8>> = cart;"),
    ("rust none", "let v: Vec<▏> = cart;", "u8>", "let v: Vec<u8> = cart;"),
    ("java none", "List<▏> v = cart;", "Map<A, B>", "List<Map<A, B>> v = cart;"),
    ("java none", "List<▏> v = cart;", "Map<A, B>>", "List<Map<A, B>> v = cart;"),
    # More behind the bracket than stood before it.
    ("python none", "if total(▏)", "it):", "if total(it):", "if total(it)"),
    ("typescript java none", "if (total(▏))", "it)) {", "if (total(it)) {", "if (total(it))"),
    ("python", "def g(▏)", "a):\n        pass", "def g(a):\n        pass", "def g(a)"),
    ("python", "x = sorted(▏)", "it)[0]", "x = sorted(it)[0]", "x = sorted(it)"),
    # Half words.
    (ALL, "print(ar▏ea)", "ea_of", "print(area_of)", HELD),
    (ALL, "print(a▏r)", "rea(5, 6)", "print(area(5, 6))", HELD),
    (ALL, "print(a▏)", "rea(5, 6))", "print(area(5, 6))"),
    (ALL, "print(a▏rea(7, 8))", "rea(5, 6))", HELD),
    (ALL, "get▏Name(it)", "First", "getFirstName(it)"),
    (ALL, "get▏Name(it)", "FirstName(it)", "getFirstName(it)"),
    # The middle of a call.
    (ALL, "total(it, ▏)", "cart)", "total(it, cart)"),
    (ALL, "total(▏, it)", "cart, ", "total(cart, it)"),
    (ALL, "total(▏, it)", "cart", "total(cart, it)"),
    (ALL, "total(▏it)", "cart, ", "total(cart, it)"),
    (ALL, "total(it▏, cart)", "em, cart)", "total(item, cart)"),
    ("python", "f(x=▏, y=2)", "1, z=3", "f(x=1, z=3, y=2)"),
    # Before a colon, a semicolon, a brace.
    ("python none", "for x in ▏:", "cart.items:", "for x in cart.items:"),
    ("python none", "if ▏:", "it.ok():", "if it.ok():"),
    ("python none", "def g▏(a, b):", "_two(a, b):", "def g_two(a, b):"),
    ("python none", "def g▏(a, b):", "_two(c):", "def g_two(a, b):"),
    ("typescript java none", "x = ▏;", "total(it);", "x = total(it);"),
    ("rust", "let x = ▏;", "total(it);", "let x = total(it);"),
    ("go rust", "if ▏{", "it.ok() {", "if it.ok() {"),
    ("typescript java", "if (▏) {", "it.ok()) {", "if (it.ok()) {"),
    ("typescript", "const s = it ? ▏ : 2;", "1", "const s = it ? 1 : 2;"),
    ("typescript", "const o = { a: ▏ };", "1 }", "const o = { a: 1 };"),
    ("typescript", "const o = { a: ▏ };", "{ b: 1 } }", "const o = { a: { b: 1 } };"),
    # Several lines.
    ("python", "x = total(▏)", "\n        it,\n    )", "x = total(\n        it,\n    )"),
    ("typescript", "it.map(▏);", "(x) => {\n    y;\n  });", "it.map((x) => {\n    y;\n  });"),
    ("typescript", "it.map(▏);", "(x) => {\n    y;\n  }", "it.map((x) => {\n    y;\n  });"),
    # In front of a line of code.
    ("python none", "▏it += 1", "cart = it\n    ", "cart = it\n    it += 1"),
    ("python none", "▏it += 1", "cart = it\n    it += 1", "cart = it\n    it += 1"),
    ("python none", "▏it += 1", "it += 1", NOTHING),
    (ALL, "▏total(it)", "x = total(it)", "x = total(it)"),
    # At the end of a line: what is unfinished is whole enough, what is broken is not.
    ("typescript java none", "▏", "if (it) {", HALF),
    ("python", "▏", "@dataclass", "@dataclass"),
    ("python", "▏", "try:", HALF),
    ("python", "▏", "try:\n        g()", "try:\n        g()"),
    ("python", "x = ▏", "it +", "x = it +"),
    ("python typescript", "x = ▏", "total(it))", "x = total(it)"),
    ("python", "▏", "elif it:\n        g()", HELD),
    ("python", "▏", "it = 1\n    elif it:", "it = 1"),
]


#: Lines that open a block without its body: the language ("" if it is unknown); the text with the
#: cursor at ▏; what the model wrote; what is left of it, "" where nothing is.
HEADS = [
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


def at(text: str, path: str = "", language: str = "") -> EditRequest:
    """Return a request at the ▏ in a text."""
    before, _, behind = text.partition("▏")
    return EditRequest("infill", path, before + behind, len(before), language=language)


def shown(language: str, line: str, written: str, replaces: bool) -> str:
    """Return the line as it becomes, or the kind of the refusal."""
    language = language.replace("none", "")
    above, below = AROUND[language].split("§")
    made = fit(written, at(above + line + below, language=language), replaces=replaces)
    if isinstance(made, Abstain):
        return made.kind
    assert replaces or made.end == made.start
    return made.result[len(above) : len(made.result) - len(below)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}+{case[2]}")
def test_what_is_written_fits_before_what_follows(case: tuple[str, ...]) -> None:
    languages, line, written, replaced, *inserted = case
    for language in languages.split():
        assert shown(language, line, written, True) == replaced, language
        assert shown(language, line, written, False) == (inserted or [replaced])[0], language


def test_what_follows_is_never_lost() -> None:
    for _, line, written, *_ in CASES:
        rest = line.partition("▏")[2]
        made = fit(written, at(line), replaces=True)
        if isinstance(made, Edit):
            left = iter(made.result[made.start :])
            assert all(char in left for char in rest if not char.isspace()), (line, written)


@pytest.mark.parametrize(("language", "text", "written", "left"), HEADS)
def test_a_head_without_body_is_dropped(language: str, text: str, written: str, left: str) -> None:
    made = fit(written, at(text, language=language), replaces=True)
    if left:
        assert isinstance(made, Edit)
        assert made.new.rstrip() == left
    else:
        assert isinstance(made, Abstain)
        assert made.kind == "half_block"


def test_an_answer_cut_by_a_limit_keeps_its_last_line() -> None:
    made = fit(
        "else:", at("def f(n):\n    if n:\n        return\n    ▏\n", language="python"), ended=False
    )
    assert isinstance(made, Edit)
    assert made.new == "else:"


def test_an_error_elsewhere_is_no_reason_to_hold_back() -> None:
    made = fit("it)", at("def f(:\n    pass\n\n\nx = total(▏)\n", "a.py"))
    assert isinstance(made, Edit)
    assert made.new == "it"


def test_the_path_gives_the_language_if_none_is_named() -> None:
    asked = at("def g▏(a, b):\n    pass\n", "x/a.py")
    assert fit("_two(c)(d):", asked) == Edit(asked.text, 5, 5, "_two")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("f(a[0], {1: 2})", 0),
        ("f(a", 1),
        ("f(a))", 1),
        ("f(a]", 2),
        ("'it (' + x", 0),
        ("it's (here)", 0),
        ('"a" + "', 1),
        ("fn f<'a>(x: &'a str)", 0),
        (r"'\'('", 0),
        ("`a\n(` + b", 0),
        ("a < b and (c > d)", 0),
    ],
)
def test_unmatched_brackets_and_quotes_are_counted(text: str, faults: int) -> None:
    assert brackets_of(text).faults == faults


def test_open_brackets_are_closed_from_the_inside_out() -> None:
    assert find_closing("f(a[{") == "}])"
    assert find_closing("f(a)") == ""


@pytest.mark.parametrize(
    ("typed", "behind", "right"),
    [
        ("f(", ")", True),
        ("f([", "])", True),
        ('f("', '")', True),
        ("f(", "", True),
        ("f(", "]", False),
        ("f", ")", False),
        ("x", '"', False),
    ],
)
def test_an_editor_closes_only_what_was_typed(typed: str, behind: str, right: bool) -> None:
    assert closes(typed, behind) == right


def test_a_condition_in_brackets_is_not_a_call() -> None:
    assert is_call("print(area(5, 6)")
    assert is_call("cart[0]")
    assert not is_call("if (x)")
    assert not is_call("(int)")
    assert not is_call("f(x")
