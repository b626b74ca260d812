"""Which predicted edits are never shown, and what becomes of one while its document changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.lsp.documents import ContentChange, Document
from redraft.lsp.memory import Rejections
from redraft.lsp.suggestion import Suggestion
from redraft.model.edits.edit import LineChange
from redraft.model.gate.filters import (
    CHEAP,
    FAR_IMPORTS,
    FAR_LINES,
    Situation,
    breaks_syntax,
    first_reason,
)
from redraft.model.gate.reversal import undoes

URI = "file:///w/a.py"
CODE = "def area(r, pi):\n    return 3.14 * r * r\n\n\nprint(area(2))\n"


def edit(text: str, old: str, new: str) -> Suggestion:
    """The suggestion that the first ``old`` of ``text`` becomes ``new``."""
    at = text.index(old)
    return Suggestion("1", URI, "next_edit", text, 0, at, at + len(old), new, 0.9, "fake")


def situation(text: str, *changes: LineChange, cursor: int = 0, last: int = 0) -> Situation:
    """Return the situation of a user in a line, whose last edit was in another line."""
    at = sum(len(line) + 1 for line in text.split("\n")[:cursor])
    return Situation("next_edit", "a.py", "python", text, at, 0.0, changes, last_edit=last)


def refused(
    text: str, old: str, new: str, *changes: LineChange, cursor: int = 0, last: int = 0
) -> str:
    here = situation(text, *changes, cursor=cursor, last=last)
    objection = first_reason(CHEAP["next_edit"], edit(text, old, new).edit, here)
    return "" if objection is None else objection.reason


def test_a_line_whose_bytes_are_no_unicode_is_never_written_back() -> None:
    assert "broken characters" in refused("# caf\ufffd: area(2)\n", "area(2)", "area(3)")


LONG = "import os\n" + "x = 1\n" * 100 + "y = f(2)\n"


def test_an_edit_far_from_the_cursor_and_from_any_edit_is_not_shown() -> None:
    assert "from your last edits" in refused(LONG, "y = f(2)", "y = g(2)", cursor=10, last=5)
    assert refused(LONG, "y = f(2)", "y = g(2)", cursor=10, last=101 - FAR_LINES) == ""
    assert refused(LONG, "y = f(2)", "y = g(2)", cursor=101 - FAR_LINES, last=5) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os", "import os\nimport re"),
        ("import os", "from os import path"),
        ("import os", "#include <vector>"),
        ("import os", "use std::io;"),
        ("import os", "const fs = require('fs')"),
    ],
)
def test_imports_alone_are_changed_only_near_the_cursor(old: str, new: str) -> None:
    assert "only imports" in refused(LONG, old, new, cursor=FAR_IMPORTS + 2)
    assert refused(LONG, old, new, cursor=FAR_IMPORTS) == ""


def test_imports_with_something_else_may_be_further_away() -> None:
    assert refused(LONG, "import os", "import os\nLIMIT = 3", cursor=FAR_IMPORTS + 2) == ""


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
    assert undoes(edit(CODE, old, new).edit, [done]) is expected


def test_a_line_just_typed_is_not_deleted_where_its_neighbour_begins_alike() -> None:
    text = "log(a)\nlog(b)\nlog(c)\n"
    typed = LineChange(1, (), ("log(b)",))
    assert undoes(edit(text, "log(b)\nlog(c)", "log(c)").edit, [typed])
    bracket = LineChange(0, (), ("print(x))",))
    assert not undoes(edit("print(x))\n", "x))", "x)").edit, [bracket]), "it was one too many"


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
    assert undoes(edit(text, old, new).edit, [done]) is expected


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
    assert undoes(edit(f"{done.new[0]}\n    x\n", old, new).edit, [done]) is expected


def test_the_same_words_in_another_place_are_no_reversal() -> None:
    text = "def surface(r):\nsurface(1)\nx\n"
    done = LineChange(0, ("def area(r):",), ("def surface(r):",))
    assert not undoes(edit(text, "surface(1)\nx", "area(1)\ny").edit, [done])


def syntax(text: str, old: str, new: str, path: str = "a.py", language: str = "python") -> str:
    here = replace(situation(text), path=path, language=language)
    objection = breaks_syntax(edit(text, old, new).edit, here)
    return "" if objection is None else objection.reason


def test_a_file_that_is_broken_nearby_is_no_standard() -> None:
    assert syntax(CODE.replace("area(2))", "area(2)"), "r * r", "r * (r") == ""


def test_a_file_that_is_broken_elsewhere_does_not_excuse_an_edit() -> None:
    broken = "x = (1,\n\n\n" + "y = 2\n" * 20 + "z = 3\n"
    whole = "x = 1\n\n\n" + "y = 2\n" * 20 + "z = 3\n"
    assert "syntax error" in syntax(whole, "z = 3", "z = )3")
    assert syntax(whole, "z = 3", "z = 4") == syntax(broken, "z = 3", "z = 4") == ""


def test_the_language_is_told_by_the_client_or_by_the_path() -> None:
    assert "syntax error" in syntax("a = {}\n", "{}", "{", "a.js", "")
    assert syntax("anything (\n", "anything", "(((", "notes.txt", "plaintext") == ""


def test_a_large_file_is_parsed_around_the_edit() -> None:
    large = "".join(f"def f{i}(a):\n    return a + {i}\n\n\n" for i in range(6000))
    assert len(large) > 100_000
    assert "syntax error" in syntax(large, "a + 3000", "a + (3000")
    assert syntax(large, "a + 3000", "a * 3000") == ""
    assert "syntax error" in syntax(large, "a + 5999", "a + (5999")
    assert "syntax error" in syntax(large, "def f0(a)", "def f0(a")


def followed(suggestion: Suggestion, text: str) -> tuple[str, str] | None:
    """How the document got there, and what is left to insert."""
    found = suggestion.followed(text)
    return (found[1], found[0].replacement) if found else None


def test_typing_part_of_an_edit_leaves_the_rest() -> None:
    made = edit(CODE, "area(2)", "area(2, 3.14)")
    assert followed(made, CODE.replace("area(2)", "area(2,)")) == ("typed", " 3.14")
    assert followed(made, CODE.replace("area(2)", "area(2;)")) is None


def test_deleting_what_an_edit_replaces_is_typing_it() -> None:
    made = edit(CODE, "area(2)", "volume(2)")
    assert followed(made, CODE.replace("area(2)", "are(2)")) == ("typed", "volum")
    assert followed(made, CODE.replace("area(2)", "rea(2)")) == ("typed", "volume")
    assert followed(made, CODE.replace("area(2)", "volarea(2)")) == ("typed", "ume")


texts = st.lists(st.sampled_from(["a", "b", "ab", "", "x y"]), max_size=6).map("\n".join)


@given(texts, texts, texts, texts)
def test_a_followed_edit_makes_the_same_change(head: str, old: str, new: str, tail: str) -> None:
    text = f"{head}\n{old}\n{tail}"
    start = len(head) + 1
    made = Suggestion("1", URI, "next_edit", text, 0, start, start + len(old), new, 0.9, "fake")
    for changed, expected in (
        (f"top\n{text}", f"top\n{made.result}"),
        (f"{text}\nend", f"{made.result}\nend"),
    ):
        found = made.followed(changed)
        if found is not None:
            assert found[0].text == changed
            assert found[0].result in (expected, made.result)


@given(texts, texts, texts, texts)
def test_every_form_of_an_edit_makes_one_text(head: str, old: str, new: str, tail: str) -> None:
    text = head + old + tail
    start = len(head)
    made = Suggestion("1", URI, "next_edit", text, 0, start, start + len(old), new, 0.9, "fake")
    assert made.least().result == made.result
    for first, last, lines in (made.edit.whole_lines(), made.edit.shape()):
        assert text[:first] + lines + text[last:] == made.result
    assert made.result[: made.landing].endswith(made.least().replacement)


def test_lines_that_come_or_go_as_a_whole_touch_no_other() -> None:
    text = "a\nb\nc\n"
    gone = edit(text, "b\n", "").edit.shape()
    assert gone == (2, 4, "")
    assert edit(text, "b\n", "b\nnew\n").edit.shape() == (4, 4, "new\n")
    assert edit(text, "b", "bb").edit.shape() == (2, 3, "bb")


def known(rejections: Rejections, suggestion: Suggestion) -> bool:
    return rejections.know(suggestion.uri, suggestion.edit)


def test_a_rejected_edit_is_known_in_any_spacing_and_where_it_has_moved() -> None:
    rejections, document = Rejections(), Document(URI, CODE)
    rejections.note(edit(CODE, "area(2)", "area(2, 3)"), 0.0)
    assert known(rejections, edit(CODE, "print(area(2))", "print(area(2,  3))"))
    assert not known(rejections, edit(CODE, "area(2)", "area(2, 4)"))
    moved = "# one\n# two\n# three\n# four\n" + CODE
    rejections.changed(URI, document.apply([ContentChange(moved)], None))
    assert known(rejections, edit(moved, "area(2)", "area(2, 3)"))
    assert not known(rejections, edit(CODE, "area(2)", "area(2, 3)"))
