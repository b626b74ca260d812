"""What would break a file is not proposed by any rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.proposals import propose as propose_module
from redraft.model.proposals.propose import propose
from redraft.model.proposals.unbroken import Unbroken


def proposed(before: str, after: str, language: str) -> dict[str, str]:
    """What follows, as whole texts, each with its family."""
    old, lines = before.split("\n"), after.split("\n")
    hunks = hunks_of(old, lines)
    edits = apply_history("a", old, hunks, len(hunks))[1]
    return {
        "\n".join([*lines[: one.first], *one.lines, *lines[one.last :]]): one.family
        for one in propose(edits, lines, 0, len(lines), hunks[0].first, (), language)
    }


ONE = "def f():\n    setup_all()\n    trace_value(a)\n    work(a)\n"


@pytest.mark.parametrize(
    ("rest", "alone"),
    [
        ("def g():\n    trace_value(b)\n\ndef h(): ...\n", True),
        ("def g():\n    trace_value(b)\n    work(b)\n", False),
        ("def g():\n    work(b)\n    trace_value(b)\n", False),
        ("def g():\n    if b:\n        trace_value(b)\n    work(b)\n", True),
    ],
)
def test_the_only_statement_of_a_block_stays(rest: str, alone: bool) -> None:
    before = ONE + rest
    after = before.replace("    trace_value(a)\n", "", 1)
    found = proposed(before, after, "python")
    assert ("removed" in found.values()) is not alone


def test_lines_put_beside_a_line_are_not_put_where_they_break_the_file() -> None:
    before = "handler(\n    first,\n    second,\n)\n\nfirst_call()\nother = [\n    first,\n]\n"
    after = before.replace("    first,\n    second", "    first,\n    key=value,\n    second", 1)
    broken = after.replace("other = [\n    first,\n", "other = [\n    first,\n    key=value,\n")
    assert broken in proposed(before, after, "plaintext")
    assert broken not in proposed(before, after, "python")
    call = before.replace("other = [", "other(").replace("\n]", "\n)")
    after = call.replace("    first,\n    second", "    first,\n    key=value,\n    second", 1)
    fine = after.replace("other(\n    first,\n", "other(\n    first,\n    key=value,\n")
    assert fine in proposed(call, after, "python")


def test_lists_of_a_text_are_no_lists_of_names() -> None:
    before = (
        "The kinds are:\n\n    iron,\n    copper,\n\nIn stock:\n\n    iron: 2,\n    copper: 9,\n"
    )
    after = before.replace("    copper,\n", "    copper,\n    tin,\n", 1)
    assert "listed" in proposed(before, after, "javascript").values()
    assert "listed" not in proposed(before, after, "markdown").values()


def test_syntax_is_looked_at_for_as_many_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of these would leave a block empty."""
    asked: list[int] = []

    class Counting(Unbroken):
        def keeps(self, first: int, last: int, new: Sequence[str]) -> bool:
            asked.append(first)
            return super().keeps(first, last, new)

    monkeypatch.setattr(propose_module, "Unbroken", Counting)
    rest = "".join(
        f"def f{i}():\n    trace_value(a)\n{'    work(a)' * (i > 0)}\n" for i in range(9)
    )
    old, lines = (ONE + rest).split("\n"), (ONE + rest).split("\n")
    del lines[2]
    edits = apply_history("a", old, hunks_of(old, lines), 1)[1]
    all_ = propose(edits, lines, 0, len(lines), 2, (), "python")
    every = len(asked)
    for most in (0, 1, 2, 5):
        asked.clear()
        few = propose(edits, lines, 0, len(lines), 2, (), "python", most=most)
        assert few == all_[:most] and len(asked) <= most + 1 < every


@pytest.mark.parametrize(
    ("text", "edit", "keeps"),
    [
        ("x = (\n    1,\n)", (1, 2, []), True),
        ("x = (\n    1,\n)", (2, 3, []), False),  # the last line, which has no end
        ("x = 1", (1, 1, ["y = ("]), False),  # behind it
        ("x = 1", (1, 1, ["y = 2"]), True),
        ("x = 1\n", (0, 1, ["x = 1", "y = 2"]), True),
        ("x = (\n", (0, 1, ["x = ("]), True),  # broken already
    ],
)
def test_a_change_is_looked_at_as_it_would_be(
    text: str, edit: tuple[int, int, list[str]], keeps: bool
) -> None:
    assert Unbroken(text.split("\n"), "python").keeps(*edit) is keeps
    assert Unbroken(text.split("\n"), "plaintext").keeps(*edit)
