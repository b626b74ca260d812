"""No rule proposes an edit that would break the file."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from redraft.model.edits.hunks import apply_history, hunks_of
from redraft.model.rules import propose as propose_module
from redraft.model.rules.propose import propose
from redraft.model.rules.unbroken import Unbroken


def proposed(before: str, after: str, language: str) -> dict[str, str]:
    """Return the texts that proposed edits make, each with its family."""
    old, lines = before.split("\n"), after.split("\n")
    hunks = hunks_of(old, lines)
    edits = apply_history("a", old, hunks, len(hunks))[1]
    return {
        "\n".join([*lines[: one.first], *one.lines, *lines[one.last :]]): one.family
        for one in propose(edits, lines, 0, len(lines), hunks[0].first, (), language)
    }


CALL = "handler(\n    first,\n    second,\n)\n\n"
BEGUN = CALL.replace("    second", "    key=value,\n    second")
LIST = "other = [\n    first,\n    second,\n]\n"
OTHER_CALL = "other(\n    first,\n    second,\n)\n"


def test_lines_are_not_inserted_where_they_break_the_file() -> None:
    broken = BEGUN + LIST.replace("    second", "    key=value,\n    second")
    assert broken in proposed(CALL + LIST, BEGUN + LIST, "plaintext")
    assert broken not in proposed(CALL + LIST, BEGUN + LIST, "python")
    fine = BEGUN + OTHER_CALL.replace("    second", "    key=value,\n    second")
    assert fine in proposed(CALL + OTHER_CALL, BEGUN + OTHER_CALL, "python")


def test_syntax_is_looked_at_for_as_many_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of these would break the list."""
    asked: list[int] = []

    class Counting(Unbroken):
        def keeps(self, first: int, last: int, new: Sequence[str]) -> bool:
            asked.append(first)
            return super().keeps(first, last, new)

    monkeypatch.setattr(propose_module, "Unbroken", Counting)
    rest = LIST + 4 * OTHER_CALL
    old, lines = (CALL + rest).split("\n"), (BEGUN + rest).split("\n")
    edits = apply_history("a", old, hunks_of(old, lines), 1)[1]
    all_ = propose(edits, lines, 0, len(lines), 2, (), "python")
    every = len(asked)
    for most in (0, 1, 2):
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
