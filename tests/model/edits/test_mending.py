"""Edits that end what the editor reports come before others that are about as likely."""

from __future__ import annotations

import pytest
from redraft.model.edits.edit import Edit
from redraft.model.records import Candidate, Confidence, Diagnostic
from redraft.model.rules.diagnostics import SIMILAR, find_undefined_name, mends, put_mending_first
from support.models.rewriting import TEXT as REGION
from support.models.rewriting import asked

TEXT = "import os\n\nx = acount + 1\ny = os.sep\n"


def edit(old: str, new: str) -> Edit:
    at = TEXT.index(old)
    return Edit(TEXT, at, at + len(old), new)


@pytest.mark.parametrize(
    ("message", "line", "old", "new", "mended"),
    [
        ('"acount" is not defined', 2, "acount", "account", True),
        ('"acount" is not defined', 2, "+ 1", "+ 2", False),
        ('"acount" is not defined', 2, "y = os.sep", "y = acount", False),
        ('"acount" is not defined', 2, "import os\n", "import os\nfrom a import acount\n", True),
        ('"acount" is not defined', 2, "import os\n", "import os\nacount = 3\n", False),
        ("'os' imported but unused", 0, "import os\n", "", True),
        ("'sep' is deprecated", 3, "os.sep", "os.path.sep", False),
        ("'sep' is deprecated", 3, "os.sep", "'/'", True),
        ("line too long", 2, "acount", "a", False),
        ('"acount" is not defined', 99, "acount", "account", False),
    ],
)
def test_an_edit_mends_if_it_removes_the_reported_text(
    message: str, line: int, old: str, new: str, mended: bool
) -> None:
    assert mends(edit(old, new), Diagnostic(line, message)) == mended


def candidate(old: str, new: str, total: float) -> Candidate:
    made = edit(old, new)
    sure = Confidence(0.5, 0.5, 0.5, total=total)
    return Candidate(made.start, made.end, new, sure, 3, 1, "end")


def test_a_fix_comes_first_if_similarly_likely() -> None:
    other = candidate("+ 1", "+ 2", -1.0)
    told = [Diagnostic(2, '"acount" is not defined')]
    for total, first in ((-1.0 - SIMILAR / 2, True), (-1.0 - 2 * SIMILAR, False)):
        fix = candidate("acount", "account", total)
        order = put_mending_first(TEXT, told, [other, fix], lambda one: one.confidence.total)
        assert (order[0] is fix) == first and {*map(id, order)} == {id(other), id(fix)}
        assert put_mending_first(TEXT, [], [other, fix], lambda one: 0.0) == [other, fix]


def test_what_is_answered_is_ordered_so() -> None:
    changed = [("f(x)", "g(x)"), ("return x", "return f"), ("print(f(1))", "g()")]
    texts = [f"{REGION.replace(*each)}\n" for each in changed]
    weights = dict(zip(texts, (0.45, 0.4, 0.15), strict=True))
    told = (Diagnostic(1, '"x" is not defined'),)
    for diagnostics, first in (((), "g(x)"), (told, "return f")):
        found = asked(weights, quality="high", candidates=2, diagnostics=diagnostics).candidates
        assert first in found[0].text and len(found) > 1


def test_a_long_message_without_a_name_is_read_at_once() -> None:
    words = "Cannot find " + "dependencies" * 10 + " required by configuration settings"
    assert find_undefined_name(words) is None
    assert find_undefined_name("Cannot find name 'Money'.") == "Money"
    assert find_undefined_name("cannot find value, or function `money` in this scope") == "money"
