"""Lines that fit those around them, by their indentation."""

from __future__ import annotations

import pytest
from redraft.model.text.common import common_head
from redraft.model.text.indentation import DEEPER, NO_BODY, NO_HEAD, NO_LEVEL, UNCLOSED, misfit


def of(text: str, ended: bool = True, language: str | None = "python") -> str:
    """Return the verdict on a text in which ``⟨`` and ``⟩`` stand around the written part."""
    found = misfit(*parts(text), language, ended)
    return "" if found is None else found.reason


def parts(text: str) -> tuple[str, str, str]:
    above, _, rest = text.partition("⟨")
    written, _, below = rest.partition("⟩")
    return above, written, below


FITS = {
    "a header above its body": "def f(n):\n⟨    for i in n:\n⟩        yield i\n",
    "a statement among others": "def f():\n    a = 1\n⟨    b = 2\n⟩    return a\n",
    "the last statement of a block": "if x:\n⟨    a()\n⟩b()\n",
    "a header and its body": "a = 1\n⟨if a:\n    b()\n⟩c()\n",
    "a decorator": "⟨@cache\n⟩def f():\n    return 1\n",
    "else above its body": "if x:\n    a()\n⟨else:\n⟩    b()\n",
    "a body above else": "if x:\n⟨    a()\n⟩else:\n    b()\n",
    "elif": "if x:\n    a()\n⟨elif y:\n⟩    b()\nelse:\n    c()\n",
    "except": "try:\n    a()\n⟨except (KeyError,\n        ValueError):\n⟩    b()\n",
    "finally behind else": "for i in x:\n    a()\nelse:\n⟨    b()\n⟩c()\n",
    "a call of several lines": "def f():\n⟨    call(\n        1,\n    )\n⟩    return 1\n",
    "within a call": "call(\n⟨    1,\n⟩        2,\n)\n",
    "what opens a bracket that the lines below close": "⟨x = call(\n⟩    1,\n)\n",
    "within a dictionary": "x = {\n⟨    'a': 1,\n⟩        'b': 2,\n}\n",
    "a dictionary of several lines": "⟨x = {\n        'a': 1,\n    }\n⟩y = 1\n",
    "within a docstring": 'def f():\n    """Do it.\n⟨    Args:\n⟩        x: it.\n    """\n',
    "a docstring as a body": 'def f():\n⟨    """Do: it."""\n⟩\n\nx = 1\n',
    "below a docstring of several lines": 'def f():\n    """Do\nit.\n    """\n⟨    a()\n⟩    b()\n',
    "comments between": "⟨if x:\n⟩# why\n        # so\n    a()\n",
    "a comment that is not as deep": "if x:\n    a()\n⟨# why\n⟩    b()\n",
    "blank lines between": "⟨if x:\n⟩\n   \n    a()\n",
    "tabs": "def f():\n⟨\tif x:\n⟩\t\ta()\n",
    "tabs and spaces mixed": "def f():\n⟨    a()\n⟩\tb()\n",
    "a type annotation": "class A:\n⟨    x: int\n⟩    y: int = 1\n",
    "a slice": "a = b[1:]\n⟨c = a[:]\n⟩d = 1\n",
    "a lambda": "⟨f = lambda x: x\n⟩g = 1\n",
    "match": "⟨match x:\n⟩    case 1:\n        a()\n",
    "case": "match x:\n    case 1:\n        a()\n⟨    case 2:\n⟩        b()\n",
    "a block on one line": "⟨if x: return\n⟩y()\n",
    "a line continued with a backslash": "⟨if x and \\\n        y:\n⟩    a()\n",
    "a value continued with a backslash": "⟨x = 1 + \\\n        2\n⟩y = 1\n",
    "async": "async def f():\n⟨    async for x in y:\n⟩        a()\n",
    "a class body": "⟨class A:\n⟩    x = 1\n",
    "CRLF": "def f():\r\n⟨    if x:\r\n⟩        a()\r\n",
    "CRLF behind a backslash": "⟨x = 1 + \\\r\n        2\r\n⟩y = 1\r\n",
    "a header with nothing below": "def f():\n⟨    for x in y:⟩\n\n",
    "a bracket among others that are open": "x = [\n⟨    call(\n⟩        1,\n",
    "the end of a line": "def f():\n    return ⟨x⟩\n\n\nx = 1\n",
    "a colon in a string": "x = ⟨'a:'⟩\ny = 1\n",
    "a header behind a comment": "⟨if x:  # why: so\n⟩    a()\n",
    "a colon behind a hash in a string": "⟨if x == '#':\n⟩    a()\n",
    "nothing": "def f():\n⟨\n⟩        a()\n",
    "a block that ends twice": "def f():\n    if x:\n⟨        a()\n⟩\n\ndef g(): ...\n",
    "a form feed before a line": "def f():\n⟨    return 1\n⟩\n\fx = 1\n",
    "a form feed behind spaces": "a()\n⟨    \fb()\n⟩c()\n",
    "a hash within the fields of an f-string": "if f\"{d['#']}\":\n⟨    a()\n⟩b()\n",
    "… which nests its quote": 'if f"{d["#"]}":\n⟨    a()\n⟩b()\n',
    "… within what is written": '⟨if F"{{{d["#"]}":\n⟩    a()\n',
    "a bracket within such a field": 'def f():\n⟨    x = Rf"{d["("]}"\n⟩    return x\n',
    "within a field of several lines": 'x = f"{\n⟨        a +\n⟩    b}"\n',
    "lines whose end is that of the line below": "def f():\n⟨    if x:⟩        a()\n",
}
MISFITS = {
    "a statement above its deeper neighbour": (
        "def f(n):\n⟨    return n\n⟩        yield n\n",
        DEEPER,
    ),
    "… with what a comment says": ("⟨a()  # so:\n⟩    b()\n", DEEPER),
    "… with a colon in a string": ("⟨x = 'a:'\n⟩    b()\n", DEEPER),
    "… with a slice": ("⟨x = a[1:]\n⟩    b()\n", DEEPER),
    "… with a block on one line": ("⟨if x: return\n⟩    b()\n", DEEPER),
    "… behind comments and blank lines": ("⟨a()\n⟩\n# so\n    b()\n", DEEPER),
    "… at a line's end": ("def f():\n    ⟨a()⟩\n        b()\n", DEEPER),
    "… below brackets": ("⟨a(\n    1)\n⟩    b()\n", DEEPER),
    "… in tabs": ("def f():\n⟨\ta()\n⟩\t\tb()\n", DEEPER),
    "… with CRLF": ("⟨a()\r\n⟩    b()\r\n", DEEPER),
    "… behind a backslash": ("⟨x = 1 + \\\n    2\n⟩    b()\n", DEEPER),
    "… with a brace that is none of a field": ('⟨x = f"{{" + "a:"\n⟩    b()\n', DEEPER),
    "… two lines below an f-string that nests its quote": (
        'x = f"{d["#"]}"\na()\n⟨b()\n⟩    c()\n',
        DEEPER,
    ),
    "… below a string that ends in an escaped backslash": (
        'x = """a\\\\"""\n⟨a()\n⟩    b()\n',
        DEEPER,
    ),
    "… behind a form feed": ("⟨a()\n⟩\f    b()\n", DEEPER),
    "a header without a body": ("def f():\n⟨    if x:\n⟩    a()\n", NO_BODY),
    "a header at a block's end": ("def f():\n⟨    if x:\n⟩\n\ng()\n", NO_BODY),
    "a header below another": ("if x:\n⟨if y:\n⟩    a()\n", NO_BODY),
    "a class without a body": ("⟨class A:\n⟩class B:\n    x = 1\n", NO_BODY),
    "a body that is not deeper": ("if x:\n⟨a()\n⟩b()\n", NO_BODY),
    "deeper within what is written": ("⟨a()\n    b()\n⟩c()\n", DEEPER),
    "deeper than the line above": ("a()\n⟨    b()\n⟩c()\n", DEEPER),
    "below another block's depth": ("if x:\n    a()\n⟨  b()\n⟩c()\n", NO_LEVEL),
    "below no block's depth": ("⟨        a()\n⟩    b()\n", NO_LEVEL),
    "else below a loop's statement": ("if x:\n⟨    a()\nb()\n⟩else:\n    c()\n", NO_HEAD),
    "a bracket that nothing closes": ("def f():\n⟨    x = call(\n⟩    return x\n", UNCLOSED),
    "except without try": ("⟨a()\n⟩except KeyError:\n    b()\n", NO_HEAD),
}


@pytest.mark.parametrize("name", FITS)
def test_says_nothing_of_what_fits(name: str) -> None:
    assert of(FITS[name]) == ""


@pytest.mark.parametrize("name", MISFITS)
def test_says_why_a_line_does_not_fit(name: str) -> None:
    text, reason = MISFITS[name]
    assert of(text) == reason


def test_a_cut_header_or_bracket_may_get_its_rest() -> None:
    assert of("def f():\n⟨    if x:\n⟩    a()\n", ended=False) == ""
    assert of("⟨x = call(\n⟩y()\n", ended=False) == ""
    assert of("def f():\n⟨    if x:\n    y()\n⟩    a()\n", ended=False) == NO_BODY


def test_indentation_of_other_languages_means_nothing() -> None:
    assert of("⟨a()\n⟩    b()\n", language="javascript") == ""
    assert of("⟨a()\n⟩    b()\n", language=None) == ""


def test_the_users_indentation_counts_not_against_text() -> None:
    assert of("a()\n    ⟨b()⟩\nc()\n") == ""


#: Texts in which the line below is too deep, one in which the second line written is, and one line
#: of several in brackets.
BELOW = "def f():\n⟨    n = 1\n⟩        yield n\n"
TWO = "def f():\n⟨    n = 1\n    return n\n⟩        yield n\n"
INSIDE = "def f(n):\n⟨    n += 1\n        n += 2\n    n += 3\n⟩"
CALL = "def f():\n⟨    n = call(\n        1,\n    )\n⟩        yield n\n"
NO_BLOCK = "def f():\n⟨    if n:\n    n = 1\n    m = 2\n⟩"


@pytest.mark.parametrize(
    ("first", "other", "stays"),
    [
        (BELOW, "", False),
        (BELOW, "    ", False),
        (BELOW, "    f", False),
        (BELOW, "    fo", False),
        (BELOW, "    for", False),
        (BELOW, "    for i", False),
        (BELOW, "    form", True),
        (BELOW, "    return", True),
        (BELOW, "    x = ", True),
        (BELOW, "    @", True),
        (BELOW, "    n = 1\n    f", False),  # behind the line above
        (BELOW, "    n = 1\n    x", True),
        (BELOW, "    n = 1  # x", True),
        (TWO, "    n = 2", False),  # above it: another may come
        (TWO, "    n = 1\n    n", True),
        (TWO, "    n = 1\n    for", False),
        (CALL, "    n = call(\n        for", True),
        (CALL, "    for i in call(", False),
        (INSIDE, "    m", False),
        (INSIDE, "    n += 1:", False),
        (INSIDE, "    n += 1\n    return", False),  # it is less deep
        (INSIDE, "    n += 1\n     ", False),
        (INSIDE, "    n += 1\n        return", True),
        (INSIDE, "    n += 1\n        # so", False),
        (INSIDE, "    n += 1\n\n    # so\n        return", True),
        (INSIDE, "    n += 1\n    for i in n:\n        n", False),  # a block was opened
        (INSIDE, "    n += 1\n        n += 2\n    for", True),  # both lines stay
        (NO_BLOCK, "    if n:\n    n = 1\n    for", True),
        (NO_BLOCK, "    if n:\n    m", False),
    ],
)
def test_a_text_begun_may_leave_no_hope(first: str, other: str, stays: bool) -> None:
    above, written, below = parts(first)
    found = misfit(above, written, below, "python", ended=False)
    assert found is not None
    assert found.stays(above + other, common_head(above + other, above + written)) is stays
