"""Text that the user removed is not offered again, wherever it would stand."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit, LineChange
from redraft.model.gate.reasons import Abstain
from redraft.model.gate.reversal import undoes
from support.editors.predictor import infill
from support.editors.workbench import Workbench

ABOVE, BELOW = "import os\n\n\n", "def g(a):\n    return a\n\n\nprint(g(1))\n"
REMOVED = "def f(a):\n    b = a + 1\n    return b * 2\n"
#: The user deleted the three lines of f; the blank lines behind it stay.
TEXT = ABOVE + "\n\n" + BELOW
DELETED = LineChange(3, tuple(REMOVED.splitlines()))
LONG = "".join(f"    total = total + step_{n}(a)\n" for n in range(12))


def insert(text: str, before: str, new: str) -> Edit:
    at = text.index(before)
    return Edit(text, at, at, new)


#: What is inserted before which text, after the deletion of f.
BACK = {
    "at its place": ("\n\n" + BELOW, REMOVED),
    "behind the blank lines": (BELOW, REMOVED + "\n\n"),
    "in front of them": ("\n\n\n\ndef", "\n\n" + REMOVED),
    "with more blank lines": (BELOW, "\n" + REMOVED.replace("\n", "\n\n") + "\n"),
    "at the end": ("print", REMOVED + "\n\n"),
    "its head with another body": (BELOW, "def f(a):\n    return 3\n\n\n"),
    "a part": (BELOW, "    b = a + 1\n    return b * 2\n"),
    "a part and more": (BELOW, "def h(a):\n    b = a + 1\n    return b * 2\n\n\n"),
    "deeper": (BELOW, "if a:\n    def f(a):\n        b = a + 1\n        return b * 2\n"),
    "with other blanks": (BELOW, "def f( a ):\n    b = a+1\n    return b*2\n"),
}


@pytest.mark.parametrize("name", BACK)
def test_a_removed_function_is_recognised(name: str) -> None:
    before, new = BACK[name]
    assert undoes(insert(TEXT, before, new), [DELETED])


def test_edits_elsewhere_change_nothing() -> None:
    other = LineChange(8, ("print(g(1))",), ("print(g(2))",))
    text = TEXT.replace("g(1)", "g(2)")
    assert undoes(insert(text, BELOW.replace("g(1)", "g(2)"), REMOVED), [other, DELETED])


#: What the user did, and the text then; what is inserted before which text.
ALLOWED = {
    "another function": (DELETED, TEXT, BELOW, "def h(a):\n    return a * 4\n\n\n"),
    "one common line of it": (
        LineChange(3, ("def f(a):", "    b = 1", "    return a")),
        TEXT,
        BELOW,
        "def h(a):\n    return a\n\n\n",
    ),
    "a line that stands elsewhere too": (
        LineChange(3, ("    return a",)),
        TEXT,
        "print",
        "    return a\n",
    ),
    "a bracket": (LineChange(3, ("}",)), TEXT, BELOW, "}\n"),
    "a renamed line": (
        LineChange(3, ("def f(a):", "    return a"), ("def fun(a):", "    return a")),
        ABOVE + "def fun(a):\n    return a\n" + BELOW,
        "def g",
        "def h(a):\n    return a\n\n\n",
    ),
    "a changed line": (
        LineChange(3, ("total = width * height",), ("total = width * depth",)),
        ABOVE + "total = width * depth\n" + BELOW,
        "def g",
        "total = width * height\n",
    ),
    "what was typed": (LineChange(3, (), ("x = compute(1)",)), TEXT, BELOW, "x = compute(1)\n"),
    "what the user pasted elsewhere": (
        LineChange(3, ("first = load(1)",)),
        TEXT + "first = load(1)\n",
        "print",
        "first = load(1)\n",
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_no_removal_may_be_offered(name: str) -> None:
    done, text, before, new = ALLOWED[name]
    assert not undoes(insert(text, before, new), [done])


def test_a_line_that_the_user_begins_again_is_theirs() -> None:
    text = TEXT + "def f"
    edit = Edit(text, len(text), len(text), "(a):\n    return 1")
    assert not undoes(edit, [LineChange(9, ("",), ("def f",)), DELETED])


def test_lines_replaced_by_another_are_removed() -> None:
    done = LineChange(3, tuple(REMOVED.splitlines()), ("PATH = os.sep",))
    text = ABOVE + "PATH = os.sep\n\n\n" + BELOW
    assert undoes(insert(text, BELOW, REMOVED), [done])


#: Two functions without a body yet, as they begin and end; a statement; lines for a missing body.
PYTHON = ("def size(a):\n", "\n\ndef load(a):\n", "", "    self.total = a * 3\n")
RUST = ("fn size(a: u8) {\n", "}\n\nfn load(a: u8) {\n", "}\n", "    log(a * 3);\n")
STAND_INS = [
    *[(PYTHON, line) for line in ("pass", "...", "return None", "raise NotImplementedError")],
    *[(RUST, line) for line in ("todo!()", "unimplemented!();", "todo!();")],
    (RUST, 'throw new Error("not implemented");'),
]


@pytest.mark.parametrize(("parts", "line"), STAND_INS)
def test_a_stand_in_does_not_come_back(parts: tuple[str, str, str, str], line: str) -> None:
    head, middle, tail, statement = parts
    body = f"    {line}\n"
    text = head + statement + middle + body + tail
    done = LineChange(1, (body[:-1],), (statement[:-1],))
    for at in (len(head), len(head + statement)):
        assert undoes(Edit(text, at, at, body), [done])
    end = len(head + statement) - 1
    assert undoes(Edit(text, end, end, "\n" + body[:-1]), [done])
    assert not undoes(Edit(text, len(text), len(text), "\n" + body), [done])


def remove(bench: Workbench, text: str) -> None:
    """Delete a text in one change, as by a selection."""
    at = bench.text.index(text)
    bench.becomes(bench.text.replace(text, "", 1), at)
    bench.clock.now += 3


@pytest.mark.parametrize("removed", [REMOVED, "def f(a):\n" + LONG])
def test_a_next_edit_does_not_bring_it_back(removed: str) -> None:
    bench = Workbench(ABOVE + removed + "\n\n" + BELOW)
    remove(bench, removed)
    bench.swap("g(1)", "g(10)")
    decision = bench.edit("print(", removed + "\n\nprint(")
    assert isinstance(decision, Abstain)
    assert decision.kind == "reversal"


@pytest.mark.parametrize("removed", ["    b = a + 1\n    c = b * 2\n", LONG])
def test_ghost_text_does_not_bring_it_back(removed: str) -> None:
    bench = Workbench("def f(a):\n" + removed + "    return a\n\n\nx = 1\n")
    remove(bench, removed)
    bench.swap("x = 1", "x = 2")
    bench.clock.now += 3
    at = bench.text.index("    return a")
    bench.becomes(bench.text[:at] + "    \n" + bench.text[at:], at + 4)
    ask = bench.ask()
    decision = bench.settle(ask, infill(ask.request, removed.strip(), confidence=0.9))
    assert isinstance(decision, Abstain)
    assert decision.kind == "reversal"
