"""Literals that became a constant, at their other places."""

from __future__ import annotations

import pytest
from support.renames import constants, results

PYTHON = '''\
"""Tools for seconds in a day: 86400."""
import time

early = 86400
HOLE

def wait(days, limit=86400):
    time.sleep(days * 86400)
    return {"seconds": 86400, 86400: 1}


def again(DAY):
    return DAY - 86400  # 86400
'''
DEFINED = ("HOLE\n", "DAY = 86400\n")
USED = ("days * 86400", "days * DAY")
TS = """\
HOLE
export function greet(name: 'hello there', more = {'hello there': 1}) {
  show('hello there', name);
  show("hello there", name);
  return `hello there ${'hello there'}`;
}
"""
GO = """\
package a

HOLE

type T struct {
	A int `hello there`
}

func f() {
	show("hello there", "hello there")
	show("hello there")
}
"""


def one(path: str, text: str, *changes: tuple[str, str]) -> str:
    """Return the text after the only constant takes the place of its literal."""
    (found,) = constants(path, text, *changes)
    (result,) = results(found).values()
    return result


def test_uses_below_the_definition_become_the_constant() -> None:
    text = PYTHON[: PYTHON.index("def again")]
    (found,) = constants("a.py", text, DEFINED, USED)
    assert found.label == "put `DAY` in place of `86400` at 2 places"
    (after,) = results(found).values()
    assert "early = 86400\nDAY = 86400\n" in after
    assert "def wait(days, limit=DAY):" in after
    assert '"seconds": DAY, 86400: 1' in after


def test_scripts_keep_types_keys_and_templates() -> None:
    changes = (
        ("HOLE", "const HELLO = 'hello there';"),
        ("show('hello there', name)", "show(HELLO, name)"),
    )
    assert constants("a.ts", TS, *changes) == []  # nothing is left
    text = TS.replace('"hello there"', "'hello there'")
    after = one(
        "a.ts",
        text,
        changes[0],
        ("show('hello there', name);\n  show('h", "show(HELLO, name);\n  show('h"),
    )
    assert "  show(HELLO, name);\n  show(HELLO, name);\n" in after
    assert "name: 'hello there', more = {'hello there': 1}" in after
    assert "${'hello there'}" in after


def test_go() -> None:
    changes = ("HOLE", 'const Hello = "hello there"'), ('("hello there", "h', '(Hello, "h')
    assert constants("a.go", GO, *changes) == []  # in a line that was changed
    text = GO.replace('show("hello there", "hello there")', 'log("hello there")')
    after = one("a.go", text, changes[0], ('log("hello there")', "log(Hello)"))
    assert "show(Hello)" in after and "`hello there`" in after


@pytest.mark.parametrize(
    ("define", "use"),
    [
        (("HOLE\n", "DAY = 86400\n"), ("limit=86400", "limit=86_400")),  # no use of the name
        (("HOLE\n", "DAY = 86401\n"), USED),
        (("HOLE\n", "DAY = 86400\nDAY += 1\n"), USED),
        (("HOLE\n", "from days import DAY\n"), USED),
        (("    time.sleep", "    DAY = 86400\n    time.sleep"), ("days * 86400", "days * WEEK")),
    ],
)
def test_a_name_that_may_be_something_else(define: tuple[str, str], use: tuple[str, str]) -> None:
    text = PYTHON[: PYTHON.index("def again")]
    assert constants("a.py", text, define, use) == []


def test_a_name_that_another_function_binds() -> None:
    assert constants("a.py", PYTHON, DEFINED, USED) == []


def test_a_constant_of_one_function_stays_there() -> None:
    text = "def f(x):\n    HOLE\n    g(x, 3600)\n    h(3600)\n\n\ndef k():\n    h(3600)\n"
    changes = ("HOLE", "hour = 3600"), ("g(x, 3600)", "g(x, hour)")
    assert constants("a.py", text, *changes) == []  # the other function does not know it


def test_an_older_constant_is_not_offered() -> None:
    text = PYTHON[: PYTHON.index("def again")].replace("HOLE", "DAY = 86400")
    assert constants("a.py", text, USED) == []


@pytest.mark.parametrize("literal", ["100", "0.5", "7", '"ab"', "'---'", 'f"{days} days"'])
def test_literals_that_stand_everywhere_are_left_alone(literal: str) -> None:
    text = f"HOLE\nf({literal})\ng({literal})\n"
    assert (
        constants("a.py", text, ("HOLE", f"NAME = {literal}"), (f"f({literal})", "f(NAME)")) == []
    )


def test_number_of_rust_has_a_type() -> None:
    text = "HOLE\nfn f() { g(3600); h(3600); }\n"
    assert constants("a.rs", text, ("HOLE", "const H: u8 = 3600;"), ("g(3600)", "g(H)")) == []
    text = 'HOLE\nfn f() {\n    g("hello");\n    h("hello");\n    println!("hello");\n}\n'
    changes = ("HOLE", 'const HI: &str = "hello";'), ('g("hello")', "g(HI)")
    assert 'h(HI);\n    println!("hello");' in one("a.rs", text, *changes)


def test_case_patterns_and_docstrings_of_python_stay() -> None:
    text = 'HOLE\n\ndef f(x):\n    "hello"\n    g("hello")\n'
    text = text.replace("    g(", '    t = Literal["hello"]\n    g(')
    text += '    match x:\n        case "hello": h("hello")\n'
    after = one("a.py", text, ("HOLE", 'HI = "hello"'), ('g("hello")', "g(HI)"))
    assert '"hello"\n    t = Literal["hello"]\n    g(HI)\n' in after
    assert after.endswith('        case "hello": h(HI)\n')


def test_a_constant_that_is_not_used_yet() -> None:
    text = "HOLE\n\n\ndef f(age=86400):\n    return 3 * 86400\n"
    assert one("a.py", text, ("HOLE", "DAY = 86400")).endswith("(age=DAY):\n    return 3 * DAY\n")
    assert constants("a.py", text, ("HOLE", "day = 86400")) == []  # may be a variable
    assert constants("a.py", text, ("HOLE", "DAY = 86400"), ("3 * 86400", "3 * WEEK")) == []
    renamed = text.replace("HOLE", "SPAN = 86400")
    assert constants("a.py", renamed, ("SPAN = 86400", "DAY = 86400")) == []  # no new value
    assert constants("a.py", renamed, ("SPAN = 86400", "SPAN = 3600")) == []


def test_a_call_of_literals_that_never_changes() -> None:
    text = "from datetime import timedelta\n\nHOLE\n\n\ndef f(t):\n    return t + CALL, CALL < t\n"
    for call, is_constant in (
        ("timedelta(minutes=10)", True),
        ("deque(maxlen=10)", False),  # shared from now on
        ("timedelta(minutes=span)", False),
    ):
        found = constants("a.py", text.replace("CALL", call), ("HOLE", f"SLOT = {call}"))
        assert bool(found) is is_constant, call
    shadowed = text.replace("CALL", "timedelta(minutes=10)").replace("f(t)", "f(t, timedelta)")
    assert constants("a.py", shadowed, ("HOLE", "SLOT = timedelta(minutes=10)")) == []


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.py", 'HOLE\nHOME = "https://x.org"\nf("https://x.org")\n', 'URL = "https://x.org"'),
        ("a.py", 'HOLE\nf("https://x.org")\nURL = "https://x.org"\n', 'HOME = "https://x.org"'),
        (
            "a.go",
            'package a\nHOLE\nconst Old = "hello"\nvar x = f("hello")\n',
            'const Hi = "hello"',
        ),
        ("a.ts", "HOLE\nexport const OLD = 3600;\nwait(3600);\n", "const HOUR = 3600;"),
    ],
)
def test_another_constant_of_the_value_is_a_choice(path: str, text: str, line: str) -> None:
    assert constants(path, text, ("HOLE", line)) == []
    alone = "\n".join(each for each in text.split("\n") if "HOLE" in each or "(" in each)
    assert constants(path, alone.replace("HOLE", "\nHOLE"), ("HOLE", line))


@pytest.mark.parametrize(
    ("path", "define", "old", "new"),
    [
        ("a.go", 'const Base = "//sho.org/vv"', 'y := "//sho.org/vv/" + b', 'y := Base + "/" + b'),
        ("a.go", 'const Base = "//sho.org/vv"', 'f("//sho.org/vv?"+b, c)', 'f(Base+"?"+b, c)'),
        ("a.go", 'const Base = "//sho.org/vv"', 'f(c, "//sho.org/vv/")', 'f(c, Base+"/")'),
        ("a.py", 'BASE = "//sho.org/vv"', 'y = f"//sho.org/vv/{a}"', 'y = f"{BASE}/{a}"'),
        ("a.ts", 'const BASE = "//sho.org/vv";', "f(`//sho.org/vv/${a}`)", "f(`${BASE}/${a}`)"),
        ("a.py", 'BASE = "//sho.org/vv"', 'y = "//sho.org/vv/a"', ""),
        ("a.py", 'BASE = "//sho.org/vv"', 'y = f"//sho.org/vv0/{a}"', ""),
        ("a.go", 'const Base = "//sho.org/vv"', 'y := "//sho.org/vv_b"', ""),
        ("a.go", 'const Base = "to be or"', 'y := "to be or not"', ""),
    ],
)  # fmt: skip
def test_strings_that_begin_with_a_constant(path: str, define: str, old: str, new: str) -> None:
    begin, end = (
        ("package a\n\nHOLE\n\nfunc g() {\n\t", "\n}\n") if path == "a.go" else ("HOLE\n", "\n")
    )
    found = constants(path, begin + old + end, ("HOLE", define))
    after = [text for each in found for text in results(each).values()]
    assert after == ([(begin + new + end).replace("HOLE", define)] if new else [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "if x:\n    HOLE\n\n\ndef f():\n    return 86400\n"),
        ("a.py", "try:\n    import x\n    HOLE\nexcept ImportError:\n    g(86400)\n"),
        ("a.py", "for x in y:\n    HOLE\ng(86400)\n"),
        ("a.js", "switch (x) {\n  case 1:\n    HOLE\n  default:\n    g(86400);\n}\n"),
        ("a.py", "HOLE\nDAY += 1\ng(86400)\n"),
        ("a.py", "HOLE\ndel x, DAY\ng(86400)\n"),
        ("a.py", "HOLE\n\n\ndef f():\n    global DAY\n    DAY = g()\n\n\ng(86400)\n"),
    ],
)
def test_an_unsettable_or_changing_name_takes_no_place(path: str, text: str) -> None:
    defined = "const DAY = 86400;" if path == "a.js" else "DAY = 86400"
    assert constants(path, text, ("HOLE", defined)) == []


@pytest.mark.parametrize(
    ("path", "defined", "line"),
    [
        ("a.py", "NAME = 'Area'", "Area = TypeVar('Area')"),
        ("a.py", "NAME = 'Area'", "x = typing.cast('Area', y)"),
        ("a.py", "NAME = 'Area'", "__all__ = ['Area']"),
        ("a.js", "const NAME = 'area/x';", "import('area/x').then(f);"),
        ("a.js", "const NAME = 'area/x';", "const x = require('area/x');"),
        ("a.js", "const NAME = 'area/x';", "jest.mock('area/x', () => f('area/x'));"),
        ("a.ts", "const NAME = 'area/x';", "declare module 'area/x' {}"),
        ("a.ts", "const NAME = 'area/x';", "f('area/x' as const);"),
        ("a.js", "const NAME = 'https://area.example';", "f(tag`https://area.example/x`);"),
        ("a.rs", 'const NAME: &str = "area";', 'mod a { fn f() -> &\'static str { "area" } }'),
    ],
)
def test_a_literal_that_its_readers_look_for_stays(path: str, defined: str, line: str) -> None:
    assert constants(path, f"HOLE\n{line}\n", ("HOLE", defined)) == []
    show = f"fn g() {{ show({defined.split(' = ')[1].strip(';')}); }}"
    show = show if path == "a.rs" else show.removeprefix("fn g() { ").removesuffix(" }")
    (found,) = constants(path, f"HOLE\n{line}\n{show}\n", ("HOLE", defined))
    assert found.places == 1 and line in results(found)[path]
