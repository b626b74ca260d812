"""Reasons of suggestions in words: only what is true and known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redraft.lsp import question
from redraft.lsp.suggestions.why_here import why_here
from redraft.model.edits.edit import Edit
from redraft.model.places.ranker import RankedPlace
from redraft.model.records import Diagnostic
from support.editors.workbench import Workbench

Change = tuple[str, str]


def why(text: str, made: Change, offered: Change, *reports: Diagnostic, word: str = "") -> str:
    """Return the reason of a suggestion after the user made a change.

    Args:
        made: by the user, at its first place.
        offered: by the model, at its last place.
        word: that the ranker finds both share.
    """
    desk = Workbench(text)
    desk.swap(*made)
    desk.shelf.diagnostics = lambda _: reports  # type: ignore[method-assign]
    old, new = offered
    at = desk.text.rindex(old)
    asked = question.next_edit(desk.query(), (0, desk.text.count("\n")))
    place = RankedPlace(0, 0, 0.5, 0.5, 1.0, 0.9, word, is_far=True)
    asked = replace(asked, place=place if word else None)
    return why_here(asked, Edit(desk.text, at, at + len(old), new))


AREA = "def area(r):\n    return r * r\n\n\nprint(area(1))\nx = area(2)\n"
CALLS = "fetch(a, 1)\nother(b)\nfetch(c, 2)\n"


@pytest.mark.parametrize(
    ("text", "made", "offered", "says"),
    [
        # parameters
        (AREA, ("(r)", "(r, pi)"), ("area(2)", "area(2, 3)"), "`pi` was added to `area`"),
        (AREA, ("(r)", "(r, pi: int = 3)"), ("(2)", "(2, 3)"), "`pi` was added to `area`"),
        (AREA, ("(r)", "()"), ("area(2)", "area()"), "`r` was removed from `area`"),
        (AREA, ("(r)", "(s, t)"), ("area(2)", "area(2, 3)"), "the parameters of `area` changed"),
        # calls
        (CALLS, ("a, 1", "a, top=5"), ("c, 2", "c, top=5"), "same call, `top` was added"),
        (CALLS, ("a, 1", "a"), ("c, 2", "c"), "also a call of `fetch`"),
        ("f_x(a, k=b)\nf_x(c, k=b)\n", ("a, k=b", "a"), ("c, k=b", "c"), "also a call of `f_x`"),
        ("log('a')\nlog('c')\n", ("'a'", "'a %s'"), ("'c'", "'c %s'"), "also a call of `log`"),
        ("put(a)\nput(b)", ("a)", "a, k=True)"), ("(b", "(b, k=True"), "same call, `k` was added"),
        # The same around calls of different functions says nothing.
        ("print(one(1))\nprint(two(2))\n", ("one(1)", "one(1, 9)"), ("two(2)", "two(2, 8)"), ""),
        # renames
        (AREA, ("def area", "def surface"), ("area(2)", "surface(2)"), "`area` is `surface` now"),
        ("x = old\ny = old\n", ("old", "new"), ("old", "new"), "you replaced `old` by `new`"),
        # the same once more
        ("x = 1\ny = 1\n", ("1", "2"), ("1", "2"), "like your last edit"),
        ("a = 1\nb = 2\n", ("1\n", "1\nlog()\n"), ("2\n", "2\nlog()\n"), "like your last edit"),
        # values, fields
        ("TOP = 1\nx = TOP + 1", ("= 1", "= 7"), ("TOP +", "TOP -"), "the value of `TOP` changed"),
        ("été = 1\nь = été + 1\n", ("1", "2"), ("ь", "z"), "the value of `été` changed"),
        # nothing certain
        ("a = 1\nb = foo()\n", ("1", "2"), ("foo()", "bar()"), ""),
        ("# fetch(a)\nfetch(b)\n", ("a", "a, c"), ("fetch(b)", "fetch(b, d)"), ""),
    ],
)  # fmt: skip
def test_reasons_in_words(text: str, made: Change, offered: Change, says: str) -> None:
    assert why(text, made, offered) == says


def test_a_definition_explains_more_than_its_calls() -> None:
    desk = Workbench(AREA)
    desk.swap("(r)", "(r, pi)")
    desk.pause()
    desk.swap("area(1)", "area(1, 3)")
    at = desk.text.index("area(2)")
    asked = question.next_edit(desk.query(), (0, 6))
    edit = Edit(desk.text, at, at + 7, "area(2, 3)")
    assert why_here(asked, edit) == "`pi` was added to `area`"


def test_the_editor_reports_faults_of_a_changed_line() -> None:
    text = "cart: Cart\ny = 2\ny = cart.total\n"
    made, offered = (": Cart", ": Basket"), ("cart.total", "cart.sum")
    report = Diagnostic(2, 'Cannot access "total" for  "Basket".\n  No such attribute')
    says = 'the editor reports: Cannot access "total" for "Basket"'
    assert why(text, made, offered, report) == says
    assert why(text, made, offered, replace(report, line=1)) == ""
    assert why(text, made, offered, Diagnostic(2, "line too long", 2)) == ""


def test_a_shared_word_must_be_in_changed_lines() -> None:
    text = "a = retry(1)\nb = wait(retry)\nc = wait(4)\n"
    made = ("a = retry(1)", "a = retry(2)")
    says = "shares `retry` with your last edits"
    assert why(text, made, ("b = wait(retry)", "b = hold(retry)"), word="retry") == says
    assert why(text, made, ("c = wait(4)", "c = hold(4)"), word="retry") == ""


def test_a_moved_definition_is_not_called_deleted() -> None:
    text = "def area(r):\n    return r\n\nx = 1\nprint(area(2))\n"
    made = ("def area(r):\n    return r\n\nx = 1\n", "x = 1\ndef area(r):\n    return r\n")
    assert why(text, made, ("area(2)", "area(3)")) == ""
    gone = ("def area(r):\n    return r\n\n", "")
    assert why(text, gone, ("print(area(2))", "print(2)")) == "you deleted the definition of `area`"


def test_a_long_reason_is_cut() -> None:
    name = "n" * 200
    text = f"def {name}(r):\n    return r\n\nprint({name}(2))\n"
    found = why(text, ("(r)", "(r, pi)"), ("(2)", "(2, 3)"))
    assert len(found) == 80 and found.endswith("…")
